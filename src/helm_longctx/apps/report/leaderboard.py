"""The first page: which model is better at a length, how certain that is, and the leaderboard of each length."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

from helm_longctx.apps.app import for_each_length
from helm_longctx.apps.report.links import link_unread
from helm_longctx.documents.document import (
    Cell,
    Column,
    Figure,
    HeadlineAnswer,
    Section,
    Table,
    number_cell,
    text_columns,
)
from helm_longctx.documents.numbers import (
    MARK,
    add_mark,
    format_count,
    format_ends,
    format_percent,
    format_signed_percent,
    format_tenths,
)
from helm_longctx.documents.plots import interval_plot
from helm_longctx.errors import describe_all
from helm_longctx.results.boards import OVERALL, Board, label, score_key, show_model
from helm_longctx.results.cells import (
    SHOWN,
    caveat_kinds,
    model_cell,
    plot_row,
    rank_cell,
    score_cell,
    score_columns,
    short_name,
    shown_models,
)
from helm_longctx.results.comparison import (
    Differences,
    describe_best,
    describe_pair,
    find_differences,
    find_ranks,
)
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.comparison import FAILURES_DECIDE
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.results.statistics.power import (
    SignalToNoise,
    signal_to_noise,
    variance_components,
)
from helm_longctx.results.statistics.ranking import Rank
from helm_longctx.runs.shown_models import ShownModel

_UNRANKED = "unranked"
"""The tag of the user's models whose score is of other tasks, or by another judge, than the ranked ones."""

_WIDEST = (
    "Only means were published. The intervals of published models are the widest that"
    " the benchmark's sample allows if its questions are independent; they are too"
    " narrow where several questions are about the same text."
)


@for_each_length
def leaderboard_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length."""
    if not board.scores:
        return None
    part = board.main_part(length)
    ranking = board.ranking(length, part)
    differences = find_differences(board, part, length)
    name = f"leaderboard-{board.file_name}-{label(length)}".rstrip("-")
    blocks = [
        _answer(board, part, length, ranking, differences),
        _plot(board, part, length, ranking, name),
        _table(board, part, length, find_ranks(ranking, differences), name),
        _task_table(board, length, name),
    ]
    title = f"{board.title} {label(length)}".strip()
    return Section(
        name, title, [block for block in blocks if block], choice=label(length)
    )


def _answer(
    board: Board,
    part: str,
    length: int | None,
    ranking: Sequence[Result],
    differences: Differences,
) -> HeadlineAnswer:
    asked = "How good is the model" if len(ranking) == 1 else "Which model is better"
    if length is not None:
        asked += f" at {label(length)}"
    question = f"{asked}?"
    what = "overall score"
    where = ""
    if part != OVERALL:
        what = "score"
        where = f" in {board.titles[part]}"
    own = [score for score in ranking if not score.is_published]
    compared = own or ranking
    floors = []
    for floor in board.floors(part, length):
        if not floor.is_published:
            floors.append(floor)
    if not compared or (floors and not own):
        return _floor_answer(question, board, ranking, floors)
    best = compared[0]
    whose = "of your models" if own else "of the published models"
    score = f"{_score_text(best)} ({LEVEL_TEXT} interval {format_ends(best.interval)})"
    if len(compared) > 1:
        verdict = (
            f"{show_model(best.model)} has the highest {what}{where} {whose}: {score}."
        )
    else:
        verdict = f"{show_model(best.model)} has {'a' if where else 'an'} {what} of {score}{where}."
    outside = _outside(
        board, best, board.without_rank(length, part) if own else [], differences
    )
    certainty = _certainty(ranking, own, differences)
    is_sure = len(own) > 1 and all(
        differences[best.model, score.model].is_different for score in own[1:]
    )
    caveats = f"{MARK} The score of {show_model(best.model)} is not comparable: {caveat_kinds(best.caveats)}."
    notes = [
        caveats if best.caveats else "",
        outside,
        _WIDEST if any(score.is_published for score in ranking) else "",
    ]
    return HeadlineAnswer(
        question, verdict, certainty, is_sure, " ".join(filter(None, notes))
    )


def _floor_answer(
    question: str,
    board: Board,
    ranking: Sequence[Result],
    floors: Sequence[Result],
) -> HeadlineAnswer:
    about = "Floors need no understanding of the context, so they have no rank."
    if not floors:
        return HeadlineAnswer(
            question,
            "No model has a score, only floors and models without the context.",
            about,
            False,
        )
    best = max(floors, key=lambda floor: floor.interval.mean)
    verdict = f"Only floors were run here. {show_model(best.model)} has {_score_text(best)} in {board.titles[best.part]}."
    if ranking:
        first = ranking[0]
        about += f" Of {len(ranking)} published models, {show_model(first.model)} has the highest: {_score_text(first)}."
    return HeadlineAnswer(question, verdict, about, False, _WIDEST if ranking else "")


def _certainty(
    ranking: Sequence[Result],
    own: Sequence[Result],
    differences: Differences,
) -> str:
    """Say how the best of the user's models compares with the others, and with the published ones."""
    if not own:
        if ranking[1:]:
            return "Published scores are not compared with each other, because only means are known."
        return ""
    best = own[0]
    published = [score for score in ranking if score.is_published]
    texts = [describe_best(best.model, [score.model for score in own[1:]], differences)]
    if published and ranking[0] is best:
        every = describe_all(len(ranking), "model")
        texts += [f"It is the highest of {every} with this score."]
    elif published:
        first = ranking[0]
        name = show_model(first.model)
        score = _score_text(first)
        every = describe_all(len(ranking), "model")
        texts += [f"Of {every} with this score, {name} has the highest: {score}."]
    if published:
        verdicts = [differences[best.model, score.model].verdict for score in published]
        outcomes = {
            "better": "better than",
            "tie": "in a statistical tie with",
            "worse": "worse than",
            FAILURES_DECIDE: "by its failures not comparable with",
        }
        counts = []
        for verdict, outcome in outcomes.items():
            if verdict in verdicts:
                counts.append(f"{outcome} {verdicts.count(verdict)}")
        texts += [
            f"{show_model(best.model)} is {', '.join(counts)} of the {len(published)}"
            " published models."
        ]
    return " ".join(filter(None, texts))


def _outside(
    board: Board,
    best: Result,
    others: Sequence[Result],
    differences: Differences,
) -> str:
    """Say why models have no rank, and how the user's own compare with the best one on the tasks that both have."""
    texts = []
    for other in others:
        if not other.is_published:
            pair = differences.get((other.model, best.model))
            there = board.tasks_behind(other)
            titles = []
            for task in board.tasks_of(other.part, other.length):
                if task in there:
                    titles.append(board.titles[task])
            tasks = ", ".join(titles)
            if pair:
                verdict = f"; on the tasks that both have, {describe_pair(other.model, best.model, pair)}"
            else:
                verdict = ""
            reason = f"its mean is over other tasks ({tasks})"
            if other.is_generated != best.is_generated:
                reason = f"it has {'generated' if other.is_generated else 'official'} questions"
            elif there == board.tasks_behind(best):
                reason = f"it is judged by {' and '.join(sorted(other.judges))}"
            texts.append(
                f"{show_model(other.model)} has no rank, because {reason}{verdict}."
            )
    if published := len(others) - len(texts):
        texts.append(
            f"{published} published models have no rank beside yours, because their"
            " means are over other tasks or questions, or by another judge."
        )
    return " ".join(texts)


def _score_text(result: Result) -> str:
    return add_mark(format_percent(result.interval.mean), result.caveats)


def _plot(
    board: Board,
    part: str,
    length: int | None,
    ranking: Sequence[Result],
    name: str,
) -> Figure | None:
    models = shown_models(ranking)
    floors = board.floors(part, length)
    if not models or len(models) + len(floors) < 2:
        return None
    by_model = {score.model: score for score in ranking}
    rows = []
    for score in (*(by_model[model] for model in models), *floors):
        rows.append(plot_row(board, score))
    if len(ranking) > 1:
        which = f"{len(models)} of the {len(ranking)} models"
    else:
        which = "The one model"
    about = f"{which} with this score, with {LEVEL_TEXT} intervals."
    if any(score.is_published for score in ranking):
        about += " Full points were run here; hollow points are published."
    if floors:
        about += f" Dashed lines are floors: {', '.join(short_name(floor.model) for floor in floors)}."
    title = f"{board.titles[part]} {label(length)}".strip()
    spec = interval_plot(
        board.titles[part], [show_model(model) for model in models], bool(floors)
    )
    return Figure(f"{name}-plot", title, about, spec, rows)


def _table(
    board: Board,
    part: str,
    length: int | None,
    ranks: dict[ShownModel, Rank],
    name: str,
) -> Table:
    there = {*board.parts_at(length), *board.parts_at(length, "none")}
    parts = [name for name in (OVERALL, *board.columns, *board.others) if name in there]
    lines = _lines(board, part, length, ranks)
    floors = board.floors(part, length)
    columns = list(
        score_columns(
            board,
            length,
            parts,
            [line[1:] for line in lines],
            ranked_by=part,
            link_unread=link_unread,
        )
    )
    rows = []
    for number, (name_cell, model, context) in enumerate(lines):
        if floors:
            above = [_above(board, board.score(model, part, length, context))]
        else:
            above = []
        rank = ranks.get(model) if context == "full" else None
        if name_cell.tag == _UNRANKED:
            why = "of other tasks or questions, or by another judge, than the ranked scores"
        else:
            why = "no rank"
        # Published models are not compared with each other, so it is not known which ranks are open.
        is_alone = rank is not None and name_cell.tag != "own"
        if is_alone:
            first = replace(rank_cell(rank, why), detail="")
        else:
            first = rank_cell(rank, why)
        scores = [cells[number] for _, cells in columns]
        rows.append([first, name_cell, *scores, *above])
    title = f"All models at {label(length)}" if length is not None else "All models"
    heads = _headings(board.titles[part], (head for head, _ in columns), bool(floors))
    return Table(
        f"{name}-table",
        title,
        heads,
        rows,
        _about(board, parts, bool(floors)),
        search=True,
    )


def _lines(
    board: Board,
    part: str,
    length: int | None,
    ranks: Iterable[ShownModel],
) -> list[tuple[Cell, ShownModel, str]]:
    """Return the name, the model and the context of each row.

    The user's models come first by rank, then those without a rank, floors and closed books, and published models.
    """
    there = set()
    for key in board.scores:
        if key.length == length:
            there.add((key.model, key.context))
    unranked = [score.model for score in board.without_rank(length, part)]
    models = dict.fromkeys([*ranks, *unranked, *board.models])
    lines = []
    for context, model in product(("full", "none"), models):
        if (model, context) in there:
            name = model_cell(board, model, context)
            if name.tag == "own" and model in unranked:
                name = replace(name, tag=_UNRANKED, detail="not ranked")
            lines.append((name, model, context))
    order = {"own": 0, _UNRANKED: 1, "floor": 2, "": 3}
    return sorted(lines, key=lambda line: order[line[0].tag])


def _headings(title: str, scores: Iterable[Column], has_floors: bool) -> list[Column]:
    about = (
        f"{title} minus the score of the best floor over the same tasks and questions."
        " Floors are baselines that need no understanding of the context, such as a"
        " search for words; a model below them does worse than that."
    )
    rank = (
        f"The rank by {title}. The range has the ranks that the comparisons leave open:"
        " of your models with each other, and with the published ones."
    )
    heads = [Column("Rank", rank), Column("Model", is_number=False), *scores]
    if has_floors:
        return [*heads, Column("Above floor", about)]
    return heads


def _about(board: Board, columns: Sequence[str], has_floors: bool) -> str:
    floor = (
        " Above floor: the score minus the score of the best baseline that understands nothing."
        * has_floors
    )
    mean = f" {board.titles[OVERALL]} is the mean of all columns; a model that lacks one has none."
    others = []
    for column in columns:
        if column in board.others:
            others.append(board.titles[column])
    if others and len(columns) > len(others):
        rest = f" In no mean: {', '.join(others)}."
    else:
        rest = ""
    return (
        f"Scores in percent with their {LEVEL_TEXT}"
        f" intervals.{mean if OVERALL in columns else ''}{rest} {MARK} marks scores"
        f" that are not comparable.{floor}"
    )


def _above(board: Board, score: Result | None) -> Cell:
    if score is None:
        return number_cell(None)
    floor = board.floor_below(score)
    if floor is None:
        return number_cell(None, note="no floor over the same tasks and questions")
    return number_cell(
        score.interval.mean - floor,
        format_signed_percent,
        caveats=caveat_kinds(score.caveats),
    )


_FEWEST_MODELS = 3
"""Smallest number of models for a signal: a standard deviation over models."""


def find_signal(board: Board, task: str, length: int | None) -> SignalToNoise | None:
    """Return how well a task tells models apart, without floors. There is none for fewer than three models."""
    scores = []
    for score in board.competing(length, task):
        if score.is_complete and not math.isnan(score.error):
            scores.append(score)
    if len(scores) < _FEWEST_MODELS:
        return None
    return signal_to_noise(
        means=[score.interval.mean for score in scores],
        errors=[score.error for score in scores],
    )


def find_seed_noise(result: Result) -> float | None:
    """Return the standard deviation of a score if its questions are asked again. It is not known without repeats."""
    scored = []
    for answer in result.answers:
        if answer.score is not None:
            scored.append(answer)
    questions = [answer.instance for answer in scored]
    if len(questions) == len(set(questions)):
        return None
    scores = []
    for answer in scored:
        if answer.score is not None:
            scores.append(answer.score)
    return variance_components(scores, questions).deviation_of_mean


def _signal_cell(signal: SignalToNoise | None) -> Cell:
    # Without any noise there is no sample of right and wrong answers that could tell the models apart.
    is_known = signal is not None and math.isfinite(signal.ratio)
    return number_cell(
        signal.ratio if signal and is_known else None,
        format_tenths,
        note="too few models",
    )


_TASK_HEADS = (
    *text_columns("Task", "Model"),
    Column("Score"),
    Column("n", "Number of instances with a score."),
    Column(
        "Signal to noise",
        "The standard deviation of the models' true scores in the task, divided by the"
        " standard error of a score. Below 1 the task does not tell these models apart."
        " It is known for three or more models without floors.",
    ),
    Column(
        "Seed noise",
        "Standard deviation of the score if all questions are asked again, in"
        " percentage points (needs repeats=).",
    ),
    Column(f"{MARK} Not comparable", is_number=False),
)


def _task_table(board: Board, length: int | None, name: str) -> Table | None:
    """Return the scores of all tasks that were run, with how far they can be trusted.

    There is none if it would only repeat the leaderboard's columns.
    """
    results = []
    for result in board.tasks:
        if result.length == length and not result.is_published:
            results.append(result)
    signals = {}
    for task in dict.fromkeys(result.task for result in results):
        signals[task] = find_signal(board, task, length)
    noises = {id(result): find_seed_noise(result) for result in results}
    columns = []
    for part in (*board.columns, *board.others):
        columns.append(board.tasks_of(part, length))
    keys = {score_key(result) for result in results}
    is_repeated = len(keys) == len(results) and all(
        [row.task] in columns for row in results
    )
    if is_repeated and not any(signals.values()) and not any(noises.values()):
        return None
    order = [task.name for task in board.benchmark.tasks]
    results.sort(
        key=lambda result: (
            order.index(result.task),
            result.context,
            not result.has_score,
            -result.interval.mean,
        )
    )
    rows = []
    for result in results:
        model = Cell(
            show_model(result.model),
            detail="closed book" if result.context == "none" else "",
        )
        caveats = Cell(
            "; ".join(caveat.text for caveat in result.caveats),
            tag="caveats" if result.caveats else "",
        )
        rows.append(
            [
                Cell(board.titles[result.task]),
                model,
                score_cell(result),
                number_cell(result.interval.n, format_count),
                _signal_cell(signals[result.task]),
                number_cell(noises[id(result)], note="asked once"),
                caveats,
            ]
        )
    about = "Each task that was run here, by each judge, before tasks are averaged."
    return Table(
        f"{name}-tasks",
        "Your scores by task",
        list(_TASK_HEADS),
        rows,
        about,
        search=True,
    )


def first_models(board: Board) -> dict[str, bool]:
    """Return the models that readers can choose, and whether plots show them at first: own and the best others."""
    length = board.main_length
    ranked = []
    for score in board.ranking(length, board.main_part(length)):
        ranked.append(score.model)
    models = dict.fromkeys([*ranked, *board.competitors])
    # The user's own come first.
    every = sorted(models, key=board.published_models.__contains__)
    own = []
    for model in every:
        if model in board.own_models:
            own.append(model)
    best = [model for model in every if model not in board.own_models][
        : max(2, 6 - len(own))
    ]
    return {show_model(model): model in own[:SHOWN] or model in best for model in every}
