"""Tests of which of several results counts."""

from __future__ import annotations

from helm_longctx.results.boards import choose_results
from helm_longctx.results.comparability import Caveat
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.runs.shown_models import ShownModel


def result(score: float, instances: int, *caveats: Caveat) -> Result:
    interval = Interval(score, score, score, instances)
    return Result(
        "b", "e", "", ShownModel("m"), 4096, "full", interval, caveats=caveats
    )


def test_a_complete_result_counts_before_one_with_more_instances() -> None:
    """A mean that lacks a task never replaces a whole one, although it has more instances; of whole ones the larger counts."""
    whole = result(0.5, 100)
    larger = result(0.6, 150)
    part = result(0.9, 400, Caveat("missing", "t"))
    for order in ((whole, part), (part, whole)):
        assert choose_results(order, lambda chosen: chosen.model) == [whole]
    assert choose_results((whole, part, larger), lambda chosen: chosen.model) == [
        larger
    ]
