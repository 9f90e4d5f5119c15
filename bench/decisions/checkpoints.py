"""Simulates looks at the scores of checkpoints: whether they rise, and whether they are above the floor.

python -m bench.decisions checkpoints --rounds 4000
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from bench.decisions.figures import Figure, figure

from helm_longctx.apps.checkpoints.sections import (
    SPAN,
    SampledChange,
    find_trend,
    is_above_floor,
    level_of_step,
)
from helm_longctx.results.statistics.intervals import Floats, mean_interval

STEPS = 18

QUESTIONS = 100

FLOORS = (0.1, 0.25)

SAMPLES = (100, 600)


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield a row for each noise of trainings and rise from step to step, after a look at each step."""
    for noise in (0.0, 0.02):
        for rise in (0.0, 0.01, 0.02):
            random = np.random.default_rng(seed)
            hits = [_is_found(noise, rise, random) for _ in range(rounds)]
            claim = (
                "rises: found at one of the looks (power)"
                if rise
                else "rises or falls: at most 5 %"
            )
            case = f"noise of {100 * noise:g} points, {100 * rise:g} points from step to step"
            yield figure(f"{case}, {STEPS} looks, {QUESTIONS} questions", claim, hits)

    for floor, questions, noise in product(FLOORS, SAMPLES, (0.0, 0.02)):
        random = np.random.default_rng(seed)
        hits = [
            _leaves_floor(floor, questions, (0.0, noise), random) for _ in range(rounds)
        ]
        better = [
            _leaves_floor(floor, questions, (0.15, noise), random)
            for _ in range(rounds // 4)
        ]
        yield figure(
            f"a training at its floor of {100 * floor:g} %, noise of {100 * noise:g} points, {STEPS} looks,"
            f" {questions} questions: above the floor",
            "at most 5 %",
            hits,
            f"15 points above it {np.mean(better):.0%}",
        )


def _leaves_floor(
    floor: float,
    questions: int,
    model: tuple[float, float],
    random: np.random.Generator,
) -> bool:
    """Return whether a look at any step says that the newest score is above the floor.

    Args:
        model: how far the model is above the floor, and the noise of its trainings.
    """
    gain, noise = model
    own = mean_interval((random.random(questions) < floor).astype(float))
    scores = []
    for _ in range(STEPS):
        skill = floor + gain + noise * random.standard_normal()
        scores.append(mean_interval((random.random(questions) < skill).astype(float)))
        if is_above_floor(scores, own):
            return True
    return False


def _is_found(noise: float, rise: float, random: np.random.Generator) -> bool:
    level = random.random(QUESTIONS)
    means = []
    answers: list[Floats] = []
    for step in range(STEPS):
        skill = 0.4 + rise * step + noise * random.standard_normal()
        # Half of the answers follow the question's difficulty.
        own = np.where(random.random(QUESTIONS) < 0.5, level, random.random(QUESTIONS))
        answers.append((own < skill).astype(float))
        means.append(float(answers[-1].mean()))
        if step + 1 < SPAN:
            continue
        differences = answers[-1] - answers[-SPAN]
        error = float(np.sqrt((differences**2).sum()) / QUESTIONS)
        _, p_value = find_trend(means, SampledChange(float(differences.mean()), error))
        if p_value < level_of_step(len(means)):
            return True
    return False
