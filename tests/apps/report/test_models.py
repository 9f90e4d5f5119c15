"""Tests of the page that shows published scores with the models' properties."""

from __future__ import annotations

import math
from typing import Any

import pytest
import vl_convert
from scipy.stats import spearmanr

from helm_longctx.apps.correlations.sections import model_sections
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.documents.document import Cell, Figure, Section, Table
from helm_longctx.results.boards import OVERALL, Board

K = 1024


@pytest.fixture(scope="module")
def section(published: Board) -> Section:
    """Return the section of HELMET's published results at 128k."""
    (model_block,) = (
        model_section
        for model_section in model_sections(published)
        if model_section.choice == "128k"
    )
    return model_block


def table(section: Section, end: str) -> dict[str, dict[str, Cell]]:
    """Return a table's cells by the first cell of the row and by column."""
    (table_block,) = (
        block
        for block in section.blocks
        if isinstance(block, Table) and block.name.endswith(end)
    )
    return {
        row[0].text: dict(zip(table_block.header, row, strict=True))
        for row in table_block.rows
    }


def figure(section: Section) -> Figure:
    (drawn,) = (block for block in section.blocks if isinstance(block, Figure))
    return drawn


def test_properties_are_those_of_the_paper(section: Section) -> None:
    """Properties come from Table 15 or, for models that it lacks, from the project page, and unknown ones are shown as unknown."""
    rows = table(section, "-table")
    assert len(rows) == 59
    texts = {
        name: [cell.text for cell in row.values()][2:] for name, row in rows.items()
    }
    hybrid = "Hybrid (Mamba + Full-attention) MoE"
    assert texts["Jamba-1.5-Mini"] == [
        "262,144",
        "12/52",
        hybrid,
        "None",
        "instruction-tuned",
        "Jamba",
        "Table 15",
    ]
    window = [
        "131,072",
        "8",
        "Full-attention + Sliding window",
        "RoPE",
        "instruction-tuned",
        "Mistral",
        "Table 15",
    ]
    assert texts["Ministral-8B-Inst"] == window
    page = [
        "131,072",
        "–",
        "unknown",
        "unknown",
        "instruction-tuned",
        "Proprietary",
        "project page",
    ]
    assert texts["GPT-4o-mini"] == page
    assert texts["Llama-7B-80k"][:4] == ["80,000", "7", "Full-attention", "Dynamic NTK"]
    assert rows["Qwen2.5-7B-Inst-1M"]["Window"].value == 1_010_000


def test_scores_are_the_published_ones(published: Board, section: Section) -> None:
    """The table and the plot have the published score of each part, and a model without a known size has none in the data."""
    points = {row["model"]: row for row in figure(section).rows}
    for name, row in table(section, "-table").items():
        result = published.score(f"published/{name}", OVERALL, 128 * K)
        assert result
        assert row["Score"].value == result.interval.mean
        point = points[name]
        assert point[OVERALL] == pytest.approx(result.interval.mean, abs=1e-6)
        assert (point["window"], point["parameters"]) == (
            row["Window"].value,
            row["Parameters"].value,
        )
        recall = published.score(f"published/{name}", "helmet_recall", 128 * K)
        assert recall
        assert point["helmet_recall"] == pytest.approx(recall.interval.mean, abs=1e-6)


@pytest.mark.parametrize(
    "group", ["All models", "Base", "Llama-3", "More than 10 billion parameters"]
)
def test_correlations_are_over_the_group(section: Section, group: str) -> None:
    """Correlations are equal to another implementation's, over the models of the group whose property is known."""
    models = HELMET.models()
    chosen = {
        "All models": lambda name: True,
        "Base": lambda name: not models[name].instruct,
        "Llama-3": lambda name: models[name].family == "Llama-3",
        "More than 10 billion parameters": lambda name: (models[name].active or 0) > 10,
    }[group]
    rows: list[Any] = [row for row in figure(section).rows if chosen(str(row["model"]))]
    cells = table(section, "-correlations")[group]
    for title, count, name in (
        ("Score and window", "Models with a window", "window"),
        ("Score and parameters", "Models with parameters", "parameters"),
    ):
        pairs = [(row[name], row[OVERALL]) for row in rows if row[name] is not None]
        assert cells[count].value == len(pairs)
        assert cells[title].value == pytest.approx(spearmanr(pairs).statistic)


def test_small_families_have_no_correlation(section: Section) -> None:
    """A small family and a property that all models share have no correlation."""
    rows = table(section, "-correlations")
    assert "Jamba" not in rows
    assert rows["Qwen2.5"]["Score and window"].text == "–"
    assert rows["Qwen2.5"]["Score and parameters"].value is not None


def test_readers_choose_models(section: Section) -> None:
    """Each menu leaves the models with the chosen property, and the picture has a mark for each."""
    spec = figure(section).full_spec()
    rows: list[Any] = [row for row in figure(section).rows if row["window"] is not None]

    def count() -> int:
        return vl_convert.vegalite_to_svg(spec).count('aria-roledescription="point"')

    assert count() == len(rows)
    (menu,) = (param for param in spec["params"] if param["name"] == "only_positions")
    assert menu["bind"]["options"][0] == ""
    menu["value"] = "YaRN"
    assert count() == sum(row["positions"] == "YaRN" for row in rows) > 10


def test_pages_without_properties(own: Board, mixed: Board) -> None:
    """A benchmark without properties of models has no page, and the user's models are not on the page."""
    assert model_sections(own) == []
    for model_section in model_sections(mixed):
        assert not {"acme/one", "acme/two"} & table(model_section, "-table").keys()
    assert all(
        not math.isnan(row["Score"].value or 0)
        for row in table(model_sections(mixed)[0], "-table").values()
    )
