"""Tests of the plot of scores over length, and of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.apps.exchange.export import AVERAGE, Average, length_plot
from helm_longctx.documents.numbers import MARK
from helm_longctx.documents.plots import depth_maps, write_picture
from helm_longctx.errors import InputError
from helm_longctx.runs.shown_models import ShownModel


def mean(
    model: str, length: str, score: float, context: str = "full", caveats: str = ""
) -> Average:
    is_published = model.startswith("published/")
    shown = ShownModel(model.removeprefix("published/"), is_published=is_published)
    return Average(shown, "helmet_rag", AVERAGE, length, context, score, 4, caveats)


def test_each_condition_has_a_panel() -> None:
    """Runs without context have a panel of their own; single tasks and means over lengths are not drawn."""
    rows = [
        mean("a", "16k", 0.5),
        mean("longctx/null", "8k", 0.4),
        mean("a", "8k", 0.1, context="none"),
    ]
    rows.append(mean("a", AVERAGE, 0.9)._replace(task="nq"))
    spec = length_plot(rows)
    places = [
        (row["part"], row["model"], row["length"], row["score"], row["kind"])
        for row in spec["datasets"]["rows"]
    ]
    assert places == [
        ("helmet_rag", "a", "16k", 0.5, "own"),
        ("helmet_rag", "longctx/null", "8k", 0.4, "floor"),
        ("helmet_rag, context=none", "a", "8k", 0.1, "own"),
    ]
    assert spec["facet"]["sort"] == ["helmet_rag", "helmet_rag, context=none"]
    assert spec["spec"]["encoding"]["x"]["sort"] == ["8k", "16k"]


@pytest.mark.parametrize(
    ("name", "start"), [("x.png", b"\x89PNG"), ("x.svg", b"<svg"), ("x.pdf", b"%PDF")]
)
def test_the_extension_selects_the_format(
    name: str, start: bytes, tmp_path: Path
) -> None:
    """The file's extension selects the format, an SVG keeps Chinese texts as texts, and the axis includes scores above 100 %."""
    row = mean("模型/通义", "8k", 1.4)._replace(entry="中文")
    write_picture(length_plot([row, row._replace(length="16k")]), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    assert content.startswith(start)
    if name == "x.svg":
        texts = set(content.decode().replace(">", "<").split("<"))
        assert {"模型/通义", "中文", "16k", "140%"} <= texts


def test_a_suite_without_lengths_has_no_plot() -> None:
    """A suite without lengths has nothing to draw, and the error says so."""
    with pytest.raises(InputError, match="no scores by length to draw"):
        length_plot([])


def test_a_score_that_is_not_comparable_has_a_mark(tmp_path: Path) -> None:
    """Only a score that is not comparable has a mark in the plot."""
    for name, caveats in (("marked", "missing:nq"), ("plain", "")):
        write_picture(
            length_plot([mean("a", "8k", 0.5), mean("a", "16k", 0.5, caveats=caveats)]),
            tmp_path / f"{name}.svg",
        )
        assert (tmp_path / f"{name}.svg").read_text("utf-8").count(f">{MARK}<") == bool(
            caveats
        )


def test_intervals_are_drawn(tmp_path: Path) -> None:
    """An interval is drawn only if it is known."""
    known = mean("a", "8k", 0.5)._replace(low=0.4, high=0.6)
    unknown = mean("a", "16k", 0.5)
    ends = [
        (row["low"], row["high"])
        for row in length_plot([known, unknown])["datasets"]["rows"]
    ]
    assert ends == [(0.4, 0.6), (None, None)]
    rules = []
    for row in (known, unknown):
        write_picture(length_plot([row]), tmp_path / "x.svg")
        text = (tmp_path / "x.svg").read_text("utf-8")
        rules.append(text.count('aria-roledescription="rule mark"'))
    assert rules[0] == rules[1] + 1


@pytest.mark.parametrize("lengths", [["4k"], ["4k", "16k"], ["4k", "16k", "1m"]])
def test_titles_of_depth_maps_stay_in_their_panels(
    lengths: list[str], tmp_path: Path
) -> None:
    """The title of an axis has several lines in a narrow panel, so that those of two panels do not overlap."""
    unit = "length in tokens of the prompt, about"
    spec = depth_maps(["a", "b"], ["0 %"], lengths, unit)
    lines = spec["spec"]["encoding"]["x"]["title"]
    assert " ".join(lines) == unit
    assert max(map(len, lines)) <= max(8 * len(lengths) + len(lengths), 8)
    rows = []
    for model in "ab":
        for length in lengths:
            score = {"score": 0.5, "low": 0.4, "high": 0.6, "n": 3}
            rows.append({"model": model, "length": length, "depth": "0 %", **score})
    spec["datasets"] = {"rows": rows}
    write_picture(spec, tmp_path / "x.svg")
    assert all(line in (tmp_path / "x.svg").read_text() for line in lines)
