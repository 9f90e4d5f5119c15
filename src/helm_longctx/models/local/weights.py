"""Checks and loads the weights of causal language models, once in a process. By default no code from the hub runs."""

from __future__ import annotations

import ctypes
import gc
import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from helm_longctx.environment import dtype_argument, ignore_broken_torchvision
from helm_longctx.errors import InputError, bad_argument, list_first, shorten
from helm_longctx.helm_log import helm_log
from helm_longctx.models.local.folders import read_shapes
from helm_longctx.models.local.model import LocalModel, ModelError

_DTYPES = ("bfloat16", "float16", "float32", "auto")
"""Number types; `auto` is the type of the saved weights."""

_ATTENTION = {
    "eager": "torch",
    "sdpa": "torch",
    "flash_attention_2": "flash_attn",
    "flash_attention_3": "flash_attn_interface",
}
"""Attention implementations, and the module that each needs. Kernels from the hub are code, so they are not allowed."""

_loaded: dict[Weights, LocalModel] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Weights:
    """The weights of a model, and how they are loaded.

    Args:
        path: name on the hub, or a folder.
        commit: the commit on the hub, or None for a folder.
        dtype: one of `_DTYPES`.
        attn_implementation: one of `_ATTENTION`; None to let transformers choose.
        arguments: further arguments of `from_pretrained`, as JSON, or empty if there are none.
        adapter: name on the hub or folder of a PEFT adapter, or None for none.
        remote_code: whether the model's code on the hub runs, at the commit.
        quantized_cache: arguments of transformers' `QuantizedCache`, as JSON, or empty for a plain cache.
        digest: identifies the files of a folder, so that replaced weights are loaded again.
    """

    path: str
    commit: str | None
    dtype: str
    attn_implementation: str | None
    arguments: str = ""
    adapter: str | None = None
    remote_code: bool = False
    quantized_cache: str = ""
    digest: str = ""

    @staticmethod
    def find(
        path: str,
        revision: str | None,
        dtype: str | None,
        attn_implementation: str | None,
    ) -> Weights:
        """Find the weights of a model and check the arguments.

        Args:
            revision: a branch, tag or commit, or None for the newest.
            dtype: None for bfloat16 on a GPU, as in HELMET, and float32 elsewhere.

        Raises:
            InputError: there is no such model, or an argument is invalid or needs a module that is not installed.
        """
        import torch
        from transformers.utils.hub import cached_file, extract_commit_hash

        dtype = dtype or ("bfloat16" if torch.cuda.is_available() else "float32")
        if dtype not in _DTYPES:
            raise bad_argument(path, "dtype", dtype, _DTYPES)
        installed = []
        for name, module in _ATTENTION.items():
            if find_spec(module):
                installed.append(name)
        if attn_implementation is not None and attn_implementation not in installed:
            needed = _ATTENTION.get(attn_implementation)
            if needed:
                needs = f" (it needs the module {needed}, which is not installed)"
            else:
                needs = ""
            allowed = f"one of {', '.join(installed)}{needs}"
            raise bad_argument(
                path, "attn_implementation", attn_implementation, allowed
            )
        try:
            commit = extract_commit_hash(
                cached_file(path, "config.json", revision=revision), None
            )
        except (
            OSError,
            ValueError,
        ) as error:  # older versions raise ValueError for a missing folder
            raise InputError(
                f"pretrained_model_name_or_path={path!r} with revision={revision!r} is"
                " neither a folder nor a model that can be downloaded from the hub"
                f" ({type(error).__name__})"
            ) from error
        return Weights(
            path=path,
            commit=commit,
            dtype=dtype,
            attn_implementation=attn_implementation,
        )

    def load(self) -> LocalModel:
        """Return the model. The first call loads it, on all GPUs if there are several.

        Raises a `ModelError` if the model cannot be loaded.
        """
        # A second thread waits for the first to load the model, instead of loading it once more.
        with _lock:
            if self not in _loaded:
                with helm_log.block(f"Loading {self.path}"):
                    quantized = json.loads(self.quantized_cache or "null")
                    _loaded[self] = LocalModel(
                        load_weights(self), quantized_cache=quantized
                    )
            return _loaded[self]

    def free(self) -> None:
        """Free the memory of the model. The next call of `load` loads it again."""
        with _lock:
            if _loaded.pop(self, None) is None:
                return
            import torch

            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            # glibc keeps freed memory in its arenas. Other systems have no such function.
            with suppress(OSError, AttributeError):
                ctypes.CDLL("libc.so.6").malloc_trim(0)


_KEYS = ("missing_keys", "unexpected_keys", "mismatched_keys")
"""What transformers reports of the tensors of a checkpoint that do not fit the model."""

_SHOWN = 3
"""Names of tensors that an error shows of each kind."""


def describe_mismatch(report: Mapping[str, Iterable[Any]]) -> str:
    """Return which tensors of a checkpoint do not fit its model; an empty text if all do.

    Args:
        report: the `output_loading_info` of transformers. Tied tensors are not in it.
    """
    kinds = []
    for kind in _KEYS:
        # Of a tensor with another shape, the report also has the two shapes.
        names = []
        for key in report.get(kind) or ():
            names.append(str(key[0]) if isinstance(key, tuple | list) else str(key))
        names.sort()
        if names:
            kinds.append(f"{kind.partition('_')[0]}: {list_first(names, _SHOWN)}")
    return "; ".join(kinds)


def _find_not_finite(model: Any) -> Iterator[str]:
    """Yield the names of weights that have a value that is not a finite number.

    Args:
        model: a model of PyTorch. Its quantized weights, and those that are not in memory, are not read.
    """
    import torch

    kinds = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    for name, tensor in model.named_parameters():
        if tensor.device.type == "meta" or tensor.dtype not in kinds:
            continue
        # A sum needs no copy of the tensor. It is not finite if a value is not, and if it is too large.
        is_finite = bool(torch.isfinite(tensor.detach().sum(dtype=torch.float32)))
        if not is_finite and not bool(torch.isfinite(tensor.detach()).all()):
            yield name


def find_not_loaded(model: Any) -> list[str]:
    """Return the names of weights that have no values: on the device `meta`, without a hook that loads them."""
    names = []
    for module_name, module in model.named_modules():
        if hasattr(
            module, "_hf_hook"
        ):  # accelerate reads the weights when they are needed
            continue
        for name, tensor in module.named_parameters(recurse=False):
            if tensor.device.type == "meta":
                names.append(f"{module_name}.{name}".lstrip("."))
    return names


def check_weights(model: Any, path: str) -> None:
    """Raise a `ModelError` if a loaded model has a weight that is not a number, or no weights in memory."""
    broken = list(_find_not_finite(model))
    if broken:
        raise ModelError(
            f"{path} cannot be used: weights that are not finite numbers (NaN or infinity):"
            f" {list_first(broken, _SHOWN)}"
        )


def _check_fit(path: str, report: Mapping[str, Iterable[Any]]) -> None:
    """Raise a `ModelError` that names the tensors of a checkpoint that do not fit its model."""
    if wrong := describe_mismatch(report):
        # transformers fills them with random numbers or drops them, and only warns.
        raise ModelError(
            f"{path} does not have the weights of its architecture: {wrong}"
        )


def _name_other_shapes(weights: Weights) -> str:
    """Return which tensors of a folder have another shape than the model, or empty if none has, or it is not known."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = Path(weights.path)
    if folder.is_dir() and not weights.remote_code:
        saved = read_shapes(folder)
    else:
        saved = None
    if not saved:
        return ""
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        make: Any = AutoModelForCausalLM.from_config
        with torch.device("meta"):
            model = make(config, trust_remote_code=False)
    except Exception:  # the configuration is wrong, too, and the first error says how
        return ""
    wrong = []
    for name, tensor in model.state_dict().items():
        shape = list(tensor.shape)
        if name in saved and saved[name] != shape:
            wrong.append(f"{name} is {saved[name]} instead of {shape}")
    return "; ".join(wrong[:_SHOWN])


def _add_adapter(model: Any, adapter: str) -> None:
    """Load an adapter of PEFT, with a check that all of its tensors are used and none is missing."""
    folder = Path(adapter)
    if folder.is_dir() and not (folder / "adapter_model.safetensors").is_file():
        raise ModelError(
            f"adapter={adapter!r} has no adapter_model.safetensors; save it with"
            " safe_serialization=True"
        )
    try:
        report = model.load_adapter(adapter)
    except Exception as error:  # of the hub, the disk or the format
        reason = f"{type(error).__name__}: {shorten(str(error), 300)}"
        raise ModelError(
            f"adapter={adapter!r} cannot be loaded into {model.config.name_or_path}: {reason};"
            " its tensors must have the shapes and names of this model"
        ) from error
    if report is None:
        fields = _report_adapter(model, adapter)
    else:
        fields = report.to_dict()
    if wrong := describe_mismatch(fields):
        raise ModelError(
            f"adapter={adapter!r} does not fit {model.config.name_or_path}: {wrong}"
        )


def _report_adapter(model: Any, adapter: str) -> dict[str, set[str]]:
    """Compare an adapter's file with the model that loaded it. Old versions of transformers report nothing."""
    peft: Any = import_module("peft")
    utils: Any = import_module("peft.utils")

    def shorten_name(name: str) -> str:
        return name.removeprefix("base_model.model.")

    loaded = {shorten_name(name) for name in peft.get_peft_model_state_dict(model)}
    saved = {
        shorten_name(name) for name in utils.load_peft_weights(adapter, device="cpu")
    }
    return {"missing_keys": loaded - saved, "unexpected_keys": saved - loaded}


def load_weights(weights: Weights) -> Any:
    """Load a model of transformers. Raises a `ModelError` if the model cannot be loaded."""
    ignore_broken_torchvision()
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils.import_utils import is_accelerate_available

    if torch.cuda.is_available():
        gpus = torch.cuda.device_count()
    else:
        gpus = 0
    # An accelerate that is too old for transformers counts as missing.
    spread = gpus > 1 and is_accelerate_available()
    further: dict[str, Any] = json.loads(weights.arguments or "{}")
    # Options without a value are left out, because None is not the default in all versions.
    options = {
        dtype_argument(): "auto"
        if weights.dtype == "auto"
        else getattr(torch, weights.dtype),
        "attn_implementation": weights.attn_implementation,
        "device_map": "auto" if spread else None,
    }
    try:
        # The package's types do not know that it returns two values here.
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            weights.path,
            revision=weights.commit or "main",
            use_safetensors=True,
            trust_remote_code=weights.remote_code,
            output_loading_info=True,
            **({"code_revision": weights.commit} if weights.remote_code else {}),
            **{
                name: value
                for name, value in options.items()
                if value is not None and name not in further
            },
            **further,
        )
        model, report = loaded
        _check_fit(weights.path, report)
        if weights.adapter is not None:
            _add_adapter(model, weights.adapter)
        if (
            gpus
            and not spread
            and not {"device_map", "quantization_config"} & further.keys()
        ):
            model.to("cuda")
        check_weights(model, weights.path)
    except ModelError:
        raise
    except (
        Exception
    ) as error:  # of the hub, the disk, the GPU or an incompatible package
        if wrong := _name_other_shapes(weights):
            raise ModelError(
                f"{weights.path} does not have the weights of its architecture: {wrong}"
            ) from error
        reason = f"{type(error).__name__}: {shorten(str(error), 300)}"
        raise ModelError(f"{weights.path} cannot be loaded: {reason}") from error
    where = f"{gpus} GPUs" if spread else str(model.device)
    helm_log.info(
        f"{weights.path}@{weights.commit or 'local'}: {model.dtype},"
        f" {model.config._attn_implementation}, on {where}"
    )
    return model.eval()
