"""Draws plots into files: scores over length, and any other Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from helm_longctx.apps.exchange.export import AVERAGE, Average
from helm_longctx.documents.numbers import MARK
from helm_longctx.documents.plots import THEMES, Spec, curves
from helm_longctx.errors import InputError
from helm_longctx.results.reference import MAKER
from helm_longctx.tasks.lengths import parse_length

SCALE = 2.0
"""Pixels of a PNG for each unit of a plot."""

FLOORS = "longctx/"
"""Start of the names of the baseline models."""


def write_picture(spec: Spec, path: Path) -> None:
    """Draw a plot with its data into a file. The extension selects the format: `.png`, `.svg` or `.pdf`."""
    import vl_convert

    if path.suffix == ".svg":
        path.write_text(vl_convert.vegalite_to_svg(spec, config=THEMES["light"]), encoding="utf-8")
    elif path.suffix == ".pdf":
        path.write_bytes(vl_convert.vegalite_to_pdf(spec, config=THEMES["light"]))
    else:
        path.write_bytes(vl_convert.vegalite_to_png(spec, scale=SCALE, config=THEMES["light"]))


def length_plot(averages: Iterable[Average]) -> Spec:
    """Return a plot of means over tasks by length, with the data.

    There is a panel for each run entry, folder, judge, and for runs with `context=none`. A benchmark without lengths
    has no panel. Scores that are not comparable have the mark †.

    Raises:
        InputError: there are no scores by length.
    """
    means = [each for each in averages if each.task == AVERAGE and each.length]
    if not means:
        raise InputError("the suite has no scores by length to draw")
    means.sort(key=lambda mean: (mean.entry, mean.context, mean.folder, mean.judge, mean.model))
    rows = [_row(mean) for mean in means]
    lengths = sorted({mean.length for mean in means}, key=parse_length)
    spec = curves(list(dict.fromkeys(row["part"] for row in rows)), lengths, "length")
    return {**spec, "datasets": {"rows": rows}}


def _row(mean: Average) -> dict[str, Any]:
    conditions = {"context": mean.context.removeprefix("full"), "path": mean.folder, "judge": mean.judge}
    return {
        "model": mean.model,
        "part": ", ".join([mean.entry, *(f"{name}={value}" for name, value in conditions.items() if value)]),
        "length": mean.length,
        "score": mean.score,
        "low": mean.low,
        "high": mean.high,
        "kind": _kind(mean.model),
        "mark": MARK if mean.lacking else None,
        "note": mean.lacking or None,
    }


def _kind(model: str) -> str:
    if model.startswith(f"{MAKER}/"):
        return "published"
    return "floor" if model.startswith(FLOORS) else "own"
