"""Tests of `import helm_longctx`: it is quick and quiet, and its names are typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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

OF_A_FUNCTION = """
import sys
import helm_longctx as lc
lc.evaluate(lambda prompt: "7", "fresh_text:task=count", "4k", num_samples=1, quiet=True)
print(sorted({"nltk", "sklearn", "torch", "transformers", "vllm"} & {*sys.modules}))
"""


def test_import_is_quick_and_quiet() -> None:
    """The import loads neither HELM nor torch, and prints nothing."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_function_needs_no_torch(tmp_path: Path) -> None:
    """A function in the place of a model is evaluated without the packages that run models, which import for seconds."""
    done = subprocess.run(
        [sys.executable, "-c", OF_A_FUNCTION],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout == "[]\n"


def test_public_names() -> None:
    """The public names exist, and others are no attributes."""
    assert all(getattr(lc, name) for name in lc.__all__)
    with pytest.raises(
        AttributeError, match="module 'helm_longctx' has no attribute 'evaluat'"
    ):
        lc.evaluat  # noqa: B018
