"""The report's plots: Vega-Lite specifications from plots.yaml, their themes, and the files into which they are drawn."""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from helm_longctx.data.yaml_files import parse_package_yaml
from helm_longctx.documents.numbers import MARK
from helm_longctx.writing import write_output

Spec = dict[str, Any]

_BASE: Spec = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "data": {"name": "rows"},
}
"""What all specifications have. The schema is not downloaded."""

_PERCENT = {"type": "quantitative", "format": ".1%"}
"""A score in tooltips. Data have shares in 0…1."""

_CHARACTER = 6
"""Pixels that a character of an axis's title has on average."""

# About ten ticks fit beside each other, even the last label, which Vega moves inwards.
_AXIS = {"format": ".0%", "tickMinStep": 0.01, "tickCount": 10}
"""An axis of scores."""

_WIDTH = 52
_ROW_HEIGHT = 26
"""Pixels of a cell in a heat map."""

_PLACEHOLDER = re.compile(r'"\$(\w+)"')


@cache
def _read_texts() -> Mapping[str, str]:
    """Return the parts of plots.yaml as JSON, because a text is filled in faster than nested mappings."""
    file = resources.files("helm_longctx.documents") / "plots.yaml"
    parts = parse_package_yaml(file.read_text(encoding="utf-8"))
    return {name: json.dumps(part) for name, part in parts.items()}


def _fill(name: str, **values: object) -> Spec:
    """Return a part of plots.yaml with values in the place of `$name`."""
    pieces = _PLACEHOLDER.split(_read_texts()[name])
    # Every second piece is the name of a value.
    pieces[1::2] = [json.dumps(values[key]) for key in pieces[1::2]]
    filled: Spec = json.loads("".join(pieces))
    return filled


@cache
def make_themes() -> Mapping[str, Spec]:
    """Return Vega's configuration by theme."""
    themes = {}
    for name, colours in json.loads(_read_texts()["colours"]).items():
        themes[name] = _fill("theme", **colours)
    return themes


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
    axis: Mapping[str, object] = _AXIS
    number = _PERCENT["format"]
    if ranks:
        axis = {"tickMinStep": 1, "format": "d"}
        number = "~r"
    spec = _fill("intervals", title=title, order=order, axis=axis, format=number)
    if not floors:
        del spec["layer"][0]
    return {**_BASE, **spec}


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
    axis: Mapping[str, object] = {"format": ".2f"}
    number = ".2f"
    if is_share:
        axis = _AXIS
        number = _PERCENT["format"]
    spec = _fill(
        "curves",
        parts=parts,
        levels=levels,
        x_title=x_title,
        over=over,
        resolve={"axis" if over == "length" else "scale": {"x": "independent"}},
        axis={**axis, "tickCount": 5},
        format=number,
    )
    return {**_BASE, **spec}


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
    width = _WIDTH * len(lengths)
    spec = _fill(
        "depth_maps",
        models=models,
        depths=depths,
        lengths=lengths,
        x_title=_wrap_title(x_title, width),
        y_title=_wrap_title("depth of the evidence", _ROW_HEIGHT * len(depths)),
        width=width,
        row_height=_ROW_HEIGHT,
    )
    return {**_BASE, **spec}


def _wrap_title(title: str, pixels: int) -> list[str]:
    """Return the lines of an axis's title, so that it does not reach into the next panel."""
    return textwrap.wrap(title, max(pixels // _CHARACTER, 1), break_long_words=False)


def heat_tables(parts: Sequence[str], lengths: Sequence[str], x_title: str) -> Spec:
    """Return a panel for each part: the scores of models, in the order of the rows, by length.

    Rows have `model`, `part`, a score by length, and `marked`, the lengths at which a mark is written after the score.
    """
    text = f"format(100 * datum.score, '.1f') + (indexof(datum.marked || [], datum.length) < 0 ? '' : '{MARK}')"
    spec = _fill(
        "heat_tables",
        parts=parts,
        lengths=lengths,
        x_title=x_title,
        width=_WIDTH * len(lengths),
        text=text,
    )
    return {**_BASE, **spec}


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
    details: list[Spec] = []
    for name, form in {"row": None, "column": None, **formats}.items():
        kind = {"type": "quantitative", "format": form} if form else {}
        details.append({"field": name, "title": name, **kind})
    spec = _fill(
        "matrix",
        order=order,
        field=field,
        least=-largest,
        largest=largest,
        legend=legend,
        tooltip=details,
        ink=f"abs(datum.{field}) > {0.62 * largest} ? paper : ink",
        text=text,
    )
    return {**_BASE, **spec}


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
    points = _choose_points()
    if counts:
        count = {"op": "count", "as": counts}
        points.append({"aggregate": [count], "groupby": ["x", "y"]})
    spec = _fill(
        "scatter",
        params=[
            _choice("across", "Horizontal axis", parts, x),
            _choice("up", "Vertical axis", parts, y),
        ],
        transform=points,
        axis=_AXIS,
        points=counts or "model",
    )
    if counts:
        spec["layer"][0]["encoding"]["size"] = {
            "field": counts,
            "type": "quantitative",
            "scale": {"rangeMin": 30, "rangeMax": 300},
            "legend": None,
        }
    return {**_BASE, **spec}


def _choose_points() -> list[Spec]:
    """Return the transform that puts rows where the chosen fields say."""
    return [
        {"calculate": "datum[across]", "as": "x"},
        {"calculate": "datum[up]", "as": "y"},
        {"filter": "isValid(datum.x) && isValid(datum.y)"},
    ]


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
    menus = [
        _choice("across", "Horizontal axis", properties, next(iter(properties))),
        _choice("up", "Vertical axis", parts, part),
    ]
    points = _choose_points()
    tooltip: list[Spec] = [{"field": "model"}]
    tooltip.append({"field": "y", "title": "score", **_PERCENT})
    for name, title in properties.items():
        tooltip.append({"field": name, "title": title})
    for kind, values in kinds.items():
        options = {"": "all", **{value: value for value in values}}
        menus.append(_choice(f"only_{kind}", kind.capitalize(), options, ""))
        points.append({"filter": f"only_{kind} == '' || datum.{kind} == only_{kind}"})
        tooltip.append({"field": kind})
    (first, first_values), *_ = kinds.items()
    spec = _fill(
        "property_scatter",
        params=menus,
        transform=points,
        title=", or ".join(properties.values()),
        axis=_AXIS,
        kind=first,
        kinds=first_values,
        tooltip=tooltip,
    )
    return {**_BASE, **spec}


def frontier(amount: str) -> Spec:
    """Return a plot of scores against what they cost, with a line through those that no other one beats.

    Rows have `model`, `score`, the amount by its name, and `best`: whether the row is on the line.
    """
    title = f"{amount} per question"
    return {**_BASE, **_fill("frontier", amount=amount, title=title, axis=_AXIS)}


def judge_panel(
    title: str,
    *,
    smallest: float,
    largest: float,
    rows: Sequence[str],
    judges: Sequence[str],
    height: int,
) -> Spec:
    """Return a panel of a plot of judges: a row for each measure, with a point and an interval for each judge.

    Points have `panel`, `row`, `judge`, `value`, `low`, `high`, and `expected`, where a line is drawn. A mark without a
    value is left out, because Vega cannot place it.

    Args:
        smallest, largest: the ends of the axis.
        height: in pixels.
    """
    axis = {"domain": [smallest, largest], "nice": False}
    return _fill(
        "judge_panel",
        title=title,
        scale=axis,
        rows=rows,
        judges=judges,
        height=height,
    )


def over_time() -> Spec:
    """Return the specification of published scores by date, with a row for each protocol. A field `date` is a day."""
    return {**_BASE, **_fill("over_time", axis=_AXIS)}


_SCALE = 2.0
"""Pixels of a PNG for each unit of a plot."""


def write_picture(spec: Spec, path: Path) -> None:
    """Draw a plot with its data into a file. The extension selects the format: `.png`, `.svg` or `.pdf`."""
    import vl_convert

    theme = make_themes()["light"]
    if path.suffix == ".svg":
        svg = vl_convert.vegalite_to_svg(spec, config=theme)
        content = svg.encode()
    elif path.suffix == ".pdf":
        content = vl_convert.vegalite_to_pdf(spec, config=theme)
    else:
        content = vl_convert.vegalite_to_png(spec, scale=_SCALE, config=theme)
    write_output(path, content)
