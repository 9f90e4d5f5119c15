"""The decisions of `gate`, of `run --stop-when`, and of `compare` after them; see `decisions.py`.

Differences of right and wrong answers are drawn, and tested by the functions of the commands. "One look" is the rule of
a gate that does not count its looks: an interval for a fixed sample at each look.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from helm_longctx.apps.gate.asking import Goal, overall_power, plan_depths, plan_lengths
from helm_longctx.results.statistics.comparison import (
    Pairs,
    compare_parts,
    level_of_look,
    padded_squares,
    quantile_of,
)
from helm_longctx.results.statistics.intervals import normal_quantile
from helm_longctx.results.statistics.noninferiority import (
    ONE_SIDED,
    Clusters,
    Verdict,
    decide_drops,
    fewest_clusters,
    margin_statistics,
)
from helm_longctx.results.stopping import StoppingQuestion
from helm_longctx.runner.estimate import TaskSample
from helm_longctx.runner.stopping import FIRST, GROWTH
from helm_longctx.runs.scores import InstanceScore
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.stop_rules import parse_rule

Counts = NDArray[np.int64]

CI_QUESTIONS = 300
"""Questions of the subset ci at a length."""


def rows(rounds: int, seed: int) -> Iterator[str]:
    """Yield the lines of all tables."""
    random = np.random.default_rng(seed)
    yield from look_again(rounds, random)
    yield from plan(rounds, random)
    yield from lose_somewhere(max(1, rounds // 4), random)
    yield from stop(max(1, rounds // 8), random)


class Looks(NamedTuple):
    """Args: the margin, the share that changes by chance, the first sample, the number of looks, and the growth."""

    margin: float
    changed: float
    first: int
    number: int
    growth: float


GRID = (
    Looks(0.05, 0.05, 300, 1, 1.3),
    Looks(0.05, 0.05, 300, 6, 1.3),
    Looks(0.05, 0.05, 300, 20, 1.3),
    Looks(0.05, 0.05, 300, 20, 1.05),
    Looks(0.05, 0.1, 50, 20, 1.2),
    Looks(0.05, 0.0, 60, 20, 1.2),
    Looks(0.02, 0.02, 300, 6, 1.3),
    Looks(0.02, 0.1, 300, 20, 1.3),
)


def look_again(rounds: int, random: np.random.Generator) -> Iterator[str]:
    """Yield how often candidates pass that are worse by the margin, or equal, if somebody looks again."""
    yield "margin, changed, first sample, looks, growth: pass with a drop of the margin (one look's rule; this rule);"
    yield "  equal pairs that pass at the first look, and at the end (one look's rule; this rule); called worse"
    for case in GRID:
        wrong = _follow(case, case.margin, 10 * rounds, random)
        equal = _follow(case, 0.0, rounds, random)
        yield (
            f"{case.margin:g}, {case.changed:g}, {case.first}, {case.number}, {case.growth:g}: {wrong[-1][0]:.1%};"
            f" {wrong[-1][1]:.1%}; first {equal[0][0]:.0%}; {equal[0][1]:.0%}; end {equal[-1][0]:.0%};"
            f" {equal[-1][1]:.0%}; worse {equal[-1][2]:.2%}"
        )


def _follow(
    case: Looks, drop: float, rounds: int, random: np.random.Generator
) -> list[tuple[float, float, float]]:
    """Return after each look the shares that have passed by one look's rule, have passed, and were called worse."""
    sizes = [case.first]
    while len(sizes) < case.number:
        sizes.append(ceil(sizes[-1] * case.growth))
    fewest = fewest_clusters(case.margin, ONE_SIDED)
    shares = [case.changed / 2, case.changed / 2 + drop, 1 - case.changed - drop]
    counts = np.zeros((rounds, 3), dtype=np.int64)
    asked = 0
    outcome = np.zeros(rounds)
    once = np.zeros(rounds)
    found = []
    for place, size in enumerate(sizes):
        counts = counts + random.multinomial(size - asked, shares, rounds)
        asked = size
        drawn, index = np.unique(counts, axis=0, return_inverse=True)
        statistics = margin_statistics(_clusters(drawn), -case.margin)[index.ravel()]
        able = tuple(each for each in sizes[: place + 1] if each >= fewest)
        passes = (
            statistics > quantile_of(level_of_look(able, ONE_SIDED))
            if size >= fewest
            else np.zeros(rounds, bool)
        )
        fails = statistics < -quantile_of(
            level_of_look(tuple(sizes[: place + 1]), ONE_SIDED)
        )
        outcome = np.where(outcome == 0, 1.0 * passes - fails, outcome)
        plain = _one_look(counts, case.margin)
        once = np.where(
            once == 0,
            1.0 * (plain > normal_quantile()) - (plain < -normal_quantile()),
            once,
        )
        found.append(
            (
                float((once > 0).mean()),
                float((outcome > 0).mean()),
                float((outcome < 0).mean()),
            )
        )
    return found


def _clusters(counts: Counts) -> Clusters:
    """Return samples with these numbers of instances that are better, worse and equal."""
    size = counts[0].sum()
    return Clusters(
        np.array([1.0, -1.0, 0.0]) / size, np.full(3, 1 / size), counts.astype(float)
    )


def _one_look(counts: Counts, margin: float) -> NDArray[np.float64]:
    """Return the statistics of the sign-flip test alone, which decided before looks were counted."""
    sums, sizes, numbers = _clusters(counts)
    mean = numbers @ sums
    spread = numbers @ sizes**2
    variance = (
        padded_squares(sums, sizes, numbers)
        + 2 * margin * numbers @ (sums * sizes)
        + margin**2 * spread
    )
    return np.asarray((mean + margin) / np.sqrt(variance))


def plan(rounds: int, random: np.random.Generator) -> Iterator[str]:
    """Yield the planned and the simulated probability to pass, for the subset ci and for planned samples."""
    yield "margin, changed, questions at each of two lengths: planned; simulated probability that an equal pair passes"
    for margin in (0.03, 0.05, 0.07, 0.1):
        for changed in (0.0, 0.01, 0.02, 0.05, 0.1):
            yield _compare_plan(
                Goal(margin, 0.8, changed), CI_QUESTIONS, rounds, random
            )
    yield "the same with the sample that a power of 80 % needs"
    for margin, changed in ((0.02, 0.01), (0.03, 0.02), (0.03, 0.05), (0.05, 0.1)):
        goal = Goal(margin, 0.8, changed)
        needed = 3 * ceil(plan_lengths(_samples(CI_QUESTIONS), goal)[0].needed / 3)
        yield _compare_plan(goal, needed, rounds, random)


def _compare_plan(
    goal: Goal, questions: int, rounds: int, random: np.random.Generator
) -> str:
    samples = _samples(questions)
    planned = overall_power(plan_lengths(samples, goal), plan_depths(samples, goal))
    passed = _pass_share(
        goal.margin, goal.noise, questions, np.zeros((2, 3)), rounds, random
    )
    return f"{goal.margin:g}, {goal.noise:g}, {questions}: {planned:.0%}; {passed:.0%}"


def _samples(questions: int) -> list[TaskSample]:
    depths = tuple((depth, questions // 3) for depth in (0, 40, 80))
    return [
        TaskSample("e", "t", length, questions, questions, depths)
        for length in (4096, 16384)
    ]


def _pass_share(
    margin: float,
    changed: float,
    questions: int,
    drops: NDArray[np.float64],
    rounds: int,
    random: np.random.Generator,
    depths: bool = True,
) -> float:
    """Return how often a candidate passes at two lengths with three depths each, by an own version of the rule.

    Args:
        drops: shape (lengths, depths): the drop at each place.
        depths: whether depths are tested.
    """
    shares = np.stack(
        [np.full((2, 3), changed / 2), changed / 2 + drops, 1 - changed - drops], axis=2
    )
    counts = np.stack(
        [
            [random.multinomial(questions // 3, each, rounds) for each in row]
            for row in shares
        ]
    )
    level = quantile_of(level_of_look((1,), ONE_SIDED))
    passes = np.ones(rounds, bool)
    for length in range(2):
        passes &= (
            margin_statistics(_clusters(counts[length].sum(axis=0)), -margin) > level
        )
    for depth in range(3):
        clusters = _clusters(counts[:, depth].sum(axis=0))
        # By Holm's method, some depth has a drop if and only if one has it at a third of the error.
        drop = margin_statistics(clusters, 0.0) < -quantile_of(ONE_SIDED / 3)
        passes &= (
            ~drop | (margin_statistics(clusters, -margin) > level) if depths else True
        )
    return float(passes.mean())


PLACES = {
    "nowhere": np.zeros((2, 3)),
    "at one length, 4 points": np.array([[0, 0, 0], [0.04] * 3]),
    "at one length, 10 points": np.array([[0, 0, 0], [0.1] * 3]),
    "in the middle, 6 points": np.array([[0, 0.06, 0], [0, 0.06, 0]]),
    "in the middle, 12 points": np.array([[0, 0.12, 0], [0, 0.12, 0]]),
    "in the middle of one length, 12 points": np.array([[0, 0, 0], [0, 0.12, 0]]),
}


def lose_somewhere(rounds: int, random: np.random.Generator) -> Iterator[str]:
    """Yield how often candidates pass that lose only at some place, without and with the tests of depths."""
    yield "a loss (margin 5 points, 2 % changed), questions at each of two lengths: pass without; with tests of depths"
    for place, drops in PLACES.items():
        for questions in (CI_QUESTIONS, 900):
            found = [
                _pass_share(0.05, 0.02, questions, drops, 4 * rounds, random, with_)
                for with_ in (False, True)
            ]
            yield f"{place}, {questions}: {found[0]:.0%}; {found[1]:.0%}"
    yield "one sample by the functions of the command (300 questions at a length): no worse; worse; cannot tell"
    for place, drops in PLACES.items():
        verdicts = [_decide_gate(drops, random) for _ in range(ceil(rounds / 5))]
        yield f"{place}: " + "; ".join(
            f"{verdicts.count(each) / len(verdicts):.0%}" for each in Verdict
        )


def _decide_gate(drops: NDArray[np.float64], random: np.random.Generator) -> Verdict:
    from helm_longctx.apps.gate.gate import ALL, DEPTHS, decide

    kinds = [
        [
            random.choice(
                [1, -1, 0], CI_QUESTIONS // 3, p=[0.01, 0.01 + drop, 0.98 - drop]
            )
            for drop in row
        ]
        for row in drops
    ]
    lengths = [np.concatenate(row) for row in kinds]
    parts = {"4k": [_pairs(lengths[0])], "16k": [_pairs(lengths[1], 1)]}
    parts[ALL] = [replace(part[0], weight=0.5) for part in parts.values()]
    parts |= {
        name: [_pairs(np.concatenate([row[place] for row in kinds]))]
        for place, name in enumerate(DEPTHS)
    }
    return decide(decide_drops(parts, 0.05, 0.0, depths=list(DEPTHS)), [])


def _pairs(differences: NDArray[np.int64], number: int = 0) -> Pairs:
    groups = [(number, place) for place in range(len(differences))]
    return Pairs(np.maximum(differences, 0), np.maximum(-differences, 0), groups, 1.0)


def stop(rounds: int, random: np.random.Generator) -> Iterator[str]:
    """Yield how often `--stop-when` and `compare` after it tell equal models apart, and what its intervals contain."""
    yield "points of difference: --stop-when better decides; requests of 600; compare after it says different;"
    yield "  a comparison that does not know of the rounds says different"
    for difference in (0.0, 0.05, 0.1, 0.2):
        found = [_stop_better(difference, random) for _ in range(rounds)]
        means = np.mean(found, axis=0)
        yield f"{100 * difference:g}: {means[0]:.1%}; {means[1]:.0f}; {means[2]:.1%}; {means[3]:.1%}"
    yield "score with clusters of unequal size: intervals of --stop-when score=50 without the mean of all questions"
    yield f"{np.mean([_misses_table(random) for _ in range(rounds)]):.1%}"


def _stop_better(
    difference: float, random: np.random.Generator
) -> tuple[bool, int, bool, bool]:
    hard = random.random(600)
    answers = [
        ((hard + random.random(600)) / 2 < 0.6 + shift).astype(float)
        for shift in (difference / 2, -difference / 2)
    ]
    question = StoppingQuestion(parse_rule("better"), ["a", "b"])
    size = FIRST
    while True:
        question.observe([_scores(answer[:size]) for answer in answers])
        is_decided = bool(question.decide().text)
        if is_decided or size >= 600:
            break
        size = ceil(GROWTH * size)
    pairs = [Pairs(answers[0][:size], answers[1][:size], range(min(size, 600)), 1.0)]
    after = compare_parts(pairs, tuple(sorted(question.looks))).p_value < 0.05
    return is_decided, min(size, 600), after, compare_parts(pairs).p_value < 0.05


def _misses_table(random: np.random.Generator) -> bool:
    """Ask about books, of which large ones are harder, and say whether the interval lacks the mean of all questions."""
    sizes = random.choice([1, 10], 80)
    scores = [
        score._replace(instance=f"{book}-{place}", group=str(book))
        for book, size in enumerate(sizes)
        for place, score in enumerate(
            _scores((random.random(size) < (0.8 if size == 1 else 0.4)).astype(float))
        )
    ]
    truth = (0.8 + 10 * 0.4) / 11
    question = StoppingQuestion(parse_rule("score=50"), ["m"])
    size = FIRST
    while size < len(scores):
        question.observe([scores[:size]])
        interval = question.decide().interval
        if not interval.low <= truth <= interval.high:
            return True
        size = ceil(GROWTH * size)
    return False


def _scores(values: NDArray[np.float64]) -> list[InstanceScore]:
    return [
        InstanceScore(
            "r",
            ShownModel("m"),
            "e",
            "t",
            None,
            "full",
            f"i{n}",
            0,
            float(value),
            f"i{n}",
            None,
            "",
            None,
            "",
            {},
        )
        for n, value in enumerate(values)
    ]
