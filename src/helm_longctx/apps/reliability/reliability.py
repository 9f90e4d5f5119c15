"""How far the scores of each task can be trusted, and what an answer costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from helm_longctx.results.boards import Board
from helm_longctx.results.comparability import Caveat
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.reliability import (
    SignalToNoise,
    VarianceComponents,
    monotonicity,
    signal_to_noise,
    variance_components,
)
from helm_longctx.runs.scores import InstanceScore

FEWEST_MODELS = 3
"""Smallest number of models for a signal, which is a standard deviation over models."""

FEWEST_LENGTHS = 3
"""Smallest number of lengths for an order over lengths."""


@dataclass(frozen=True)
class Reliability:
    """How far the scores of a task or category at a length can be trusted.

    Args:
        part: the task or category.
        n: mean number of instances of the models' scores.
        models: number of models with a score, without floors.
        lacks: why scores of the user's models are not comparable, such as the tasks that a category lacks.
        signal: how well it tells these models apart; None for fewer than three.
        components: for each of the user's models that was asked repeatedly, the variance of its answers between
            questions and between repeats.
        monotonicity: mean over models of the rank correlation of length and score; NaN if no model has three lengths.
        tokens, dollars: means per answer of the user's models, prompt and output; None if they are unknown.
    """

    part: str
    n: float
    models: int
    caveats: tuple[Caveat, ...]
    signal: SignalToNoise | None
    components: tuple[VarianceComponents, ...]
    monotonicity: float
    tokens: float | None
    dollars: float | None


def find_reliability(board: Board, length: int | None) -> list[Reliability]:
    """Return the reliability of each category and task that has a score at a length, in the benchmark's order.

    Means over a part of a category's tasks are left out, because they would differ by their tasks.
    """
    tasks = {column: board.tasks_of(column, length) for column in board.columns_at(length)}
    # A category with one task has that task's scores.
    parts = dict.fromkeys(part for column, of in tasks.items() for part in (column, *(of if len(of) > 1 else ())))
    rows = ((part, [score for score in board.competing(length, part) if score.is_complete]) for part in parts)
    return [_reliability(board, part, scores) for part, scores in rows if scores]


def _reliability(board: Board, part: str, scores: Sequence[Result]) -> Reliability:
    own = [task for score in scores for task in _results_of_tasks(score)]
    if len({task.task for task in own}) > 1:
        own = []
    repeated = [answers for task in own if (answers := _repeated_answers(task.answers))]
    return Reliability(
        part,
        fmean(score.interval.n for score in scores),
        len(scores),
        tuple(caveat for score in scores if not score.is_published for caveat in score.caveats),
        _signal(scores),
        tuple(variance_components(*map(list, zip(*rows, strict=True))) for rows in repeated),
        _monotonicity(board, part, [score.model for score in scores]),
        _mean(_tokens(task) for task in own),
        _mean(_statistic(task, "cost") for task in own),
    )


def _results_of_tasks(score: Result) -> list[Result]:
    """Return the results of the user's tasks that a score is of."""
    if score.is_published:
        return []
    return [score] if score.task else [task for part in score.parts for task in _results_of_tasks(part)]


def _repeated_answers(answers: Iterable[InstanceScore]) -> list[tuple[float, str]]:
    """Return the score and the instance of each scored answer if a question has several; else nothing."""
    scored = [(answer.score, answer.instance) for answer in answers if answer.score is not None]
    return scored if len(scored) > len({instance for _, instance in scored}) else []


def _signal(scores: Sequence[Result]) -> SignalToNoise | None:
    errors = {score.model: error for score in scores if not math.isnan(error := score.error)}
    if len(errors) < FEWEST_MODELS:
        return None
    return signal_to_noise([each.interval.mean for each in scores if each.model in errors], list(errors.values()))


def _monotonicity(board: Board, part: str, models: Iterable[str]) -> float:
    found = []
    for model in models:
        scores = {length: board.score(model, part, length) for length in board.lengths if length}
        means = {length: score.interval.mean for length, score in scores.items() if score}
        if len(means) >= FEWEST_LENGTHS and not math.isnan(order := monotonicity(means)):
            found.append(order)
    return fmean(found) if found else math.nan


def _tokens(task: Result) -> float | None:
    prompt = _statistic(task, "billed_prompt_tokens") or _mean(answer.tokens for answer in task.answers)
    return None if prompt is None else prompt + (_statistic(task, "output_tokens") or 0.0)


def _statistic(task: Result, name: str) -> float | None:
    return task.statistics[name].interval.mean if name in task.statistics else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None and not math.isnan(value)]
    return fmean(known) if known else None
