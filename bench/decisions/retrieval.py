"""Certificates of a retrieval in front of a short model.

At the shortest length the model reads everything. At the claim a search finds as many tokens as the model's window has,
in texts of 128k, and the model reads them without a mistake, or with as many mistakes as at the shortest length. It tries
all kinds of questions, or one kind alone.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from random import Random
from statistics import fmean
from typing import NamedTuple

from bench.decisions.certify import CLAIM, DESIGN, SHORTEST, draw_answers
from bench.decisions.figures import Figure, figure
from tests.support.certifying import KINDS
from tests.support.endpoints import Messages
from tests.support.searching import CHUNKS, SearchingModel

from helm_longctx.apps.certify.answers import AskedBlock
from helm_longctx.apps.certify.procedure import run
from helm_longctx.apps.certify.search import Design
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import MAIN_METRIC, Settings, Task

READ = 128 * 1024
"""Tokens of the prompts that are searched. A search in 1m finds less."""

CLAIMS = (READ, CLAIM)

PROMPTS = 2
"""Number of prompts of each kind."""

WINDOWS = (8 * 1024, 30 * 1024)

SEARCHES = (
    *product(("BM25",), CHUNKS),
    ("rare words", CHUNKS[0]),
    ("regular expressions", 0),
)
"""Each search and the size of its chunks in characters."""

SKILLS = (1.0, 0.8)
"""The share of the answers that the model reads without a mistake."""

TRIED = (KINDS, *((kind,) for kind in KINDS))

Scores = Mapping[str, list[float]]
"""The scores of each kind at the claim."""


class Attempt(NamedTuple):
    """A search in front of a model.

    Args:
        kinds: the kinds of questions that it tries.
        skill: the share of the answers that the model reads without a mistake.
    """

    scores: Scores
    kinds: tuple[str, ...]
    skill: float

    @property
    def loss(self) -> float:
        """Return the loss from the shortest length to the claim, as a mean over the kinds that are tried."""
        kept = fmean(fmean(self.scores[kind]) for kind in self.kinds)
        return self.skill * (1 - kept)


MOST_ROUNDS = 1000
"""About the most certificates of a row. Each plans its tests anew."""


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield how often a short model with a search is called effective at the claim, although it loses 20 points."""
    logging.getLogger("bm25s").setLevel(logging.ERROR)
    prompts = list(read_prompts())
    for window in WINDOWS:
        searched = [
            score_search(prompts, search, size, window) for search, size in SEARCHES
        ]
        best = max(fmean(map(fmean, scores.values())) for scores in searched)
        attempts = [
            Attempt(scores=scores, kinds=kinds, skill=skill)
            for scores, kinds, skill in product(searched, TRIED, SKILLS)
        ]
        losing = [attempt for attempt in attempts if attempt.loss >= DESIGN.loss]
        number = math.ceil(min(rounds, MOST_ROUNDS) / len(losing))
        for claim in CLAIMS:
            hits = [
                certify(attempt, claim, of_seed)
                for attempt, of_seed in product(losing, range(seed, seed + number))
            ]
            yield figure(
                f"certificate of {claim // 1024}k for a window of {window // 1024}k"
                " behind a search",
                "called effective: at most 5 %",
                hits,
                f"{len(losing)} of {len(attempts)} searches, kinds and scores at 4k lose"
                f" at least 20 points; the best search scores {100 * best:.0f} % in 128k",
            )


class Prompt(NamedTuple):
    """A real prompt of a kind."""

    task: Task
    messages: Messages
    references: Sequence[str]


def read_prompts() -> Iterator[Prompt]:
    """Yield a few prompts of each kind."""
    tasks = {task.name: task for task in find_benchmark("fresh_text").tasks}
    settings = Settings(READ, seed=9, num_samples=PROMPTS)
    for kind in KINDS:
        task = tasks[kind]
        for example in task.load(task, settings, DataRoot.find(".")):
            yield Prompt(task, task.prompt(example).messages, example.references)


def score_search(
    prompts: Sequence[Prompt], search: str, size: int, window: int
) -> Scores:
    """Return the scores of a model that reads what a search finds, without a mistake."""
    model = SearchingModel(search, KINDS, size or CHUNKS[0], window)
    scores: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for prompt in prompts:
        answer, _ = model.answer(prompt.messages)
        record = {"prediction": answer, "references": prompt.references}
        scores[prompt.task.name].append(prompt.task.scores(record)[MAIN_METRIC])
    return scores


def certify(attempt: Attempt, claim: int, seed: int) -> bool:
    """Return whether an attempt is certified."""
    design = Design(claim, SHORTEST, KINDS, seed=1000 * seed)
    return run(design, draw_answers(partial(_answer, attempt), seed)).holds is True


def _answer(attempt: Attempt, block: AskedBlock, random: Random) -> float:
    if block.kind not in attempt.kinds or random.random() >= attempt.skill:
        return 0.0
    if block.length == SHORTEST:
        return 1.0
    return random.choice(attempt.scores[block.kind])
