"""Curves from scores, and the picture of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.errors import InputError
from helm_longctx.report.export import Score, averages
from helm_longctx.report.plot import LACKING, Point, curves, plot


def score(
    model: str, task: str, length: str, value: float, context: str = "full", metric: str = "longctx_score"
) -> Score:
    return Score("run", model, "helmet_rag", task, length, context, metric, value, 1, "")


def test_curves() -> None:
    """Tasks are averaged without weights; runs without context are a panel of their own; other metrics are left out."""
    rows = [score("a", "nq", "8k", 0.2), score("a", "popqa", "8k", 0.6), score("a", "nq", "16k", 0.5)]
    rows += [score("a", "nq", "8k", 0.1, context="none"), score("a", "nq", "8k", 1, metric="f1")]
    assert curves(averages(rows, ())) == {
        "helmet_rag": {"a": {8192: Point(pytest.approx(0.4)), 16384: Point(0.5)}},
        "helmet_rag, context=none": {"a": {8192: Point(0.1)}},
    }


def test_text_is_whole(tmp_path: Path) -> None:
    """Chinese names stand in the picture as they are; a score above 1 is not cut."""
    plot({"中文": {"模型/通义": {8192: Point(1.4), 16384: Point(0.5)}}}, tmp_path / "x.svg")
    assert {"模型/通义", "中文", "16k"} <= set(
        (tmp_path / "x.svg").read_text(encoding="utf-8").replace(">", "<").split("<")
    )
    plot({"a": {"b": {8192: Point(0.5)}}}, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_to_draw(tmp_path: Path) -> None:
    """That is said."""
    with pytest.raises(InputError, match="no scores"):
        plot({}, tmp_path / "x.png")


def test_what_is_not_comparable_is_hollow(tmp_path: Path) -> None:
    """Also where a task of the category is missing; the legend says so, and only where there is such a point."""
    rows = [score("a", task.name, "8k", 0.5) for task in HELMET.entries["helmet_rag"].tasks]
    rows += [row._replace(length="16k") for row in rows[:2]]
    rows += [row._replace(length="32k", lacking="num_samples:nq=6/100") for row in rows[:4]]
    found = curves(averages(rows, [HELMET]))
    points = {length: point.comparable for length, point in found["helmet_rag"]["a"].items()}
    assert points == {8192: True, 16384: False, 32768: False}
    plot(found, tmp_path / "marked.svg")
    plot({"a": {"b": {8192: Point(0.5)}}}, tmp_path / "plain.svg")
    assert LACKING in (tmp_path / "marked.svg").read_text(encoding="utf-8")
    assert LACKING not in (tmp_path / "plain.svg").read_text(encoding="utf-8")


def test_intervals_are_drawn(tmp_path: Path) -> None:
    """Only where they are known; of a mean over tasks they are combined."""
    rows = [score("a", task, "8k", 0.5)._replace(low=0.4, high=0.6) for task in ("nq", "popqa")]
    rows.append(score("a", "nq", "16k", 0.5))
    found = curves(averages(rows, ()))["helmet_rag"]["a"]
    half = 0.1 / 2**0.5
    assert (found[8192].low, found[8192].high) == (pytest.approx(0.5 - half), pytest.approx(0.5 + half))
    assert (found[16384].low, found[16384].high) == (None, None)
    bars = []
    for curve in ({8192: found[8192]}, {16384: found[16384]}):
        plot({"p": {"a": curve}}, tmp_path / "x.svg")
        bars.append("LineCollection" in (tmp_path / "x.svg").read_text(encoding="utf-8"))
    assert bars == [True, False]
