"""Simulates what certificates and effective lengths decide, with known truths: rows of bench/decisions.py.

python bench/decisions.py certify --rounds 100 --seed 0

Scores of models are drawn: an answer is right with the probability of the score, whatever the answer at another length
is. Programs without a model read real prompts. Their scores are drawn again from those of `PROMPTS` questions of each
kind at each length, so that 1m prompts need not be read for each seed: a search reads as many tokens of a text of any
length, so at 256k it has at least its score at 1m.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, combinations
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.certifying import KINDS
from tests.support.searching import CHUNKS, SEARCHES, SearchingModel

from helm_longctx.apps.certify.answers import Answered, Block, Reply
from helm_longctx.apps.certify.procedure import Ask, run
from helm_longctx.apps.certify.search import Design
from helm_longctx.data.root import DataRoot
from helm_longctx.results.statistics.intervals import mean_interval
from helm_longctx.results.statistics.lengths import effective_length, possible_lengths, share_of_shortest
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import MAIN_METRIC, Settings

CLAIM, SHORTEST = 1024 * 1024, 4096

SCORES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98)

FILL = 0.95
"""Part of its length that a prompt fills."""

PROMPTS = 8
"""Questions of each kind at the claim that a search reads."""

Row = tuple[str, str]
"""What was measured, and the figures."""


class Rates(NamedTuple):
    """Shares of certificates, and their prompt tokens in millions."""

    certified: float
    refused: float
    mean: float
    most: float


def rows(rounds: int, seed: int) -> Iterator[str]:
    """Yield a line for each cell. The seeds are `seed` to `seed` + `rounds` - 1."""
    logging.getLogger("bm25s").setLevel(logging.ERROR)
    seeds = range(seed, seed + rounds)
    found = chain(_score_rows(seeds), _search_rows(seeds[: max(rounds // 5, 1)]), _length_rows(rounds, seed))
    yield from (f"{name}: {about}" for name, about in found)


def _score_rows(seeds: Sequence[int]) -> Iterator[Row]:
    for loss in (0.0, 0.2):
        for score in SCORES:
            found = rate(partial(_keep, score, loss), seeds)
            tokens = f"{found.mean:.0f}M tokens, at most {found.most:.0f}M"
            about = f"{found.certified:.1%} certified, {found.refused:.1%} refused, {tokens}"
            yield f"score {score:g}, loss {100 * loss:.0f} points at 1m", about


def _keep(score: float, loss: float, block: Block) -> float:
    return score - loss * (block.length == CLAIM)


def rate(chance: Callable[[Block], float], seeds: Sequence[int], claim: int = CLAIM) -> Rates:
    """Return how often a model with a known score is certified and refused."""
    found, tokens = list[bool | None](), list[int]()
    for seed in seeds:
        design = Design(claim, SHORTEST, KINDS, seed=1000 * seed)
        record = run(design, draw_answers(lambda block, random: float(random.random() < chance(block)), seed)).record()
        found.append(record["holds"])
        tokens.append(record["prompt_tokens"])
    certified, refused = (found.count(value) / len(seeds) for value in (True, False))
    return Rates(certified, refused, fmean(tokens) / 1e6, max(tokens) / 1e6)


def draw_answers(draw: Callable[[Block, Random], float], seed: int) -> Ask:
    """Return a function that answers blocks by drawing scores; without a text each score is 0."""
    random = Random(f"answers {seed}")

    def reply(block: Block) -> Reply:
        return Reply(draw(block, random) if block.has_text else 0.0, sent=round(FILL * block.length))

    return lambda blocks: [Answered(block, [reply(block) for _ in range(block.count)]) for block in blocks]


@cache
def search_scores(search: str, size: int, kind: str, length: int, prompts: int) -> tuple[float, ...]:
    """Return the scores of a program that searches real prompts, and reads what it finds without a mistake."""
    task = next(task for task in find_benchmark("fresh_text").tasks if task.name == kind)
    model, scores = SearchingModel(search, [kind], size), []
    for example in task.load(task, Settings(length, seed=9, num_samples=prompts), DataRoot.find(".")):
        answer, _ = model.answer(task.prompt(example).messages)
        scores.append(task.scores({"prediction": answer, "references": example.references})[MAIN_METRIC])
    return tuple(scores)


def _search_rows(seeds: Sequence[int]) -> Iterator[Row]:
    """Yield a row for each search and length: it tries one kind, two or all, and gives up on the others."""
    for claim, read in ((32 * 1024, 32 * 1024), (CLAIM, 256 * 1024)):
        for search in SEARCHES:
            for size in CHUNKS if search != "regular expressions" else CHUNKS[:1]:
                scores = {
                    (kind, length): search_scores(search, size, kind, at, count)
                    for kind in KINDS
                    for length, at, count in ((SHORTEST, SHORTEST, 5 * PROMPTS), (claim, read, PROMPTS))
                }
                tried = chain.from_iterable(combinations(KINDS, number) for number in (1, 2, len(KINDS)))
                hits = [certify_search(scores, kinds, claim, seed) for kinds in tried for seed in seeds]
                about = f"{search}, chunks of {size} characters, claim {claim // 1024}k, one kind, two or all"
                yield about, f"{sum(hits)} of {len(hits)} certified"


def certify_search(
    scores: Mapping[tuple[str, int], Sequence[float]], kinds: Sequence[str], claim: int, seed: int
) -> bool:
    """Return whether a search that tries only some kinds is certified."""

    def draw(block: Block, random: Random) -> float:
        # Lengths between the two have at least the score of the claim; they do not matter to it.
        length = SHORTEST if block.length == SHORTEST else claim
        return random.choice(scores[block.kind, length]) if block.kind in kinds else 0.0

    return run(Design(claim, SHORTEST, KINDS, seed=1000 * seed), draw_answers(draw, seed)).holds is True


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


def _rate_lengths(score: float, curve: Sequence[float], rounds: int, seed: int, questions: int = 100) -> str:
    random, too_long, covered, sizes = np.random.default_rng(seed), 0, 0, []
    for _ in range(10 * rounds):
        chances = dict(zip((4, 8, 16, 32), (score, *(part * score for part in curve)), strict=True))
        intervals = {at: mean_interval((random.random(questions) < each).astype(float)) for at, each in chances.items()}
        means, possible = {at: each.mean for at, each in intervals.items()}, possible_lengths(intervals)
        too_long += (effective_length(means, share_of_shortest(means)) or 0) > 8
        covered += 8 in possible
        sizes.append(len(possible))
    shares = [each / (10 * rounds) for each in (too_long, covered)]
    return f"{shares[0]:.0%} too long; the truth is possible in {shares[1]:.1%}, of {fmean(sizes):.1f} lengths"
