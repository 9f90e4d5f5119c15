"""A check as a picture: scores by kind beside those that are right, and what moves a judge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from helm_longctx.judging.check.measures import by_kind, measures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Values = dict[str, dict[str, float]]
"""By judge and name."""

_SCORES = ("score", "expected_score")

THICKNESS = 0.8
"""Of the bars of all judges together; the next row is 1 away."""


def draw(seen: pd.DataFrame, path: Path) -> None:
    """Draw all judges into one picture.

    Args:
        seen: rows of `observe`.
        path: its suffix says which form.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    judges = {str(judge): rows for judge, rows in seen.groupby("judge", sort=False)}
    kinds = {_label(judge, rows): by_kind(rows) for judge, rows in judges.items()}
    moves = {judge: {m.name: m.value for m in measures(rows) if m.good == 0} for judge, rows in judges.items()}
    figure = Figure(figsize=(12, 3.5 + 0.6 * len(judges)), layout="constrained")
    FigureCanvasAgg(figure)  # no window, whatever the user's settings are
    left, right = figure.subplots(1, 2)
    scores, right_ones = ({label: table[name].to_dict() for label, table in kinds.items()} for name in _SCORES)
    _bars(left, scores, right_ones)
    left.set(title="Score by kind of answer", xlim=(0, max(1.0, left.get_xlim()[1])))
    _bars(right, moves)
    right.axvline(0, color="black", linewidth=0.8)
    right.set(title="What moves the judge (0: nothing does)", xlim=(-1, 1))
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=150)


def _label(judge: str, seen: pd.DataFrame) -> str:
    """A bar that is not there is a score of 0 only where there are verdicts."""
    return f"{judge}: {(seen['state'] == 'judged').sum()} of {len(seen)} judged"


def _bars(axes: Axes, values: Values, marks: Values | None = None) -> None:
    """One row a name, in it one bar a judge, with a mark where the bar should end."""
    names = list(next(iter(values.values())))
    height = THICKNESS / len(values)
    for number, (judge, by_name) in enumerate(values.items()):
        top = [row + number * height - THICKNESS / 2 for row in range(len(names))]
        axes.barh(top, [by_name[name] for name in names], height=height, align="edge", label=judge)
        if marks:
            ends, bottom = [marks[judge][name] for name in names], [place + height for place in top]
            axes.vlines(ends, top, bottom, color="black", clip_on=False, label="_" if number else "right score")
    axes.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
