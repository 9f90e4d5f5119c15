"""Tests of scores by depth and by trait."""

from __future__ import annotations

import pytest

from helm_longctx.apps.lengths.curves import by_depth, splits
from helm_longctx.results.reading import Result, published_results
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.registry import find_benchmark
from tests.support.results import result

LV_EVAL = find_benchmark("lv_eval")


def score(
    mean: float, model: str = "a/b", length: int = 8192, context: str = "full"
) -> Result:
    return Result(
        "helmet",
        "helmet_rag",
        "nq",
        ShownModel(model),
        length,
        context,
        Interval(mean, mean - 0.03, mean + 0.04, 100),
    )


def test_by_depth() -> None:
    """Each depth has the mean and the interval of its answers."""
    rows = result(
        "a/b", "nq", lambda question, depth: float(depth not in (0.4, 0.6))
    ).answers
    means = by_depth(rows)
    assert list(means) == [0, 20, 40, 60, 80, 100]
    assert [interval.mean for interval in means.values()] == [1, 1, 0, 0, 1, 1]
    assert means[40].n == 30
    assert means[40].high > 0.05


def test_confusing_facts() -> None:
    """The published data sets with and without confusing facts are compared at each length."""
    effects = [
        split
        for split in splits(published_results(LV_EVAL), LV_EVAL)
        if split.model == "published/GPT-4-8k"
    ]
    assert {effect.trait for effect in effects} == {"confusing facts"}
    assert len(effects) == 5
    whole = {
        r.task: r.interval.mean
        for r in published_results(LV_EVAL)
        if (r.model, r.length) == ("published/GPT-4-8k", 16384)
    }
    (short,) = (effect for effect in effects if effect.length == 16384)
    assert (6 * short.with_it.mean + 5 * short.without.mean) / 11 == pytest.approx(
        sum(whole.values()) / 11
    )
