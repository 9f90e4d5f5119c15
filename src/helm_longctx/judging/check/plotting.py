"""Plots a check: each judge's scores by kind of answer, its biases, its correctness and its consistency."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from helm_longctx.judging.check.measures import EXPECTED, agreements, by_kind, measures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

THICKNESS = 0.8
"""Height of the points of all judges in a row together; rows are 1 apart."""

RANGES: dict[float | None, tuple[str, tuple[float, float]]] = {
    0.0: ("Biases and variation (perfect: 0)", (-1.0, 1.0)),
    1.0: ("Correct and consistent (perfect: 1)", (-1.0, 1.0)),
}
"""Title and range of the panel for measures, by the value of a perfect judge."""


class Point(NamedTuple):
    """A value with its interval, and a mark at the expected value.

    Args:
        low, high: NaN if there is no interval.
        mark: NaN if there is none.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    mark: float = math.nan


Points = dict[str, dict[str, Point]]
"""Points by judge and row."""


def draw(rows: pd.DataFrame, path: Path) -> None:
    """Draw all judges into one figure.

    Args:
        rows: rows from `observe`.
        path: plot file; the extension selects the format.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    judges = {_label(str(judge), of_judge): of_judge for judge, of_judge in rows.groupby("judge", sort=False)}
    kinds = {label: _kind_points(of_judge) for label, of_judge in judges.items()}
    figure = Figure(figsize=(15, 4.5 + 0.6 * len(judges)), layout="constrained")
    FigureCanvasAgg(figure)  # draws without a window, whatever backend the user's settings name
    first, *others = figure.subplots(1, 1 + len(RANGES))
    _draw_points(first, kinds)
    first.set(title="Score by kind of answer", xlim=(-0.02, max(1.02, first.get_xlim()[1])))
    for axes, (good, (title, limits)) in zip(others, RANGES.items(), strict=True):
        _draw_points(axes, {label: _measure_points(of_judge, good) for label, of_judge in judges.items()})
        axes.axvline(good or 0.0, color="black", linewidth=0.8)
        axes.set(title=title, xlim=limits, xticks=(-1, -0.5, 0, 0.5, 1))
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(3, len(labels)), frameon=False)
    figure.savefig(path, dpi=150)


def _label(judge: str, rows: pd.DataFrame) -> str:
    """Name a judge with its number of verdicts: without them, missing points would have no explanation."""
    return f"{judge}: {(rows['state'] == 'judged').sum()} of {len(rows)} judged"


def _kind_points(rows: pd.DataFrame) -> dict[str, Point]:
    table = by_kind(rows)
    return {
        str(kind).replace("_", " "): Point(score, mark=expected)
        for kind, score, expected in zip(table.index, table["score"], table["expected_score"], strict=True)
    }


def _measure_points(rows: pd.DataFrame, good: float | None) -> dict[str, Point]:
    """Return the measures for which a perfect judge has this value, and its agreement with the expected scores."""
    points = {m.name: Point(m.value, m.low, m.high) for m in measures(rows) if m.good == good}
    if good == 1.0:
        found = [(task, each.alpha) for task, raters, each in agreements(rows) if raters.startswith(f"{EXPECTED} / ")]
        points |= {f"agreement (alpha),\n{task}": Point(alpha.value, alpha.low, alpha.high) for task, alpha in found}
    return points


def _draw_points(axes: Axes, points: Points) -> None:
    """Draw a row for each name, with a point and its interval for each judge, and a line at the expected value."""
    names = list(next(iter(points.values())))
    height = THICKNESS / len(points)
    for row in range(0, len(names), 2):
        axes.axhspan(row - 0.5, row + 0.5, color="whitesmoke", zorder=0)
    for number, (judge, by_name) in enumerate(points.items()):
        color, values = f"C{number}", [by_name[name] for name in names]
        heights = [row + (number + 0.5) * height - THICKNESS / 2 for row in range(len(names))]
        axes.hlines(heights, [each.low for each in values], [each.high for each in values], color=color)
        axes.plot([each.value for each in values], heights, "o", color=color, clip_on=False, label=judge)
        # The expected values are those of the set, the same for all judges, so they are drawn once.
        if not all(math.isnan(each.mark) for each in values) and not number:
            marks = [each.mark for each in values]
            rows = range(len(names))
            axes.vlines(
                marks, [row - 0.5 for row in rows], [row + 0.5 for row in rows], color="black", label="expected"
            )
    axes.set_yticks(range(len(names)), names)
    # Upside down, so that the first row stands at the top.
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x", alpha=0.3)
