"""Checks and loads the weights of causal language models, once in a process. By default no code from the hub runs."""

from __future__ import annotations

import ctypes
import gc
import json
import threading
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from helm.common.hierarchical_logger import hlog, htrack_block

from helm_longctx.environment import dtype_argument, ignore_broken_torchvision
from helm_longctx.errors import InputError, bad_argument, shorten
from helm_longctx.models.local.model import LocalModel, ModelError

DTYPES = ("bfloat16", "float16", "float32", "auto")
"""Number types; `auto` is the type of the saved weights."""

ATTENTION = {
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
        commit: the commit on the hub; None for a folder.
        dtype: one of `DTYPES`.
        attn_implementation: one of `ATTENTION`; None to let transformers choose.
        arguments: further arguments of `from_pretrained`, as JSON; empty if there are none.
        adapter: name on the hub or folder of a PEFT adapter; None for none.
        remote_code: whether the model's code on the hub runs, at the commit.
        quantized_cache: arguments of transformers' `QuantizedCache`, as JSON; empty for a plain cache.
    """

    path: str
    commit: str | None
    dtype: str
    attn_implementation: str | None
    arguments: str = ""
    adapter: str | None = None
    remote_code: bool = False
    quantized_cache: str = ""

    @staticmethod
    def find(
        path: str, revision: str | None, dtype: str | None, attn_implementation: str | None
    ) -> Weights:
        """Find the weights of a model and check the arguments.

        Args:
            revision: a branch, tag or commit; None for the newest.
            dtype: None for bfloat16 on a GPU, as in HELMET, and float32 elsewhere.

        Raises:
            InputError: there is no such model, or an argument is invalid or needs a module that is not installed.
        """
        import torch
        from transformers.utils.hub import cached_file, extract_commit_hash

        dtype = dtype or ("bfloat16" if torch.cuda.is_available() else "float32")
        if dtype not in DTYPES:
            raise bad_argument(path, "dtype", dtype, DTYPES)
        installed = [name for name, module in ATTENTION.items() if find_spec(module)]
        if attn_implementation is not None and attn_implementation not in installed:
            needed = ATTENTION.get(attn_implementation)
            needs = f" (it needs the module {needed}, which is not installed)" if needed else ""
            allowed = f"one of {', '.join(installed)}{needs}"
            raise bad_argument(path, "attn_implementation", attn_implementation, allowed)
        try:
            commit = extract_commit_hash(cached_file(path, "config.json", revision=revision), None)
        except (
            OSError,
            ValueError,
        ) as error:  # older versions raise ValueError for a missing folder
            raise InputError(
                f"pretrained_model_name_or_path={path!r} with revision={revision!r} is neither a folder nor a model"
                f" that can be downloaded from the hub ({type(error).__name__})"
            ) from error
        return Weights(path, commit, dtype, attn_implementation)

    def load(self) -> LocalModel:
        """Return the model. The first call loads it, on all GPUs if there are several.

        Raises a `ModelError` if the model cannot be loaded.
        """
        # A second thread waits for the first to load the model, instead of loading it once more.
        with _lock:
            if self not in _loaded:
                with htrack_block(f"Loading {self.path}"):
                    quantized = json.loads(self.quantized_cache or "null")
                    _loaded[self] = LocalModel(load_weights(self), quantized_cache=quantized)
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


def load_weights(weights: Weights) -> Any:
    """Load a model of transformers. Raises a `ModelError` if the model cannot be loaded."""
    ignore_broken_torchvision()
    import torch
    from transformers import AutoModelForCausalLM

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    spread = gpus > 1 and find_spec("accelerate") is not None
    further: dict[str, Any] = json.loads(weights.arguments or "{}")
    # Options without a value are left out, because None is not the default in all versions.
    options = {
        dtype_argument(): "auto" if weights.dtype == "auto" else getattr(torch, weights.dtype),
        "attn_implementation": weights.attn_implementation,
        "device_map": "auto" if spread else None,
    }
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            weights.path,
            revision=weights.commit or "main",
            use_safetensors=True,
            trust_remote_code=weights.remote_code,
            **({"code_revision": weights.commit} if weights.remote_code else {}),
            **{
                name: value
                for name, value in options.items()
                if value is not None and name not in further
            },
            **further,
        )
        if weights.adapter is not None:
            model.load_adapter(weights.adapter)
        if gpus and not spread and not {"device_map", "quantization_config"} & further.keys():
            model.to("cuda")
    except Exception as error:  # of the hub, the disk, the GPU or an incompatible package
        reason = f"{type(error).__name__}: {shorten(str(error), 300)}"
        raise ModelError(f"{weights.path} cannot be loaded: {reason}") from error
    where = f"{gpus} GPUs" if spread else str(model.device)
    hlog(
        f"{weights.path}@{weights.commit or 'local'}: {model.dtype}, {model.config._attn_implementation}, on {where}"
    )
    return model.eval()
