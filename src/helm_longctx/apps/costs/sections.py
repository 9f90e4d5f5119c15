"""The page "Score and cost": costs beside scores, the frontiers, gains of methods, compactions, and streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from statistics import fmean

from helm_longctx.apps.app import for_each_length
from helm_longctx.documents.document import (
    Block,
    Cell,
    Column,
    Figure,
    Section,
    Table,
    number_cell,
    tabulate,
)
from helm_longctx.documents.numbers import (
    DASH,
    format_amount,
    format_count,
    format_decimals,
    format_interval,
    format_p,
    format_percent,
    format_signed_percent,
    format_tenths,
)
from helm_longctx.documents.plots import frontier
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, label, show_model
from helm_longctx.results.cells import score_cell
from helm_longctx.results.comparison import Differences, find_differences
from helm_longctx.results.methods import Gain, find_gains
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.runs.scores import Score
from helm_longctx.runs.shown_models import ShownModel


@dataclass(frozen=True)
class Costs:
    """The score of a model, by a method or plain prompts, and the means of what a question costs.

    Args:
        score: the score of the part.
        requests: number of requests.
        input_tokens, cached_tokens, output_tokens: by the provider's count, or None if it did not count.
        dollars: by list prices, or None if they are not known.
        seconds: time of the requests one after the other; of those at the same time, the slowest counts.
        retained_tokens, compactions: of a method that compacts, or None for others.
    """

    score: Result
    requests: float
    input_tokens: float | None
    cached_tokens: float | None
    output_tokens: float | None
    dollars: float | None
    seconds: float | None
    retained_tokens: float | None
    compactions: float | None

    @property
    def is_stream(self) -> bool:
        """Whether questions were asked after parts of a growing context."""
        return any(caveat.kind == "stream" for caveat in self.score.caveats)

    @property
    def tokens(self) -> float | None:
        """Tokens of prompts and outputs, or None if they are not known."""
        is_known = None not in (self.input_tokens, self.output_tokens)
        if is_known:
            return (self.input_tokens or 0.0) + (self.output_tokens or 0.0)
        return None


def find_costs(board: Board, length: int | None, part: str) -> list[Costs]:
    """Return the costs of the user's models with a whole score of a part, the best score first."""
    costs = []
    for model in board.own_models:
        score = board.score(model, part, length)
        if score is None or not score.is_complete or not score.task_results:
            continue
        of_model = Costs(
            score=score,
            requests=_average(score, "requests", 1.0) or 1.0,
            input_tokens=_average(score, "billed_prompt_tokens"),
            cached_tokens=_average(score, "cached_tokens"),
            output_tokens=_average(score, "output_tokens"),
            dollars=_average(score, "cost"),
            seconds=_average(score, "request_seconds"),
            retained_tokens=_average(score, "retained_tokens"),
            compactions=_average(score, "compactions"),
        )
        costs.append(of_model)
    return sorted(costs, key=lambda row: -row.score.interval.mean)


def _average(score: Result, name: str, otherwise: float | None = None) -> float | None:
    """Return the mean of a statistic over the tasks of a score, or None if a task lacks it."""
    values = []
    for task in score.task_results:
        interval = task.find_interval(name)
        value = interval.mean if interval else otherwise
        if value is None:
            return None
        values.append(value)
    return fmean(values)


_Amount = Callable[[Costs], float | None]
"""Returns what a row costs, or None if that is not known."""


def find_frontier(costs: Sequence[Costs], amount: _Amount) -> list[Costs]:
    """Return those that no other one beats: none has at least the score for less, or a better score for as much."""
    rows = []
    for candidate in costs:
        cost = amount(candidate)
        if cost is not None:
            rows.append((candidate, cost, candidate.score.interval.mean))

    def is_beaten(cost: float, score: float) -> bool:
        rivals = [(other, mean) for _, other, mean in rows]
        rivals = [pair for pair in rivals if pair[0] <= cost and pair[1] >= score]
        return any(rival != (cost, score) for rival in rivals)

    return [row for row, cost, score in rows if not is_beaten(cost, score)]


def find_unsure(
    best: Sequence[Costs],
    rows: Sequence[Costs],
    amount: _Amount,
    differences: Differences,
) -> list[Costs]:
    """Return the rows of a frontier that are on it by chance, perhaps: they are not shown to be better than a cheaper one.

    Args:
        best: the rows of the frontier.
        rows: all rows.
        differences: the decisions about all pairs of models.
    """
    unsure = []
    for row in best:
        cost = amount(row)
        for other in rows:
            other_cost = amount(other)
            if other is row or cost is None or other_cost is None or other_cost > cost:
                continue
            decision = differences.get((row.score.model, other.score.model))
            if decision is None or decision.verdict != "better":
                unsure.append(row)
                break
    return unsure


_DEPTHS = (0, 20, 40, 60, 80)
"""Starts of the parts of a context, in percent, by which evidence is told apart."""


@dataclass(frozen=True)
class _Compacted:
    """The accuracy on questions whose evidence was compacted equally often.

    Args:
        times: how often.
        n: number of answers.
        score: their mean score, 0 to 1.
        depths: number of answers and mean score by where the evidence stands, in percent of the context.
    """

    times: int
    n: int
    score: float
    depths: Mapping[int, tuple[int, float]]


def find_accuracies(answers: Iterable[Score]) -> list[_Compacted]:
    """Return the accuracy by how often the evidence was compacted, over all depths and at each."""
    groups: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for answer in answers:
        times = answer.values.get("fact_compactions")
        if times is not None and answer.score is not None and answer.depth is not None:
            depth = _DEPTHS[min(4, int(5 * answer.depth))]
            groups[int(times)][depth].append(answer.score)
    accuracies = []
    for number, by_depth in sorted(groups.items()):
        every = list(chain.from_iterable(by_depth.values()))
        depths = {}
        for depth, scores in by_depth.items():
            depths[depth] = (len(scores), fmean(scores))
        accuracy = _Compacted(
            times=number,
            n=len(every),
            score=fmean(every),
            depths=depths,
        )
        accuracies.append(accuracy)
    return accuracies


@dataclass(frozen=True)
class _Point:
    """What a model knows after a part of a growing context.

    Args:
        tokens: tokens of the context that had come.
        after, before: mean scores of questions whose evidence had come, and of others, or None without such questions.
        n: number of answers.
    """

    tokens: int
    after: float | None
    before: float | None
    n: int


def find_points(answers: Iterable[Score]) -> list[_Point]:
    """Return the scores after each part of growing contexts. Evidence without a depth counts as come."""
    after: dict[int, list[float]] = defaultdict(list)
    before: dict[int, list[float]] = defaultdict(list)
    for answer in answers:
        tokens = answer.values.get("stream_tokens")
        if tokens is not None and answer.score is not None:
            has_come = answer.values.get("evidence_read", 1.0)
            scores = after if has_come else before
            scores[int(tokens)].append(answer.score)
    points = []
    for size in sorted(after.keys() | before.keys()):
        point = _Point(
            tokens=size,
            after=fmean(after[size]) if after[size] else None,
            before=fmean(before[size]) if before[size] else None,
            n=len(after[size]) + len(before[size]),
        )
        points.append(point)
    return points


_ABOUT = (
    "Each number is the mean over questions, with all requests of a method. A row is on"
    " the frontier if no other one has at least its score for less. It has a question"
    " mark if it is not significantly better than a cheaper row, so that chance can"
    " have put it there. Requests that several questions share cost the first one."
    " Dollars are list prices at the time of the run, without the discount of batches."
    " Streams are not on a frontier, because they also ask about beginnings of the"
    " context."
)


_Costs = tuple[Costs, Sequence[str]]
"""The costs of a row, and in what no other row beats it; see `find_unsure` for question marks."""
_MODEL = Column("Model", is_number=False)
_COLUMNS: Sequence[tuple[Column, Callable[[_Costs], Cell]]] = (
    (_MODEL, lambda row: Cell(show_model(row[0].score.model))),
    (Column("Score", is_ranked=True), lambda row: score_cell(row[0].score)),
    (
        Column(
            "Frontier",
            "In what no other row beats it; with a question mark if it is not"
            " significantly better than a cheaper one.",
            is_number=False,
        ),
        lambda row: Cell(", ".join(row[1]) or DASH),
    ),
    (
        Column("Requests", "Number of requests for a question."),
        lambda row: number_cell(row[0].requests, format_tenths),
    ),
    (
        Column(
            "Input tokens",
            "Tokens of all prompts by the provider's count, cached ones included.",
        ),
        lambda row: number_cell(row[0].input_tokens, format_count),
    ),
    (
        Column(
            "Cached tokens",
            "Tokens of the prompts that the provider read from its cache.",
        ),
        lambda row: number_cell(row[0].cached_tokens, format_count),
    ),
    (
        Column("Output tokens", "Tokens that the model generated, reasoning included."),
        lambda row: number_cell(row[0].output_tokens, format_count),
    ),
    (
        Column("Dollars", "At list prices."),
        lambda row: number_cell(row[0].dollars, format_amount),
    ),
    (
        Column(
            "Seconds",
            "From the first request to the last reply; of requests at the same time,"
            " the slowest counts.",
        ),
        lambda row: number_cell(row[0].seconds, format_tenths),
    ),
)


@for_each_length
def cost_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length at which the tokens or the requests of several rows are known."""
    tasks = (task.name for task in board.benchmark.tasks)
    parts = dict.fromkeys((board.main_part(length), *board.parts_at(length), *tasks))
    for part in parts:
        # All rows have scores of the same tasks.
        costs = []
        for cost in find_costs(board, length, part):
            if cost.tokens is not None or cost.requests > 1:
                costs.append(cost)
        if len(costs) > 1:
            break
    else:
        return None
    name = f"costs-{board.file_name}-{label(length)}".rstrip("-")
    whole = [cost for cost in costs if not cost.is_stream]
    amounts: dict[str, _Amount] = {
        "tokens": lambda cost: cost.tokens,
        "dollars": lambda cost: cost.dollars,
    }
    ways = {}
    for way, find_amount in amounts.items():
        ways[way] = find_frontier(whole, find_amount)
    differences = find_differences(board, part, length)
    unsure = {}
    for way in ways:
        unsure[way] = find_unsure(ways[way], whole, amounts[way], differences)
    rows = []
    for cost in costs:
        names = []
        for way, best in ways.items():
            if cost in best:
                names.append(f"{way}?" if cost in unsure[way] else way)
        rows.append((cost, names))
    figures = []
    for way, best in ways.items():
        if not best:
            continue
        points = []
        for cost in whole:
            value = amounts[way](cost)
            # The axis is logarithmic.
            if value:
                point = {
                    "model": show_model(cost.score.model),
                    "score": cost.score.interval.mean,
                    way: value,
                    "best": cost in best,
                }
                points.append(point)
        about = f"The score against the {way} of a question. The line joins the rows that no other one beats."
        title = f"Score and {way}"
        figure = Figure(f"{name}-{way}", title, about, frontier(way), points)
        figures.append(figure)
    title = f"Score and cost of a question: {board.titles.get(part, board.title)}"
    blocks: list[Block] = [
        tabulate(f"{name}-table", title, _COLUMNS, rows),
        *figures,
        *_gains(board, length, name),
        *_compactions(costs, name),
        *_points(costs, name),
    ]
    return Section(
        name,
        f"What does a point cost {label(length)}".strip() + "?",
        blocks,
        _ABOUT,
        choice=label(length),
    )


def _gains(board: Board, length: int | None, name: str) -> list[Table]:
    try:
        gains = find_gains([board], length=length)
    except InputError:  # there are no methods beside plain prompts
        return []

    def ratio(gain: Gain) -> float | None:
        if gain.costs.tokens and gain.plain.tokens:
            return gain.costs.tokens / gain.plain.tokens
        return None

    columns: Sequence[tuple[Column, Callable[[Gain], Cell]]] = (
        (_MODEL, lambda gain: Cell(show_model(gain.model))),
        (Column("Method", is_number=False), lambda gain: Cell(gain.method.title)),
        (
            Column("Questions"),
            lambda gain: number_cell(gain.costs.questions, format_count),
        ),
        (
            Column("Gain", f"In points, with its {LEVEL_TEXT} interval."),
            lambda gain: Cell(
                format_interval(gain.comparison.effect, format_signed_percent),
                gain.comparison.effect.mean,
            ),
        ),
        (Column("Adjusted p"), lambda gain: number_cell(gain.adjusted, format_p)),
        (
            Column("Tokens, of plain prompts"),
            lambda gain: number_cell(
                ratio(gain), lambda it: f"{format_decimals(it)} times"
            ),
        ),
    )
    about = "Paired on the questions that were answered with the method and with plain prompts."
    return [
        tabulate(
            f"{name}-gains",
            "Gains of methods over plain prompts",
            columns,
            gains,
            about,
        )
    ]


def _compactions(costs: Sequence[Costs], name: str) -> list[Table]:
    """Return a table of what compactions leave, and one of the accuracy by how often the evidence was compacted."""
    sizes: Sequence[tuple[Column, Callable[[Costs], Cell]]] = (
        (_MODEL, lambda costs: Cell(show_model(costs.score.model))),
        (
            Column("Compactions", "How often the context was replaced by a summary."),
            lambda costs: number_cell(costs.compactions, format_tenths),
        ),
        (
            Column(
                "Retained tokens",
                "Tokens that are left at the end: the last summary, and what came after it.",
            ),
            lambda costs: number_cell(costs.retained_tokens, format_count),
        ),
    )

    def show_depth(row: tuple[ShownModel, _Compacted], depth: int) -> Cell:
        n, score = row[1].depths.get(depth, (0, None))
        return number_cell(score, format_percent, f"n = {n}")

    accuracies: Sequence[
        tuple[Column, Callable[[tuple[ShownModel, _Compacted]], Cell]]
    ] = (
        (_MODEL, lambda row: Cell(show_model(row[0]))),
        (
            Column("Times compacted"),
            lambda row: number_cell(row[1].times, format_count),
        ),
        (Column("Answers"), lambda row: number_cell(row[1].n, format_count)),
        (Column("Score"), lambda row: number_cell(row[1].score, format_percent)),
        *(
            (Column(f"{depth} to {depth + 20} %"), partial(show_depth, depth=depth))
            for depth in _DEPTHS
        ),
    )
    rows = []
    for cost in costs:
        for compacted in find_accuracies(_answers_of(cost)):
            rows.append((cost.score.model, compacted))
    about = "The columns at the right have the scores by the depth of the evidence in the stream, with their number."
    title = (
        "Score by how often the evidence was compacted, and by its depth in the stream"
    )
    compacting = [cost for cost in costs if cost.compactions is not None]
    tables = []
    if compacting:
        title_of_sizes = "What compactions leave"
        table = tabulate(f"{name}-retained", title_of_sizes, sizes, compacting)
        tables.append(table)
    if rows:
        table = tabulate(f"{name}-compacted", title, accuracies, rows, about)
        tables.append(table)
    return tables


def _answers_of(costs: Costs) -> Iterator[Score]:
    for task in costs.score.task_results:
        yield from task.answers


def _points(costs: Sequence[Costs], name: str) -> list[Table]:
    """Return a table of what each row knows after each part of a growing context."""
    columns: Sequence[tuple[Column, Callable[[tuple[ShownModel, _Point]], Cell]]] = (
        (_MODEL, lambda row: Cell(show_model(row[0]))),
        (Column("Tokens read"), lambda row: number_cell(row[1].tokens, format_count)),
        (Column("Answers"), lambda row: number_cell(row[1].n, format_count)),
        (
            Column("Score", "On questions whose evidence had come."),
            lambda row: number_cell(row[1].after, format_percent),
        ),
        (
            Column(
                "Before the evidence",
                "Score on questions whose evidence had not come yet: what is guessed.",
            ),
            lambda row: number_cell(row[1].before, format_percent),
        ),
    )
    rows = []
    for cost in costs:
        for point in find_points(_answers_of(cost)):
            rows.append((cost.score.model, point))
    if not rows:
        return []
    title = "What is known after each part of the stream"
    return [tabulate(f"{name}-stream", title, columns, rows)]
