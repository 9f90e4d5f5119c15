"""Plots a check: scores by kind of answer with the expected scores, and the biases of each judge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from helm_longctx.judging.check.measures import by_kind, measures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Values = dict[str, dict[str, float]]
"""Values by judge and name."""

_SCORES = ("score", "expected_score")

THICKNESS = 0.8
"""Height of the bars of all judges in a row together; rows are 1 apart."""


def draw(rows: pd.DataFrame, path: Path) -> None:
    """Draw all judges into one figure.

    Args:
        rows: rows from `observe`.
        path: plot file; the extension selects the format.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    judges = {str(judge): of_judge for judge, of_judge in rows.groupby("judge", sort=False)}
    kinds = {_label(judge, of_judge): by_kind(of_judge) for judge, of_judge in judges.items()}
    biases = {judge: {m.name: m.value for m in measures(of_judge) if m.good == 0} for judge, of_judge in judges.items()}
    figure = Figure(figsize=(12, 3.5 + 0.6 * len(judges)), layout="constrained")
    FigureCanvasAgg(figure)  # draws without a window, whatever backend the user's settings name
    left, right = figure.subplots(1, 2)
    scores, expected = ({label: table[name].to_dict() for label, table in kinds.items()} for name in _SCORES)
    _draw_bars(left, scores, expected)
    left.set(title="Score by kind of answer", xlim=(0, max(1.0, left.get_xlim()[1])))
    _draw_bars(right, biases)
    right.axvline(0, color="black", linewidth=0.8)
    right.set(title="Bias of the judge (0: none)", xlim=(-1, 1))
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=150)


def _label(judge: str, rows: pd.DataFrame) -> str:
    """Name a judge with its number of verdicts: without them, a bar of length 0 would look like a score of 0."""
    return f"{judge}: {(rows['state'] == 'judged').sum()} of {len(rows)} judged"


def _draw_bars(axes: Axes, values: Values, marks: Values | None = None) -> None:
    """Draw a row for each name, with a bar for each judge and a mark at the expected value."""
    names = list(next(iter(values.values())))
    height = THICKNESS / len(values)
    for number, (judge, by_name) in enumerate(values.items()):
        top = [row + number * height - THICKNESS / 2 for row in range(len(names))]
        axes.barh(top, [by_name[name] for name in names], height=height, align="edge", label=judge)
        if marks:
            ends, bottom = [marks[judge][name] for name in names], [place + height for place in top]
            axes.vlines(ends, top, bottom, color="black", clip_on=False, label="_" if number else "expected score")
    axes.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
