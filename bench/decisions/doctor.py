"""How often `doctor` says that two builds answer at one address.

It sends twenty equal chats, and twenty again if the first ones make two groups that are mixed in time. Status 1 needs
both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from bench.decisions.figures import Figure, figure

from helm_longctx.models.endpoints.stack import (
    find_other_group,
    find_regular_text,
    is_one_change,
)
from helm_longctx.results.statistics.intervals import Floats

CHATS = 20

TOKENS = 16

Groups = Callable[[np.random.Generator], Floats]
"""Draws the group of each of 40 chats, 0 or 1: of the first twenty and of the second ones."""


def one_group(random: np.random.Generator) -> Floats:
    """Return one build."""
    return np.zeros(2 * CHATS)


def change_once(random: np.random.Generator) -> Floats:
    """Return a load that changes once while the first chats are sent."""
    return np.asarray(
        np.arange(2 * CHATS) >= random.integers(2, CHATS - 1), dtype=float
    )


def change_twice(random: np.random.Generator) -> Floats:
    """Return a load that changes at two times."""
    first, second = sorted(random.choice(np.arange(2, 2 * CHATS - 1), 2, replace=False))
    places = np.arange(2 * CHATS)
    return np.asarray((places >= first) & (places < second), dtype=float)


def each_fifth(random: np.random.Generator) -> Floats:
    """Return a router that sends each fifth chat to the other build."""
    return np.asarray(np.arange(2 * CHATS) % 5 == random.integers(5), dtype=float)


def by_chance(random: np.random.Generator) -> Floats:
    """Return two ways of computing, of which a third of the chats get the second one."""
    return np.asarray(random.random(2 * CHATS) < 1 / 3, dtype=float)


CASES: list[tuple[str, str, Groups, float, float]] = [
    ("one build, noise of 0.001 nats", "at most 1 %", one_group, 0.0, 0.001),
    ("one build, noise of 0.05 nats", "at most 1 %", one_group, 0.0, 0.05),
    ("one build, noise of 0.6 nats", "at most 1 %", one_group, 0.0, 0.6),
    ("the load changes once, by 0.05 nats", "at most 1 %", change_once, 0.05, 0.002),
    ("the load changes twice, by 0.05 nats", "at most 1 %", change_twice, 0.05, 0.002),
    (
        "one build computes in two ways, 0.03 nats apart",
        "none: said so",
        by_chance,
        0.03,
        0.002,
    ),
    (
        "a router sends each fifth chat to a build 0.05 nats away",
        "power",
        each_fifth,
        0.05,
        0.002,
    ),
    ("the same, noise of 0.02 nats", "power", each_fifth, 0.05, 0.02),
]
"""What is simulated, the claim, the groups, how far they are apart, and the noise of each log-probability, in nats."""


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield how often two builds are named, in the first chats and in the second ones."""
    random = np.random.default_rng(seed)
    for name, claim, groups, apart, noise in CASES:
        named = []
        at_first = []
        for _ in range(rounds):
            answers = answer(groups(random), apart, noise, random)
            group = find_other_group(compare(answers[:CHATS]))
            at_first.append(bool(group))
            # The second chats are sent only if the first ones make two mixed groups.
            named.append(
                _is_mixed(group)
                and _is_mixed(find_other_group(compare(answers[CHATS:])))
            )
        note = f"by the first twenty chats alone {np.mean(at_first):.1%}"
        yield figure(f"`doctor`, {name}: two builds", claim, named, note)
    named = []
    for _ in range(rounds):
        texts = random.choice(["a", "b"], 2 * CHATS, p=[0.75, 0.25]).tolist()
        named.append(
            bool(find_regular_text(texts[:CHATS]))
            and bool(find_regular_text(texts[CHATS:]))
        )
    yield figure(
        "`doctor`, no log-probabilities, two texts by chance: two builds",
        "at most 1 %",
        named,
    )


def _is_mixed(places: list[int]) -> bool:
    return bool(places) and not is_one_change(places, CHATS)


def answer(
    groups: Floats, apart: float, noise: float, random: np.random.Generator
) -> Floats:
    """Return the log-probabilities of the same tokens in each answer, shape (answers, tokens), from any start."""
    noises = noise * random.normal(size=(len(groups), TOKENS))
    return np.asarray(groups[:, None] * apart + noises)


def compare(answers: Floats) -> Floats:
    """Return the mean difference of each two answers, shape (answers, answers), as `find_other_build` does."""
    return np.asarray(np.abs(answers[:, None] - answers[None]).mean(axis=2))
