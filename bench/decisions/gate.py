"""The decisions of `gate`, of `run --stop-when`, and of `compare` after them.

Differences of right and wrong answers are drawn, and tested by the functions of the commands. "One look" is the rule of
a gate that does not count its looks: an interval for a fixed sample at each look.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise, product
from math import ceil
from statistics import fmean
from typing import NamedTuple

import numpy as np
from bench.decisions.figures import Figure, figure, share_figure
from numpy.typing import NDArray
from tests.support.scores import make_score

from helm_longctx.apps.gate.asking import Goal, overall_power, plan_depths, plan_lengths
from helm_longctx.results.statistics.comparison import (
    Pairs,
    compare_parts,
    level_of_look,
    next_looks,
    padded_squares,
    quantile_of,
)
from helm_longctx.results.statistics.intervals import normal_quantile
from helm_longctx.results.statistics.level import SIGNIFICANCE
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
from helm_longctx.tasks.stop_rules import parse_rule

Counts = NDArray[np.int64]
Scores = NDArray[np.float64]

CI_QUESTIONS = 300
"""Questions of the subset ci at a length."""


MOST_DECIDED = 400
"""The most rounds that are decided by the functions of the command, which take long."""

QUESTIONS = 600
"""Questions that `--stop-when` can ask."""

DISTANCES = (0, 5, 10, 20, 100)
"""Limits of the differences of two published models, in points."""

MOST_OF_SCORES = 1000
"""The most rounds of `--stop-when score=50`, which take long."""


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield the figures of all tables."""
    random = np.random.default_rng(seed)
    yield from look_again(rounds, random)
    yield from plan(rounds, random)
    yield from lose_somewhere(rounds, random)
    yield from stop(rounds, random)
    yield from save(rounds, seed)
    yield from meet_floor(rounds, seed)


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


def look_again(rounds: int, random: np.random.Generator) -> Iterator[Figure]:
    """Yield how often candidates pass that are worse by the margin, and equal ones fail, if somebody looks again."""
    for case in GRID:
        looks = f"{case.number} looks from {case.first} questions on, each × {case.growth:g}"
        if case.number == 1:
            looks = f"one look at {case.first} questions"
        name = (
            f"`gate`, margin {100 * case.margin:g} points, {100 * case.changed:g} % changed by chance,"
            f" {looks}"
        )
        wrong = _follow(case, case.margin, 10 * rounds, random)[-1]
        equal = _follow(case, 0.0, rounds, random)
        first = equal[0]
        last = equal[-1]
        yield share_figure(
            f"{name}: a drop of the margin passes",
            "at most 2.5 %",
            wrong.passed,
            10 * rounds,
            f"by the rule of one look {wrong.passed_once:.1%}",
        )
        yield share_figure(
            f"{name}: an equal pair is worse",
            "at most 2.5 %",
            last.failed,
            rounds,
            f"passes at the first look {first.passed:.0%}, at one of them {last.passed:.0%}; by the rule of one look"
            f" {first.passed_once:.0%}, {last.passed_once:.0%}",
        )


class Outcome(NamedTuple):
    """What was decided until a look.

    Args:
        passed_once: the share that has passed by the rule of one look.
        passed, failed: the shares that have passed, and that were called worse.
    """

    passed_once: float
    passed: float
    failed: float


def _follow(
    case: Looks, drop: float, rounds: int, random: np.random.Generator
) -> list[Outcome]:
    """Return what was decided until each look."""
    sizes = [case.first]
    while len(sizes) < case.number:
        sizes.append(ceil(sizes[-1] * case.growth))
    fewest = fewest_clusters(case.margin, ONE_SIDED)
    shares = [case.changed / 2, case.changed / 2 + drop, 1 - case.changed - drop]
    counts = np.zeros((rounds, 3), dtype=np.int64)
    asked = 0
    outcome = np.zeros(rounds)
    once = np.zeros(rounds)
    outcomes = []
    for index, size in enumerate(sizes):
        counts = counts + random.multinomial(size - asked, shares, rounds)
        asked = size
        drawn, rows_of = np.unique(counts, axis=0, return_inverse=True)
        statistics = margin_statistics(_clusters(drawn), -case.margin)[rows_of.ravel()]
        able = tuple(look for look in sizes[: index + 1] if look >= fewest)
        passes = (
            statistics > quantile_of(level_of_look(able, ONE_SIDED))
            if size >= fewest
            else np.zeros(rounds, bool)
        )
        fails = statistics < -quantile_of(
            level_of_look(tuple(sizes[: index + 1]), ONE_SIDED)
        )
        outcome = np.where(outcome == 0, 1.0 * passes - fails, outcome)
        plain = _one_look(counts, case.margin)
        once = np.where(
            once == 0,
            1.0 * (plain > normal_quantile()) - (plain < -normal_quantile()),
            once,
        )
        outcomes.append(
            Outcome(
                passed_once=float((once > 0).mean()),
                passed=float((outcome > 0).mean()),
                failed=float((outcome < 0).mean()),
            )
        )
    return outcomes


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


PLANS = (
    *product((0.03, 0.05, 0.07, 0.1), (0.01, 0.02, 0.05, 0.1)),
    (0.02, 0.01),
)
"""Margins, and shares that change by chance, of the subset ci."""

PLANNED_SAMPLES = ((0.02, 0.01), (0.03, 0.02), (0.03, 0.05), (0.05, 0.1))
"""The same for the sample that a power of 80 % needs."""


def plan(rounds: int, random: np.random.Generator) -> Iterator[Figure]:
    """Yield the planned and the simulated probability to pass, for the subset ci and for planned samples."""
    for margin, changed in PLANS:
        yield _compare_plan(Goal(margin, 0.8, changed), CI_QUESTIONS, rounds, random)
    for margin, changed in PLANNED_SAMPLES:
        goal = Goal(margin, 0.8, changed)
        needed = 3 * ceil(plan_lengths(_samples(CI_QUESTIONS), goal)[0].needed / 3)
        yield _compare_plan(goal, needed, rounds, random)


def _compare_plan(
    goal: Goal, questions: int, rounds: int, random: np.random.Generator
) -> Figure:
    samples = _samples(questions)
    planned = overall_power(plan_lengths(samples, goal), plan_depths(samples, goal))
    passed = _pass_share(
        goal.margin, goal.noise, questions, np.zeros((2, 3)), rounds, random
    )
    return share_figure(
        f"`gate --dry-run`, margin {100 * goal.margin:g} points, {100 * goal.noise:g} % changed by chance,"
        f" {questions} questions at each of two lengths: an equal pair passes",
        f"planned {100 * planned:.0f} %",
        passed,
        rounds,
    )


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
            [random.multinomial(questions // 3, chances, rounds) for chances in row]
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


class Loss(NamedTuple):
    """Where a candidate loses.

    Args:
        claim: what is claimed of how often it passes.
        drops: shape (lengths, depths): the drop at each place.
    """

    claim: str
    drops: NDArray[np.float64]


OF_DEPTHS = "none: how many are missed"
"""A loss at a depth that is above the margin there, and below it at each length."""

PLACES = {
    "nowhere": Loss("power", np.zeros((2, 3))),
    "at one length, 4 points": Loss(
        "none: below the margin", np.array([[0, 0, 0], [0.04] * 3])
    ),
    "at one length, 10 points": Loss("at most 2.5 %", np.array([[0, 0, 0], [0.1] * 3])),
    "in the middle, 6 points": Loss(OF_DEPTHS, np.array([[0, 0.06, 0], [0, 0.06, 0]])),
    "in the middle, 12 points": Loss(OF_DEPTHS, np.array([[0, 0.12, 0], [0, 0.12, 0]])),
    "in the middle of one length, 12 points": Loss(
        OF_DEPTHS, np.array([[0, 0, 0], [0, 0.12, 0]])
    ),
}


def lose_somewhere(rounds: int, random: np.random.Generator) -> Iterator[Figure]:
    """Yield how often candidates pass that lose only at some place, with the tests of depths and without them."""
    for depth_name, loss in PLACES.items():
        name = f"`gate`, margin 5 points, 2 % changed by chance, a loss {depth_name}"
        for questions in (CI_QUESTIONS, 900):
            without, passed = (
                _pass_share(0.05, 0.02, questions, loss.drops, rounds, random, depths)
                for depths in (False, True)
            )
            yield share_figure(
                f"{name}, {questions} questions at each of two lengths: passes",
                loss.claim,
                passed,
                rounds,
                f"without tests of depths {without:.0%}",
            )
        decided = min(rounds, MOST_DECIDED)
        verdicts = [_decide_gate(loss.drops, random) for _ in range(decided)]
        worse = verdicts.count(Verdict.WORSE) / decided
        yield figure(
            f"{name}, {CI_QUESTIONS} questions, by the functions of the command: passes",
            loss.claim,
            [verdict is Verdict.NO_WORSE for verdict in verdicts],
            f"worse {worse:.0%}",
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
        name: [_pairs(np.concatenate([row[depth] for row in kinds]))]
        for depth, name in enumerate(DEPTHS)
    }
    return decide(decide_drops(parts, 0.05, 0.0, depths=list(DEPTHS)), [])


def _pairs(differences: NDArray[np.int64], number: int = 0) -> Pairs:
    groups = [(number, question) for question in range(len(differences))]
    return Pairs(np.maximum(differences, 0), np.maximum(-differences, 0), groups, 1.0)


FLOOR_MARGIN = 0.05

WEAK_BASES = (0.0, 0.01, 0.02, 0.04, 0.06, 0.08)
"""Shares of right answers of a base against which a candidate without a right answer stands."""

BASES_NEAR_MARGIN = (0.04, 0.05, 0.06, 0.08, 0.12)
"""The same of a base against which an equal candidate stands."""

FLOOR_QUESTIONS = (100, 300, 1000)

FLOOR_CHANGED = (0.02, 0.05)
"""Shares of the answers that change by chance between equal models."""

COMPARED_ROUNDS = 20
"""Rounds of a row that the command's function decides, too."""


def meet_floor(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield how often candidates pass at one length whose base has about as many right answers as may be lost.

    The rows have random numbers of their own, so that they can be made without the others.
    """
    random = np.random.default_rng(seed)
    for base, questions in product(WEAK_BASES, FLOOR_QUESTIONS):
        counts = random.multinomial(questions, [0.0, base, 0.0, 1 - base], rounds)
        yield _pass_floor(base, counts, "a candidate without a right answer")
    for base, changed, questions in product(
        BASES_NEAR_MARGIN, FLOOR_CHANGED, FLOOR_QUESTIONS
    ):
        lost = changed / 2
        chances = [lost, lost, base - lost, 1 - base - lost]
        counts = random.multinomial(questions, chances, rounds)
        name = f"an equal candidate, {100 * changed:g} % changed by chance"
        yield _pass_floor(base, counts, name, claim="power")


def _pass_floor(
    base: float, counts: Counts, name: str, claim: str = "at most 2.5 %"
) -> Figure:
    """Return how often a candidate passes at a length, with the rule of the floor and without it.

    Args:
        base: the share of right answers that the base gives.
        counts: shape (rounds, 4): numbers of questions that only the candidate, only the base, both and neither
            answer right.
    """
    gained, lost, both, neither = counts.T
    questions = int(counts[0].sum())
    differences = np.column_stack([gained, lost, both + neither])
    drawn, rows_of = np.unique(differences, axis=0, return_inverse=True)
    if questions >= fewest_clusters(FLOOR_MARGIN, ONE_SIDED):
        quantile = quantile_of(level_of_look((questions,), ONE_SIDED))
    else:
        quantile = np.inf
    clusters = _clusters(drawn)
    is_above_margin = margin_statistics(clusters, -FLOOR_MARGIN) > quantile
    is_better = margin_statistics(clusters, 0.0) > quantile
    by_interval = is_above_margin[rows_of.ravel()]
    is_strong = (lost + both) / questions > FLOOR_MARGIN
    passes = by_interval & (is_strong | is_better[rows_of.ravel()])
    for row, passed in zip(counts[:COMPARED_ROUNDS], passes, strict=False):
        if _passes_length(row) != passed:
            raise ValueError(f"the command decides {row.tolist()} otherwise")
    return figure(
        f"`gate`, margin {100 * FLOOR_MARGIN:g} points, a base with {100 * base:g} % right, {questions} questions,"
        f" {name}: passes",
        claim,
        passes,
        f"without the rule of the floor {by_interval.mean():.1%}",
    )


def _passes_length(row: Counts) -> bool:
    """Return the decision of the command's function.

    Args:
        row: shape (4,): as in `_pass_floor`.
    """
    candidate = np.repeat([1.0, 0.0, 1.0, 0.0], row)
    base = np.repeat([0.0, 1.0, 1.0, 0.0], row)
    pairs = Pairs(a=candidate, b=base, groups=range(len(base)), weight=1.0)
    drop = decide_drops({"8k": [pairs]}, FLOOR_MARGIN, 0.0)["8k"]
    return drop.verdict is Verdict.NO_WORSE


def stop(rounds: int, random: np.random.Generator) -> Iterator[Figure]:
    """Yield how often `--stop-when` and `compare` after it tell models apart, and what its intervals contain."""
    for difference in (0.0, 0.05, 0.1, 0.2):
        stopped = [_stop_better(difference, random) for _ in range(rounds)]
        decided = np.mean([run.is_decided for run in stopped])
        requests = np.mean([run.requests for run in stopped])
        blind = np.mean([run.is_different_blind for run in stopped])
        yield figure(
            f"`--stop-when better`, two models {100 * difference:g} points apart, 600 questions: `compare` after it"
            " calls them different",
            "power" if difference else "at most 5 %",
            [run.is_different for run in stopped],
            f"rounds end with a decision {decided:.1%}, after {requests:.0f} questions; a comparison that knows of no"
            f" rounds {blind:.1%}",
        )
    yield figure(
        "`--stop-when score=50`, books of unequal size, large ones are harder: some interval lacks the mean",
        "at most 5 %",
        [_misses_table(random) for _ in range(min(rounds, MOST_OF_SCORES))],
    )


class Stopped(NamedTuple):
    """A run with `--stop-when`.

    Args:
        is_decided: whether a round decided.
        requests: number of questions that were asked.
        sign: 1 if the first model is called better, -1 if the second is, and 0 if no round decided.
        is_different: whether `compare` after it calls the models different.
        is_different_blind: the same for a comparison that knows of no rounds.
    """

    is_decided: bool
    requests: int
    sign: float
    is_different: bool
    is_different_blind: bool


def _stop_better(difference: float, random: np.random.Generator) -> Stopped:
    """Ask both models questions that are hard for both, and stop as the command does."""
    hard = random.random(QUESTIONS)
    first, second = (
        ((hard + random.random(QUESTIONS)) / 2 < 0.6 + shift).astype(float)
        for shift in (difference / 2, -difference / 2)
    )
    return _ask_in_rounds(first, second)


def _ask_in_rounds(first: Scores, second: Scores) -> Stopped:
    """Ask in rounds, and decide as `StoppingQuestion` does if no request fails.

    Args:
        first, second: the scores of two models, shape (QUESTIONS,).
    """
    looks: set[int] = set()
    size = FIRST
    while True:
        now = next_looks(looks, size)
        looks.add(size)
        pairs = [Pairs(a=first[:size], b=second[:size], groups=range(size), weight=1.0)]
        comparison = compare_parts(pairs, now)
        is_decided = comparison.p_value < SIGNIFICANCE
        if is_decided or size == QUESTIONS:
            break
        size = min(ceil(GROWTH * size), QUESTIONS)
    after = compare_parts(pairs, tuple(sorted(looks)))
    return Stopped(
        is_decided=is_decided,
        requests=size,
        sign=float(np.sign(comparison.effect.mean)) if is_decided else 0.0,
        is_different=after.p_value < SIGNIFICANCE,
        is_different_blind=compare_parts(pairs).p_value < SIGNIFICANCE,
    )


def save(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield how often `--stop-when better` names the wrong model, and how many questions it asks.

    Pairs of models are drawn from HELMET's published averages at 128k. Each answer is right with the probability of
    the model's average, whatever the other model answers.
    """
    random = np.random.default_rng(seed)
    averages = _published_averages()
    models = np.array(
        [random.choice(averages, size=2, replace=False) for _ in range(rounds)]
    )
    outcomes = []
    for pair in models:
        first, second = (random.random((2, QUESTIONS)) < pair[:, None]).astype(float)
        outcomes.append(_ask_in_rounds(first, second))
    signs = np.array([outcome.sign for outcome in outcomes])
    asked = np.array([outcome.requests for outcome in outcomes]) / QUESTIONS
    differences = 100 * (models[:, 0] - models[:, 1])
    for low, high in pairwise(DISTANCES):
        chosen = (np.abs(differences) > low) & (np.abs(differences) <= high)
        wrong = signs[chosen] == -np.sign(differences[chosen])
        decided = np.mean(signs[chosen] != 0)
        yield figure(
            f"`--stop-when better`, pairs of HELMET's published models at 128k that are {low} to {high} points apart,"
            f" {QUESTIONS} questions: the wrong model is called better",
            "at most 5 %",
            wrong,
            f"rounds end with a decision {decided:.1%}, and {asked[chosen].mean():.0%} of the questions are asked; of"
            f" all pairs {asked.mean():.0%}",
        )


def _published_averages() -> list[float]:
    """Return the mean over the tasks at 128k, in 0…1, of each model of HELMET's table that has them all."""
    lines = (
        files("helm_longctx.benchmarks.helmet").joinpath("published.csv").read_text()
    )
    averages = []
    for row in csv.DictReader(lines.splitlines()):
        scores = [text for name, text in row.items() if name not in ("model", "length")]
        if row["length"] == "128k" and all(scores):
            averages.append(fmean(map(float, scores)) / 100)
    return averages


def _misses_table(random: np.random.Generator) -> bool:
    """Ask about books, of which large ones are harder, and say whether the interval lacks the mean of all questions."""
    sizes = random.choice([1, 10], 80)
    scores = []
    for book, size in enumerate(sizes):
        values = random.random(size) < (0.8 if size == 1 else 0.4)
        for position, value in enumerate(values):
            scores.append(
                make_score(float(value), f"{book}-{position}", group=str(book))
            )
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
