"""`compaction`: how often equal compactors are called different, and how often a gate passes.

Probes that a compactor loses together are no independent answers: a summary forgets a stretch of the work, or a whole
session. So outcomes are made whose losses are single probes, a piece of 30 % of each session, or whole sessions. Two or
three compactors lose equally much, each at places of its own. The tests are those of `apps/compaction/results.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations

import numpy as np
from bench.decisions.figures import Figure, figure

from helm_longctx.apps.compaction.results import find_fewest_transcripts
from helm_longctx.results.statistics.comparison import (
    Comparison,
    compare_pairs,
    decide_all,
    level_of_look,
    quantile_of,
)
from helm_longctx.results.statistics.intervals import Floats
from helm_longctx.results.statistics.noninferiority import (
    ONE_SIDED,
    Clusters,
    margin_statistics,
)

PROBES = 18
"""Probes of each session, spread evenly over its first three quarters."""

SESSIONS = (3, 6, 12, 30)

GATED = (38, 100)
"""Numbers of sessions for the gate. With fewer it is about these sessions alone."""

LOST = 0.3
"""Share of the probes that a compactor loses, all kinds of loss alike."""

MARGIN = 0.1
"""The loss that the gate just does not accept."""

COMPARED = (2, 3)
"""Numbers of compactors."""

LossMaker = Callable[[np.random.Generator, int, float], Floats]
"""Draws which probes of so many sessions are kept, with a share that is lost: 1 or 0, shape (sessions, `PROBES`)."""


def lose_probes(random: np.random.Generator, sessions: int, share: float) -> Floats:
    """Lose each probe on its own."""
    return (random.random((sessions, PROBES)) >= share).astype(float)


def lose_piece(random: np.random.Generator, sessions: int, share: float) -> Floats:
    """Lose one piece of each session, whose place is drawn."""
    offsets = np.arange(PROBES) + random.random((sessions, PROBES))
    places = offsets / PROBES
    # The piece can begin before the first probe, so that each probe is lost equally often.
    starts = random.random((sessions, 1))
    is_lost = (places - starts) % 1 < share
    return (~is_lost).astype(float)


def lose_sessions(random: np.random.Generator, sessions: int, share: float) -> Floats:
    """Lose all of some sessions."""
    kept = random.random((sessions, 1)) >= share
    return np.repeat(kept, PROBES, axis=1).astype(float)


LOSSES: Mapping[str, LossMaker] = {
    "single probes": lose_probes,
    "a piece of each session": lose_piece,
    "whole sessions": lose_sessions,
}


def compare_equal(
    random: np.random.Generator, lose: LossMaker, sessions: int, compactors: int
) -> list[Comparison]:
    """Compare compactors that lose equally much, as `ProbeScores` does."""
    kept = [lose(random, sessions, LOST).ravel() for _ in range(compactors)]
    pairs = list(combinations(kept, 2))
    clusters = np.repeat(np.arange(sessions), PROBES)
    if sessions < find_fewest_transcripts(len(pairs)):
        # Each made probe is in a message of its own.
        clusters = np.arange(sessions * PROBES)
    groups = clusters.tolist()
    return [compare_pairs(one, other, groups) for one, other in pairs]


def find_passes(
    random: np.random.Generator, lose: LossMaker, sessions: int, rounds: int
) -> np.ndarray:
    """Return for each round whether a compactor passes that loses as much as is just not accepted.

    The base loses nothing. Sessions that lose equally many probes are one kind of cluster.
    """
    kinds = np.arange(PROBES + 1)
    counts = np.zeros((rounds, len(kinds)))
    for number in range(rounds):
        kept = lose(random, sessions, MARGIN)
        lost = (PROBES - kept.sum(axis=1)).astype(int)
        counts[number] = np.bincount(lost, minlength=len(kinds))
    sizes = np.full(len(kinds), 1 / sessions)
    clusters = Clusters(sums=-kinds / PROBES * sizes, sizes=sizes, counts=counts)
    statistics = margin_statistics(clusters, -MARGIN)
    return statistics > quantile_of(level_of_look((1,), ONE_SIDED))


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield the errors of the table of differences, and of the gate."""
    number = 0
    for compactors in COMPARED:
        fewest = find_fewest_transcripts(compactors * (compactors - 1) // 2)
        for loss, lose in LOSSES.items():
            for sessions in SESSIONS:
                number += 1
                random = np.random.default_rng([seed, number])
                different = []
                for _ in range(rounds):
                    comparisons = compare_equal(random, lose, sessions, compactors)
                    decisions = decide_all(comparisons)
                    different.append(any(row.is_different for row in decisions))
                called = "called different"
                claim = "at most 5 %"
                if sessions < fewest:
                    called = "called different “here”"
                    claim = "none: it is about these sessions"
                case = f"{compactors} equal compactors lose {loss}, {sessions} sessions: {called}"
                yield figure(f"`compaction`, {case}", claim, different)
    for loss, lose in LOSSES.items():
        for sessions in GATED:
            number += 1
            random = np.random.default_rng([seed, number])
            passed = find_passes(random, lose, sessions, rounds)
            case = f"a loss of 10 points in {loss}, {sessions} sessions: passes"
            yield figure(f"`compaction --max-loss 10`, {case}", "at most 2.5 %", passed)
