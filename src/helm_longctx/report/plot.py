"""Plots scores over length."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from helm_longctx.errors import InputError
from helm_longctx.protocol.lengths import length_label, parse_length
from helm_longctx.protocol.metric_names import AVERAGE
from helm_longctx.report.export import Average
from helm_longctx.report.reference import MAKER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONTS = ["DejaVu Sans", "Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "PingFang SC", "Microsoft YaHei"]
"""Matplotlib uses the first installed font that has a character. The fonts after the first are for Chinese text."""


class Point(NamedTuple):
    """A score on a curve."""

    score: float
    comparable: bool = True
    low: float | None = None
    high: float | None = None


Curves = dict[str, dict[int, Point]]
"""Model to its points by length in tokens."""

COLUMNS = 3

FLOORS = "longctx/"
"""Start of the names of the baseline models."""

LACKING = "hollow: not comparable"
"""Legend of hollow points. The tables of `export` have the reasons."""

_HOLLOW: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 5, "markerfacecolor": "white"}


def curves(averages: Iterable[Average]) -> dict[str, Curves]:
    """Return the curves of means over tasks by panel: one for each run entry, folder, judge, and with `context=none`.

    A benchmark without lengths has no curve.
    """
    means = [each for each in averages if each.task == AVERAGE and each.length]
    panels: dict[str, Curves] = {}
    for mean in sorted(
        means,
        key=lambda mean: (mean.entry, mean.context, mean.folder, mean.judge, mean.model, parse_length(mean.length)),
    ):
        conditions = {"context": mean.context.removeprefix("full"), "path": mean.folder, "judge": mean.judge}
        panel = ", ".join([mean.entry, *(f"{name}={value}" for name, value in conditions.items() if value)])
        curve = panels.setdefault(panel, {}).setdefault(mean.model, {})
        curve[parse_length(mean.length)] = Point(mean.score, not mean.lacking, mean.low, mean.high)
    return panels


def plot(panels: Mapping[str, Curves], path: Path) -> None:
    """Draw the panels into a file. The extension selects the format: `.png`, `.svg` or `.pdf`.

    Raises:
        InputError: there are no panels.
    """
    if not panels:
        raise InputError("there are no scores by length to draw; run helm-run with this --suite first")
    from matplotlib import colormaps, font_manager, rc_context
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    # -(-a // b) rounds up.
    rows = -(-len(panels) // COLUMNS)
    columns = min(COLUMNS, len(panels))
    installed = set(font_manager.get_font_names())
    logging.getLogger(font_manager.__name__).setLevel(
        logging.ERROR
    )  # suppresses a warning for each font that lacks a weight
    with rc_context({"font.family": [font for font in FONTS if font in installed], "svg.fonttype": "none"}):
        models = sorted({model for panel in panels.values() for model in panel})
        legend = 0.6 + 0.2 * -(-(len(models) + 1) // columns)
        # `Figure` is used directly, because pyplot would look for a display.
        figure = Figure(figsize=(4.2 * columns, 3.2 * rows + legend), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).flatten()
        colors = {model: colormaps["tab20"](place % 20) for place, model in enumerate(models)}
        for axis, (title, panel) in zip(axes, panels.items(), strict=False):
            _draw(axis, title, panel, colors)
        for axis in axes[len(panels) :]:
            axis.set_axis_off()
        handles = {
            label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        curves = [curve for panel in panels.values() for curve in panel.values()]
        if not all(point.comparable for curve in curves for point in curve.values()):
            handles[LACKING] = Line2D([], [], **_HOLLOW, color="black")
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns, fontsize="small")
        figure.savefig(path, dpi=150)


def _line_style(model: str) -> str:
    """Return the style of a curve: dashed for published results, dotted for the baselines, which are a floor."""
    if model.startswith(f"{MAKER}/"):
        return "--"
    return ":" if model.startswith(FLOORS) else "-"


def _draw(axis: Axes, title: str, panel: Curves, colors: Mapping[str, Any]) -> None:
    lengths = sorted({length for curve in panel.values() for length in curve})
    for model, curve in panel.items():
        _draw_curve(axis, model, curve, colors[model])
    # Each length is twice the one before.
    axis.set_xscale("log", base=2)
    axis.set_xticks(lengths, [length_label(length) for length in lengths])
    axis.minorticks_off()
    # All panels start at 0, so that they can be compared by eye.
    axis.set_ylim(0, max(1.0, *(point.score for curve in panel.values() for point in curve.values())) * 1.03)
    axis.set_title(title, fontsize="medium")
    axis.grid(alpha=0.3)


def _draw_curve(axis: Axes, model: str, curve: Mapping[int, Point], color: Any) -> None:
    scores = [point.score for point in curve.values()]
    axis.plot(list(curve), scores, _line_style(model), marker="o", markersize=3, color=color, label=model)
    for length, point in curve.items():
        if point.low is not None and point.high is not None:
            ends = [[point.score - point.low], [point.high - point.score]]
            axis.errorbar([length], [point.score], ends, fmt="none", ecolor=color, elinewidth=1, capsize=2)
    # Drawn over the curve's own markers.
    hollow = {length: point.score for length, point in curve.items() if not point.comparable}
    if hollow:
        axis.plot(list(hollow), list(hollow.values()), **_HOLLOW, color=color)
