"""Tests of `import helm_longctx`: it is quick and quiet, and its names are typed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import helm_longctx as lc

SCRIPT = """
import sys
import helm_longctx as lc
assert lc.__version__
heavy = {name.partition(".")[0] for name in sys.modules} & {"helm", "torch", "transformers", "pandas", "numpy"}
assert not heavy, heavy
from helm_longctx import InputError
assert issubclass(InputError, Exception)
"""


def test_import_is_quick_and_quiet() -> None:
    """The import loads neither HELM nor torch, and prints nothing."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_public_names() -> None:
    """The public names exist, and others are no attributes."""
    assert all(getattr(lc, name) for name in lc.__all__)
    with pytest.raises(
        AttributeError, match="module 'helm_longctx' has no attribute 'evaluat'"
    ):
        lc.evaluat  # noqa: B018
