"""The page of published scores beside what the publication says about the models, such as their windows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from helm_longctx.apps.app import for_each_length
from helm_longctx.documents.document import Block, Cell, Column, Figure, Section, Table, number_cell, text_columns
from helm_longctx.documents.numbers import DASH, count
from helm_longctx.documents.plots import property_scatter
from helm_longctx.results.boards import Board, label, show_model
from helm_longctx.results.cells import rho_cell, score_cell
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.ranking import Correlation, spearman
from helm_longctx.tasks.publications import ModelProperties

FEWEST_MODELS = 5

LARGE = 10
"""Billions of active parameters above which a model is called large."""


class ModelScore(NamedTuple):
    """A score and the properties of its model."""

    result: Result
    properties: ModelProperties

    @property
    def texts(self) -> dict[str, str]:
        """The properties that are texts, by the name of the plot's field."""
        return {
            "positions": self.properties.positions or UNKNOWN,
            "architecture": self.properties.architecture or UNKNOWN,
            "family": self.properties.family,
            "training": "instruction-tuned" if self.properties.instruct else "base",
        }


@dataclass(frozen=True)
class PropertyCorrelations:
    """Rank correlations of the score with the properties of some models."""

    group: str
    window: Correlation
    parameters: Correlation


def find_model_scores(board: Board, part: str, length: int | None) -> list[ModelScore]:
    """Return the scores of a part whose models have properties, the best first, without floors."""
    models = board.benchmark.models()
    found = ((result, models.get(show_model(result.model))) for result in board.competing(length, part))
    return [ModelScore(result, properties) for result, properties in found if properties and result.is_published]


def correlate_properties(scores: Sequence[ModelScore]) -> list[PropertyCorrelations]:
    """Return the correlations over all models, by training, by size and by family; of groups with enough models."""
    groups = {
        "All models": [*scores],
        "Instruction-tuned": [row for row in scores if row.properties.instruct],
        "Base": [row for row in scores if not row.properties.instruct],
        f"Up to {LARGE} billion parameters": [row for row in scores if 0 < (row.properties.active or 0) <= LARGE],
        f"More than {LARGE} billion parameters": [row for row in scores if (row.properties.active or 0) > LARGE],
    }
    for family in dict.fromkeys(row.properties.family for row in scores):
        groups[family] = [row for row in scores if row.properties.family == family]
    found = []
    for group, rows in groups.items():
        means = [row.result.interval.mean for row in rows]
        window, active = (
            spearman([math.nan if value is None else value for value in values], means)
            for values in ([row.properties.window for row in rows], [row.properties.active for row in rows])
        )
        if max(window.n, active.n) >= FEWEST_MODELS:
            found.append(PropertyCorrelations(group, window, active))
    return found


UNKNOWN = "unknown"

_ABOUT = (
    "What the publication says about its models, beside their published scores. The window is the training length or,"
    " if that is unknown, the claimed context window. Models of one family are similar, so none of this shows what a"
    " property causes. Your own models are not here, because the publication does not describe them."
)

_HEADS = (
    Column("Model", is_number=False),
    Column("Score"),
    Column("Window", "Tokens of the training length or, if that is unknown, of the claimed context window."),
    Column("Parameters", "Billions; of a mixture of experts the active ones, and after the slash all of them."),
    *text_columns("Architecture"),
    Column("Positions", "How positions are encoded or extrapolated.", is_number=False),
    *text_columns("Training", "Family"),
    Column("Source", "The table from which the window and the other properties are.", is_number=False),
)


@for_each_length
def model_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length at which enough models with properties have a score."""
    part = board.main_part(length)
    scores = find_model_scores(board, part, length)
    if len(scores) < FEWEST_MODELS:
        return None
    name = f"models-{board.file_name}-{label(length)}".rstrip("-")
    scatter = _scatter(board, part, length, scores, name)
    about = "The search finds models by any property, such as YaRN, MoE or base."
    unknown, rows = Cell(DASH, note=UNKNOWN), []
    for row in scores:
        texts, found = row.texts, row.properties
        window = number_cell(found.window, count) if found.window else unknown
        size = Cell(found.parameters, found.active) if found.parameters else unknown
        rest = [*(texts[each] for each in ("architecture", "positions", "training", "family")), found.source]
        rows.append([Cell(show_model(row.result.model)), score_cell(row.result), window, size, *map(Cell, rest)])
    table = Table(f"{name}-table", "Models", _HEADS, rows, about, search=True)
    blocks: list[Block] = [scatter, _correlations(scores, name), table]
    title = f"{board.titles[part]} and the models' properties {label(length)}".strip()
    return Section(name, title, blocks, _ABOUT, choice=label(length))


def _scatter(board: Board, part: str, length: int | None, scores: Sequence[ModelScore], name: str) -> Figure:
    parts = [each for each in board.parts_at(length) if find_model_scores(board, each, length)]
    rows = [
        {
            "model": show_model(row.result.model),
            "window": row.properties.window,
            "parameters": row.properties.active,
            **row.texts,
            **{
                each: round(result.interval.mean, 6)
                for each in parts
                if (result := board.score(row.result.model, each, length))
            },
        }
        for row in scores
    ]
    about = (
        "Each point is a model. Choose the axes, and which models are shown, below the plot. Both properties have"
        " logarithmic axes; models whose property is unknown have no point. Colours show how positions are encoded."
    )
    spec = property_scatter(
        {"window": "window in tokens", "parameters": "billions of active parameters"},
        {each: board.titles[each] for each in parts},
        part,
        {
            field: sorted({str(row[field]) for row in rows})
            for field in ("positions", "architecture", "family", "training")
        },
    )
    return Figure(f"{name}-plot", "Score and claimed window", about, spec, rows)


def _correlations(scores: Sequence[ModelScore], name: str) -> Table:
    heads = [
        Column("Models", is_number=False),
        Column("Score and window", "Spearman's rank correlation with its 95 % interval."),
        Column("Models with a window"),
        Column("Score and parameters", "Spearman's rank correlation with the active parameters."),
        Column("Models with parameters"),
    ]
    rows = [
        [
            Cell(each.group),
            *(
                cell
                for found in (each.window, each.parameters)
                for cell in (rho_cell(found), number_cell(found.n, count))
            ),
        ]
        for each in correlate_properties(scores)
    ]
    about = (
        f"Rank correlations over models, by training, size and family, for at least {FEWEST_MODELS} models. The"
        " p-values in the tooltips are not adjusted for the number of groups."
    )
    return Table(f"{name}-correlations", "Does a larger window or a larger model score higher?", heads, rows, about)
