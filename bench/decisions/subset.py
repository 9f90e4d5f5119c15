"""How well subsets that `subset` writes rank other models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from bench.decisions.figures import Figure, figure
from numpy.typing import NDArray

from helm_longctx.apps.subset.command import (
    FEWEST_MODELS,
    CellScores,
    agreement,
    search_half,
)
from helm_longctx.results.statistics.ranking import spearman

Floats = NDArray[np.float64]

TASKS = 5
LENGTHS = 3
QUESTIONS = 100.0
MOST = 0.25
NEW_MODELS = 1000


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield how often a subset is written that ranks new models worse than it must."""
    random = np.random.default_rng(seed)
    for models in (FEWEST_MODELS, 40, 80):
        for wish in (0.8, 0.9):
            yield choose(models, wish, rounds, random)


def draw_models(models: int, spread: float, random: np.random.Generator) -> Floats:
    """Return true scores, shape (models, tasks, lengths): a skill, and what a model has in a task or a length alone."""
    skill = random.normal(size=(models, 1, 1))
    of_tasks = spread * random.normal(size=(models, TASKS, 1))
    of_lengths = spread * random.normal(size=(models, 1, LENGTHS))
    return np.asarray(1 / (1 + np.exp(-skill - of_tasks - of_lengths)))


def answer(truth: Floats, questions: float, random: np.random.Generator) -> Floats:
    """Return the shares of right answers to a number of questions."""
    return np.asarray(random.binomial(int(questions), truth) / int(questions))


def choose(
    models: int, wish: float, rounds: int, random: np.random.Generator
) -> Figure:
    """Return how often a subset is written whose rank correlation on new models is below the wish."""
    shape = (TASKS, LENGTHS)
    price = np.broadcast_to(4.0 ** np.arange(LENGTHS), shape)
    written = []
    wrong = []
    before = []
    for number in range(rounds):
        spread = random.uniform(0.2, 1.2)
        table = answer(draw_models(models, spread, random), QUESTIONS, random)
        scores = CellScores(table, np.full(shape, QUESTIONS), price)
        subset, rest = search_half(scores, wish, MOST, number)
        if subset is None:
            written.append(False)
            wrong.append(False)
            before.append(False)
            continue
        check = agreement(rest, subset, rest.table.mean(axis=(1, 2)))
        truth = draw_models(NEW_MODELS, spread, random)
        whole = answer(truth, QUESTIONS, random).mean(axis=(1, 2))
        part = answer(truth, max(QUESTIONS * subset.share, 1), random)
        of_subset = part[:, subset.rows][:, :, subset.columns].mean(axis=(1, 2))
        is_worse = spearman(of_subset, whole).rho < wish
        written.append(check.low >= wish)
        wrong.append(check.low >= wish and is_worse)
        before.append(check.rho >= wish and is_worse)
    return figure(
        f"`subset --agreement {wish:g}`, {models} models: written, and below it on new models",
        "at most 5 %",
        wrong,
        f"written {np.mean(written):.0%}; by the value without its interval {np.mean(before):.1%}",
    )
