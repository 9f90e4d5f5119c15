"""A workaround for a torchvision that was built for another version of torch."""

from __future__ import annotations

import sys
from importlib import import_module


def ignore_broken_torchvision() -> None:
    """Make transformers work without torchvision if torchvision cannot be imported. Text models do not need it.

    crfm-helm installs torchvision. The package index's build does not work with a CPU build of torch, and then
    transformers cannot import any model and some tokenizers ("operator torchvision::nms does not exist").
    """
    from transformers.utils import import_utils

    try:
        import_module("torchvision")
    except ImportError:
        return
    except (RuntimeError, OSError):
        sys.modules["torchvision"] = None  # type: ignore[assignment]
        # Older versions of transformers keep the result in a variable, newer ones in a cache.
        vars(import_utils)["_torchvision_available"] = False
        getattr(import_utils.is_torchvision_available, "cache_clear", lambda: None)()
