"""Vega-Lite specifications of the report's plots, and their themes. The data set of each plot is called `rows`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""The name of the schema. It is not downloaded."""

FONT = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei",'
    " sans-serif"
)

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
"""Shapes of points. With them, models can be distinguished without colours."""

_PERCENT = ".1f"


def _theme(ink: str, faint: str, grid: str, paper: str, accent: str, palette: str, ramp: str, poles: str) -> Spec:
    axis = {"labelColor": ink, "titleColor": ink, "gridColor": grid, "domainColor": faint, "tickColor": faint}
    text = {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
    return {
        "background": paper,
        "font": FONT,
        "axis": {**axis, **text, "labelLimit": 240},
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            **text,
            "labelLimit": 240,
            "symbolStrokeWidth": 2,
            "symbolOpacity": 1,
        },
        "header": {"labelColor": ink, "titleColor": ink, "labelFontSize": 12, "labelFontWeight": "bold"},
        "title": {"color": ink, "fontSize": 13, "anchor": "start"},
        "view": {"stroke": None},
        "point": {"color": accent},
        "rule": {"color": faint},
        "text": {"color": ink, "fontSize": 11},
        "line": {"strokeWidth": 2},
        "range": {
            "category": palette.split(),
            "heatmap": ramp.split(),
            "ramp": ramp.split(),
            "diverging": poles.split(),
        },
        "params": [
            # Vega's expressions cannot read the configuration, so the theme's colours are also parameters.
            {"name": "ink", "value": ink},
            {"name": "faint", "value": faint},
            {"name": "accent", "value": accent},
            {"name": "paper", "value": paper},
        ],
    }


THEMES = {
    "light": _theme(
        *("#1d2126", "#6b727c", "#e4e7eb", "#ffffff", "#0a5c9e"),
        "#0a6ebd #c2500a #00805f #a3338a #6a5acd #8a6500 #4b5563 #b3261e",
        "#f3f7fb #c9dff0 #8fbfe0 #4a93c7 #1a659e #0b3c66",
        "#a8480a #e0935c #f6dcc8 #f4f4f4 #c9dff0 #5fa3d0 #0b4f86",
    ),
    "dark": _theme(
        *("#e6e8eb", "#98a0ab", "#2b3038", "#15181c", "#7ab8ee"),
        "#6fb3ef #f0995b #3ec79b #d98fd0 #a99cf5 #d8b545 #aeb6c0 #f28b82",
        "#1b2530 #1f4466 #26669a #3f8fcb #85bfea #d6ebfb",
        "#f0a36b #b86a35 #5c4231 #24282e #27455f #3a7fb8 #8cc8f5",
    ),
}
"""Vega's configuration by theme. Readers with red-green blindness can also distinguish the colours."""


def _model_scales() -> Spec:
    """Return the encoding of models by colour and by shape; the legend shows colours."""
    legend = {"orient": "bottom", "columns": 4, "title": None}
    return {
        "color": {"field": "model", "type": "nominal", "legend": legend},
        "shape": {"field": "model", "type": "nominal", "legend": None, "scale": {"range": list(SHAPES)}},
    }


def interval_plot(title: str, order: Sequence[str], floors: bool = False, value_format: str = ".1f") -> Spec:
    """Return a plot of points with intervals, with a line for each model.

    Rows have `model`, `score`, `low`, `high`, and `kind`: own, published or floor.

    Args:
        floors: whether there are rows with `kind` "floor", which are vertical rules.
    """
    axis = {"tickMinStep": 1, "format": "d"}
    x = {"field": "score", "type": "quantitative", "title": title, "scale": {"zero": False, "nice": True}, "axis": axis}
    y = {"field": "model", "type": "nominal", "title": None, "sort": list(order), "axis": {"grid": True}}
    numbers = [{"field": name, "format": value_format} for name in ("score", "low", "high")]
    tooltip = [{"field": "model"}, *numbers]
    scored = [{"filter": "datum.kind != 'floor'"}]
    floor = {
        "transform": [{"filter": "datum.kind == 'floor'"}],
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": {"expr": "faint"}},
        "encoding": {"x": x, "tooltip": tooltip},
    }
    interval = {
        "transform": scored,
        "mark": {"type": "rule", "strokeWidth": 2, "color": {"expr": "accent"}, "opacity": 0.55},
        "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y},
    }
    # Published points are hollow. Their fill is the colour of the paper, so that the interval is not visible in them.
    fill = _if("datum.kind == 'own'", {"expr": "accent"}, {"expr": "paper"})
    point = {
        "transform": scored,
        "mark": {"type": "point", "filled": False, "size": 55, "strokeWidth": 2, "color": {"expr": "accent"}},
        "encoding": {"x": x, "y": y, "tooltip": tooltip, "fill": fill},
    }
    return {**_base(760, {"step": 22}), "layer": [*([floor] if floors else []), interval, point]}


def curves(parts: Sequence[str], lengths: Sequence[str], x_title: str) -> Spec:
    """Return a panel for each part with a curve over length for each model; rows with `kind` "floor" are dashed.

    Rows have `model`, `part`, `length`, `score`, `low`, `high`, `kind`.
    """
    axis = {"labelAngle": 0, "grid": False}
    x = {"field": "length", "type": "ordinal", "sort": list(lengths), "title": x_title, "axis": axis}
    y = {"field": "score", "type": "quantitative", "title": None, "axis": {"tickCount": 5}}
    tooltip = [
        *({"field": name, "title": name} for name in ("model", "part", "length")),
        *({"field": name, "format": _PERCENT} for name in ("score", "low", "high")),
    ]
    scales = _model_scales()
    return {
        **_base(),
        "facet": {"field": "part", "type": "nominal", "title": None, "sort": list(parts)},
        "columns": 3,
        "spec": {
            **{"width": 330, "height": 190},
            "encoding": {"x": x, "color": scales["color"]},
            "layer": [
                {
                    "mark": {"type": "rule", "opacity": 0.4, "strokeWidth": 1.5},
                    "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
                },
                {
                    "mark": {"type": "line"},
                    "encoding": {
                        "y": y,
                        "strokeDash": _if("datum.kind == 'floor'", [2, 3], [1, 0]),
                    },
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 40, "opacity": 1},
                    "encoding": {"y": y, "shape": scales["shape"], "tooltip": tooltip},
                },
            ],
        },
    }


def depth_maps(depths: Sequence[str], lengths: Sequence[str], x_title: str) -> Spec:
    """Return a panel for each model: score by depth and length.

    Rows have `model`, `depth`, `length`, `score`, `low`, `high`, `n`.
    """
    encoding = {
        "x": {"field": "length", "type": "ordinal", "sort": list(lengths), "title": x_title, "axis": {"labelAngle": 0}},
        "y": {"field": "depth", "type": "ordinal", "sort": list(depths), "title": "depth of the evidence"},
    }
    # The scale is fixed, so that the colours of two panels can be compared.
    heat = {"field": "score", "type": "quantitative", "scale": {"domain": [0, 100]}, "title": "score"}
    layers = _heat_layers(heat, "datum.score > 55", "format(datum.score, '.0f')", ["model", "length", "depth", "n"])
    return {
        **_base(),
        "facet": {"field": "model", "type": "nominal", "title": None},
        "columns": 3,
        "spec": {"width": {"step": 44}, "height": {"step": 26}, "encoding": encoding, "layer": layers},
    }


def matrix(order: Sequence[str], field: str, title: str, largest: float, text: str, details: Sequence[str]) -> Spec:
    """Return a square heat map with values around zero, written into the cells.

    Rows have `row`, `column`, the field, and the details, which tooltips show.

    Args:
        largest: the value with the strongest colour; its negative has the opposite colour.
        text: Vega expression for the text of a cell.
    """
    axis = {"labelAngle": -40, "orient": "top", "labelAlign": "left"}
    encoding = {
        "x": {"field": "column", "type": "nominal", "sort": list(order), "title": None, "axis": axis},
        "y": {"field": "row", "type": "nominal", "sort": list(order), "title": None},
    }
    # Zero has the neutral colour, whatever the values are.
    scale = {"domain": [-largest, largest], "domainMid": 0}
    heat = {"field": field, "type": "quantitative", "title": title, "scale": scale}
    layers = _heat_layers(heat, f"abs(datum.{field}) > {0.62 * largest}", text, ["row", "column", field, *details])
    return {**_base({"step": 46}, {"step": 26}), "encoding": encoding, "layer": layers}


def _heat_layers(heat: Spec, is_strong: str, text: str, details: Sequence[str]) -> list[Spec]:
    """Return coloured cells and their texts, which contrast with the cells in every theme."""
    tooltip = [{"field": name, "title": name} for name in details]
    ink = {"expr": f"{is_strong} ? paper : ink"}
    return [
        {
            "mark": {"type": "rect", "stroke": {"expr": "paper"}, "strokeWidth": 1},
            "encoding": {"color": heat, "tooltip": tooltip},
        },
        {"mark": {"type": "text", "color": ink, "fontSize": 10.5}, "encoding": {"text": {"value": {"expr": text}}}},
    ]


def scatter(parts: Mapping[str, str], x: str, y: str) -> Spec:
    """Return a plot of one part against another, which readers choose, with their correlation.

    Rows have `model` and a score by part; further rows have `row`, `column`, and `label`, the text of a correlation.

    Args:
        parts: the title of each part.
        x, y: the parts that are shown first.
    """
    options = {"input": "select", "options": list(parts), "labels": list(parts.values())}
    params = [
        {"name": "across", "value": x, "bind": {**options, "name": "Horizontal axis "}},
        {"name": "up", "value": y, "bind": {**options, "name": "Vertical axis "}},
    ]
    axis = {"type": "quantitative", "scale": {"zero": False, "nice": True}}
    tooltip = [{"field": "model"}, {"field": "x", "format": _PERCENT}, {"field": "y", "format": _PERCENT}]
    points = [
        {"calculate": "datum[across]", "as": "x"},
        {"calculate": "datum[up]", "as": "y"},
        {"filter": "isValid(datum.x) && isValid(datum.y)"},
    ]
    corner = {"x": {"value": 8}, "y": {"value": 12}}
    return {
        **_base(520, 360),
        "params": params,
        "layer": [
            {
                "transform": points,
                "mark": {"type": "point", "size": 55, "filled": True, "color": {"expr": "accent"}, "opacity": 0.75},
                "encoding": {
                    "x": {"field": "x", **axis, "title": "horizontal axis: score in %"},
                    "y": {"field": "y", **axis, "title": "vertical axis: score in %"},
                    "tooltip": tooltip,
                },
            },
            {
                "transform": [{"filter": "datum.row == across && datum.column == up"}],
                "mark": {"type": "text", "align": "left", "fontSize": 13},
                "encoding": {"text": {"field": "label"}, **corner},
            },
        ],
    }


def profiles() -> Spec:
    """Return for each model, the share of tasks with at least some score. Rows have `model`, `threshold`, `share`."""
    return {
        **_base(760, 280),
        "mark": {"type": "line", "interpolate": "step-after", "tooltip": True},
        "encoding": {
            "x": {"field": "threshold", "type": "quantitative", "title": "score in %", "scale": {"domain": [0, 100]}},
            "y": {"field": "share", "type": "quantitative", "title": "share of tasks with at least this score"},
            "color": _model_scales()["color"],
        },
    }


def _if(test: str, value: Any, otherwise: Any) -> Spec:
    return {"condition": {"test": test, "value": value}, "value": otherwise}


def _base(width: Any = None, height: Any = None) -> Spec:
    size = {name: value for name, value in (("width", width), ("height", height)) if value is not None}
    return {"$schema": SCHEMA, "data": {"name": "rows"}, **size}
