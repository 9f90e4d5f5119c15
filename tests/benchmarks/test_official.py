"""Tests that our results equal those of each benchmark's official code, which was run on the same fabricated data.

The cases are in `tests/benchmarks/<name>/official.py`, and the official results in the golden file beside it. If a test
fails, the code is wrong, not the file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache

import pytest

from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import MAIN_METRIC
from tests.support.golden_cases import BENCHMARK_TESTS, Comparison, load_cases

CASES = load_cases()

WHOLE = (
    "cl_bench",
    "flenqa",
    "helmet",
    "helmet2",
    "infinite_bench",
    "leval",
    "longcodebench",
    "longgenbench_qa",
    "longmemeval",
    "loogle",
    "lv_eval",
    "mrcr",
    "oneruler",
    "ruler",
    "ruler2",
    "squality",
)
"""Benchmarks with official prompts or samples of every published task."""

MakeRoot = Callable[[str], DataRoot]
Metrics = dict[str, float | None]

MANY = 20
"""Outputs of a task that may not all have the same scores, because equal scores would show little."""


def list_comparisons() -> list[object]:
    """Return all comparisons, with the folder of their benchmark."""
    comparisons: list[object] = []
    for name, cases in CASES.items():
        for comparison in cases.comparisons:
            marks = pytest.mark.long if comparison.is_long else ()
            title = f"{name}-{comparison.name}"
            comparisons.append(pytest.param(name, comparison, id=title, marks=marks))
    return comparisons


@pytest.fixture(scope="module")
def make_root(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> MakeRoot:
    """Return a callable that makes a benchmark's fabricated data once."""

    @cache
    def make(name: str) -> DataRoot:
        build = CASES[name].build
        if build is None:
            return request.getfixturevalue("mirror")
        folder = tmp_path_factory.mktemp(name)
        build(folder)
        return DataRoot(folder, mirror=True)

    return make


@pytest.mark.parametrize(("name", "comparison"), list_comparisons())
def test_results(name: str, comparison: Comparison, make_root: MakeRoot) -> None:
    """Prompts, requests to judges, verdicts and other results are the official ones."""
    ours = comparison.compute(make_root(name))
    if comparison.relative:
        assert ours == pytest.approx(comparison.official, rel=comparison.relative)
    else:
        assert ours == comparison.official


def are_equal(ours: Metrics, official: Metrics, absolute: float) -> bool:
    """Return whether metrics have the same values, or values with a small difference, or are absent."""
    for metric, value in official.items():
        own = ours[metric]
        if own is None or value is None:
            if own is not value:
                return False
        elif not abs(own - value) <= absolute:  # also if our value is NaN
            return False
    return True


@pytest.mark.parametrize(
    ("own", "value", "absolute", "equal"),
    [
        (0.5, 0.5, 0, True),
        (0.5, 0.5000001, 0, False),
        (0.5, 0.5000001, 1e-6, True),
        (float("nan"), 0.5, 1e-6, False),
        (None, None, 0, True),
        (None, 0.0, 0, False),
        (0.0, None, 0, False),
    ],
)
def test_differences_are_found(
    own: float | None, value: float | None, absolute: float, equal: bool
) -> None:
    """A metric with another value, without a value, or with a value that the official code does not give is found."""
    assert are_equal({"f1": own}, {"f1": value}, absolute) == equal


@pytest.mark.parametrize(
    "name", [name for name, cases in CASES.items() if cases.list_outputs]
)
def test_scores(name: str, make_root: MakeRoot) -> None:
    """Every metric of every output is the official one, and many outputs of a task differ in their scores."""
    cases = CASES[name]
    assert cases.list_outputs is not None
    names = {MAIN_METRIC, *(metric.name for metric in cases.benchmark.metrics)}
    differing = []
    values: dict[str, Counter[tuple[float | None, ...]]] = defaultdict(Counter)
    for output in cases.list_outputs(make_root(name)):
        task = cases.benchmark.task(output.task)
        scores = task.scores(output.record)
        assert scores.keys() <= {*names, *task.metrics}
        ours = {
            metric: output.scale * scores[metric] if metric in scores else None
            for metric in output.official
        }
        if not are_equal(ours, output.official, cases.absolute):
            differing.append((output, ours))
        values[output.task][tuple(output.official.values())] += 1
    assert differing == []
    same = [
        task
        for task, counts in values.items()
        if counts.total() >= MANY and len(counts) == 1
    ]
    assert same == []


def test_every_golden_file_has_cases() -> None:
    """Each golden file of a benchmark is compared by these tests."""
    folders = {path.parent.name for path in BENCHMARK_TESTS.glob("*/golden.json")}
    assert folders == set(CASES)
    assert len(folders) > 35


@pytest.mark.parametrize("name", WHOLE)
def test_every_task_is_compared(name: str) -> None:
    """The examples of each published task of some benchmarks are compared, also of tasks that are added."""
    cases = CASES[name]
    compared = set[str]()
    for comparison in cases.comparisons:
        compared |= comparison.tasks
    for category in cases.benchmark.categories:
        assert {task.name for task in category.tasks} <= compared
