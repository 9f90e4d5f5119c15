"""Tests of the modules that make golden files. Official code is not needed for these tests."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.golden_makers.__main__ import FOLDER, list_makers

IMPORT = re.compile(
    r"^\s*from ((?:helm_longctx|tests)[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE
)
"""An import of our modules, also in the code that a process of its own runs."""

PATHS = sorted(FOLDER.rglob("*.py"))


def has_name(module: str, name: str) -> bool:
    """Return whether a module has a name or a module of that name."""
    if hasattr(import_module(module), name):
        return True
    try:
        import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


def list_imports(path: Path) -> list[tuple[str, str]]:
    """Return the modules of ours and the names that a file imports from them."""
    imports = []
    for module, names in IMPORT.findall(path.read_text(encoding="utf-8")):
        for name in re.sub(r"#.*|[()]", "", names).split(","):
            if (first := name.partition(" as ")[0].strip()) not in ("", "*"):
                imports.append((module, first))
    return imports


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_imports_exist(path: Path) -> None:
    """Each name that a maker imports from our modules exists, because nobody runs a maker for months."""
    missing = [
        (module, name)
        for module, name in list_imports(path)
        if not has_name(module, name)
    ]
    assert missing == []


def test_every_golden_file_of_a_benchmark_has_a_maker() -> None:
    """Each benchmark with a golden file has a module that makes it."""
    folders = {
        path.parent.name for path in FOLDER.parent.glob("benchmarks/*/golden.json")
    }
    assert folders <= set(list_makers())
    assert len(folders) > 35
