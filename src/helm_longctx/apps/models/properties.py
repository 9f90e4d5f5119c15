"""Scores of published models beside what the publication says about the models."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from helm_longctx.results.boards import Board, show_model
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.correlation import Correlation, spearman
from helm_longctx.tasks.publications import ModelProperties

FEWEST_MODELS = 5
"""Smallest number of models for correlations."""

LARGE = 10
"""Billions of active parameters above which a model is called large."""


class ModelScore(NamedTuple):
    """A score and the properties of its model."""

    result: Result
    properties: ModelProperties


@dataclass(frozen=True)
class PropertyCorrelations:
    """Rank correlations of the score with the properties of some models.

    Args:
        group: the models, such as a family.
        window: with the context window.
        parameters: with the number of active parameters.
    """

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
    found = (
        PropertyCorrelations(
            group,
            _correlate([row.properties.window for row in rows], rows),
            _correlate([row.properties.active for row in rows], rows),
        )
        for group, rows in _groups(scores)
    )
    return [each for each in found if max(each.window.n, each.parameters.n) >= FEWEST_MODELS]


def _correlate(values: Iterable[float | None], rows: Iterable[ModelScore]) -> Correlation:
    numbers = [math.nan if value is None else value for value in values]
    return spearman(numbers, [row.result.interval.mean for row in rows])


def _groups(scores: Sequence[ModelScore]) -> Iterator[tuple[str, list[ModelScore]]]:
    yield "All models", [*scores]
    yield "Instruction-tuned", [row for row in scores if row.properties.instruct]
    yield "Base", [row for row in scores if not row.properties.instruct]
    yield f"Up to {LARGE} billion parameters", [row for row in scores if 0 < (row.properties.active or 0) <= LARGE]
    yield f"More than {LARGE} billion parameters", [row for row in scores if (row.properties.active or 0) > LARGE]
    for family in dict.fromkeys(row.properties.family for row in scores):
        yield family, [row for row in scores if row.properties.family == family]
