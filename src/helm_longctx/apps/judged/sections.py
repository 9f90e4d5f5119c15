"""The page that sets the judge's score of answers against the other official metrics of the same answers."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

from helm_longctx.apps.app import for_each_length
from helm_longctx.documents.document import Cell, Column, Figure, Section, Table, number_cell, text_columns
from helm_longctx.documents.numbers import count, decimals, in_brackets, range_text
from helm_longctx.documents.plots import scatter
from helm_longctx.results.boards import Board, label
from helm_longctx.results.cells import rho_cell, short_name
from helm_longctx.results.statistics.ranking import Correlation, spearman
from helm_longctx.runs.scores import InstanceScore
from helm_longctx.tasks.task import Task

JUDGE = "judge_"
"""Start of the names of metrics that a judge gives, which `Task.metrics` has."""


@dataclass(frozen=True)
class JudgedAnswers:
    """The answers of all of the user's models to a judged task at a length, without floors.

    Args:
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


def _judged_answers(board: Board, task: Task, length: int | None, shares: set[str]) -> JudgedAnswers | None:
    rows: dict[str, list[InstanceScore]] = defaultdict(list)
    for model in board.competitors:
        if result := board.score(model, task.name, length):
            rows[model] += result.answers
    answers = [row.values for each in rows.values() for row in each]
    values = {name: {each[name] for each in answers if name in each} for name in shares.intersection(task.metrics)}
    # A metric that is the same for all answers has no correlation.
    values = {name: found for name, found in values.items() if len(found) > 1}
    # The judged metric is the task's score, if a judge gives that.
    judged = next((name for name in (*task.headline, *task.metrics) if name.startswith(JUDGE) and name in values), "")
    others = tuple(name for name in task.metrics if name in values and not name.startswith(JUDGE))
    if not judged or not others:
        return None
    complete = {model: [row for row in each if row.values.keys() >= {judged, *others}] for model, each in rows.items()}
    return JudgedAnswers(task.name, judged, others, {model: each for model, each in complete.items() if each})


_ABOUT = (
    "The same answers of your models, by a judge and by the metrics that need none. A low correlation means that the"
    " other metric says little about what the judge sees, such as ROUGE for long answers (arXiv 2410.02694). It"
    " does not say which of the two is right. Floors are left out."
)


_HEADS = [
    *text_columns("Task", "By the judge", "Other metric"),
    Column("Over answers", "Spearman's rank correlation over all answers, with its 95 % interval."),
    Column("Answers", "Number of answers with both metrics."),
    Column("Over models", "Spearman's rank correlation over the models' means, with its 95 % interval."),
    Column("Models"),
]

_ABOUT_TABLE = (
    "Correlations over answers say whether both metrics see the same answers as good; those over models say whether"
    " they rank models alike. Several answers to a question, or about a book, count once in the intervals."
)


@for_each_length
def judged_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length at which answers have a judged score and another metric."""
    shares = {metric.name for metric in board.benchmark.metrics if metric.range == (0.0, 1.0)}
    found = [each for task in board.benchmark.tasks if (each := _judged_answers(board, task, length, shares))]
    if not found:
        return None
    name = f"judged-{board.file_name}-{label(length)}".rstrip("-")
    titles = {metric.name: metric.title for metric in board.benchmark.metrics}
    figures = [_scatter(board, each, titles, name) for each in found]
    rows = [
        [
            *map(Cell, names),
            rho_cell(answers),
            number_cell(answers.n, count),
            rho_cell(models),
            number_cell(models.n, count),
        ]
        for each in found
        for other in each.others
        for names in [(board.titles[each.task], titles[each.metric], titles[other])]
        for answers, models in [(each.over_answers(each.metric, other), each.over_models(each.metric, other))]
    ]
    table = Table(f"{name}-table", "Rank correlations with the judge", _HEADS, rows, _ABOUT_TABLE, search=True)
    title = f"The same answers by two metrics {label(length)}".strip()
    return Section(name, title, [table, *figures], _ABOUT, choice=label(length))


def _scatter(board: Board, found: JudgedAnswers, titles: dict[str, str], name: str) -> Figure:
    metrics = [found.metric, *found.others]
    rows: list[dict[str, Any]] = [
        {
            **{"model": short_name(model), "instance": answer.instance},
            **{metric: round(answer.values[metric], 4) for metric in metrics},
        }
        for model, answers in found.answers.items()
        for answer in answers
    ]
    rows += [
        {"row": one, "column": other, "label": f"rho = {in_brackets(decimals(each.rho), ends)}, n = {each.n}"}
        for one, other in combinations(metrics, 2)
        if not math.isnan((each := found.over_answers(one, other)).rho)
        for ends in [range_text(each.low, each.high, decimals)]
    ]
    rho = {other: found.over_answers(found.metric, other).rho for other in found.others}
    best = max(rho, key=lambda other: -math.inf if math.isnan(rho[other]) else rho[other])
    about = (
        f"{board.titles[found.task]}: each point is the answers with these two values; its area is their number. Choose"
        " the metrics below the plot. The correlation is Spearman's."
    )
    spec = scatter({metric: titles[metric] for metric in metrics}, best, found.metric, counts="answers")
    return Figure(f"{name}-{found.task}", board.titles[found.task], about, spec, rows)
