"""The page "Score and cost": costs beside scores, the frontiers, gains of methods, compactions, and streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from helm_longctx.apps.app import for_each_length
from helm_longctx.apps.costs.costs import (
    DEPTHS,
    Compacted,
    Costs,
    Point,
    find_accuracies,
    find_costs,
    find_frontier,
    find_points,
)
from helm_longctx.documents.document import Block, Cell, Column, Figure, Section, Table, number_cell, tabulate
from helm_longctx.documents.numbers import (
    DASH,
    amount,
    count,
    decimals,
    interval_text,
    p_text,
    percent,
    signed_percent,
    tenths,
)
from helm_longctx.documents.plots import frontier
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, label, show_model
from helm_longctx.results.cells import score_cell
from helm_longctx.results.methods import Gain, find_gains

_ABOUT = (
    "Each number is the mean over questions, with all requests of a method. A row is on the frontier if no other one"
    " has at least its score for less. Requests that several questions share cost the first one. Dollars are"
    " list prices at the time of the run, without the discount of batches. Streams are not on a frontier, because they"
    " also ask about beginnings of the context."
)


_Costs = tuple[Costs, Sequence[str]]
"""The costs of a row, and in what no other row beats it."""
_MODEL = Column("Model", is_number=False)
_COLUMNS: Sequence[tuple[Column, Callable[[_Costs], Cell]]] = (
    (_MODEL, lambda row: Cell(show_model(row[0].score.model))),
    (Column("Score", is_ranked=True), lambda row: score_cell(row[0].score)),
    (
        Column("Frontier", "In what no other row beats it.", is_number=False),
        lambda row: Cell(", ".join(row[1]) or DASH),
    ),
    (Column("Requests", "Number of requests for a question."), lambda row: number_cell(row[0].requests, tenths)),
    (
        Column("Input tokens", "Tokens of all prompts by the provider's count, cached ones included."),
        lambda row: number_cell(row[0].input_tokens, count),
    ),
    (
        Column("Cached tokens", "Tokens of the prompts that the provider read from its cache."),
        lambda row: number_cell(row[0].cached_tokens, count),
    ),
    (
        Column("Output tokens", "Tokens that the model generated, reasoning included."),
        lambda row: number_cell(row[0].output_tokens, count),
    ),
    (Column("Dollars", "At list prices."), lambda row: number_cell(row[0].dollars, amount)),
    (
        Column(
            "Seconds", "From the first request to the last reply; of requests at the same time, the slowest counts."
        ),
        lambda row: number_cell(row[0].seconds, tenths),
    ),
)


@for_each_length
def cost_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length at which the tokens or the requests of several rows are known."""
    tasks = (task.name for task in board.benchmark.tasks)
    parts = dict.fromkeys((board.main_part(length), *board.parts_at(length), *tasks))
    for part in parts:
        # All rows have scores of the same tasks.
        found = find_costs(board, length, part)
        costs = [each for each in found if each.tokens is not None or each.requests > 1]
        if len(costs) > 1:
            break
    else:
        return None
    name = f"costs-{board.file_name}-{label(length)}".rstrip("-")
    whole = [each for each in costs if not each.is_stream]
    ways = {
        "tokens": find_frontier(whole, lambda each: each.tokens),
        "dollars": find_frontier(whole, lambda each: each.dollars),
    }
    rows = [(each, [way for way, best in ways.items() if each in best]) for each in costs]
    figures = []
    for way, best in ways.items():
        points = [
            {"model": show_model(each.score.model), "score": each.score.interval.mean, way: value, "best": each in best}
            for each in whole
            if (value := getattr(each, way))  # a logarithm has no place for 0
        ]
        about = f"The score against the {way} of a question. The line joins the rows that no other one beats."
        if best:
            figures.append(Figure(f"{name}-{way}", f"Score and {way}", about, frontier(way), points))
    title = f"Score and cost of a question: {board.titles.get(part, board.title)}"
    blocks: list[Block] = [
        tabulate(f"{name}-table", title, _COLUMNS, rows),
        *figures,
        *_gains(board, length, name),
        *_compactions(costs, name),
        *_points(costs, name),
    ]
    return Section(name, f"What does a point cost {label(length)}".strip() + "?", blocks, _ABOUT, choice=label(length))


def _gains(board: Board, length: int | None, name: str) -> list[Table]:
    try:
        gains = find_gains([board], length=length)
    except InputError:  # there are no methods beside plain prompts
        return []

    def ratio(gain: Gain) -> float | None:
        return gain.costs.tokens / gain.plain.tokens if gain.costs.tokens and gain.plain.tokens else None

    columns: Sequence[tuple[Column, Callable[[Gain], Cell]]] = (
        (_MODEL, lambda gain: Cell(show_model(gain.model))),
        (Column("Method", is_number=False), lambda gain: Cell(gain.method.removeprefix("method="))),
        (Column("Questions"), lambda gain: number_cell(gain.costs.questions, count)),
        (
            Column("Gain", "In points, with its 95 % interval."),
            lambda gain: Cell(interval_text(gain.comparison.effect, signed_percent), gain.comparison.effect.mean),
        ),
        (Column("Adjusted p"), lambda gain: number_cell(gain.adjusted, p_text)),
        (Column("Tokens, of plain prompts"), lambda gain: number_cell(ratio(gain), lambda it: f"{decimals(it)} times")),
    )
    about = "Paired on the questions that were answered with the method and with plain prompts."
    return [tabulate(f"{name}-gains", "Gains of methods over plain prompts", columns, gains, about)]


def _compactions(costs: Sequence[Costs], name: str) -> list[Table]:
    """Return a table of what compactions leave, and one of the accuracy by how often the evidence was compacted."""
    sizes: Sequence[tuple[Column, Callable[[Costs], Cell]]] = (
        (_MODEL, lambda each: Cell(show_model(each.score.model))),
        (
            Column("Compactions", "How often the context was replaced by a summary."),
            lambda each: number_cell(each.compactions, tenths),
        ),
        (
            Column("Retained tokens", "Tokens that are left at the end: the last summary, and what came after it."),
            lambda each: number_cell(each.retained_tokens, count),
        ),
    )

    def show_depth(row: tuple[str, Compacted], depth: int) -> Cell:
        n, score = row[1].depths.get(depth, (0, None))
        return number_cell(score, percent, f"n = {n}")

    accuracies: Sequence[tuple[Column, Callable[[tuple[str, Compacted]], Cell]]] = (
        (_MODEL, lambda row: Cell(show_model(row[0]))),
        (Column("Times compacted"), lambda row: number_cell(row[1].times, count)),
        (Column("Answers"), lambda row: number_cell(row[1].n, count)),
        (Column("Score"), lambda row: number_cell(row[1].score, percent)),
        *((Column(f"{depth} to {depth + 20} %"), partial(show_depth, depth=depth)) for depth in DEPTHS),
    )
    rows = [
        (each.score.model, compacted)
        for each in costs
        for compacted in find_accuracies(answer for task in each.score.task_results for answer in task.answers)
    ]
    about = "The columns at the right have the scores by the depth of the evidence in the stream, with their number."
    title = "Score by how often the evidence was compacted, and by its depth in the stream"
    compacting = [each for each in costs if each.compactions is not None]
    return [
        *([tabulate(f"{name}-retained", "What compactions leave", sizes, compacting)] if compacting else []),
        *([tabulate(f"{name}-compacted", title, accuracies, rows, about)] if rows else []),
    ]


def _points(costs: Sequence[Costs], name: str) -> list[Table]:
    """Return a table of what each row knows after each part of a growing context."""
    columns: Sequence[tuple[Column, Callable[[tuple[str, Point]], Cell]]] = (
        (_MODEL, lambda row: Cell(show_model(row[0]))),
        (Column("Tokens read"), lambda row: number_cell(row[1].tokens, count)),
        (Column("Answers"), lambda row: number_cell(row[1].n, count)),
        (Column("Score", "On questions whose evidence had come."), lambda row: number_cell(row[1].after, percent)),
        (
            Column("Before the evidence", "Score on questions whose evidence had not come yet: what is guessed."),
            lambda row: number_cell(row[1].before, percent),
        ),
    )
    rows = [
        (each.score.model, point)
        for each in costs
        for point in find_points(answer for task in each.score.task_results for answer in task.answers)
    ]
    return [tabulate(f"{name}-stream", "What is known after each part of the stream", columns, rows)] if rows else []
