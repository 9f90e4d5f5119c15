"""Lengths, depths, traits and floors."""

from __future__ import annotations

import pytest

from helm_longctx.benchmarks import find_benchmark
from helm_longctx.report.lengths import by_depth, floors, over_lengths, splits
from helm_longctx.report.results import Result, published_results
from helm_longctx.statistics.intervals import Interval
from tests.report.test_compare import result

LV_EVAL = find_benchmark("lv_eval")


def score(mean: float, model: str = "a/b", length: int = 8192, context: str = "full") -> Result:
    return Result("helmet", "rag", "nq", model, length, context, Interval(mean, mean - 0.03, mean + 0.04, 100))


def test_over_lengths() -> None:
    """In the order of lengths; closed-book runs are another thing."""
    (row,) = over_lengths(
        [score(0.6, length=32768), score(0.9), score(0.8, length=16384), score(0.1, length=65536, context="none")]
    )
    assert list(row.scores) == [8192, 16384, 32768]
    assert row.drop
    assert (row.drop.mean, row.drop.low, row.drop.high) == pytest.approx((0.3, 0.25, 0.35))
    assert (row.effective, row.ruler) == (16384, 8192)
    (alone,) = over_lengths([score(0.5)])
    assert (alone.drop, alone.effective, alone.ruler) == (None, 8192, None)


def test_by_depth() -> None:
    """Lost in the middle."""
    rows = result("a/b", "nq", lambda question, depth: float(depth not in (0.4, 0.6))).rows
    means = by_depth(rows)
    assert list(means) == [0, 20, 40, 60, 80, 100]
    assert [interval.mean for interval in means.values()] == [1, 1, 0, 0, 1, 1]
    assert means[40].n == 30
    assert means[40].high > 0.05


def test_floors() -> None:
    """The best baseline of the same task and length counts; baselines have no floor themselves."""
    found = floors(
        [
            score(0.8),
            score(0.1, "longctx/null"),
            score(0.5, "longctx/lexical"),
            score(0.6, context="none"),
            score(0.7, "c/d"),
            score(0.9, "longctx/lexical", length=16384),
        ]
    )
    by_model = {each.result.model: each for each in found}
    assert set(by_model) == {"a/b", "c/d"}
    assert by_model["a/b"].above == pytest.approx(0.5)
    assert set(by_model["a/b"].baselines) == {"longctx/null", "longctx/lexical", "closed book"}
    assert by_model["c/d"].above == pytest.approx(0.4)
    assert floors([score(0.8)])[0].above is None


def test_confusing_facts() -> None:
    """The published data sets with them and without, at each length."""
    found = [each for each in splits(published_results(LV_EVAL), LV_EVAL) if each.model == "published/GPT-4-8k"]
    assert {each.trait for each in found} == {"confusing facts"}
    assert len(found) == 5
    whole = {
        r.task: r.interval.mean
        for r in published_results(LV_EVAL)
        if (r.model, r.length) == ("published/GPT-4-8k", 16384)
    }
    (short,) = (each for each in found if each.length == 16384)
    assert (6 * short.with_it.mean + 5 * short.without.mean) / 11 == pytest.approx(sum(whole.values()) / 11)
