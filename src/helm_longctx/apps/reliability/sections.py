"""The pages that say how far scores can be trusted: noise, signal and price of tasks; cut answers; known errors."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from helm_longctx.apps.app import for_each_length
from helm_longctx.documents.document import Cell, Column, Section, Table, number_cell, text_columns
from helm_longctx.documents.numbers import MARK, add_mark, count, decimals, tenths
from helm_longctx.results.boards import Board, label
from helm_longctx.results.cells import (
    caveat_kinds,
    find_wide_bounds,
    model_cell,
    own_scores,
    score_cell,
    without_errors,
)
from helm_longctx.results.comparability import Caveat
from helm_longctx.results.comparison import by_instance, mean_of
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.power import (
    SignalToNoise,
    VarianceComponents,
    monotonicity,
    signal_to_noise,
    variance_components,
)

FEWEST_MODELS = 3
"""Smallest number of models for a signal, which is a standard deviation over models."""

FEWEST_LENGTHS = 3
"""Smallest number of lengths for an order over lengths."""


@dataclass(frozen=True)
class Reliability:
    """How far the scores of a task or category at a length can be trusted.

    Args:
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
    parts = dict.fromkeys(
        part for column, of in tasks.items() for part in (column, *(of if len(of) > 1 else ()))
    )
    rows = (
        (part, [score for score in board.competing(length, part) if score.is_complete])
        for part in parts
    )
    return [_reliability(board, part, scores) for part, scores in rows if scores]


def _reliability(board: Board, part: str, scores: Sequence[Result]) -> Reliability:
    orders = []
    for model in (score.model for score in scores):
        found = {length: board.score(model, part, length) for length in board.lengths if length}
        over_lengths = {length: score.interval.mean for length, score in found.items() if score}
        if len(over_lengths) >= FEWEST_LENGTHS:
            orders.append(monotonicity(over_lengths))
    own = [task for score in scores for task in score.task_results]
    if len({task.task for task in own}) > 1:
        own = []
    scored = [
        [(each.score, each.instance) for each in task.answers if each.score is not None]
        for task in own
    ]
    repeated = [
        answers for answers in scored if len(answers) > len({instance for _, instance in answers})
    ]
    tokens = []
    for task in own:
        prompt = _statistic(task, "billed_prompt_tokens") or _mean(
            answer.tokens for answer in task.answers
        )
        tokens.append(
            None if prompt is None else prompt + (_statistic(task, "output_tokens") or 0.0)
        )
    errors = {score.model: error for score in scores if not math.isnan(error := score.error)}
    means = [each.interval.mean for each in scores if each.model in errors]
    return Reliability(
        part,
        fmean(score.interval.n for score in scores),
        len(scores),
        tuple(caveat for score in scores if not score.is_published for caveat in score.caveats),
        signal_to_noise(means, list(errors.values())) if len(errors) >= FEWEST_MODELS else None,
        tuple(variance_components(*map(list, zip(*rows, strict=True))) for rows in repeated),
        math.nan if (order := _mean(orders)) is None else order,
        _mean(tokens),
        _mean(_statistic(task, "cost") for task in own),
    )


def _statistic(task: Result, name: str) -> float | None:
    return task.statistics[name].interval.mean if name in task.statistics else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None and not math.isnan(value)]
    return fmean(known) if known else None


_ABOUT_RELIABILITY = (
    "A task is worth its price if its scores differ more between models than by chance: a high signal to noise for few"
    " answers, tokens and dollars. Below 1 the task does not tell these models apart, whatever its mean; its questions"
    " are too few, or too easy or too hard for all. Floors are left out."
)

_HEADS_OF_TASKS = (
    Column("Task", is_number=False),
    Column("Models", "Number of models with a score, without floors."),
    Column("n", "Number of instances behind a model's score; the mean over models."),
    Column("Signal", "Standard deviation of the models' true scores, in percentage points."),
    Column(
        "Noise",
        "Standard error of a model's score, in percentage points; the root of the mean square over models.",
    ),
    Column("Signal to noise", "Signal divided by noise."),
    Column(
        "Between questions",
        "Standard deviation of a model's score between questions, in percentage points.",
    ),
    Column(
        "Between repeats",
        "Standard deviation of the score if the same question is asked again, in points.",
    ),
    Column(
        "Seed noise",
        "Standard deviation of a model's mean if all questions are asked again, in points.",
    ),
    Column(
        "Monotonicity",
        "Kendall's rank correlation of length and score, mean over models; −1: it always falls.",
    ),
    Column("Tokens per answer", "Tokens of the prompt and the output, mean over your models."),
    Column("Dollars per answer", "Mean over your models, by the prices at the time of the run."),
)


@for_each_length
def reliability_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length at which a task's signal or its variance between repeats is known."""
    found = find_reliability(board, length)
    if not any(each.signal or each.components for each in found):
        return None
    rows = [_row(board, each) for each in found]
    # Columns without any number are left out.
    used = [
        place
        for place in range(len(_HEADS_OF_TASKS))
        if not place or any(row[place].value is not None for row in rows)
    ]
    notes = [f"Signals are over at least {FEWEST_MODELS} models."]
    if board.published.intersection(board.competitors):
        notes.append("The noise of published models is the largest that their sample allows.")
    if any(each.components for each in found):
        notes.append("Variances are means over your models that were asked repeatedly.")
    else:
        notes.append(
            "No question was asked repeatedly (repeats=), so the noise between repeats is not known."
        )
    if any(not math.isnan(each.monotonicity) for each in found):
        notes.append(f"Monotonicity is over all lengths, of models with at least {FEWEST_LENGTHS}.")
    if any(each.caveats for each in found):
        notes.append(f"{MARK} marks tasks at which some of your scores are not comparable.")
    name = f"reliability-{board.file_name}-{label(length)}".rstrip("-")
    title = f"Which tasks are worth their price {label(length)}".strip()
    table = Table(
        f"{name}-table",
        "Signal, noise and price by task",
        [_HEADS_OF_TASKS[place] for place in used],
        [[row[place] for place in used] for row in rows],
        " ".join(notes),
        search=True,
    )
    return Section(name, title, [table], _ABOUT_RELIABILITY, choice=label(length))


def _row(board: Board, each: Reliability) -> list[Cell]:
    signal = each.signal
    deviations = [number_cell(None, note="asked once, or several tasks")] * 3
    if each.components:
        variances = ([one.between, one.within, one.deviation_of_mean**2] for one in each.components)
        deviations = [
            number_cell(math.sqrt(fmean(values))) for values in zip(*variances, strict=True)
        ]
    return [
        Cell(add_mark(board.titles[each.part], each.caveats), note=caveat_kinds(each.caveats)),
        Cell(str(each.models), each.models),
        number_cell(each.n, count),
        number_cell(signal.signal if signal else None, note="too few models"),
        number_cell(signal.noise if signal else None, note="too few models"),
        # Without any noise there is no sample of right and wrong answers that could tell the models apart.
        number_cell(signal.ratio if signal and math.isfinite(signal.ratio) else None, tenths),
        *deviations,
        number_cell(each.monotonicity, decimals),
        number_cell(each.tokens, count),
        number_cell(each.dollars, partial(decimals, digits=4)),
    ]


_CUT = (
    "Scores that could be outside their 95 % interval if the token limit had not cut answers. `helm-longctx run"
    " --retry-cut 4x` asks only for these answers again, with a larger budget."
)
_ERRATA = (
    "Scores are as published, with all questions. Beside them are the scores without the questions whose data is known"
    " to be wrong."
)


def scrutiny_sections(board: Board) -> list[Section]:
    """Return a section about cut answers and one about known errors, if there are such scores."""
    sections = []
    rows = [
        [
            *_about(board, score),
            score_cell(score),
            *map(number_cell, (cut.share, cut.wrong, cut.left_out, cut.best)),
        ]
        for score in own_scores(board)
        if (cut := find_wide_bounds(score))
    ]
    if rows:
        name = f"cut-{board.file_name}"
        table = Table(f"{name}-table", "Bounds of scores", _CUT_HEADS, rows, search=True)
        sections.append(Section(name, "Cut answers", [table], _CUT))
    rows = [
        [
            *_about(board, score),
            score_cell(score),
            number_cell(right.mean),
            number_cell(right.n, count),
        ]
        for score in own_scores(board)
        if (right := without_errors(score))
    ]
    if rows:
        name = f"errata-{board.file_name}"
        table = Table(
            f"{name}-table", "Scores without known errors", _ERRATA_HEADS, rows, search=True
        )
        blocks = [table, _make_question_table(board, f"{name}-questions")]
        sections.append(Section(name, "Known errors", blocks, _ERRATA))
    return sections


def _about(board: Board, score: Result) -> list[Cell]:
    part = board.titles[score.part] + (" (closed book)" if score.context == "none" else "")
    return [
        model_cell(board, score.model),
        Cell(part),
        Cell(label(score.length), score.length or 0),
    ]


_HEADS = text_columns("Model", "Score of", "Length")
_CUT_HEADS = [
    *_HEADS,
    Column("Score", "As published: cut answers are scored as they are."),
    Column("Cut", "Share of answers that end at the token limit."),
    Column("Cut answers wrong", "The score if each cut answer is wrong."),
    Column("Without cut answers", "The score of the other answers."),
    Column("Best case", "The score if each cut answer is right."),
]
_ERRATA_HEADS = [
    *_HEADS,
    Column("Score", "As published, with all questions."),
    Column("Without known errors", "The score of the other questions."),
    Column("n", "Number of the other questions."),
]


def _make_question_table(board: Board, name: str) -> Table:
    questions: dict[tuple[str, int | None, str], dict[str, Result]] = defaultdict(dict)
    for result in board.tasks:
        for instance in result.errata:
            questions[result.task, result.length, instance][result.model] = result
    models = list(dict.fromkeys(model for by_model in questions.values() for model in by_model))
    heads = [
        *text_columns("Task", "Length", "Question", "What is wrong", "Known since", "Source"),
        *(
            Column(model, "The model's score of the question; the mean over repeats.")
            for model in models
        ),
    ]
    rows = []
    for (task, length, instance), by_model in questions.items():
        errata = next(iter(by_model.values())).errata[instance]
        repeats = {
            model: by_instance(result.answers).get(instance) for model, result in by_model.items()
        }
        scores = [mean_of(found) if (found := repeats.get(model)) else None for model in models]
        about = [Cell(board.titles[task]), Cell(label(length), length or 0), Cell(instance)]
        texts = (
            "; ".join(each.what for each in errata),
            min(each.since for each in errata).isoformat(),
            ", ".join(dict.fromkeys(each.source for each in errata)),
        )
        rows.append([*about, *map(Cell, texts), *map(number_cell, scores)])
    return Table(name, "Questions that are left out", heads, rows, search=True)
