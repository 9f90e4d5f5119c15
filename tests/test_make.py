"""Tests of the Makefile's commands in a clone that a user has worked in."""

from __future__ import annotations

import os
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
        # mypy's cache of `make lint` saves a minute.
        env = {**os.environ, "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")}
        done = subprocess.run(
            command, cwd=clone, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)


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
