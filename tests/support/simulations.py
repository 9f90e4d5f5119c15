"""Simulates models with known shares of right answers, and what means, estimates and verdicts say about them.

`python -m bench.decisions means`, `estimate`, `methods` and `reproduce` have whole grids, and tests repeat a part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from helm_longctx.apps.costs.sections import Costs, find_frontier, find_unsure
from helm_longctx.apps.reproduction.reproduction import (
    Measurement,
    judge_agreement,
    published_interval,
)
from helm_longctx.results.comparison import add_reverses
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.comparison import (
    Pairs,
    compare_intervals,
    compare_pairs,
    compare_parts,
    decide_all,
)
from helm_longctx.results.statistics.intervals import (
    Interval,
    mean_interval,
    mean_of_means,
)
from helm_longctx.results.statistics.power import (
    PairedQuestions,
    Spread,
    detectable_difference,
    detectable_from,
)
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.publications import Protocol, PublicationSource, Reported

MetricValues = NDArray[np.float64]

SKEWED_SIZES = (10, 14, 19, 26, 36, 50, 70, 97, 135, 188, 260, 360, 500)
"""Numbers of questions of 13 tasks."""

SIZES: dict[str, Sequence[int]] = {
    "13 tasks of 10 to 500": SKEWED_SIZES,
    "6 of 10 and 7 of 500": (10,) * 6 + (500,) * 7,
    "12 of 10 and one of 500": (10,) * 12 + (500,),
    "12 of 500 and one of 10": (500,) * 12 + (10,),
    "4 of 100": (100,) * 4,
    "2 of 10": (10,) * 2,
    "11 of 50": (50,) * 11,
    "13 of 500": (500,) * 13,
    "4 of 1": (1,) * 4,
    "13 of 5": (5,) * 13,
    "12 of 5 and one of 500": (5,) * 12 + (500,),
}
"""Numbers of questions of the tasks of a mean."""

NESTED: dict[str, Sequence[Sequence[int]]] = {
    "18 tasks of 100 in 7 categories": [
        (100,) * tasks for tasks in (4, 4, 1, 2, 3, 2, 2)
    ],
    "18 tasks of 100 in 3 categories": [(100,) * 6] * 3,
    "18 tasks of 10 to 500 in 3 categories": [(10, 20, 50, 100, 200, 500)] * 3,
}
"""Numbers of questions of the tasks of each category, whose means are averaged."""


def coverage_of_means(
    sizes: Sequence[Sequence[int]],
    chances: MetricValues,
    rounds: int,
    random: np.random.Generator,
    combine: Callable[[Sequence[Interval]], Interval] = mean_of_means,
) -> float:
    """Return how often the interval of a mean over categories contains the true mean.

    Args:
        sizes: the numbers of questions of the tasks of each category.
        chances: the share of right answers of each task, in the same order.
    """
    splits = np.split(chances, np.cumsum([len(size) for size in sizes])[:-1])
    true = float(np.mean([split.mean() for split in splits]))
    questions = np.concatenate([np.array(of_category) for of_category in sizes])
    hits = 0
    for right in random.binomial(questions, chances, (rounds, len(questions))):
        tasks = map(_interval_of_counts, questions.tolist(), right.tolist())
        parts = [list(islice(tasks, len(of_category))) for of_category in sizes]
        interval = combine([combine(part) for part in parts])
        hits += interval.low - 1e-12 <= true <= interval.high + 1e-12
    return hits / rounds


@lru_cache(maxsize=100_000)
def _interval_of_counts(questions: int, right: int) -> Interval:
    """Return the interval of independent answers, which depends only on how many are right."""
    return mean_interval(np.arange(questions) < right)


class Task(NamedTuple):
    """A task of two models: the sizes of the clusters of its questions, and the correlation in them."""

    sizes: Sequence[int]
    correlation: float

    def sample(self, variance: float, is_paired: bool = False) -> PairedQuestions:
        """Return what `estimate` knows of the task."""
        questions = sum(self.sizes)
        clusters = questions**2 / sum(size**2 for size in self.sizes)
        return PairedQuestions(
            Spread(variance, self.correlation, is_paired), questions, clusters
        )

    def draw(
        self, random: np.random.Generator, draw: Callable[[int], MetricValues]
    ) -> MetricValues:
        """Return scores in the order of their clusters.

        Args:
            draw: draws independent scores.
        """
        of_cluster = np.repeat(draw(len(self.sizes)), self.sizes)
        own = draw(sum(self.sizes))
        return np.where(
            random.random(len(own)) < np.sqrt(self.correlation), of_cluster, own
        )

    @property
    def groups(self) -> list[int] | None:
        """Return the cluster of each score; None if all are independent."""
        return (
            None
            if max(self.sizes) == 1
            else np.repeat(range(len(self.sizes)), self.sizes).tolist()
        )


class Power(NamedTuple):
    """A difference, 0 to 1, that is promised to be found, and how often it is; NaN if there can be no such models."""

    difference: float
    share: float

    def __str__(self) -> str:
        """Return the difference in points and the power in percent, as tables of docs/statistics.md show them."""
        share = "not possible" if np.isnan(self.share) else f"{self.share:.0%}"
        return f"{100 * self.difference:.1f} points, {share}"


def power_of_means(
    tasks: Sequence[Task], mean: float, rounds: int, random: np.random.Generator
) -> Power:
    """Return how often the difference that `estimate` names is found between means of tasks with other questions."""
    return find_power(
        detectable_difference([task.sample(mean * (1 - mean)) for task in tasks]),
        tasks,
        mean,
        rounds,
        random,
    )


def find_power(
    difference: float,
    tasks: Sequence[Task],
    mean: float,
    rounds: int,
    random: np.random.Generator,
) -> Power:
    """Return how often a difference is found between a model with this mean and a worse one.

    Args:
        mean: the share of right answers of the better model; if it is 0.5, of the one that is nearer to it.
    """
    best = max(mean, difference) if mean == 0.5 else mean
    if not 0 <= best - difference <= best <= 1:
        return Power(difference, np.nan)
    pairs = (
        [_measure(tasks, mean, random) for mean in (best, best - difference)]
        for _ in range(rounds)
    )
    return Power(
        difference,
        sum(compare_intervals(*pair).p_value < 0.05 for pair in pairs) / rounds,
    )


def _measure(
    tasks: Sequence[Task], chance: float, random: np.random.Generator
) -> Interval:
    """Return the score of a model with this share of right answers."""
    drawn = [
        task.draw(random, lambda n: (random.random(n) < chance).astype(float))
        for task in tasks
    ]
    return mean_of_means(
        [
            mean_interval(scores, task.groups)
            for scores, task in zip(drawn, tasks, strict=True)
        ]
    )


def power_of_pairs(
    task: Task, differ: float, rounds: int, random: np.random.Generator
) -> Power:
    """Return the same for models with the same questions, whose answers differ in a share of them."""
    difference = detectable_difference([task.sample(differ, is_paired=True)])
    if difference > differ:
        return Power(difference, np.nan)
    shares = [(differ + difference) / 2, (differ - difference) / 2, 1 - differ]
    hits = 0
    for _ in range(rounds):
        drawn = task.draw(
            random, lambda n: random.choice([1.0, -1.0, 0.0], n, p=shares)
        )
        hits += compare_pairs(drawn, np.zeros(len(drawn)), task.groups).p_value < 0.05
    return Power(difference, hits / rounds)


PROTOCOLS: dict[str, Sequence[int]] = {
    "a bin of MRCR (100)": (100,),
    "MRCR, eight bins (800)": (800,),
    "Qwen's RULER (13 of 20)": (20,) * 13,
    "HELMET's Recall (4 of 100)": (100,) * 4,
    "GraphWalks (300)": (300,),
}
"""Numbers of questions of the entries of protocols, whose mean is the number."""


class Verdicts(NamedTuple):
    """Shares of rounds in which a model is said to differ from its own published number.

    Args:
        taken_for_exact: by a rule that takes the published number for exact.
        known, unknown: if the page says the number of questions, and if not.
        cannot_tell: the share of rounds without a decision if it does not.
    """

    taken_for_exact: float
    known: float
    unknown: float
    cannot_tell: float


def find_verdicts(
    sizes: Sequence[int], chance: float, rounds: int, random: np.random.Generator
) -> Verdicts:
    """Compare a model with its own published number, which was measured on other questions."""
    counts: Counter[str] = Counter()
    for _ in range(rounds):
        own, published = (_of_protocol(sizes, chance, random) for _ in range(2))
        counts["taken for exact"] += not own.low <= published.mean <= own.high
        counts["known " + _judge(own, published.mean, sum(sizes))] += 1
        counts["unknown " + _judge(own, published.mean, None)] += 1
    names = (
        "taken for exact",
        "known differs",
        "unknown differs",
        "unknown cannot tell",
    )
    return Verdicts(*(counts[name] / rounds for name in names))


def power_of_verdicts(
    sizes: Sequence[int], chance: float, rounds: int, random: np.random.Generator
) -> Power:
    """Return how often the difference from a published number is found that verdicts name on average."""
    published = published_interval(
        Reported("m", 100 * chance, "none", "H", _SOURCE), _protocol(sum(sizes))
    )
    named = [
        detectable_from(_of_protocol(sizes, chance, random), published)
        for _ in range(min(rounds, 100))
    ]
    difference = float(np.mean(named))
    worse = chance - difference if chance >= difference else chance + difference
    pairs = (
        (_of_protocol(sizes, worse, random), _of_protocol(sizes, chance, random).mean)
        for _ in range(rounds)
    )
    return Power(
        difference,
        sum(_judge(own, value, sum(sizes)) == "differs" for own, value in pairs)
        / rounds,
    )


_SOURCE = PublicationSource("a page", "https://example.org", "2026-01-01")


def _of_protocol(
    sizes: Sequence[int], chance: float, random: np.random.Generator
) -> Interval:
    right = random.binomial(sizes, chance).tolist()
    return mean_of_means(list(map(_interval_of_counts, sizes, right)))


def _judge(own: Interval, value: float, samples: int | None) -> str:
    measurement = Measurement("m", "m", own, 0.0, own.mean, ())
    return judge_agreement(
        measurement,
        Reported("m", 100 * value, "none", "H", _SOURCE),
        _protocol(samples),
        None,
    ).kind


def _protocol(samples: int | None) -> Protocol:
    return Protocol("p", "P", "P", "", "", (), "mean over entries", samples=samples)


class Frontier(NamedTuple):
    """The frontier of scores and costs of rows, of which each is dearer than the one before.

    Args:
        dearer: the numbers of the rows on it, without the cheapest one.
        sure: those without a question mark.
    """

    dearer: list[int]
    sure: list[int]


def place_on_frontier(answers: MetricValues) -> Frontier:
    """Return the frontier of rows with the same questions.

    Args:
        answers: shape (rows, questions).
    """
    count, questions = answers.shape
    costs = []
    for row, mean in enumerate(answers.mean(axis=1).tolist()):
        score = Result(
            benchmark="b",
            entry="e",
            task="t",
            model=ShownModel(f"m{row}"),
            length=None,
            context="full",
            interval=Interval(mean, mean, mean, questions),
        )
        costs.append(
            Costs(
                score=score,
                requests=float(row),
                input_tokens=None,
                cached_tokens=None,
                output_tokens=None,
                dollars=None,
                seconds=None,
                retained_tokens=None,
                compactions=None,
            )
        )
    pairs = list(combinations(range(count), 2))
    comparisons = [
        compare_parts(
            [
                Pairs(
                    a=answers[one],
                    b=answers[other],
                    groups=range(questions),
                    weight=1.0,
                )
            ]
        )
        for one, other in pairs
    ]
    decisions = {}
    for (one, other), decision in zip(pairs, decide_all(comparisons), strict=True):
        decisions[costs[one].score.model, costs[other].score.model] = decision
    best = find_frontier(costs, lambda row: row.requests)
    unsure = find_unsure(best, costs, lambda row: row.requests, add_reverses(decisions))
    dearer = [int(row.requests) for row in best if row.requests]
    marked = [int(row.requests) for row in unsure]
    return Frontier(dearer, [row for row in dearer if row not in marked])
