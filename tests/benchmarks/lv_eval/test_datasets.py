"""The table of LV-Eval's data sets is consistent."""

from __future__ import annotations

import string

import pytest

from helm_longctx.benchmarks.lv_eval.tasks import DATASETS, LV_EVAL

EACH = pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.name)


def test_totals() -> None:
    """The totals equal the numbers in the paper and in the official README."""
    assert len({dataset.name for dataset in DATASETS}) == len(DATASETS) == 11
    assert sum(dataset.rows for dataset in DATASETS) == 1729
    assert sum(dataset.language == "zh" for dataset in DATASETS) == 5
    assert LV_EVAL.revision.endswith("63e7ae9")


@EACH
def test_rows_are_consistent(dataset) -> None:
    """A template has two places, and each data set's metric, language, budget and file name agree with its name."""
    assert [
        name for _, name, _, _ in string.Formatter().parse(dataset.prompt) if name
    ] == [
        "context",
        "input",
    ]
    assert ("zh" in dataset.scoring.official) == (dataset.language == "zh")
    assert dataset.scoring.names[0] in dataset.metrics
    assert dataset.max_tokens == (16 if dataset.name.startswith("factrecall") else 64)
    assert dataset.file("16k") == f"lveval/{dataset.name}/{dataset.name}_16k.jsonl"


@EACH
def test_confused_comes_with_confusing_facts(dataset) -> None:
    """Only the data sets with confusing facts have the metric `confused`."""
    record = {
        "prediction": "贝克汉姆", "references": ["贝多芬"], "language": dataset.language, "confusing_facts": ["贝克汉姆"],
    }  # fmt: skip
    assert (
        ("confused" in dataset.score(record))
        == dataset.confusing
        == ("confused" in dataset.metrics)
    )
