"""The decisions of `gate --logprobs`, and of two tests in `cache-check`: builds and parallel requests.

Divergences of questions are drawn, and decided by the functions of the commands. The candidates that are broken answer
requests as clients do (`tests/support/broken_models.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random
from typing import NamedTuple

import numpy as np
from bench.decisions.figures import Figure, figure
from numpy.typing import NDArray
from tests.support.broken_models import compare_with_twin, make_candidates
from tests.support.readings import draw_points

from helm_longctx.apps.cache_check.check import find_suspects
from helm_longctx.apps.cache_check.states import (
    BUSY,
    BUSY_CONTROL,
    COLD,
    CONTROL,
    PARALLEL,
    StateReply,
    plan_busy,
)
from helm_longctx.apps.cache_check.verdict import judge, judge_builds
from helm_longctx.apps.gate import distributions
from helm_longctx.apps.gate.distributions import (
    ANSWERS,
    TEXTS,
    Point,
    Way,
    Written,
)
from helm_longctx.apps.gate.divergences import (
    CAPS,
    FIRST_LOOKS,
    OF_DIVERGENCE,
    QUESTIONS,
    DivergenceDecision,
    count_twice,
    decide,
    find_differing_lengths,
    find_floor,
    largest_change,
)
from helm_longctx.results.statistics.comparison import level_of_look
from helm_longctx.results.statistics.heavy_tails import are_above, upper_bound
from helm_longctx.results.statistics.noninferiority import ONE_SIDED, Verdict

Floats = NDArray[np.float64]

MARGIN = 0.05
LOOKS = 16
GROWTH = 1.2

SEEDS_OF_BROKEN = 100
"""The most seeds of a broken candidate, because each answers hundreds of requests."""


MOST_CHECKS = 1000
"""The most checks with parallel requests, because each compares hundreds of answers."""

ALL_LOOKS = (*FIRST_LOOKS, QUESTIONS)


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield the figures of all tables."""
    random = np.random.default_rng(seed)
    yield from look_again(rounds, random)
    yield from call_worse(rounds, random)
    yield from pass_good(rounds, random)
    yield from read_under_load(rounds, random)
    yield from compare_builds(rounds, seed)
    yield from ask_in_parallel(min(rounds, MOST_CHECKS), random)
    yield from break_candidates(min(rounds, SEEDS_OF_BROKEN))


def draw(
    spread: float | None,
    mean: float,
    shape: tuple[int, ...],
    random: np.random.Generator,
) -> Floats:
    """Return lognormal divergences; without a spread, a tenth of them is 1 nat and all others are 0."""
    if spread is None:
        return np.asarray(random.random(shape) < 0.1, dtype=np.float64)
    values = random.lognormal(math.log(mean) - spread**2 / 2, spread, shape)
    return np.asarray(values, dtype=np.float64)


def look_again(rounds: int, random: np.random.Generator) -> Iterator[Figure]:
    """Yield how often divergences with a mean at the margin pass over 16 looks."""
    sizes = [QUESTIONS]
    while len(sizes) < LOOKS:
        sizes.append(math.ceil(GROWTH * sizes[-1]))
    levels = [
        level_of_look(tuple(sizes[: number + 1]), ONE_SIDED)
        for number in range(len(sizes))
    ]
    for spread in (None, 0.3, 0.6, 1.0, 1.5, 2.0):
        passed = []
        by_student = []
        for _ in range(rounds):
            values = draw(spread, MARGIN, (sizes[-1],), random)
            by_student.append(passes_by_student(values[:8]))
            passed.append(
                any(
                    _passes(values[:size], level)
                    for size, level in zip(sizes, levels, strict=True)
                )
            )
        name = (
            "a tenth of the questions at 1 nat"
            if spread is None
            else f"lognormal, s = {spread:g}"
        )
        yield figure(
            f"`gate --logprobs`, {name}, {LOOKS} looks: passes",
            "at most 2.5 %",
            passed,
            f"Student's bound with 8 questions: {np.mean(by_student):.1%}",
        )


def _passes(values: Floats, level: float) -> bool:
    return upper_bound(values, MARGIN, CAPS * MARGIN, ONE_SIDED, level) < MARGIN


def passes_by_student(values: Floats) -> bool:
    """Return the verdict of Student's bound at a single look."""
    from scipy.stats import t

    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean() + t.isf(ONE_SIDED, len(values) - 1) * error) < MARGIN


class AtLimit(NamedTuple):
    """Values whose mean is the largest accepted one.

    Args:
        values: shape (rounds, questions).
        floor: what the lower bound takes for the least value.
    """

    name: str
    margin: float
    floor: float
    error: float
    values: Floats


def draw_limits(rounds: int, random: np.random.Generator) -> Iterator[AtLimit]:
    """Yield values of each measure, skewed to either side."""
    cap = CAPS * MARGIN
    change = largest_change(MARGIN)
    of_divergence = OF_DIVERGENCE * ONE_SIDED
    of_others = (1 - OF_DIVERGENCE) * ONE_SIDED / 3
    shape = (rounds, ALL_LOOKS[-1])
    quiet = find_floor([0.0], MARGIN, cap)
    for spread in (0.3, 1.0, 2.0):
        values = draw(spread, MARGIN, shape, random)
        name = f"divergence, lognormal, s = {spread:g}"
        yield AtLimit(name, MARGIN, quiet, of_divergence, values)
    for share in (0.9, 0.97):
        values = np.where(random.random(shape) < share, MARGIN / share, 0.0)
        name = f"divergence, equal in {share:.0%} of the questions and else none"
        yield AtLimit(name, MARGIN, quiet, of_divergence, values)
    for gain in (0.2, 0.5):
        values = np.where(
            random.random(shape) < 0.1, -gain, (MARGIN + 0.1 * gain) / 0.9
        )
        name = f"loss, a gain of {gain:g} nats in a tenth of the questions"
        yield AtLimit(name, MARGIN, cap, of_others, values)
    values = np.where(random.random(shape) < 0.8, change / 0.8, 0.0)
    name = "most likely tokens, equal in 80% of the questions and else none"
    yield AtLimit(name, change, find_floor([0.0], change, 1.0), of_others, values)


def call_worse(rounds: int, random: np.random.Generator) -> Iterator[Figure]:
    """Yield how often a measure whose mean is just accepted is called worse, at any of the looks of one command."""
    for case in draw_limits(rounds, random):
        worse = np.zeros(rounds, bool)
        by_student = np.zeros(rounds, bool)
        for number, look in enumerate(ALL_LOOKS):
            values = case.values[:, :look]
            worse |= are_above(values, case.margin, case.floor, case.error)
            level = level_of_look(ALL_LOOKS[: number + 1], case.error)
            by_student |= _are_above_by_student(values, case.margin, level)
        yield figure(
            f"`gate --logprobs`, {case.name}, mean at the limit, {len(ALL_LOOKS)} looks: worse",
            "at most 2.5 %",
            worse,
            f"Student's bound: {by_student.mean():.1%}",
        )


def _are_above_by_student(
    values: Floats, margin: float, level: float
) -> NDArray[np.bool_]:
    from scipy.stats import t

    count = values.shape[1]
    errors = values.std(axis=1, ddof=1) / math.sqrt(count)
    return np.asarray(values.mean(axis=1) - t.isf(level, count - 1) * errors > margin)


def pass_good(rounds: int, random: np.random.Generator) -> Iterator[Figure]:
    """Yield how often candidates pass whose divergence is below the margin, with the default number of questions."""
    for mean in (0.001, 0.005, 0.01):
        for spread in (0.5, 1.5):
            passed = [
                _passes(
                    draw(spread, mean, (QUESTIONS,), random),
                    level_of_look((1,), ONE_SIDED),
                )
                for _ in range(rounds)
            ]
            yield figure(
                f"`gate --logprobs`, mean {mean:g} nats, lognormal, s = {spread:g}, {QUESTIONS} questions: passes",
                "",
                passed,
            )


def read_under_load(rounds: int, random: np.random.Generator) -> Iterator[Figure]:
    """Yield how often one build differs from itself under another load, and with rare noise."""
    for questions in (16, 32):
        for candidate in (0.1, 0.2, 0.4):
            decisions = [
                decide(draw_points(random, questions, (0.1, candidate)), [], 0.0)
                for _ in range(rounds)
            ]
            equal = np.mean(
                [decision.verdict is Verdict.NO_WORSE for decision in decisions]
            )
            yield figure(
                f"`--max-divergence 0`, {candidate / 0.1:g} times the noise, {questions} questions: worse",
                "at most 2.5 %",
                [decision.verdict is Verdict.WORSE for decision in decisions],
                f"no worse {equal:.1%}",
            )
    looks = (8, 16, 32, 64)
    worse = []
    for _ in range(rounds):
        points = draw_points(random, looks[-1], (0.1, 0.1))
        worse.append(
            any(
                decide(points[:size], [], 0.0, looks[: number + 1]).verdict
                is Verdict.WORSE
                for number, size in enumerate(looks)
            )
        )
    yield figure("`--max-divergence 0`, equal, 4 looks: worse", "at most 2.5 %", worse)
    for rare in (0.1, 0.3):
        notes = []
        for _ in range(rounds):
            points = draw_points(random, QUESTIONS, (0.1, 0.1), rare=rare)
            some = [
                point
                if int(point.group) < count_twice(1)
                else point._replace(noise=None)
                for point in points
            ]
            notes.append(bool(find_differing_lengths(some)))
        yield figure(
            f"the note of any difference, noise in {rare:.0%} of the readings: said",
            "at most 2.5 %",
            notes,
        )


def compare_builds(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield how often one of two equal builds is called worse."""
    chance = Random(seed)
    for routes_questions in (True, False):
        for copies in (1, 8):
            alarms = []
            for _ in range(rounds):
                replies = _route(chance, copies, routes_questions)
                alarms.append(any(build.differs for build in judge_builds(replies)))
            router = "question" if routes_questions else "request"
            yield figure(
                f"`cache-check`, equal builds, a router by {router}, {2 * copies} cold answers to a question: worse",
                "at most 5 %",
                alarms,
            )


def _route(chance: Random, copies: int, routes_questions: bool) -> list[StateReply]:
    replies = []
    for number in range(40):
        build = chance.randrange(2)
        hits = (chance.random() < 0.8,)
        for copy in range(copies):
            for state in (COLD, CONTROL):
                name = build if routes_questions else chance.randrange(2)
                replies.append(
                    StateReply(
                        1024,
                        number,
                        state,
                        hits=hits,
                        build=f"m {name}",
                        copy=str(copy or ""),
                    )
                )
    return replies


def ask_in_parallel(rounds: int, random: np.random.Generator) -> Iterator[Figure]:
    """Yield how often a sound server is called faulty that answers otherwise if it has more requests."""
    for load in (0.0, 1.0, 2.0):
        alarms = []
        before = []
        for _ in range(rounds):
            replies = [
                _answer(StateReply(1024, number, state), load, random)
                for number in range(20)
                for state in (COLD, CONTROL, "warm", PARALLEL)
            ]
            suspects = find_suspects(replies, None)
            before.append(bool(suspects))
            replies += [
                _answer(reply, load, random) for reply in plan_busy(suspects, False)
            ]
            alarms.append(any(cell.differs for cell in judge(replies)))
        yield figure(
            f"`cache-check`, noise of a load that is {load:g} times that of copies, 20 questions: worse",
            "at most 5 %",
            alarms,
            f"without cold answers among other requests {np.mean(before):.1%}",
        )


def _answer(reply: StateReply, load: float, random: np.random.Generator) -> StateReply:
    """Return a reply whose log-probabilities have the noise of a copy, and of a load if it has company."""
    own = 0.02 * random.normal(size=20)
    if reply.state in (PARALLEL, BUSY, BUSY_CONTROL):
        own = own + load * 0.02 * random.normal(size=20)
    logprobs = tuple(
        {f"t{number}": -0.5 + float(shift)} for number, shift in enumerate(own)
    )
    return replace(reply, hits=(True,), logprobs=logprobs)


def break_candidates(seeds: int) -> Iterator[Figure]:
    """Yield how often candidates pass that are broken in a dozen ways, and an equal one."""
    distributions.ANSWER_TOKENS = 8
    for way, about in ((TEXTS, "texts"), (ANSWERS, "answers")):
        for name in make_candidates(0):
            decisions = [_compare_candidate(name, seed, way) for seed in range(seeds)]
            asked = np.mean([decision.looks[-1] for decision in decisions])
            worse = np.mean(
                [decision.verdict is Verdict.WORSE for decision in decisions]
            )
            yield figure(
                f"`gate --logprobs` by {about}, {name}: passes",
                "every one" if name == "twin" else "none",
                [decision.verdict is Verdict.NO_WORSE for decision in decisions],
                f"worse {worse:.0%}, {asked:.0f} questions",
            )


def _compare_candidate(name: str, seed: int, way: Way) -> DivergenceDecision:
    compared = compare_with_twin(name, seed, way, QUESTIONS)
    points: list[Point] = []
    written: list[Written] = []
    sizes = (*FIRST_LOOKS, QUESTIONS)
    asked = 0
    for look, size in enumerate(sizes):
        for question in islice(compared, size - asked):
            points += question.points
            written += question.written
        asked = size
        decision = decide(points, written, MARGIN, sizes[: look + 1])
        if decision.verdict is Verdict.WORSE:
            break
    return decision
