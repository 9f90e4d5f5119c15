"""`benchmark.yaml` makes the same record as arguments in Python, and the files beside it are found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from helm_longctx.tasks import Axis, Category, Metric, Terms, read_benchmark
from helm_longctx.tasks.benchmark import OF_JUDGES
from helm_longctx.tasks.lengths import LARGEST
from helm_longctx.tasks.registry import find_benchmark

CARD = """
name: mystery
title: Mystery
description: Who did it?
revision: example-org/mystery@1a2b3c4
comparability: 2
floors: [Random]
axis: {unit: stories, longest: 16m}
data:
  https://example.org/data: {license: MIT, faults: [One key is wrong.]}
metrics:
  guesses: {title: Guesses, description: Number of guesses., lower_is_better: null, range: null}
  share: {title: Share, description: A share., range: [-1.0, 1.0]}
  judge_score_strict:
  judge_spread:
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose name is `mystery_card`, with a card."""
    folder = tmp_path / "mystery_card"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "benchmark.yaml").write_text(CARD, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mystery_card", raising=False)
    return folder


def test_a_card_has_what_a_record_has(package: Path) -> None:
    """Lists become tuples, lengths numbers, and the metrics of all judges are named alone."""
    benchmark = read_benchmark(
        "mystery_card", [Category("", "", ())], [Metric("more", "More", "Further.")]
    )
    assert benchmark.url == "https://github.com/example-org/mystery/tree/1a2b3c4"
    assert benchmark.axis == Axis("stories", longest=LARGEST)
    assert (benchmark.comparability, benchmark.floors, benchmark.outputs) == (
        2,
        ("Random",),
        "",
    )
    assert benchmark.data == {
        "https://example.org/data": Terms("MIT", faults=("One key is wrong.",))
    }
    guesses = Metric(
        "guesses", "Guesses", "Number of guesses.", lower_is_better=None, range=None
    )
    share = Metric("share", "Share", "A share.", range=(-1.0, 1.0))
    assert benchmark.metrics == (
        guesses,
        share,
        *OF_JUDGES.values(),
        Metric("more", "More", "Further."),
    )
    assert benchmark.published() == benchmark.protocols() == benchmark.errata() == ()


def test_files_beside_a_card_are_found(package: Path) -> None:
    """Published results and readers of outputs need no argument, and an argument is stronger than a file."""
    (package / "published.csv").write_text(
        "model,score\nFake-7B,50\n", encoding="utf-8"
    )
    (package / "outputs.py").touch()
    benchmark = read_benchmark("mystery_card", [Category("", "", ())], axis=None)
    assert [(row.model, row.scores) for row in benchmark.published()] == [
        ("Fake-7B", {"": 0.5})
    ]
    assert benchmark.outputs == "mystery_card.outputs.READER"
    assert benchmark.axis is None


def test_tasks_need_no_category() -> None:
    """A benchmark of tasks has the same run entries as one with a category without a name."""
    package = "helm_longctx.benchmarks.squality"
    tasks = find_benchmark("squality").tasks
    by_tasks = read_benchmark(package, tasks)
    by_category = read_benchmark(package, (Category(tasks=tasks),))
    assert by_tasks.categories == by_category.categories
    assert [*by_tasks.entries] == ["squality"]
    assert by_tasks.tasks == tasks
