"""The modules that are mutated, and the tests that have to notice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "helm_longctx"

STATISTICS = {
    "noninferiority": (
        "results/statistics/test_noninferiority.py",
        "apps/gate",
        "results/test_stopping.py",
        "results/statistics/test_looks.py",
    ),
    "ranking": (
        "results/statistics/test_ranking.py",
        "results/statistics/test_correlation.py",
    ),
    "run_noise": ("results/test_run_groups.py",),
    "sequential": (
        "results/statistics/test_sequential.py",
        "results/statistics/test_deadline.py",
        "apps/certify/test_search.py",
    ),
    "intervals": (
        "results/statistics/test_intervals.py",
        "results/statistics/test_comparison.py",
        "results/statistics/test_lengths.py",
        "results/statistics/test_rare_misses.py",
        "results/test_lengths.py",
        "apps/report/test_lengths.py",
    ),
    "comparison": (
        "results/statistics/test_comparison.py",
        "results/statistics/test_looks.py",
        "results/test_stopping.py",
        "apps/gate",
    ),
    "power": (
        "results/statistics/test_power.py",
        "results/statistics/test_reliability.py",
    ),
}
"""Tests of modules in results/statistics that have more or others than `test_NAME.py`, in the folder tests."""

DECISIONS = {
    "results/boards.py": ("results/test_results.py", "results/test_chosen_results.py"),
    "results/comparison.py": (
        "results/test_compare.py",
        "results/test_scrutiny.py",
        "results/test_other_conditions.py",
        "apps/report/test_comparison.py",
    ),
    "apps/comparison/*.py": (
        "results/test_compare.py",
        "apps/test_compare.py",
        "results/test_scrutiny.py",
        "apps/report/test_comparison.py",
    ),
    "apps/reproduction/*.py": (
        "apps/test_reproduction.py",
        "e2e/test_releases.py",
        "e2e/test_reproduce.py",
    ),
    "apps/pooling/*.py": ("apps/test_pooling.py", "apps/report/test_pooling.py"),
    "apps/subset/*.py": ("apps/test_subset_statistics.py", "apps/test_subset.py"),
    "apps/gate/*.py": (
        "apps/gate",
        "apps/test_gate_command.py",
        "apps/test_gate_logprobs.py",
    ),
    "apps/certify/*.py": (
        "apps/certify/test_plan.py",
        "apps/certify/test_sections.py",
        "apps/certify/test_search.py",
        "apps/test_certify.py",
    ),
}
"""Patterns of modules, and their tests."""

JUDGES = {
    "judging/judge.py": (
        "judging/test_judge.py",
        "judging/test_replies.py",
        "judging/test_settings.py",
        "apps/test_agreement.py",
        "judging/test_calls.py",
        "benchmarks/helmet/test_jury.py",
    ),
    "judging/answer_judge.py": (
        "judging/test_judge.py",
        "judging/test_replies.py",
        "judging/test_settings.py",
    ),
    "tasks/judge_scores.py": (
        "judging/test_replies.py",
        "apps/test_agreement.py",
        "benchmarks/helmet/test_jury.py",
    ),
    "benchmarks/helmet/verdicts.py": (
        "benchmarks/helmet/test_verdicts.py",
        "benchmarks/helmet/test_verdicts_golden.py",
        "benchmarks/helmet/test_malformed.py",
    ),
}

SCORING = (
    "test_data.py",
    "test_scoring.py",
    "test_haystacks.py",
    "test_outputs.py",
    "test_confusion.py",
    "test_grades.py",
    "test_labels.py",
    "test_programs.py",
    "test_benchmark.py",
)
"""Tests of a benchmark's scores and baselines, of those that it has, besides `test_NAME.py`."""

OFFICIAL = "tests/benchmarks/test_official.py"
"""The comparisons of all benchmarks with their official code."""


def list_rooms() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield each module with its tests, as arguments of pytest in the repository."""
    for path in sorted(PACKAGE.glob("results/statistics/[a-z]*.py")):
        yield (
            path,
            _find(
                STATISTICS.get(path.stem, (f"results/statistics/test_{path.stem}.py",))
            ),
        )
    for pattern, tests in (*DECISIONS.items(), *JUDGES.items()):
        yield from (
            (path, _find(tests))
            for path in sorted(PACKAGE.glob(pattern))
            if path.stem != "__init__"
        )
    for tasks in sorted(PACKAGE.glob("benchmarks/**/tasks.py")):
        # Where the scores are short, they stand beside the table of tasks.
        scoring = tasks.with_name("scoring.py")
        path = scoring if scoring.exists() else tasks
        name = tasks.parent.name
        folder = f"benchmarks/{name}"
        own_tests = _find(
            f"{folder}/{module}"
            for module in (*SCORING, f"test_{path.parent.name}.py")
            if (ROOT / "tests" / folder / module).exists()
        )
        if (ROOT / "tests" / folder / "official.py").exists():
            # pytest selects by the name of the folder and by that of the case.
            own_tests = (*own_tests, OFFICIAL, "-k", name)
        if own_tests:
            yield path, own_tests


def _find(tests: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"tests/{name}" for name in tests)
