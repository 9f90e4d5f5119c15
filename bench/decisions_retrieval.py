"""Certificates of a retrieval in front of a short model; see `decisions.py`.

At the shortest length the model reads everything. At the claim a search finds as many tokens as the model's window has,
in texts of 128k, and the model reads them without a mistake, or with as many mistakes as at the shortest length. It tries
all kinds of questions, or one kind alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from random import Random
from statistics import fmean

from decisions_certify import CLAIM, SHORTEST, draw_answers
from simulation import Figure, figure
from tests.support.certifying import KINDS
from tests.support.searching import CHUNKS, SearchingModel

from helm_longctx.apps.certify.answers import AskedBlock
from helm_longctx.apps.certify.procedure import run
from helm_longctx.apps.certify.search import Design
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import MAIN_METRIC, Settings

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


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield how often a short model with a search is called effective at the claim."""
    logging.getLogger("bm25s").setLevel(logging.ERROR)
    seeds = range(seed, seed + max(rounds // 400, 1))
    for window in WINDOWS:
        every = [read_scores(search, size, window) for search, size in SEARCHES]
        best = max(fmean(fmean(scores) for scores in each.values()) for each in every)
        for claim, skill in product(CLAIMS, SKILLS):
            cases = product(every, TRIED, seeds)
            hits = [
                certify(scores, kinds, claim, skill, number)
                for scores, kinds, number in cases
            ]
            yield figure(
                f"certificate of {claim // 1024}k for a window of {window // 1024}k behind a search, a score of"
                f" {skill:g} at 4k",
                "called effective: at most 5 %",
                hits,
                f"the best search scores {100 * best:.0f} % in 128k",
            )


def read_scores(search: str, size: int, window: int) -> Scores:
    """Return the scores of the answers to real prompts."""
    found = {}
    tasks = {task.name: task for task in find_benchmark("fresh_text").tasks}
    for kind in KINDS:
        task = tasks[kind]
        model = SearchingModel(search, [kind], size or CHUNKS[0], window)
        scores = []
        settings = Settings(READ, seed=9, num_samples=PROMPTS)
        for example in task.load(task, settings, DataRoot.find(".")):
            answer, _ = model.answer(task.prompt(example).messages)
            record = {"prediction": answer, "references": example.references}
            scores.append(task.scores(record)[MAIN_METRIC])
        found[kind] = scores
    return found


def certify(
    scores: Scores, kinds: tuple[str, ...], claim: int, skill: float, seed: int
) -> bool:
    """Return whether a model that tries only some kinds is certified."""
    design = Design(claim, SHORTEST, KINDS, seed=1000 * seed)
    answer = partial(_answer, scores, kinds, skill)
    return run(design, draw_answers(answer, seed)).holds is True


def _answer(
    scores: Scores,
    kinds: tuple[str, ...],
    skill: float,
    block: AskedBlock,
    random: Random,
) -> float:
    if block.kind not in kinds or random.random() >= skill:
        return 0.0
    return 1.0 if block.length == SHORTEST else random.choice(scores[block.kind])
