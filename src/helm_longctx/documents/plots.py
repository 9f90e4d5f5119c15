"""Vega-Lite specifications of the report's plots, their themes, and the files into which they are drawn."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from helm_longctx.documents.numbers import MARK
from helm_longctx.writing import write_output

Spec = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""The name of the schema. It is not downloaded."""

_FONT = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC",'
    ' "PingFang SC", "Microsoft YaHei",'
    " sans-serif"
)

_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
"""Shapes of points. With them, models can be distinguished without colours."""

_PERCENT = {"type": "quantitative", "format": ".1%"}
"""A score in tooltips. Data have shares in 0…1."""

_CHARACTER = 6
"""Pixels that a character of an axis's title has on average."""

# About ten ticks fit beside each other, even the last label, which Vega moves inwards.
_AXIS = {"format": ".0%", "tickMinStep": 0.01, "tickCount": 10}
"""An axis of scores."""


def _theme(
    ink: str,
    faint: str,
    grid: str,
    paper: str,
    accent: str,
    palette: str,
    ramp: str,
    poles: str,
) -> Spec:
    axis = {
        "labelColor": ink,
        "titleColor": ink,
        "gridColor": grid,
        "domainColor": faint,
        "tickColor": faint,
    }
    text = {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
    return {
        "background": paper,
        "font": _FONT,
        "axis": {**axis, **text, "labelLimit": 240},
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            **text,
            "labelLimit": 240,
            "symbolStrokeWidth": 2,
            "symbolOpacity": 1,
        },
        "header": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 12,
            "labelFontWeight": "bold",
        },
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
        ink="#1d2126",
        faint="#6b727c",
        grid="#e4e7eb",
        paper="#ffffff",
        accent="#0a5c9e",
        palette="#0a6ebd #c2500a #00805f #a3338a #6a5acd #8a6500 #4b5563 #b3261e",
        ramp="#f3f7fb #c9dff0 #8fbfe0 #4a93c7 #1a659e #0b3c66",
        poles="#a8480a #e0935c #f6dcc8 #f4f4f4 #c9dff0 #5fa3d0 #0b4f86",
    ),
    "dark": _theme(
        ink="#e6e8eb",
        faint="#98a0ab",
        grid="#2b3038",
        paper="#15181c",
        accent="#7ab8ee",
        palette="#6fb3ef #f0995b #3ec79b #d98fd0 #a99cf5 #d8b545 #aeb6c0 #f28b82",
        ramp="#1b2530 #1f4466 #26669a #3f8fcb #85bfea #d6ebfb",
        poles="#f0a36b #b86a35 #5c4231 #24282e #27455f #3a7fb8 #8cc8f5",
    ),
}
"""Vega's configuration by theme. Readers with red-green blindness can also distinguish the colours."""


_LEGEND = {"orient": "bottom", "columns": 4, "title": None}
"""The legend of models."""

# The scale is fixed, so that the colours of two panels can be compared.
_HEAT = {
    **{
        "field": "score",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "title": "score",
    },
    "legend": {"format": ".0%"},
}


def _model_scales() -> Spec:
    """Return the encoding of models by colour and by shape, so that the legend tells 24 of them apart."""
    model = {"field": "model", "type": "nominal", "sort": None}
    # The encodings are in different layers, so Vega-Lite would make a legend of each.
    look = {"shape": {"value": {"expr": "scale('shape', datum.value)"}}}
    return {
        # Of layers, only one may have an encoding of its own in the legend.
        "color": {**model, "legend": {**_LEGEND, "encoding": {"symbols": look}}},
        "shape": {**model, "legend": None, "scale": {"range": list(_SHAPES)}},
    }


def _marks(encoding: Spec) -> Spec:
    """Return a layer with the marks of scores that are not comparable, whose tooltips say why."""
    text = {"value": {"expr": "datum.mark || ''"}}
    tooltip = [{"field": "note", "title": "not comparable"}]
    return {
        "mark": {"type": "text", "dx": 9, "dy": -7},
        "encoding": {**encoding, "text": text, "tooltip": tooltip},
    }


def interval_plot(
    title: str,
    order: Sequence[str],
    floors: bool = False,
    ranks: bool = False,
) -> Spec:
    """Return a plot of points with intervals, with a line for each model.

    Rows have `model`, `score`, `low`, `high`, and `kind`: own, published or floor.

    Args:
        floors: whether there are rows with `kind` "floor", drawn as vertical rules.
        ranks: whether the scores are ranks.
    """
    axis = {"tickMinStep": 1, "format": "d"} if ranks else _AXIS
    x = {
        "field": "score",
        "type": "quantitative",
        "title": title,
        "scale": {"zero": False, "nice": True},
        "axis": axis,
    }
    y = {
        "field": "model",
        "type": "nominal",
        "title": None,
        "sort": list(order),
        "axis": {"grid": True},
    }
    number = {"type": "quantitative", "format": "~r"} if ranks else _PERCENT
    tooltip = [
        {"field": "model"},
        *({"field": name, **number} for name in ("score", "low", "high")),
    ]
    scored = [{"filter": "datum.kind != 'floor'"}]
    floor = {
        "transform": [{"filter": "datum.kind == 'floor'"}],
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": {"expr": "faint"}},
        "encoding": {"x": x, "tooltip": tooltip},
    }
    interval = {
        "transform": scored,
        "mark": {
            "type": "rule",
            "strokeWidth": 2,
            "color": {"expr": "accent"},
            "opacity": 0.55,
        },
        "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y},
    }
    # Published points are hollow. Their fill is the colour of the paper, so that the interval is not visible in them.
    fill = _if("datum.kind == 'own'", {"expr": "accent"}, {"expr": "paper"})
    point = {
        "transform": scored,
        "mark": {
            "type": "point",
            "filled": False,
            "size": 55,
            "strokeWidth": 2,
            "color": {"expr": "accent"},
        },
        "encoding": {"x": x, "y": y, "tooltip": tooltip, "fill": fill},
    }
    layers = [
        *([floor] if floors else []),
        interval,
        point,
        {"transform": scored, **_marks({"x": x, "y": y})},
    ]
    return {**_base(760, {"step": 22}), "layer": layers}


def curves(
    parts: Sequence[str],
    levels: Sequence[str],
    x_title: str,
    over: str = "length",
    is_share: bool = True,
) -> Spec:
    """Return a panel for each part with a curve for each model; rows with `kind` "own" are bold, and those with "floor"
    are dashed.

    Rows have `model`, `part`, `score`, `low`, `high`, `kind`, and the field of the horizontal axis.

    Args:
        levels: the values of the horizontal axis, in order.
        over: the field of the horizontal axis. Panels have a common axis only for lengths.
        is_share: whether scores are shares, shown in percent.
    """
    axis = {"labelAngle": 0, "grid": False}
    x = {
        "field": over,
        "type": "ordinal",
        "sort": list(levels),
        "title": x_title,
        "axis": axis,
    }
    # Without axes of their own, the panels above an empty panel would have theirs below it.
    own_axes = {
        "resolve": {"axis" if over == "length" else "scale": {"x": "independent"}}
    }
    return {
        **_base(),
        **own_axes,
        "facet": {
            "field": "part",
            "type": "nominal",
            "title": None,
            "sort": list(parts),
        },
        "columns": 3,
        "spec": {
            **{"width": 330, "height": 190},
            "encoding": {
                "x": x,
                "color": {**_model_scales()["color"], "legend": _LEGEND},
            },
            "layer": _curve_layers(over, _AXIS if is_share else {"format": ".2f"}),
        },
    }


def _curve_layers(over: str, axis: Spec) -> list[Spec]:
    y = {
        "field": "score",
        "type": "quantitative",
        "title": None,
        "axis": {**axis, "tickCount": 5},
    }
    number = _PERCENT if axis is _AXIS else {"type": "quantitative", **axis}
    tooltip = [
        *({"field": name, "title": name} for name in ("model", "part", over)),
        *({"field": name, **number} for name in ("score", "low", "high")),
    ]
    return [
        {
            "mark": {"type": "rule", "opacity": 0.4, "strokeWidth": 1.5},
            "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line"},
            "encoding": {
                "y": y,
                "strokeDash": _if("datum.kind == 'floor'", [2, 3], [1, 0]),
                "strokeWidth": _if("datum.kind == 'own'", 3, 1.5),
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 40, "opacity": 1},
            "encoding": {"y": y, **_model_scales(), "tooltip": tooltip},
        },
        _marks({"y": y}),
    ]


def depth_maps(
    models: Sequence[str],
    depths: Sequence[str],
    lengths: Sequence[str],
    x_title: str,
) -> Spec:
    """Return a panel for each model, in this order: score by depth and length.

    Rows have `model`, `depth`, `length`, `score`, `low`, `high`, `n`, and `mark`, a text after the score.

    Args:
        depths: the depths that rows have, from top to bottom.
    """
    width = 52 * len(lengths)
    row_height = 26
    encoding = {
        "x": {
            "field": "length",
            "type": "ordinal",
            "sort": list(lengths),
            "title": _wrap_title(x_title, width),
            "axis": {"labelAngle": 0},
        },
        "y": {
            "field": "depth",
            "type": "ordinal",
            "sort": list(depths),
            "title": _wrap_title("depth of the evidence", row_height * len(depths)),
        },
    }
    text = "format(100 * datum.score, '.1f') + (datum.mark || '')"
    about = []
    for name in ("model", "length", "depth", "n"):
        about.append({"field": name, "title": name})
    scores = [{"field": name, **_PERCENT} for name in ("score", "low", "high")]
    layers = _heat_layers(_HEAT, "datum.score > 0.55", text, [*about, *scores])
    return {
        **_base(),
        "facet": {
            "field": "model",
            "type": "nominal",
            "title": None,
            "sort": list(models),
        },
        "columns": 3,
        # With a width in pixels, pages know how many panels fit side by side.
        "spec": {
            "width": width,
            "height": {"step": row_height},
            "encoding": encoding,
            "layer": layers,
        },
    }


def _wrap_title(title: str, pixels: int) -> list[str]:
    """Return the lines of an axis's title, so that it does not reach into the next panel."""
    return textwrap.wrap(title, max(pixels // _CHARACTER, 1), break_long_words=False)


def heat_tables(parts: Sequence[str], lengths: Sequence[str], x_title: str) -> Spec:
    """Return a panel for each part: the scores of models, in the order of the rows, by length.

    Rows have `model`, `part`, a score by length, and `marked`, the lengths at which a mark is written after the score.
    """
    encoding = {
        "x": {
            "field": "length",
            "type": "ordinal",
            "sort": list(lengths),
            "title": x_title,
            "axis": {"labelAngle": 0},
        },
        "y": {"field": "model", "type": "nominal", "sort": None, "title": None},
    }
    text = f"format(100 * datum.score, '.1f') + (indexof(datum.marked || [], datum.length) < 0 ? '' : '{MARK}')"
    tooltip = [
        *({"field": name} for name in ("model", "part", "length")),
        {"field": "score", **_PERCENT},
    ]
    return {
        **_base(),
        "transform": [
            {"fold": list(lengths), "as": ["length", "score"]},
            {"filter": "isValid(datum.score)"},
        ],
        "facet": {
            "field": "part",
            "type": "nominal",
            "title": None,
            "sort": list(parts),
        },
        "columns": 2,
        "spec": {
            **{
                "width": 52 * len(lengths),
                "height": {"step": 20},
                "encoding": encoding,
            },
            "layer": _heat_layers(_HEAT, "datum.score > 0.55", text, tooltip),
        },
    }


def mirror(spec: Spec) -> Spec:
    """Return a heat map of a relation without order. It shows each row also with `row` and `column` exchanged."""
    both = {"row_": "[datum.row, datum.column]", "column_": "[datum.column, datum.row]"}
    pairs = []
    for field, names in both.items():
        pairs.append({"calculate": names, "as": field})
    return {
        **spec,
        "transform": [*pairs, {"flatten": list(both), "as": ["row", "column"]}],
    }


def matrix(
    order: Sequence[str],
    field: str,
    largest: float,
    text: str,
    formats: Mapping[str, str | None],
    legend: str,
) -> Spec:
    """Return a square heat map with values around zero, written into the cells.

    Rows have `row`, `column`, the field, and the fields of the tooltips.

    Args:
        largest: the value with the strongest colour; its negative has the opposite colour.
        formats: the further fields of tooltips with their formats, None for texts.
    """
    axis = {"labelAngle": -40, "orient": "top", "labelAlign": "left"}
    encoding = {
        "x": {
            "field": "column",
            "type": "nominal",
            "sort": list(order),
            "title": None,
            "axis": axis,
        },
        "y": {"field": "row", "type": "nominal", "sort": list(order), "title": None},
    }
    # Zero has the neutral colour, whatever the values are.
    scale = {"domain": [-largest, largest], "domainMid": 0}
    heat = {
        "field": field,
        "type": "quantitative",
        "title": field,
        "scale": scale,
        "legend": {"format": legend},
    }
    details: list[Spec] = []
    for name, form in {"row": None, "column": None, **formats}.items():
        kind = {"type": "quantitative", "format": form} if form else {}
        details.append({"field": name, "title": name, **kind})
    layers = _heat_layers(heat, f"abs(datum.{field}) > {0.62 * largest}", text, details)
    return {**_base({"step": 52}, {"step": 26}), "encoding": encoding, "layer": layers}


def _heat_layers(
    heat: Spec,
    is_strong: str,
    text: str,
    tooltip: Sequence[Spec],
) -> list[Spec]:
    """Return coloured cells and their texts, in contrast with the cells in every theme."""
    ink = {"expr": f"{is_strong} ? paper : ink"}
    return [
        {
            "mark": {"type": "rect", "stroke": {"expr": "paper"}, "strokeWidth": 1},
            "encoding": {"color": heat, "tooltip": list(tooltip)},
        },
        {
            "mark": {"type": "text", "color": ink, "fontSize": 10.5},
            "encoding": {"text": {"value": {"expr": text}}},
        },
    ]


def scatter(
    parts: Mapping[str, str],
    x: str,
    y: str,
    counts: str = "",
) -> Spec:
    """Return a plot of one part against another, with their correlation. Readers choose both.

    Rows have `model` and a score by part; further rows have `row`, `column`, and `label`, the text of the correlation
    of these two parts.

    Args:
        x, y: the parts that are shown first.
        counts: what rows are, in the plural, if equal rows are one point whose area is their number; else each row is
            a point of a model.
    """
    axis = {
        "type": "quantitative",
        "scale": {"zero": False, "nice": True},
        "axis": _AXIS,
    }
    tooltip = [
        {"field": counts or "model"},
        {"field": "x", **_PERCENT},
        {"field": "y", **_PERCENT},
    ]
    points: list[Spec] = [
        {"calculate": "datum[across]", "as": "x"},
        {"calculate": "datum[up]", "as": "y"},
        {"filter": "isValid(datum.x) && isValid(datum.y)"},
    ]
    size: Spec = {}
    if counts:
        count = {"op": "count", "as": counts}
        points.append({"aggregate": [count], "groupby": ["x", "y"]})
        scale = {"rangeMin": 30, "rangeMax": 300}
        size["size"] = {
            "field": counts,
            "type": "quantitative",
            "scale": scale,
            "legend": None,
        }
    # Above the plot, no point can cover the text.
    corner = {"x": {"value": 0}, "y": {"value": -22}}
    return {
        **_base(520, 360),
        "params": [
            _choice("across", "Horizontal axis", parts, x),
            _choice("up", "Vertical axis", parts, y),
        ],
        "layer": [
            {
                "transform": points,
                "mark": {
                    "type": "point",
                    "size": 55,
                    "filled": True,
                    "color": {"expr": "accent"},
                    "opacity": 0.75,
                },
                "encoding": {
                    "x": {"field": "x", **axis, "title": "horizontal axis: score"},
                    "y": {"field": "y", **axis, "title": "vertical axis: score"},
                    "tooltip": tooltip,
                    **size,
                },
            },
            {
                "transform": [
                    {"filter": {"or": [_axes("row", "column"), _axes("column", "row")]}}
                ],
                "mark": {"type": "text", "align": "left", "fontSize": 13},
                "encoding": {"text": {"field": "label"}, **corner},
            },
        ],
    }


def _axes(across: str, up: str) -> str:
    return f"datum.{across} == across && datum.{up} == up"


def _choice(
    name: str,
    title: str,
    options: Mapping[str, str],
    value: str,
) -> Spec:
    """Return a parameter that readers set by a menu of titles."""
    menu = {
        "input": "select",
        "options": list(options),
        "labels": list(options.values()),
        "name": f"{title} ",
    }
    return {"name": name, "value": value, "bind": menu}


def property_scatter(
    properties: Mapping[str, str],
    parts: Mapping[str, str],
    part: str,
    kinds: Mapping[str, Sequence[str]],
) -> Spec:
    """Return a plot of the score of a part against a property of models, both of which readers choose.

    Rows have `model`, the properties as numbers, the kinds as texts, and a score by part.
    """
    menus = []
    for kind, values in kinds.items():
        options = {"": "all", **{value: value for value in values}}
        menus.append(_choice(f"only_{kind}", kind.capitalize(), options, ""))
    # Windows are powers of two, so they are written in thousands of 1,024.
    ticks = {
        "labelExpr": "datum.value >= 1024 ? format(datum.value / 1024, ',.4~r') + 'k' :"
        " format(datum.value, '~r')"
    }
    scale = {"type": "log", "base": 2, "padding": 12}
    # With a fixed domain, the colours stay the same when readers choose models.
    (first, values), *_ = kinds.items()
    colour = {
        "field": first,
        "type": "nominal",
        "scale": {"domain": list(values)},
        "legend": _LEGEND,
    }
    tooltip = [
        {"field": "model"},
        {"field": "y", "title": "score", **_PERCENT},
        *({"field": name, "title": title} for name, title in properties.items()),
        *({"field": kind} for kind in kinds),
    ]
    number = {"type": "quantitative"}
    title = ", or ".join(properties.values())
    return {
        **_base(620, 380),
        "params": [
            _choice("across", "Horizontal axis", properties, next(iter(properties))),
            _choice("up", "Vertical axis", parts, part),
            *menus,
        ],
        "transform": [
            {"calculate": "datum[across]", "as": "x"},
            {"calculate": "datum[up]", "as": "y"},
            {"filter": "isValid(datum.x) && isValid(datum.y)"},
            *(
                {"filter": f"only_{kind} == '' || datum.{kind} == only_{kind}"}
                for kind in kinds
            ),
        ],
        "mark": {"type": "point", "size": 60, "filled": True, "opacity": 0.8},
        "encoding": {
            "x": {
                **number,
                "field": "x",
                "scale": scale,
                "axis": ticks,
                "title": title,
            },
            "y": {
                **number,
                "field": "y",
                "scale": {"zero": False, "nice": True},
                "axis": _AXIS,
                "title": "score",
            },
            "color": colour,
            "tooltip": tooltip,
        },
    }


def frontier(amount: str) -> Spec:
    """Return a plot of scores against what they cost, with a line through those that no other one beats.

    Rows have `model`, `score`, the amount by its name, and `best`: whether the row is on the line.
    """
    x = {
        "field": amount,
        "type": "quantitative",
        "scale": {"type": "log"},
        "title": f"{amount} per question",
    }
    y = {
        "field": "score",
        "type": "quantitative",
        "scale": {"zero": False, "nice": True},
        "axis": _AXIS,
    }
    tooltip = [{"field": "model"}, {"field": "score", **_PERCENT}, {"field": amount}]
    best = {"transform": [{"filter": "datum.best"}]}
    return {
        **_base(620, 320),
        "encoding": {"x": x, "y": y},
        "layer": [
            {
                **best,
                "mark": {
                    "type": "line",
                    "interpolate": "step-after",
                    "color": {"expr": "accent"},
                    "opacity": 0.5,
                },
            },
            {
                "mark": {
                    "type": "point",
                    "size": 70,
                    "filled": True,
                    "color": {"expr": "accent"},
                },
                "encoding": {"tooltip": tooltip, "opacity": _if("datum.best", 1, 0.4)},
            },
            {
                **best,
                "mark": {"type": "text", "align": "left", "dx": 7, "dy": -7},
                "encoding": {"text": {"field": "model"}},
            },
        ],
    }


def over_time() -> Spec:
    """Return the specification of published scores by date, with a row for each protocol. A field `date` is a day."""
    return {
        **_base(760, 90),
        "mark": {"type": "point", "filled": True, "size": 70},
        "encoding": {
            "x": {"field": "date", "type": "temporal", "title": None},
            "y": {
                "field": "score",
                "type": "quantitative",
                "title": None,
                "axis": _AXIS,
                "scale": {"domain": [0, 1]},
            },
            "row": {
                "field": "protocol",
                "title": None,
                "header": {"labelAngle": 0, "labelOrient": "top"},
            },
            "tooltip": [
                {"field": "model"},
                {"field": "protocol"},
                {"field": "date", "type": "temporal"},
                {"field": "score", **_PERCENT},
            ],
        },
    }


def _if(test: str, value: Any, otherwise: Any) -> Spec:
    return {"condition": {"test": test, "value": value}, "value": otherwise}


def _base(width: Any = None, height: Any = None) -> Spec:
    size = {"width": width, "height": height}
    given = {}
    for name, value in size.items():
        if value is not None:
            given[name] = value
    return {"$schema": _SCHEMA, "data": {"name": "rows"}, **given}


_SCALE = 2.0
"""Pixels of a PNG for each unit of a plot."""


def write_picture(spec: Spec, path: Path) -> None:
    """Draw a plot with its data into a file. The extension selects the format: `.png`, `.svg` or `.pdf`."""
    import vl_convert

    if path.suffix == ".svg":
        svg = vl_convert.vegalite_to_svg(spec, config=THEMES["light"])
        content = svg.encode()
    elif path.suffix == ".pdf":
        content = vl_convert.vegalite_to_pdf(spec, config=THEMES["light"])
    else:
        content = vl_convert.vegalite_to_png(spec, scale=_SCALE, config=THEMES["light"])
    write_output(path, content)
