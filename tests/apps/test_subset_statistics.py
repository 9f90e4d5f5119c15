"""Tests of the search for cheap subsets of made-up benchmarks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helm_longctx.apps.subset.command import (
    MOST_SETS,
    CellScores,
    Subset,
    _raise_wish,
    _sets,
    agreement,
    find_subset,
)
from helm_longctx.results.statistics.ranking import spearman


def made(noisy: float) -> CellScores:
    """Return scores of two tasks at two lengths that rank 40 models alike, and of an expensive third task that says nothing."""
    random = np.random.default_rng(0)
    skill = np.linspace(0.05, 0.95, 40)[:, None]
    columns = [skill + noisy * random.standard_normal((40, 2)) for _ in range(2)] + [
        0.5 + 0 * random.random((40, 2))
    ]
    table = np.clip(np.stack(columns, axis=1), 0, 1)
    price = np.array([[1.0, 16.0], [2.0, 32.0], [40.0, 640.0]])
    return CellScores(table, np.full((3, 2), 1000.0), price)


def test_the_cheapest_task_is_enough() -> None:
    """The subset has one task at its short length with a part of its questions, and never the task that says nothing."""
    scores = made(noisy=0.0)
    subset = find_subset(scores, 0.9, 0.25)
    assert subset
    assert (subset.rows, subset.columns) == ((0,), (0,))
    assert subset.share < 1
    assert subset.price == pytest.approx(subset.share / scores.price.sum())
    assert agreement(scores, subset, scores.table.mean(axis=(1, 2))).rho > 0.9


def test_fewer_questions_are_noisier() -> None:
    """A subset that must agree better with the whole costs more."""
    dear, cheap = (find_subset(made(noisy=0.02), wish, 1.0) for wish in (0.99, 0.8))
    assert dear
    assert cheap
    assert dear.price > cheap.price
    assert dear.agreement >= 0.99


def test_many_tasks_are_tried_in_small_sets() -> None:
    """Of thirty tasks, only the small sets and the whole are tried, and each is tried once."""
    sets = _sets(30)
    assert len({tuple(row) for row in sets.tolist()}) == len(sets) == MOST_SETS
    assert sets[:30].sum() == 30
    assert sets[-1].all()
    assert len(_sets(5)) == 31


def test_there_may_be_none() -> None:
    """No subset is found if the scores are only noise."""
    random = np.random.default_rng(0)
    scores = CellScores(
        random.random((20, 3, 2)), np.full((3, 2), 100.0), np.ones((3, 2))
    )
    assert find_subset(scores, 0.95, 0.25) is None


def test_all_questions_have_no_noise() -> None:
    """A score on all questions has no noise, and a score on fewer has the noise of right and wrong answers."""
    scores = CellScores(
        np.full((1, 1, 1), 0.5), np.full((1, 1), 100.0), np.ones((1, 1))
    )
    assert scores.noise(1.0).item() == 0
    assert scores.noise(0.25).item() == pytest.approx(
        np.sqrt(0.25 * (1 / 25 - 1 / 100))
    )
    assert scores.question_counts(0.01).item() == 10


def test_an_agreement_is_the_mean_of_thirty_draws() -> None:
    """The agreement of a subset is the mean over 30 draws of its questions, each with the noise of right and wrong answers."""
    scores = made(noisy=0.02)
    share = 0.05
    reference = scores.table.mean(axis=(1, 2))
    random = np.random.default_rng(7)
    # 50 of 1,000 questions are asked.
    deviations = np.sqrt(scores.table * (1 - scores.table) * (1 / 50 - 1 / 1000))
    draws = [
        scores.table + deviations * random.standard_normal((40, 3, 2))
        for _ in range(30)
    ]
    expected = np.mean([spearman(draw[:, 1, 0], reference).rho for draw in draws])
    agreed = agreement(scores, Subset((1,), (0,), share, 0.0, 0.0), reference, seed=7)
    assert agreed.rho == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("wish", [0.8, 0.9, 0.97])
def test_the_search_asks_for_more_than_the_wish(wish: float) -> None:
    """The interval of the correlation that the search asks for begins at the wish."""
    models = 30
    raised = _raise_wish(wish, models)
    half = 1.959964 * math.sqrt((1 + raised**2 / 2) / (models - 3))
    assert math.tanh(math.atanh(raised) - half) == pytest.approx(wish, abs=0.01)
