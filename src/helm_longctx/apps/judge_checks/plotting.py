"""The plot of a check: each judge's scores by kind of answer, its biases, its correctness and its consistency."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from helm_longctx.apps.judge_checks.measures import EXPECTED, agreements, by_kind, measures

if TYPE_CHECKING:
    import pandas as pd

Spec = dict[str, Any]

KINDS = "Score by kind of answer"
PANELS = {0.0: "Biases and variation (perfect: 0)", 1.0: "Correct and consistent (perfect: 1)"}
"""Titles of the panels of measures, by the value of a perfect judge."""

STEP = 18


def plot(rows: pd.DataFrame) -> Spec:
    """Return the plot of all judges as a Vega-Lite specification with its data."""
    points: list[Spec] = []
    for judge, of_judge in rows.groupby("judge", sort=False):
        # Without the number of verdicts, missing points would have no explanation.
        label = f"{judge}: {(of_judge['state'] == 'judged').sum()} of {len(of_judge)} judged"
        table = by_kind(of_judge)
        scores = zip(table.index, table["score"], table["expected_score"], strict=True)
        kinds = [_point(str(kind).replace("_", " "), score, expected=expected) for kind, score, expected in scores]
        panels = {KINDS: kinds, **{title: [] for title in PANELS.values()}}
        for each in measures(of_judge):
            if each.good in PANELS:
                panels[PANELS[each.good]].append(_point(each.name, each.value, each.low, each.high))
        for task, raters, compared in agreements(of_judge):
            if raters.startswith(f"{EXPECTED} / "):
                alpha, name = compared.alpha, f"agreement (alpha), {task}"
                panels[PANELS[1.0]].append(_point(name, alpha.value, alpha.low, alpha.high))
        points += [{**point, "judge": label, "panel": panel} for panel, found in panels.items() for point in found]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "datasets": {"points": points},
        "data": {"name": "points"},
        "hconcat": [
            _panel(title, -1 if title in PANELS.values() else 0, [each for each in points if each["panel"] == title])
            for title in (KINDS, *PANELS.values())
        ],
    }


def _point(row: str, value: float, low: float = math.nan, high: float = math.nan, expected: float = math.nan) -> Spec:
    numbers = {"value": value, "low": low, "high": high, "expected": expected}
    # JSON has no NaN.
    return {"row": row, **{name: None if math.isnan(number) else float(number) for name, number in numbers.items()}}


def _panel(title: str, smallest: int, points: list[Spec]) -> Spec:
    most = max([1, *(each["value"] or 0 for each in points)])
    x = {"type": "quantitative", "title": None, "scale": {"domain": [smallest, most], "nice": False}}
    rows = list(dict.fromkeys(each["row"] for each in points))
    axis = {"grid": True, "labelLimit": 300}
    y = {"field": "row", "type": "nominal", "title": None, "sort": None, "axis": axis, "scale": {"domain": rows}}
    # Without these domains, Vega draws a figure of infinite size if no judge has a score.
    judges = {"domain": list(dict.fromkeys(each["judge"] for each in points))}
    judge = {"field": "judge", "type": "nominal", "sort": None, "scale": judges}
    legend = {"orient": "bottom", "columns": 1, "title": None, "labelLimit": 500}
    of_judge = {"yOffset": judge, "color": {**judge, "legend": legend}}
    point, tick = {"type": "point", "filled": True, "size": 55}, {"type": "tick", "thickness": 2, "color": "black"}
    return {
        "title": title,
        "transform": [{"filter": {"field": "panel", "equal": title}}],
        **{"width": 300, "height": STEP * len(points)},
        "layer": [
            {"mark": "rule", "encoding": {"x": {"datum": 0}}},
            _layer("low", {"type": "rule"}, {"x": x, "x2": {"field": "high"}, "y": y, **of_judge}),
            _layer("value", point, {"x": x, "y": y, **of_judge}),
            _layer("expected", tick, {"x": x, "y": y}),
        ],
    }


def _layer(field: str, mark: Spec, encoding: Spec) -> Spec:
    """Return a layer of marks at a field. Marks without the field are left out, because Vega cannot place them."""
    encoding = {**encoding, "x": {**encoding["x"], "field": field}}
    return {"transform": [{"filter": f"isValid(datum.{field})"}], "mark": mark, "encoding": encoding}
