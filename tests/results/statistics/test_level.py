"""The level of intervals is one constant. Every word and every test of significance follows it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import helm_longctx

SOURCE = Path(helm_longctx.__file__).parent

LEVELS = re.compile(r"\b95 %|\bat (?:5|2\.5) %")
"""The level, its error, and the error of each side."""

LEVEL_IN_PAGES = re.compile(r"\b95(?: |&nbsp;|\\,)\\?%")
"""The level in templates and scripts of pages and documents."""

AT_90 = """
from helm_longctx.results.statistics import level
level.LEVEL = 0.9
level.LEVEL_TEXT = "90 %"
level.SIGNIFICANCE = 0.1
from helm_longctx.results import cells
from helm_longctx.results.leaderboard import tables
from helm_longctx.results.statistics import comparison, intervals
from helm_longctx.runner import score_log
print(f"{intervals.normal_quantile():.4f}", f"{intervals.t_quantile(10):.4f}")
print(comparison.SIGNIFICANCE, score_log.LEVEL_TEXT, tables.LEVEL_TEXT, cells.LEVEL_TEXT)
"""


def test_no_text_names_the_level() -> None:
    """No text that users see names the level or an error that follows from it: such texts are formatted."""
    named = []
    for path in sorted((SOURCE / "documents").glob("*/*")):
        if LEVEL_IN_PAGES.search(path.read_text(errors="replace")):
            named.append(str(path.relative_to(SOURCE)))
    for path in sorted(SOURCE.rglob("*.py")):
        if not LEVELS.search(path.read_text()):  # most modules need not be parsed
            continue
        for text in list_shown_texts(path):
            if LEVELS.search(text.value):
                named.append(f"{path.relative_to(SOURCE)}:{text.lineno}")
    assert named == []


def list_shown_texts(path: Path) -> list[ast.Constant]:
    """Return the texts of a module without its docstrings, which are shown only in modules of commands, as their help."""
    tree = ast.parse(path.read_text())
    docstrings = set()
    if path.name != "command.py":
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr):
                docstrings.add(node.value)
    shown = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or node in docstrings:
            continue
        if isinstance(node.value, str):
            shown.append(node)
    return shown


def test_another_level_changes_intervals_and_words() -> None:
    """With a level of 90 %, the intervals are narrower, and tables, logs and tests of significance follow."""
    done = subprocess.run(
        [sys.executable, "-c", AT_90], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1.6449 1.8125\n0.1 90 % 90 % 90 %\n"
