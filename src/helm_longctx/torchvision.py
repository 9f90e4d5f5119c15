"""A way around a torchvision that was built for another torch."""

from __future__ import annotations

import sys
from importlib import import_module


def ignore_broken_torchvision() -> None:
    """Let transformers do without a torchvision that cannot be imported: text models need none.

    It comes with crfm-helm; beside a CPU build of torch the registry's keeps transformers from importing any model and
    some tokenizers ("operator torchvision::nms does not exist").
    """
    from transformers.utils import import_utils

    try:
        import_module("torchvision")
    except ImportError:
        return
    except (RuntimeError, OSError):
        sys.modules["torchvision"] = None  # type: ignore[assignment]
        # Older versions keep the answer in a variable, newer ones in a cache.
        vars(import_utils)["_torchvision_available"] = False
        getattr(import_utils.is_torchvision_available, "cache_clear", lambda: None)()
