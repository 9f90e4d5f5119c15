"""Simulates what certificates decide about answers that are right in parts, and with other losses.

Answers do not depend on those at another length, the hardest case: each of an answer's `PARTS` is right with the
probability of the score. Answers that are wholly right or wrong, and not independent, are in `pairing`, and programs
that search in `retrieval`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from random import Random
from statistics import fmean
from typing import NamedTuple

import numpy as np
from bench.decisions.figures import Figure, clustered_figure
from numpy.typing import NDArray
from tests.support.certifying import KINDS

from helm_longctx.apps.certify.answers import Answered, AskedBlock, KeptReply
from helm_longctx.apps.certify.command import questions_for
from helm_longctx.apps.certify.procedure import Ask
from helm_longctx.apps.certify.search import Design, Search
from helm_longctx.results.statistics.intervals import Floats
from helm_longctx.results.statistics.sequential import ThresholdDecision, decide

CLAIM = 1024 * 1024
SHORTEST = 4096

DESIGN = Design(CLAIM, SHORTEST, KINDS)

SCORES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98)

FILL = 0.95
"""Part of its length that a prompt fills."""

PARTS = {"recall": 5, "paraphrase": 1, "graph": 2, "count": 3, "conversation": 1}
"""Of how many independent parts of equal weight an answer of each kind is the mean, about: recall has five codes. In
graph, arrows after a mistake do not count, and half of the score of count is for all towns together."""

CERTIFICATES = 40
"""Certificates for each draw of the answers at the shortest length."""

LOSSES = (0.1, 0.15, 0.2, 0.3)


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield two figures for each score: how often a claim is certified with the loss, and refused without it."""
    seeds = range(seed, seed + max(rounds // CERTIFICATES, 2))
    for score in SCORES:
        name = f"answers in parts, score {score:g} at 4k"
        yield from _rate(name, DESIGN, score, PARTS, seeds)
    whole = dict.fromkeys(PARTS, 1)
    for score, loss in product((0.5, 0.8, 0.9, 0.98), LOSSES):
        if (count := questions_for(score, loss, DESIGN.error)) is None:
            continue
        design = replace(DESIGN, loss=loss, most=count)
        name = f"`--loss {100 * loss:.0f}`, whole answers, {count} questions, score {score:g} at 4k"
        yield from _rate(name, design, score, whole, seeds)


class Rates(NamedTuple):
    """What certificates decide that have the same answers at the shortest length.

    Args:
        certified, refused: shares of the certificates.
        asked: mean number of questions at the claim.
        tokens: the most tokens of a certificate, in millions.
    """

    certified: float
    refused: float
    asked: float
    tokens: float


def _rate(
    name: str,
    design: Design,
    score: float,
    parts: Mapping[str, int],
    seeds: Sequence[int],
) -> Iterator[Figure]:
    """Yield how often a claim is certified with the loss, and refused without it.

    Args:
        parts: the number of parts of an answer of each kind.
        seeds: one for each draw of the answers at the shortest length.
    """
    rates: dict[float, list[Rates]] = {0.0: [], design.loss: []}
    for seed in seeds:
        search = _answer_base(replace(design, seed=1000 * seed), score, parts)
        random = np.random.default_rng(seed)
        tokens = 0
        for kind in search.kinds.values():
            tokens += sum(reply.sent for reply in kind.base.replies)
        for loss, of_loss in rates.items():
            decided, asked = _decide_claim(
                search, score - loss, parts, CERTIFICATES, random
            )
            most = tokens + int(asked.max()) * round(FILL * CLAIM)
            of_loss.append(
                Rates(
                    certified=decided.count(ThresholdDecision.ABOVE) / CERTIFICATES,
                    refused=decided.count(ThresholdDecision.BELOW) / CERTIFICATES,
                    asked=float(asked.mean()),
                    tokens=most / 1e6,
                )
            )
    lost = rates[design.loss]
    kept = rates[0.0]
    yield clustered_figure(
        f"certificate, {name}, {100 * design.loss:.0f} points lost: called effective",
        "at most 5 %",
        [drawn.certified for drawn in lost],
        CERTIFICATES,
        f"refused {fmean(drawn.refused for drawn in lost):.1%}; {_describe(lost)}",
    )
    yield clustered_figure(
        f"certificate, {name}, nothing lost: called not effective",
        "at most 5 %",
        [drawn.refused for drawn in kept],
        CERTIFICATES,
        f"certified {fmean(drawn.certified for drawn in kept):.1%}; {_describe(kept)}",
    )


def _describe(rates: Sequence[Rates]) -> str:
    """Describe the cost of certificates."""
    asked = fmean(drawn.asked for drawn in rates)
    tokens = max(drawn.tokens for drawn in rates)
    return f"{asked:.0f} questions at 1m, at most {tokens:.0f}M tokens"


def _answer_base(design: Design, score: float, parts: Mapping[str, int]) -> Search:
    """Return a search that has all its answers at the shortest length, and asks about the claim next."""

    def draw(block: AskedBlock, random: Random) -> float:
        return fmean(random.random() < score for _ in range(parts[block.kind]))

    search = Search(design)
    ask = draw_answers(draw, design.seed)
    while (blocks := search.next_blocks()) and blocks[0].length == SHORTEST:
        for answered in ask(blocks):
            search.add(answered)
    return search


def _decide_claim(
    search: Search,
    score: float,
    parts: Mapping[str, int],
    certificates: int,
    random: np.random.Generator,
) -> tuple[list[ThresholdDecision], NDArray[np.intp]]:
    """Return the decisions of many certificates with the same answers at the shortest length, and their questions.

    It does for all of them at once what `LengthTest` and `Cell` do for one.
    """
    if not search.tests:
        return [ThresholdDecision.OPEN] * certificates, np.zeros(certificates, int)
    test = search.tests[CLAIM]
    scores = list[Floats]()
    order = search.order[: test.most]
    shares = [np.full(certificates, part.share) for part in test.tests]
    is_above = np.zeros(certificates, bool)
    is_below = np.zeros(certificates, bool)
    asked = np.zeros(certificates, int)
    for number, (kind, seed) in enumerate(order):
        scores.append(
            random.binomial(parts[kind.kind], score, certificates) / parts[kind.kind]
        )
        is_open = ~is_above & ~is_below
        asked += is_open
        values = zip(
            test.tests, shares, test.values(scores[-1], kind.kind, seed), strict=True
        )
        shares = [
            part.next_shares(share, number, value) for part, share, value in values
        ]
        above, below = (share >= 1 - 1e-9 for share in shares)
        is_above |= is_open & above & ~below
        is_below |= is_open & below & ~above
    for certificate, kind in product(range(certificates), search.measurable_kinds):
        rows = zip(order[: asked[certificate]], scores, strict=False)
        own = [
            float(row[certificate])
            for (asked_kind, _), row in rows
            if asked_kind is kind
        ]
        cell = kind.cell(CLAIM)
        # A kind with at least its lowest score is not lost, and deciding takes time.
        if (
            own
            and fmean(own) < cell.lowest
            and decide(own, cell.lowest, cell.errors[1]) is ThresholdDecision.BELOW
        ):
            is_above[certificate], is_below[certificate] = False, True
    pairs = zip(is_above, is_below, strict=True)
    return [
        ThresholdDecision.ABOVE
        if above
        else ThresholdDecision.BELOW
        if below
        else ThresholdDecision.OPEN
        for above, below in pairs
    ], asked


def draw_answers(draw: Callable[[AskedBlock, Random], float], seed: int) -> Ask:
    """Return a function that answers blocks by drawing scores; without a text each score is 0."""
    random = Random(f"answers {seed}")

    def reply(block: AskedBlock) -> KeptReply:
        return KeptReply(
            draw(block, random) if block.has_text else 0.0,
            sent=round(FILL * block.length * block.has_text),
        )

    return lambda blocks: [
        Answered(block, [reply(block) for _ in range(block.count)]) for block in blocks
    ]
