"""The modules that are mutated, and the tests that may notice."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "helm_longctx"

MODULES = (
    "results/statistics/[a-z]*.py",
    "results/boards.py",
    "results/comparison.py",
    "apps/comparison/*.py",
    "apps/reproduction/*.py",
    "apps/pooling/*.py",
    "apps/subset/*.py",
    "apps/gate/*.py",
    "apps/certify/*.py",
    "judging/judge.py",
    "judging/answer_judge.py",
    "tasks/judge_scores.py",
    "benchmarks/helmet/verdicts.py",
)
"""Patterns of the modules that decide, besides the scorers of benchmarks."""

TESTS = (
    "results/statistics/test_*.py",
    "results/test_*.py",
    "benchmarks/**/test_*.py",
    "judging/test_*.py",
    "apps/certify/test_*.py",
    "apps/gate/test_*.py",
    "apps/test_agreement.py",
    "apps/test_certify.py",
    "apps/test_compare.py",
    "apps/test_gate_command.py",
    "apps/test_gate_logprobs.py",
    "apps/test_pooling.py",
    "apps/test_reproduction.py",
    "apps/test_subset.py",
    "apps/test_subset_statistics.py",
    "apps/report/test_comparison.py",
    "apps/report/test_lengths.py",
    "apps/report/test_pooling.py",
    "tasks/test_tables.py",
    "test_contract.py",
    "e2e/test_releases.py",
    "e2e/test_reproduce.py",
)
"""Patterns of the tests that are measured: those of the modules' folders, and others that call these modules."""

TABLES = ("tests/tasks/test_tables.py",)
"""Tests that read what the modules say without calling them, such as the numbers of all tasks."""


def list_modules() -> list[Path]:
    """Return the modules that are mutated."""
    modules = [
        path
        for pattern in MODULES
        for path in sorted(PACKAGE.glob(pattern))
        if path.stem != "__init__"
    ]
    for tasks in sorted(PACKAGE.glob("benchmarks/**/tasks.py")):
        # Where the scores are short, they stand beside the table of tasks.
        scoring = tasks.with_name("scoring.py")
        modules.append(scoring if scoring.exists() else tasks)
    return modules
