"""Curves from scores, and the picture of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.errors import InputError
from helm_longctx.report.export import Score
from helm_longctx.report.plot import curves, plot


def score(
    model: str, task: str, length: str, value: float, context: str = "full", metric: str = "longctx_score"
) -> Score:
    return Score("run", model, "helmet_rag", task, length, context, metric, value, 1)


def test_curves() -> None:
    """Tasks are averaged without weights; runs without context are a panel of their own; other metrics are left out."""
    rows = [score("a", "nq", "8k", 0.2), score("a", "popqa", "8k", 0.6), score("a", "nq", "16k", 0.5)]
    rows += [score("a", "nq", "8k", 0.1, context="none"), score("a", "nq", "8k", 1, metric="f1")]
    assert curves(rows) == {
        "helmet_rag": {"a": {8192: pytest.approx(0.4), 16384: 0.5}},
        "helmet_rag, context=none": {"a": {8192: 0.1}},
    }


def test_text_is_whole(tmp_path: Path) -> None:
    """Chinese names stand in the picture as they are; a score above 1 is not cut."""
    plot({"中文": {"模型/通义": {8192: 1.4, 16384: 0.5}}}, tmp_path / "x.svg")
    assert {"模型/通义", "中文", "16k"} <= set(
        (tmp_path / "x.svg").read_text(encoding="utf-8").replace(">", "<").split("<")
    )
    plot({"a": {"b": {8192: 0.5}}}, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_to_draw(tmp_path: Path) -> None:
    """That is said."""
    with pytest.raises(InputError, match="no scores"):
        plot({}, tmp_path / "x.png")
