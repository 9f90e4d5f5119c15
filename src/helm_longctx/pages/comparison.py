"""The page that compares models: which model is better than which, ranks by several methods, performance profiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from helm_longctx.pages.differences import Differences, find_differences, rank_range
from helm_longctx.pages.document import Cell, Column, Figure, Section, Table
from helm_longctx.pages.leaderboard import best_part, interval_text, plot_models
from helm_longctx.pages.plots import interval_plot, matrix, profiles
from helm_longctx.pages.results import OVERALL, Board, label, show_model
from helm_longctx.statistics.ranking import borda, interquartile_mean, kemeny, performance_profile

THRESHOLDS = [percent / 100 for percent in range(0, 101, 2)]
"""Scores at which performance profiles are drawn."""


def comparison_sections(board: Board) -> list[Section]:
    """Return a section for each length at which two models have a score, that of the main length first."""
    return [section for length in board.main_length_first if (section := _section(board, length))]


def _section(board: Board, length: int | None) -> Section | None:
    part = best_part(board, length)
    ranking = board.ranking(length, part)
    if len(ranking) < 2:
        return None
    every = [model for model, _ in ranking]
    models, differences = plot_models(ranking), find_differences(board, part, length)
    name = f"comparison-{board.benchmark.name}-{label(length)}".rstrip("-")
    blocks = [
        _matrix(models, differences, name),
        _ranks(models, every, differences, name),
        _methods(board, every, differences, length, name),
        _profiles(board, models, length, name),
    ]
    what = "overall score" if part == OVERALL else board.titles[part]
    about = (
        f"By {what}. Models that were run here are compared on the same instances (permutation test over clusters,"
        " Holm's correction for all pairs); others by their intervals alone."
    )
    title = f"Comparisons {label(length)}".strip()
    return Section(name, title, [block for block in blocks if block], about, choice=label(length))


def _matrix(models: Sequence[str], differences: Differences, name: str) -> Figure:
    rows = [
        {
            **{"row": show_model(one), "column": show_model(other)},
            **{"difference": round(100 * each.effect.mean, 2), "interval": interval_text(each.effect)},
            **{"tied": each.is_tied, "p": each.p_value if each.p_value is None else float(f"{each.p_value:.3g}")},
            **{"wins": each.wins, "losses": each.losses, "ties": each.ties},
        }
        for one in models
        for other in models
        if (each := differences.get((one, other)))
    ]
    # With `or 1.0` the ends of the colour scale are never equal.
    largest = max(abs(float(str(row["difference"]))) for row in rows) or 1.0
    about = (
        "The score of the row's model minus that of the column's, in percentage points. An equals sign marks two models"
        " that cannot be told apart."
    )
    text = "(datum.tied ? '= ' : '') + format(datum.difference, '+.1f')"
    details = ["interval", "p", "wins", "losses", "ties"]
    spec = matrix([show_model(model) for model in models], "difference", "difference", largest, text, details)
    return Figure(f"{name}-matrix", "Who is better than whom", about, spec, rows)


def _ranks(models: Sequence[str], every: Sequence[str], differences: Differences, name: str) -> Figure:
    ranges = {model: rank_range(model, every, differences) for model in models}
    rows = [
        # The same plot shows scores and ranks, so the rank is put in the field of the score.
        {"model": show_model(model), "score": every.index(model) + 1, "low": low, "high": high, "kind": "own"}
        for model, (low, high) in ranges.items()
    ]
    about = (
        "Each model's rank by score, and the best and the worst rank that the comparisons leave open. Models with"
        " overlapping ranges may change places."
    )
    spec = interval_plot("rank", [show_model(model) for model in models], value_format="d")
    return Figure(f"{name}-ranks", "Ranks and how far they are open", about, spec, rows)


def _methods(
    board: Board, models: Sequence[str], differences: Differences, length: int | None, name: str
) -> Table | None:
    columns = board.columns_at(length)
    scores = [[board.score(model, part, length) for part in columns] for model in models]
    table = np.array([[each.interval.mean if each else np.nan for each in row] for row in scores])
    # The methods need a score of every model in every column.
    if len(columns) < 2 or np.isnan(table).any():
        return None
    points, order = borda(table), kemeny(table)
    rows = []
    for place, model in enumerate(models):
        low, high = rank_range(model, models, differences)
        mean, middle = 100 * float(table[place].mean()), 100 * interquartile_mean(table[place])
        numbers = (mean, float(points[place]), middle)
        cells = [*(Cell(f"{value:.1f}", value) for value in numbers), Cell(str(order.index(place) + 1))]
        rows.append([Cell(show_model(model)), *cells, Cell(f"{low}–{high}" if low < high else str(low), float(low))])
    heads = [
        Column("Model", is_number=False),
        Column("Mean", "The mean of all columns."),
        Column("Borda", "Over how many other models it stands, in the mean over columns."),
        Column("Interquartile mean", "The mean of the middle half of the columns' scores."),
        Column("Kemeny", "The rank in the order that contradicts the columns' orders of pairs least often."),
        Column("Rank", "The ranks that the comparisons leave open."),
    ]
    about = "If the methods order two models differently, their order depends on how columns are weighed."
    return Table(f"{name}-methods", "Ranks by other methods", heads, rows, about, search=True)


def _profiles(board: Board, models: Sequence[str], length: int | None, name: str) -> Figure | None:
    rows = []
    for model in models:
        # Of published models often only categories are known.
        tasks = [task for task in board.tasks_of(OVERALL, length) if board.score(model, task, length)]
        found = [board.score(model, part, length) for part in tasks or board.columns_at(length)]
        values = [each.interval.mean for each in found if each]
        if not values:  # a model can have only a score of another part
            continue
        shares = performance_profile(values, THRESHOLDS)
        rows += [
            {"model": show_model(model), "threshold": 100 * limit, "share": round(float(share), 4)}
            for limit, share in zip(THRESHOLDS, shares, strict=True)
        ]
    if not rows:
        return None
    about = "The share of tasks (of categories, where only those are known) in which a model scores more than a value."
    return Figure(f"{name}-profiles", "Performance profiles", about, profiles(), rows, by_model=True)
