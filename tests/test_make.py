"""Tests of the Makefile's commands in a clone that a user has worked in."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

BAD_FILES = {
    "utils.py": "import   os\ndef f( x ):\n  return teh\n",
    "notes.md": "# Notes\n\nThis is very unique, and we recieve langauge.\n\n```python\nx  =  1\n```\n",
    "report.html": "<p>recieve langauge</p>\n",
    "pyproject.toml": "[tool.ruff]\nline-length = 20\n",
}
"""Files with faults that ruff, codespell and proselint report, as answers of models can have them."""

FOLDERS = ("benchmark_output/runs/demo", "prod_env", "config", "data", "results/own")
"""What the demo and runs write, and folders of users. Two have names of modules that benchmarks import."""


OUR_FOLDERS = (".ci", "bench", "docs", "src", "tests")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Copy the repository for the linters' commands, and add files of a user."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for path in filter(Path.is_file, ROOT.iterdir()):
        shutil.copy2(path, folder)
    for name in OUR_FOLDERS:
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in FOLDERS:
        (folder / name).mkdir(parents=True)
        for file, text in BAD_FILES.items():
            (folder / name / file).write_text(text)
    for file in ("utils.py", "notes.md", "report.html"):
        (folder / file).write_text(BAD_FILES[file])
    return folder


def lint_commands(folder: Path) -> list[list[str]]:
    """Return the commands of `make lint` with the programs of this environment, without the installation."""
    done = subprocess.run(
        ["make", "--dry-run", "lint", "BIN=bin"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    commands = [line.split() for line in done.stdout.splitlines()]
    programs = Path(sys.executable).parent
    return [
        [str(programs / name[4:]), *rest]
        for name, *rest in commands
        if re.fullmatch(r"bin/(?!pip)\w+", name)
    ]


def test_the_linters_read_no_files_of_users(clone: Path) -> None:
    """The linters of `make lint` find no fault in a clone with files of a user."""
    commands = lint_commands(clone)
    assert {Path(name).name for name, *_ in commands} == {
        "ruff",
        "mypy",
        "codespell",
        "proselint",
    }
    for command in commands:
        if not Path(command[0]).exists():
            pytest.skip(f"{command[0]} is not installed")
        if command[0].endswith("mypy"):
            continue
        done = subprocess.run(
            command, cwd=clone, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)


MYPY_FILES = """
import json, re, sys
from pathlib import Path
from mypy.fscache import FileSystemCache
from mypy.main import process_options
from mypy.modulefinder import FindModuleCache, compute_search_paths

sources, options = process_options(sys.argv[1:])
paths = compute_search_paths(sources, options, "")
finder = FindModuleCache(paths, FileSystemCache(), options)
imported = set()
for source in sources:
    text = Path(source.path).read_text(encoding="utf-8")
    imported.update(re.findall(r"^ *(?:from|import) ([\\w.]+)", text, re.MULTILINE))
found = {
    module: str(finder.find_module(module))
    for module in sorted(imported)
    if options.clone_for_module(module).follow_imports != "skip"
}
print(json.dumps([[source.path for source in sources], found]))
"""
"""Prints the files that mypy checks, and where it finds the modules that they import, without those that it skips."""


def test_mypy_reads_no_files_of_users(clone: Path) -> None:
    """mypy checks only our files, and finds no file of a user behind an import. Checking the types would take minutes."""
    pytest.importorskip("mypy")
    (command,) = (
        command for command in lint_commands(clone) if command[0].endswith("mypy")
    )
    done = subprocess.run(
        [sys.executable, "-c", MYPY_FILES, *command[1:]],
        cwd=clone,
        capture_output=True,
        text=True,
        check=True,
    )
    checked, loaded = json.loads(done.stdout)
    assert len(checked) > 400
    assert {Path(path).parts[0] for path in checked} <= set(OUR_FOLDERS)
    in_clone = {
        Path(path).relative_to(clone).parts[0]
        for path in loaded.values()
        if Path(path).is_relative_to(clone)
    }
    assert "src" in in_clone
    assert in_clone <= set(OUR_FOLDERS)


@pytest.mark.parametrize(
    ("file", "fault"),
    [("src/helm_longctx/new.py", "import   os\n"), ("docs/new.md", "recieve\n")],
)
def test_the_linters_read_our_files(clone: Path, file: str, fault: str) -> None:
    """The linters find a fault in a file of ours."""
    (clone / file).write_text(fault)
    commands = [
        command for command in lint_commands(clone) if not command[0].endswith("mypy")
    ]
    assert any(
        subprocess.run(command, cwd=clone, capture_output=True, check=False).returncode
        for command in commands
    )


def test_ci_runs_the_commands_of_the_readme() -> None:
    """CI runs the commands of the README in the same order, in one clone."""
    block = (
        (ROOT / "README.md")
        .read_text(encoding="utf-8")
        .split("\n## Start\n")[1]
        .split("\n## ")[0]
    )
    readme = re.findall(r"^ +(make \S+)", block, re.MULTILINE)
    ci = re.findall(
        r"^make \S+", (ROOT / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert readme
    assert ci[: len(readme)] == readme
