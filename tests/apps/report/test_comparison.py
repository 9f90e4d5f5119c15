"""Tests of what the page of comparisons shows, and at which length and part it opens."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

import pytest

from helm_longctx.apps.comparison.sections import comparison_sections
from helm_longctx.documents.document import Figure
from helm_longctx.results.boards import OVERALL, Board
from helm_longctx.results.comparison import by_instance, find_differences, mean_of
from helm_longctx.results.statistics.comparison import holm

K = 1024


def test_the_page_opens_where_the_user_ran(mixed: Board) -> None:
    """The page opens at the longest length and the part of own runs, with the models that have its tasks in common."""
    first = comparison_sections(mixed)[0]
    assert first.choice == "32k"
    assert first.about.startswith(
        "By score in Recall, on the tasks that both models have."
    )
    matrix, ranks, *_ = first.blocks
    assert isinstance(matrix, Figure)
    assert isinstance(ranks, Figure)
    assert {row["row"] for row in matrix.rows} == {"acme/one †", "acme/two †"}
    assert [row["model"] for row in ranks.rows] == ["acme/one †", "acme/two †"]


def test_own_models_are_two_families_of_comparisons(
    board_of: Callable[..., Board],
) -> None:
    """A pair of own models is adjusted for own pairs alone, pairs with published models apart, and two published models never meet."""
    board = board_of(
        ["helmet_recall:length=8k"], {"acme/one": 0.95, "acme/two": 0.5}, published=True
    )
    differences = find_differences(board, "helmet_recall", 8 * K)
    own = differences["acme/one", "acme/two"]
    assert own.adjusted == own.comparison.p_value
    published = {
        pair: difference
        for pair, difference in differences.items()
        if pair[1].startswith("published/")
    }
    assert {one for one, _ in published} == {"acme/one", "acme/two"}
    p_values = [row.comparison.p_value for row in published.values()]
    assert [row.adjusted for row in published.values()] == pytest.approx(
        holm(p_values), nan_ok=True
    )
    matrix, ranks, *_ = comparison_sections(board)[0].blocks
    assert isinstance(matrix, Figure)
    assert isinstance(ranks, Figure)
    shown = list(dict.fromkeys(row["row"] for row in matrix.rows))
    assert (shown[:2], len(shown)) == (["acme/one †", "acme/two †"], 12)
    assert [row["model"] for row in ranks.rows] == ["acme/one †", "acme/two †"]


def test_a_paired_difference_is_the_difference_of_the_scores(own: Board) -> None:
    """A paired difference weights tasks and columns as the overall score does, and counts the instances that both answered."""
    difference = find_differences(own, OVERALL, 16 * K)[
        "acme/one", "acme/two"
    ].comparison
    tasks = own.tasks_of(OVERALL, 16 * K)
    results = [
        [own.score(f"acme/{name}", task, 16 * K) for name in ("one", "two")]
        for task in tasks
    ]
    pairs = [
        [by_instance(side.answers if side else ()) for side in both] for both in results
    ]
    shared = [ours.keys() & theirs.keys() for ours, theirs in pairs]
    means = [
        fmean(mean_of(ours[key]) - mean_of(theirs[key]) for key in keys)
        for (ours, theirs), keys in zip(pairs, shared, strict=True)
    ]
    assert difference.effect.mean == pytest.approx(fmean(means))
    assert difference.wins + difference.losses + difference.ties == sum(
        map(len, shared)
    )


def test_a_matrix_has_both_directions_and_p_values_that_fit_the_interval(
    own: Board,
) -> None:
    """Each pair of the matrix has both directions, p-values that fit its interval, and ties by the adjusted p-value."""
    matrix, ranks = comparison_sections(own)[0].blocks
    assert isinstance(matrix, Figure)
    values = {(row["row"], row["column"]): row["difference"] for row in matrix.rows}
    assert all(
        values[one, other] == -float(str(value))
        for (other, one), value in values.items()
    )
    for row in matrix.rows:
        low, high, p, adjusted = (
            float(str(row[name])) for name in ("low", "high", "p", "adjusted p")
        )
        assert (low > 0 or high < 0) == (p < 0.05)
        assert adjusted >= p
        assert row["tied"] == (adjusted >= 0.05)
    assert isinstance(ranks, Figure)
    assert all(
        float(str(row["low"])) <= float(str(row["score"])) <= float(str(row["high"]))
        for row in ranks.rows
    )


def test_floors_and_single_models_are_not_compared(
    board_of: Callable[..., Board], own: Board
) -> None:
    """There is no page for fewer than two models, and no floor is in a plot or table of the page."""
    entry = "helmet_recall:task=json_kv,length=8k"
    assert (
        comparison_sections(board_of([entry], {"acme/one": 0.9, "longctx/null": 0.1}))
        == []
    )
    matrix, ranks = comparison_sections(own)[0].blocks
    for figure in (matrix, ranks):
        assert isinstance(figure, Figure)
        assert not any(
            "null" in str(row.get("model", row.get("row"))) for row in figure.rows
        )
