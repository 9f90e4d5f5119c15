"""Checks that the packages of an extra are installed."""

from __future__ import annotations

from importlib.util import find_spec

from helm_longctx.errors import InputError

EXTRAS = {
    "judges": ("authlib", "genai_prices", "krippendorff", "platformdirs"),
    "citations": ("google.protobuf", "sentencepiece"),
    "plot": ("matplotlib",),
}
"""The modules of each extra in setup.cfg, without scikit-learn and scipy, which come with crfm-helm."""


def require(extra: str, purpose: str) -> None:
    """Check that an extra is installed, before calls are made that cost money.

    Args:
        extra: the extra's name in setup.cfg.
        purpose: what needs the extra. The error starts with it.

    Raises:
        InputError: a package is missing. The message says how to install the extra.
    """
    if missing := [module for module in EXTRAS[extra] if not is_installed(module)]:
        raise InputError(f"{purpose} needs {' and '.join(missing)}; install with: pip install 'helm-longctx[{extra}]'")


def is_installed(module: str) -> bool:
    """Whether a module is installed. The module is not imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # raised if the parent package is missing
        return False
