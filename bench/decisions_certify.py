"""Simulates what certificates and effective lengths decide, with known truths: rows of bench/decisions.py.

python bench/decisions.py certify --rounds 100 --seed 0

Scores of models are drawn, with answers that do not depend on those at another length: either an answer is wholly right
with the probability of the score, or each of its `PARTS` is. Programs without a model read real prompts. Their scores
are drawn again from those of a few questions of each kind at each length, so that 1m prompts need not be read for each
seed: a search reads as many tokens of a text of any length, so at 128k it has at least its score at 1m.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, combinations, product
from pathlib import Path
from random import Random
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.certifying import KINDS
from tests.support.searching import CHUNKS, SEARCHES, SearchingModel

from helm_longctx.apps.certify.answers import Answered, AskedBlock, KeptReply
from helm_longctx.apps.certify.command import questions_for
from helm_longctx.apps.certify.procedure import Ask, run
from helm_longctx.apps.certify.search import Design, Search
from helm_longctx.data.root import DataRoot
from helm_longctx.results.statistics.intervals import (
    Floats,
    effective_length,
    mean_interval,
    possible_lengths,
    share_of_shortest,
)
from helm_longctx.results.statistics.sequential import ThresholdDecision, decide
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import MAIN_METRIC, Settings

CLAIM = 1024 * 1024
SHORTEST = 4096

DESIGN = Design(CLAIM, SHORTEST, KINDS)

SCORES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98)

FILL = 0.95
"""Part of its length that a prompt fills."""

PARTS = {"recall": 5, "paraphrase": 1, "graph": 2, "count": 3, "conversation": 1}
"""Of how many independent parts of equal weight an answer of each kind is the mean, about: recall has five codes. In
graph, arrows after a mistake do not count, and half of the score of count is for all towns together."""

READ = {32 * 1024: (32 * 1024, 8), CLAIM: (128 * 1024, 3)}
"""For each claim, the length of the prompts that a search reads instead, and how many of each kind."""

BASE_PROMPTS = 40
"""Questions of each kind at the shortest length that a search reads."""

DRAWS = {"whole answers": (6, 25), "answers in parts": (1, 100)}
"""For each round, the draws of the answers at the shortest length, and the certificates for each. Tests of parts take
much longer to plan."""

Row = tuple[str, str]
"""What was measured, and the figures."""


def rows(rounds: int, seed: int) -> Iterator[str]:
    """Yield a line for each cell. Seeds begin with `seed`."""
    logging.getLogger("bm25s").setLevel(logging.ERROR)
    seeds = range(seed, seed + max(rounds // 5, 1))
    found = chain(
        _score_rows(rounds, seed),
        _loss_rows(rounds, seed),
        _search_rows(seeds),
        _length_rows(rounds, seed),
    )
    yield from (f"{name}: {about}" for name, about in found)


def _score_rows(rounds: int, seed: int) -> Iterator[Row]:
    """Yield a row for each score with and without a loss."""
    for answers, (bases, certificates) in DRAWS.items():
        parts = dict.fromkeys(PARTS, 1) if answers == "whole answers" else PARTS
        for score in SCORES:
            seeds = range(seed, seed + bases * rounds)
            for loss, about in _rate(DESIGN, score, parts, seeds, certificates).items():
                yield (
                    f"{answers}, score {score:g}, loss {100 * loss:.0f} points at 1m",
                    about,
                )


def _loss_rows(rounds: int, seed: int) -> Iterator[Row]:
    """Yield a row for each score and allowed loss: how often the estimated number of questions decides."""
    for score in (0.5, 0.8, 0.9, 0.98):
        for loss in (0.1, 0.15, 0.2, 0.3):
            if (count := questions_for(score, loss, DESIGN.error)) is None:
                continue
            design = replace(DESIGN, loss=loss, most=count)
            found = _rate(
                design, score, dict.fromkeys(PARTS, 1), range(seed, seed + rounds), 100
            )
            for true, about in found.items():
                yield (
                    f"--loss {100 * loss:.0f}, -m {count}, score {score:g}, loss {100 * true:.0f} points",
                    about,
                )


def _rate(
    design: Design,
    score: float,
    parts: Mapping[str, int],
    seeds: Sequence[int],
    certificates: int,
) -> dict[float, str]:
    """Return how often the claim is certified and refused, and what that takes, without a loss and with it.

    Args:
        parts: the number of parts of an answer of each kind.
        seeds: one for each draw of the answers at the shortest length.
        certificates: number of certificates for each of them.
    """
    found: dict[float, list[tuple[float, ...]]] = {0.0: [], design.loss: []}
    for seed in seeds:
        search = _answer_base(replace(design, seed=1000 * seed), score, parts)
        random = np.random.default_rng(seed)
        tokens = sum(
            reply.sent for kind in search.kinds.values() for reply in kind.base.replies
        )
        for loss, rows in found.items():
            decided, asked = _decide_claim(
                search, score - loss, parts, certificates, random
            )
            shares = [
                fmean(each is decision for each in decided)
                for decision in (ThresholdDecision.ABOVE, ThresholdDecision.BELOW)
            ]
            most = tokens + int(asked.max()) * round(FILL * CLAIM)
            rows.append((*shares, float(asked.mean()), most / 1e6))
    return {loss: _describe(np.array(rows)) for loss, rows in found.items()}


def _describe(rows: Floats) -> str:
    means = rows.mean(axis=0)
    errors = rows.std(axis=0) / np.sqrt(len(rows))
    shares = (
        f"{means[place]:.1%} {name} (standard error {errors[place]:.1%})"
        for place, name in enumerate(("certified", "refused"))
    )
    return f"{', '.join(shares)}, {means[2]:.0f} questions at 1m, at most {rows[:, 3].max():.1f}M tokens"


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
    shares = [np.full(certificates, each.share) for each in test.tests]
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
            each.next_shares(share, number, value) for each, share, value in values
        ]
        above, below = (each >= 1 - 1e-9 for each in shares)
        is_above |= is_open & above & ~below
        is_below |= is_open & below & ~above
    for place, kind in product(range(certificates), search.measured):
        rows = zip(order[: asked[place]], scores, strict=False)
        own = [float(row[place]) for (each, _), row in rows if each is kind]
        cell = kind.cell(CLAIM)
        # A kind with at least its lowest score is not lost, and deciding takes time.
        if (
            own
            and fmean(own) < cell.lowest
            and decide(own, cell.lowest, cell.errors[1]) is ThresholdDecision.BELOW
        ):
            is_above[place], is_below[place] = False, True
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


@cache
def search_scores(
    search: str, size: int, kind: str, length: int, prompts: int
) -> tuple[float, ...]:
    """Return the scores of a program that searches real prompts, and reads what it finds without a mistake."""
    task = next(
        task for task in find_benchmark("fresh_text").tasks if task.name == kind
    )
    model = SearchingModel(search, [kind], size)
    scores = []
    for example in task.load(
        task, Settings(length, seed=9, num_samples=prompts), DataRoot.find(".")
    ):
        answer, _ = model.answer(task.prompt(example).messages)
        scores.append(
            task.scores({"prediction": answer, "references": example.references})[
                MAIN_METRIC
            ]
        )
    return tuple(scores)


def _search_rows(seeds: Sequence[int]) -> Iterator[Row]:
    """Yield a row for each search and length: it tries one kind, two or all, and gives up on the others."""
    for claim, (read, prompts) in READ.items():
        for search in SEARCHES:
            for size in CHUNKS if search != "regular expressions" else CHUNKS[:1]:
                scores = {
                    (kind, length): search_scores(search, size, kind, at, count)
                    for kind in KINDS
                    for length, at, count in (
                        (SHORTEST, SHORTEST, BASE_PROMPTS),
                        (claim, read, prompts),
                    )
                }
                tried = chain.from_iterable(
                    combinations(KINDS, number) for number in (1, 2, len(KINDS))
                )
                hits = [
                    certify_search(scores, kinds, claim, seed)
                    for kinds in tried
                    for seed in seeds
                ]
                about = f"{search}, chunks of {size} characters, claim {claim // 1024}k, one kind, two or all"
                yield about, f"{sum(hits)} of {len(hits)} certified"


def certify_search(
    scores: Mapping[tuple[str, int], Sequence[float]],
    kinds: Sequence[str],
    claim: int,
    seed: int,
) -> bool:
    """Return whether a search that tries only some kinds is certified."""

    def draw(block: AskedBlock, random: Random) -> float:
        # Lengths between the two have at least the score of the claim; they do not matter to it.
        length = SHORTEST if block.length == SHORTEST else claim
        return random.choice(scores[block.kind, length]) if block.kind in kinds else 0.0

    return (
        run(
            Design(claim, SHORTEST, KINDS, seed=1000 * seed), draw_answers(draw, seed)
        ).holds
        is True
    )


CURVES = {
    "83 % of it at 16k": (1.0, 0.83, 0.8),
    "84 % of it from 16k": (0.86, 0.84, 0.84),
    "70 % of it at 16k": (0.95, 0.7, 0.5),
}
"""Scores at 8k, 16k and 32k as parts of that at 4k. The threshold is 85 %."""


def _length_rows(rounds: int, seed: int) -> Iterator[Row]:
    for score in (0.5, 0.8, 0.9, 0.98):
        for name, curve in CURVES.items():
            yield (
                f"effective length 8k, score {score:g}, {name}, 100 questions",
                _rate_lengths(score, curve, rounds, seed),
            )


def _rate_lengths(
    score: float, curve: Sequence[float], rounds: int, seed: int, questions: int = 100
) -> str:
    random = np.random.default_rng(seed)
    too_long = 0
    covered = 0
    sizes = []
    for _ in range(10 * rounds):
        chances = dict(
            zip((4, 8, 16, 32), (score, *(part * score for part in curve)), strict=True)
        )
        intervals = {
            at: mean_interval((random.random(questions) < each).astype(float))
            for at, each in chances.items()
        }
        means = {at: each.mean for at, each in intervals.items()}
        possible = possible_lengths(intervals)
        too_long += (effective_length(means, share_of_shortest(means)) or 0) > 8
        covered += 8 in possible
        sizes.append(len(possible))
    shares = [each / (10 * rounds) for each in (too_long, covered)]
    return f"{shares[0]:.0%} too long; the truth is possible in {shares[1]:.1%}, of {fmean(sizes):.1f} lengths"
