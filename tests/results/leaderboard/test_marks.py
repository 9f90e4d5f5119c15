"""Tests of percent, intervals and marks in HELM's tables."""

from __future__ import annotations

import math
from typing import Any

from helm.benchmark.presentation.table import Cell, HeaderCell, Table

from helm_longctx.results.comparability import Caveat
from helm_longctx.results.leaderboard.tables import (
    NOTES,
    ScoreCell,
    make_cell,
    mark_table,
)
from helm_longctx.results.statistics.intervals import Interval

FEW = [Caveat("num_samples", "nq", "6/100"), Caveat("request_failed", "nq", "0.5")]
NO_SCORE = [Caveat("missing", "popqa")]
NAMES = [f"m{number}" for number in range(9)]


def cell(
    value: float | None,
    caveats: list[Caveat],
    low: float = math.nan,
    high: float = math.nan,
    **options: Any,
) -> ScoreCell:
    return make_cell(
        Interval(math.nan if value is None else value, low, high, 9), caveats, **options
    )


def table(*columns: list[ScoreCell], lower_is_better: bool | None = False) -> Table:
    header = [
        HeaderCell("Model"),
        *(HeaderCell(name, lower_is_better=lower_is_better) for name in "ABCDEFGHI"),
    ]
    rows = [
        [Cell(name), *row]
        for name, row in zip(NAMES, zip(*columns, strict=True), strict=False)
    ]
    return mark_table(Table("t", header[: len(columns) + 1], rows))


def values(marked: Table, place: int = 1) -> list[Any]:
    return [row[place].value for row in marked.rows]


def test_a_column_with_a_mark() -> None:
    """Cells have texts of one width that sort as numbers do, only comparable scores can be bold, and all numbers are kept."""
    scores = [cell(0.5, []), cell(1.0, FEW), cell(0.05, []), cell(None, [])]
    marked = table(scores, [cell(value, []) for value in (0.1, 0.2, 0.3, 0.4)])
    texts = values(marked)
    assert texts == [" 50.0 %", "100.0 †", "  5.0 %", None]
    assert sorted(texts[:3]) == [texts[2], texts[0], texts[1]]
    assert [row[1].style for row in marked.rows[:3]] == [
        {"font-weight": "bold"},
        {},
        {},
    ]
    assert [row[2].number for row in marked.rows] == [0.1, 0.2, 0.3, 0.4]
    assert marked.header[-1].value == NOTES
    assert values(marked, 3) == [
        None, "A: 6 of the benchmark's 100 examples (nq); A: failed requests: 50 % (nq)", None, None
    ]  # fmt: skip
    assert (marked.rows[1][1].number, marked.rows[1][1].caveats) == (1.0, FEW)
    assert "6 of the benchmark's 100 examples" in str(marked.rows[1][1].description)


def test_a_table_without_marks() -> None:
    """A table without marks has no column of notes, and its percents are texts, because the front end cuts zeros of numbers."""
    marked = table([cell(0.5, []), cell(0.0, [])])
    assert values(marked) == ["50.0 %", " 0.0 %"]
    assert len(marked.header) == 2


def test_statistics_that_are_not_shares() -> None:
    """Counts, seconds and dollars are not shown as percents, and all numbers of a column have equally many decimals."""
    for numbers, texts in (
        ((0.25, 0.5), ["0.2500", "0.5000"]),
        ((2.5, 12), [" 2.50", "12.00"]),
        ((100, 7), ["100", "  7"]),
    ):
        assert (
            values(table([cell(number, [], is_share=False) for number in numbers]))
            == texts
        )


def test_reasons_are_told_once() -> None:
    """Each reason is told once, with the columns that it is about."""
    marked = table(
        [cell(0.5, NO_SCORE), cell(0.5, [])],
        [cell(0.25, [*NO_SCORE, *FEW[:1]]), cell(0.75, [])],
    )
    assert values(marked, 3) == [
        "A, B: no score (popqa); B: 6 of the benchmark's 100 examples (nq)",
        None,
    ]


def test_intervals() -> None:
    """The interval follows the number in the cell, and a cell without a known interval shows none."""
    marked = table(
        [cell(0.5, [], 0.4, 0.61234), cell(0.75, FEW, 0.7, 0.8), cell(0.25, [])]
    )
    texts = values(marked)
    assert texts == ["50.0 (40.0–\u206061.2)", "75.0 † (70.0–\u206080.0)", "25.0 %"]
    assert sorted(texts, reverse=True) == [texts[1], texts[0], texts[2]]
    first = marked.rows[0][1]
    assert (first.number, first.low, first.high, first.n) == (0.5, 0.4, 0.61234, 9)
    assert first.description == "n = 9\n95 % interval: 40.0–61.2"
    assert first.style == {"font-weight": "bold"}


def test_a_missing_score_has_its_reason() -> None:
    """The column of notes gives the reasons that explain a missing score, and no others."""
    marked = table([cell(None, [*NO_SCORE, *FEW])], [cell(0.5, [])])
    assert values(marked, 3) == ["A: none, because of no score (popqa)"]
    assert values(table([cell(None, FEW[1:])]), 2) == [
        "A: none, because of failed requests: 50 % (nq)"
    ]


def test_a_reason_names_few_columns_and_tasks() -> None:
    """A note names few columns and tasks, because its row would be higher than the page otherwise."""
    caveats = [
        Caveat("missing", task) for task in ("nq", "popqa", "triviaqa", "hotpotqa")
    ]
    (note,) = values(table(*([cell(0.5, caveats)] for _ in range(9))), 10)
    assert note == "A, B, C and 6 more: no score (nq, popqa, triviaqa and 1 more)"


def test_the_best_where_lower_is_better_or_nothing_is() -> None:
    """The best score is bold where lower is better, and no score is bold if there is no better or all have marks."""
    for better, bold in ((True, [False, True, False]), (None, [False] * 3)):
        marked = table(
            [cell(0.1, FEW), cell(0.2, []), cell(0.3, [])], lower_is_better=better
        )
        assert [bool(row[1].style) for row in marked.rows] == bold
    assert table([cell(0.1, FEW)]).rows[0][1].style == {}
