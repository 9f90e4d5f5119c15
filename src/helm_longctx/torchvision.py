"""Workaround for a torchvision that does not fit the installed torch."""

from __future__ import annotations

import sys
from importlib import import_module


def ignore_broken_torchvision() -> None:
    """Make transformers ignore a torchvision that cannot be imported. Text models do not need it.

    crfm-helm installs torchvision. Beside a CPU build of torch, the build from the package index fails on import
    ("operator torchvision::nms does not exist"), and transformers then imports no model and not all tokenizers.
    """
    from transformers.utils import import_utils

    try:
        import_module("torchvision")
    except ImportError:
        return
    except (RuntimeError, OSError):
        sys.modules["torchvision"] = None  # type: ignore[assignment]
        # Older versions of transformers store in a variable whether torchvision exists, newer ones in a cache.
        vars(import_utils)["_torchvision_available"] = False
        getattr(import_utils.is_torchvision_available, "cache_clear", lambda: None)()
