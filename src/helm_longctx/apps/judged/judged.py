"""Compares the judge's score of answers with the other official metrics of the same answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from helm_longctx.results.boards import Board
from helm_longctx.results.statistics.correlation import Correlation, spearman
from helm_longctx.runs.scores import InstanceScore
from helm_longctx.tasks.task import Task

JUDGE = "judge_"
"""Start of the names of metrics that a judge gives, which `Task.metrics` has."""


@dataclass(frozen=True)
class JudgedAnswers:
    """The answers of all of the user's models to a judged task at a length, without floors.

    Args:
        metric: the judged metric.
        others: the other metrics of a share, of which each differs between answers.
        answers: by model, those that have all these metrics.
    """

    task: str
    metric: str
    others: tuple[str, ...]
    answers: Mapping[str, Sequence[InstanceScore]]

    def over_answers(self, one: str, other: str) -> Correlation:
        """Correlate two metrics over answers. The interval counts all answers to a question or book as one."""
        rows = [answer for answers in self.answers.values() for answer in answers]
        first, second = ([row.values[metric] for row in rows] for metric in (one, other))
        return spearman(first, second, len({row.group for row in rows}))

    def over_models(self, one: str, other: str) -> Correlation:
        """Correlate the models' means of two metrics."""
        first, second = (
            [fmean(row.values[metric] for row in rows) for rows in self.answers.values()] for metric in (one, other)
        )
        return spearman(first, second)


def find_judged_answers(board: Board, length: int | None) -> list[JudgedAnswers]:
    """Return the answers of each judged task at a length that have another metric, too, in the benchmark's order."""
    shares = {metric.name for metric in board.benchmark.metrics if metric.range == (0.0, 1.0)}
    return [found for task in board.benchmark.tasks if (found := _judged_answers(board, task, length, shares))]


def _judged_answers(board: Board, task: Task, length: int | None, shares: set[str]) -> JudgedAnswers | None:
    rows: dict[str, list[InstanceScore]] = defaultdict(list)
    for model in board.competitors:
        if result := board.score(model, task.name, length):
            rows[model] += result.answers
    values = _values(rows, shares.intersection(task.metrics))
    # The judged metric is the task's score, if a judge gives that.
    judged = next((name for name in (*task.headline, *task.metrics) if name.startswith(JUDGE) and name in values), "")
    others = tuple(name for name in task.metrics if name in values and not name.startswith(JUDGE))
    if not judged or not others:
        return None
    complete = {model: [row for row in each if row.values.keys() >= {judged, *others}] for model, each in rows.items()}
    return JudgedAnswers(task.name, judged, others, {model: each for model, each in complete.items() if each})


def _values(rows: Mapping[str, Sequence[InstanceScore]], metrics: set[str]) -> dict[str, set[float]]:
    """Return the values of each metric that differs between answers."""
    answers = [row.values for each in rows.values() for row in each]
    values = {name: {each[name] for each in answers if name in each} for name in metrics}
    return {name: found for name, found in values.items() if len(found) > 1}
