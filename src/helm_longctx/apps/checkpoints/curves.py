"""Finds the checkpoints of trainings among the models of a board, and says how their scores change over the steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from helm_longctx.errors import InputError
from helm_longctx.models.local.steps import find_step
from helm_longctx.results.boards import OVERALL, Board
from helm_longctx.results.comparison import Pairing, Table
from helm_longctx.results.reading import Result

SPAN = 3
"""Of so many last steps the first and the last are compared, to say whether scores still rise."""


@dataclass(frozen=True)
class Curve:
    """The scores of a part of a benchmark over the steps of a training.

    Args:
        family: the name that the checkpoints share, with a star in the place of the step.
        part: the task or the part of the benchmark.
        length: the length; None for a benchmark without lengths.
        scores: the score of each step, in the order of the steps.
        floor: the best score that needs no understanding; None if no floor was run.
        trend: the comparison of the last step with an earlier one on the same questions; None if there is none.
    """

    family: str
    part: str
    length: int | None
    scores: Mapping[int, Result]
    floor: float | None
    trend: Pairing | None

    @property
    def start(self) -> int | None:
        """The step from which on all scores are above the floor with their whole interval; None if there is none."""
        found = None
        for step, result in reversed(list(self.scores.items())):
            if not result.interval.low > (self.floor or 0):
                break
            found = step
        return found

    @property
    def trend_steps(self) -> tuple[int, int]:
        """The steps that the trend compares."""
        last = list(self.scores)[-SPAN:]
        return last[0], last[-1]

    @property
    def direction(self) -> str:
        """Whether the score still rises at the end: `rises`, `falls`, `cannot tell`, or empty without a comparison."""
        if self.trend is None:
            return ""
        if not self.trend.decision.is_different:
            return "cannot tell"
        return "rises" if self.trend.comparison.effect.mean > 0 else "falls"


def find_curves(board: Board) -> Iterator[Curve]:
    """Yield the curve of each training, length and task that several of its steps have, and of means of tasks."""
    trainings: dict[str, dict[int, str]] = defaultdict(dict)
    for result in board.tasks:
        given = result.run.model_facts.get("step") if result.run else None
        if result.has_score and not result.is_published and (step := find_step(result.model, given)):
            trainings[step.family][step.number] = result.model
    for family, models in trainings.items():
        for length in board.lengths:
            tasks = [
                task.name
                for task in board.benchmark.tasks
                if any(board.score(model, task.name, length) for model in models.values())
            ]
            means = [part for part in board.parts_at(length) if len({*board.tasks_of(part, length)} & {*tasks}) > 1]
            for part in (*means, *tasks):
                found = {number: board.score(models[number], part, length) for number in sorted(models)}
                scores = {number: score for number, score in found.items() if score}
                if len(scores) > 1:
                    last = list(scores.values())[-SPAN:]
                    try:
                        pairings = Table([board], [last[-1].model, last[0].model], length).pairings()
                    except InputError:
                        pairings = []  # they share no question, or their answers were not kept
                    # Of means only the overall one is compared.
                    place = ("all", "") if part == OVERALL else ("task", part)
                    trend = next((each for each in pairings if (each.by, each.part) == place), None)
                    yield Curve(family, part, length, scores, board.floor(part, length), trend)
