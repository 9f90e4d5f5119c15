"""Packages that only some commands need: how they are installed, and the one line that says so."""

from __future__ import annotations

from importlib.util import find_spec

from helm_longctx.errors import InputError

EXTRAS = {
    "judges": ("authlib", "genai_prices", "krippendorff", "platformdirs"),
    "citations": ("google.protobuf", "sentencepiece"),
    "plot": ("matplotlib",),
}
"""The modules of each extra in setup.cfg; scikit-learn and scipy come with crfm-helm anyway."""


def require(extra: str, purpose: str) -> None:
    """Check that an extra is installed, before anything is paid for.

    Args:
        extra: its name in setup.cfg.
        purpose: what needs it; the subject of the error.

    Raises:
        InputError: it is not; the message says how to install it.
    """
    if missing := [module for module in EXTRAS[extra] if not is_installed(module)]:
        raise InputError(f"{purpose} needs {' and '.join(missing)}; install with: pip install 'helm-longctx[{extra}]'")


def is_installed(module: str) -> bool:
    """Whether a module can be found; it is not imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False
