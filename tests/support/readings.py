"""Readings of distributions of tokens that have noise, as `gate --logprobs` compares them."""

from __future__ import annotations

import numpy as np

from helm_longctx.apps.gate.distributions import Point

TOKENS = 20
"""The number of tokens of a question that are compared."""


def draw_points(
    random: np.random.Generator,
    questions: int,
    noise: tuple[float, float],
    *,
    rare: float = 1.0,
    shift: float = 0.0,
    length: int | None = None,
) -> list[Point]:
    """Return points of questions whose four readings have noise around two distributions.

    Args:
        noise: the standard deviation of the noise of the base and of the candidate.
        rare: the share of the readings with noise.
        shift: the distance of the distributions.
    """
    base, candidate = noise
    points = []
    for number in range(questions):
        level = random.choice([0.01, 0.1, 1.0])  # of a question
        readings = []
        for side in (base, base, candidate, candidate):
            values = side * level * random.normal(0, 1, TOKENS)
            readings.append(values * (random.random() < rare))
        one, again = readings[:2]
        other = readings[2] + shift * level
        other_again = readings[3] + shift * level
        between = ((one - other) ** 2).mean() + ((again - other_again) ** 2).mean()
        points.append(
            Point(
                length=length,
                stretch="answer",
                group=str(number),
                divergence=between / 2,
                same=1.0,
                loss=0.0,
                noise=((one - again) ** 2).mean(),
                candidate_noise=((other - other_again) ** 2).mean(),
            )
        )
    return points
