"""The level of intervals is one constant. Every word and every test of significance follows it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import helm_longctx

SOURCE = Path(helm_longctx.__file__).parent

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
    """No text of the package but docstrings contains "95 %": it is formatted from the level."""
    named = []
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        docstrings = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or id(node) in docstrings:
                continue
            if isinstance(node.value, str) and "95 %" in node.value:
                named.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert named == []


def test_another_level_changes_intervals_and_words() -> None:
    """With a level of 90 %, the intervals are narrower, and tables, logs and tests of significance follow."""
    done = subprocess.run(
        [sys.executable, "-c", AT_90], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1.6449 1.8125\n0.1 90 % 90 % 90 %\n"
