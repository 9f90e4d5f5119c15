"""Simulates certificates of models that are reliable: a question is more or less always right or always wrong.

python bench/decisions.py pairing --rounds 4000

An answer is decided by its question with the probability `pairing`, and otherwise by chance. A model that loses 20
points at the claim has lost them in one of three ways (`Loss`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from itertools import product
from statistics import fmean
from typing import NamedTuple

import numpy as np
from decisions_certify import DESIGN, SHORTEST
from simulation import Figure, clustered_figure

from helm_longctx.apps.certify.answers import Answered, AskedBlock, KeptReply
from helm_longctx.apps.certify.search import SEEDS, Design, Search
from helm_longctx.results.statistics.intervals import Floats

PAIRINGS = (1.0, 0.9, 0.5, 0.0)
SCORES = (0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)

CERTIFICATES = 34
"""Certificates for the same answers at the shortest length, because planning the tests takes most of the time."""

QUESTIONS = SEEDS * len(DESIGN.kinds)

SHORT_DESIGN = replace(DESIGN, claim=128 * 1024)


class Loss(Enum):
    """How a model loses: which questions are wrong at the claim."""

    HARDEST = "the hardest of those that were right"
    ANY = "any of those that were right"
    OTHERS = "others, whatever was right before"


class Rates(NamedTuple):
    """Shares of the certificates for the same answers at the shortest length."""

    effective: float
    refused: float


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield a row for each pairing and score: how often a model that loses 20 points is called effective."""
    seeds = range(seed, seed + max(rounds // CERTIFICATES, 2))
    for pairing, score in product(PAIRINGS, SCORES):
        yield describe(
            f"pairing {pairing:g}, score {score:g}", simulate(pairing, score, seeds)
        )
    for pairing, score in product((1.0, 0.0), (0.5, 0.7, 0.9)):
        rates = simulate(pairing, score, seeds, SHORT_DESIGN)
        yield describe(f"a claim of 128k, pairing {pairing:g}, score {score:g}", rates)


RatesByLoss = dict[tuple[Loss, bool], list[Rates]]
"""The rates for each way of losing, with and without a loss."""


def describe(case: str, rates: RatesByLoss) -> Figure:
    """Return how often a model that loses 20 points is called effective, with the power beside it."""
    honest = rates[Loss.ANY, False]
    power = fmean(rate.effective for rate in honest)
    refused = fmean(rate.refused for rate in honest)
    note = f"without a loss: {power:.1%} effective, {refused:.1%} refused"
    for loss in (Loss.HARDEST, Loss.OTHERS):
        share = fmean(rate.effective for rate in rates[loss, True])
        note += f"; loses {loss.value}: {share:.1%}"
    return clustered_figure(
        case,
        "called effective: at most 5 %",
        [rate.effective for rate in rates[Loss.ANY, True]],
        CERTIFICATES,
        note,
    )


def simulate(
    pairing: float, score: float, seeds: range, design: Design = DESIGN
) -> RatesByLoss:
    """Return the rates of certificates, with new answers at the shortest length for each seed."""
    found: RatesByLoss = {
        (loss, is_lost): [] for loss in Loss for is_lost in (True, False)
    }
    for seed in seeds:
        random = np.random.default_rng(seed)
        levels = random.random(QUESTIONS)
        search = _answer_base(
            pairing, score, levels, replace(design, seed=QUESTIONS * seed), random
        )
        for (loss, is_lost), rates in found.items():
            left = score - design.loss * is_lost
            rates.append(_decide(search, pairing, (score, left), loss, levels, random))
    return found


def _answer_base(
    pairing: float,
    score: float,
    levels: Floats,
    design: Design,
    random: np.random.Generator,
) -> Search:
    """Return a search with all answers at the shortest length.

    Args:
        levels: shape (questions,): how hard each question is, 0 to 1. Those below the score are right.
    """
    search = Search(design)

    def reply(block: AskedBlock) -> list[KeptReply]:
        if not block.has_text:
            return [KeptReply(0.0)] * block.count
        own = levels[block.seed - search.design.seed]
        level = np.where(
            random.random(block.count) < pairing, own, random.random(block.count)
        )
        return [KeptReply(float(is_right)) for is_right in level < score]

    while (blocks := search.next_blocks()) and blocks[0].length == SHORTEST:
        for block in blocks:
            search.add(Answered(block, reply(block)))
    return search


def _decide(
    search: Search,
    pairing: float,
    scores: tuple[float, float],
    loss: Loss,
    levels: Floats,
    random: np.random.Generator,
) -> Rates:
    """Return what many certificates with the same answers at the shortest length decide about the claim.

    Args:
        scores: the expected score at the shortest length and at the claim.
    """
    if not search.tests:
        return Rates(0.0, 0.0)
    base, left = scores
    test = search.tests[search.design.claim]
    shares = [np.full(CERTIFICATES, planned.share) for planned in test.tests]
    is_above = np.zeros(CERTIFICATES, bool)
    is_below = np.zeros(CERTIFICATES, bool)
    others = random.random((CERTIFICATES, QUESTIONS))
    for number, (kind, seed) in enumerate(search.order[: test.most]):
        question = seed - search.design.seed
        own = others[:, question] if loss is Loss.OTHERS else levels[question]
        is_own = random.random(CERTIFICATES) < pairing
        level = np.where(is_own, own, random.random(CERTIFICATES))
        # A part of the right answers has become wrong, or the hardest of them have.
        is_kept = random.random(CERTIFICATES) < left / base
        is_right = (level < base) & is_kept if loss is Loss.ANY else level < left
        values = test.values(is_right.astype(float), kind.kind, seed)
        planned_values = zip(test.tests, shares, values, strict=True)
        shares = [
            planned.next_shares(share, number, value)
            for planned, share, value in planned_values
        ]
        above, below = (share >= 1 - 1e-9 for share in shares)
        is_open = ~is_above & ~is_below
        is_above |= is_open & above & ~below
        is_below |= is_open & below & ~above
    return Rates(float(is_above.mean()), float(is_below.mean()))
