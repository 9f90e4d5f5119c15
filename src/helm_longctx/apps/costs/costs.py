"""Computes what models and methods cost at a length, and which of them no other one beats in score and cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from helm_longctx.results.boards import Board
from helm_longctx.results.reading import Result
from helm_longctx.runs.scores import InstanceScore


@dataclass(frozen=True)
class Costs:
    """The score of a model, by a method or plain prompts, and the means of what a question costs.

    Args:
        score: the score of the part.
        requests: number of requests.
        input_tokens, cached_tokens, output_tokens: by the provider's count; None if it did not count.
        dollars: by list prices; None if they are not known.
        seconds: time of the requests one after the other; of those at the same time, the slowest counts.
        retained_tokens, compactions: of a method that compacts; None for others.
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
        """Tokens of prompts and outputs; None if they are not known."""
        is_known = None not in (self.input_tokens, self.output_tokens)
        return (self.input_tokens or 0.0) + (self.output_tokens or 0.0) if is_known else None


def find_costs(board: Board, length: int | None, part: str) -> list[Costs]:
    """Return the costs of the user's models with a whole score of a part, the best score first."""
    scores = [score for model in board.own_models if (score := board.score(model, part, length))]

    def mean(score: Result, name: str, otherwise: float | None = None) -> float | None:
        # The score is a mean over tasks, and so are its costs.
        statistics = [task.statistics.get(name) for task in score.task_results]
        values = [each.interval.mean if each else otherwise for each in statistics]
        return None if None in values else fmean(value or 0.0 for value in values)

    fields = ("billed_prompt_tokens", "cached_tokens", "output_tokens", "cost", "request_seconds")
    costs = [
        Costs(
            score,
            mean(score, "requests", 1.0) or 1.0,
            *(mean(score, name) for name in (*fields, "retained_tokens", "compactions")),
        )
        for score in scores
        if score.is_complete and score.task_results
    ]
    return sorted(costs, key=lambda each: -each.score.interval.mean)


def find_frontier(costs: Sequence[Costs], amount: Callable[[Costs], float | None]) -> list[Costs]:
    """Return those that no other one beats: none has at least the score for less, or a better score for as much."""
    rows = [(each, cost, each.score.interval.mean) for each in costs if (cost := amount(each)) is not None]
    return [
        each
        for each, cost, score in rows
        if not any(other <= cost and mean >= score and (other < cost or mean > score) for _, other, mean in rows)
    ]


DEPTHS = (0, 20, 40, 60, 80)
"""Starts of the parts of a context, in percent, by which evidence is told apart."""


@dataclass(frozen=True)
class Compacted:
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


def find_accuracies(answers: Iterable[InstanceScore]) -> list[Compacted]:
    """Return the accuracy by how often the evidence was compacted, over all depths and at each."""
    groups: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for answer in answers:
        times = answer.values.get("fact_compactions")
        if times is not None and answer.score is not None and answer.depth is not None:
            groups[int(times)][DEPTHS[min(4, int(5 * answer.depth))]].append(answer.score)
    return [
        Compacted(
            times,
            sum(map(len, depths.values())),
            fmean(score for scores in depths.values() for score in scores),
            {depth: (len(scores), fmean(scores)) for depth, scores in depths.items()},
        )
        for times, depths in sorted(groups.items())
    ]


@dataclass(frozen=True)
class Point:
    """What a model knows after a part of a growing context.

    Args:
        tokens: tokens of the context that had come.
        after, before: mean scores of questions whose evidence had come, and of others; None without such questions.
        n: number of answers.
    """

    tokens: int
    after: float | None
    before: float | None
    n: int


def find_points(answers: Iterable[InstanceScore]) -> list[Point]:
    """Return the scores after each part of growing contexts. Evidence without a place counts as come."""
    scores: dict[int, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for answer in answers:
        tokens = answer.values.get("stream_tokens")
        if tokens is not None and answer.score is not None:
            scores[int(tokens)][not answer.values.get("evidence_read", 1.0)].append(answer.score)
    return [
        Point(tokens, fmean(after) if after else None, fmean(before) if before else None, len(after) + len(before))
        for tokens, (after, before) in sorted(scores.items())
    ]
