"""Weights of causal language models: checked, loaded once in a process, and nothing from the hub is executed."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from helm.common.hierarchical_logger import hlog, htrack_block

from helm_longctx.errors import InputError, bad_argument, shorten
from helm_longctx.models.hf_model import LocalModel, ModelError
from helm_longctx.torchvision import ignore_broken_torchvision

DTYPES = ("bfloat16", "float16", "float32", "auto")
"""`auto`: as the weights are saved."""

ATTENTION = {
    "eager": "torch",
    "sdpa": "torch",
    "flash_attention_2": "flash_attn",
    "flash_attention_3": "flash_attn_interface",
}
"""Implementations of attention, and the module that each needs. Kernels on the hub are code: they are not taken."""

_loaded: dict[Weights, LocalModel] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Weights:
    """Which weights, and how they are held.

    Args:
        path: name on the hub, or a folder.
        commit: on the hub; None for a folder.
        dtype: one of `DTYPES`.
        attn_implementation: one of `ATTENTION`; None for what transformers chooses.
    """

    path: str
    commit: str | None
    dtype: str
    attn_implementation: str | None

    @staticmethod
    def find(path: str, revision: str | None, dtype: str | None, attn_implementation: str | None) -> Weights:
        """The weights at a revision: a branch, a tag or a commit; None for the newest.

        Args:
            dtype: None for bfloat16 on a GPU, as in HELMET, else float32.

        Raises:
            InputError: there are none, an argument is not allowed, or what it needs is not installed.
        """
        import torch

        dtype = dtype or ("bfloat16" if torch.cuda.is_available() else "float32")
        if dtype not in DTYPES:
            raise bad_argument(path, "dtype", dtype, DTYPES)
        installed = [name for name, module in ATTENTION.items() if find_spec(module)]
        if attn_implementation is not None and attn_implementation not in installed:
            needed = ATTENTION.get(attn_implementation)
            needs = f" (it needs the module {needed}, which is not installed)" if needed else ""
            raise bad_argument(path, "attn_implementation", attn_implementation, ", ".join(installed) + needs)
        return Weights(path, _commit(path, revision), dtype, attn_implementation)

    def load(self) -> LocalModel:
        """The model, loaded when it is first asked for, on all GPUs if there are several.

        Raises:
            ModelError: it cannot be loaded.
        """
        with _lock:
            if self not in _loaded:
                with htrack_block(f"Loading {self.path}"):
                    _loaded[self] = LocalModel(_load(self))
            return _loaded[self]


def _commit(path: str, revision: str | None) -> str | None:
    from transformers.utils.hub import cached_file, extract_commit_hash

    try:
        found: str | None = extract_commit_hash(cached_file(path, "config.json", revision=revision), None)
    except (OSError, ValueError) as error:  # older versions take an absent folder for a malformed name
        raise InputError(
            f"pretrained_model_name_or_path={path!r} with revision={revision!r} is neither a folder nor a model that"
            f" can be had from the hub ({type(error).__name__})"
        ) from error
    return found


def _load(weights: Weights) -> Any:
    ignore_broken_torchvision()
    import torch
    from transformers import AutoModelForCausalLM

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    spread = gpus > 1 and find_spec("accelerate") is not None
    options = {"attn_implementation": weights.attn_implementation, "device_map": "auto" if spread else None}
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            weights.path,
            revision=weights.commit or "main",
            # `dtype`, the later name of `torch_dtype`, is unknown to the oldest transformers that HELM takes.
            torch_dtype="auto" if weights.dtype == "auto" else getattr(torch, weights.dtype),
            use_safetensors=True,
            trust_remote_code=False,
            **{name: value for name, value in options.items() if value is not None},
        )
        if gpus and not spread:
            model.to("cuda")
    except Exception as error:  # of the hub, the disk, the GPU, or a package that does not fit
        why = f"{type(error).__name__}: {shorten(str(error), 300)}"
        raise ModelError(f"{weights.path} cannot be loaded: {why}") from error
    where = f"{gpus} GPUs" if spread else str(model.device)
    hlog(f"{weights.path}@{weights.commit or 'local'}: {model.dtype}, {model.config._attn_implementation}, on {where}")
    return model.eval()
