"""The pooled ranking is compared with statsmodels and checked by simulation."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from helm_longctx.apps.pooling.sections import PRIOR, pool


def test_the_strengths_are_those_of_a_logistic_regression() -> None:
    """The strengths of the Plackett-Luce model are the coefficients of a logistic regression on differences of indicators."""
    import statsmodels.api as sm

    random = np.random.default_rng(0)
    table = random.random((4, 60)).round(1) + np.array([[0.0], [0.1], [0.2], [0.3]])
    pooled_scores = pool(
        {str(model): row for model, row in enumerate(table)}, range(60)
    )
    rows = []
    wins = []
    for i, j in combinations(range(4), 2):
        rows.append([(model == i) - (model == j) for model in range(1, 4)])
        wins.append(
            [
                (table[k] > table[other]).sum() + PRIOR / 3
                for k, other in ((i, j), (j, i))
            ]
        )
    fit = sm.GLM(np.array(wins), np.array(rows), family=sm.families.Binomial()).fit()
    strengths = np.array(
        [strength.mean for strength in pooled_scores.strengths.values()]
    )
    assert strengths[1:] - strengths[0] == pytest.approx(fit.params, abs=1e-4)
    assert strengths.sum() == pytest.approx(0, abs=1e-6)


def test_equal_models_are_seldom_told_apart() -> None:
    """Equal models seldom get different ranks, with a fifth of the scores missing and questions of different difficulty."""
    random = np.random.default_rng(1)
    wrong = 0
    covered = 0
    for _ in range(200):
        difficulty = random.random(150)
        scores = {
            str(model): np.where(
                random.random(150) < 0.2, np.nan, random.random(150) < difficulty
            )
            for model in range(5)
        }
        pooled_scores = pool(scores, range(150))
        wrong += any(
            (rank.low, rank.high) != (1, 5) for rank in pooled_scores.ranks.values()
        )
        covered += (
            pooled_scores.strengths["0"].low <= 0 <= pooled_scores.strengths["0"].high
        )
    assert wrong / 200 <= 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / 200)
    assert 0.9 <= covered / 200 <= 0.99


def test_missing_suites() -> None:
    """Two models without a common instance are ranked by means of a third one, although one answered only hard questions."""
    nan = [math.nan] * 200
    random = np.random.default_rng(2)
    easy = random.random((2, 200)) < 0.9
    hard = random.random((2, 200)) < 0.4
    scores = {
        "only easy": [*(easy[0] * 0.5), *nan],
        "both": [*(easy[1] * 0.6), *(hard[1] * 0.4)],
        "only hard": [*nan, *(hard[0] * 0.5)],
    }
    pooled_scores = pool(scores, range(400))
    assert [rank.rank for rank in pooled_scores.ranks.values()] == [3, 2, 1]
    assert pooled_scores.ranks["only hard"].high == 1
    agreement = pooled_scores.agreement(
        {
            model: float(np.nanmean(model_scores))
            for model, model_scores in scores.items()
        }
    )
    assert agreement.rho < 0


def test_few_wins_are_not_certain() -> None:
    """Five wins of five do not make a rank certain, and they give a finite strength."""
    pooled_scores = pool({"a": [1] * 5, "b": [0] * 5}, range(5))
    assert all((rank.low, rank.high) == (1, 2) for rank in pooled_scores.ranks.values())
    assert pooled_scores.strengths["a"].mean < 5
    with pytest.raises(ValueError, match="differs from no other model"):
        pool({"a": [1, 1], "b": [0, 0], "c": [math.nan] * 2}, range(2))


def test_two_models_differ_if_an_interval_excludes_zero() -> None:
    """The strengths of two models are opposite numbers, so their ranks are certain if the interval of one excludes 0."""
    certain = set()
    for wins in range(8, 36):
        scores = {"a": [1] * wins + [0] * 9, "b": [0] * wins + [1] * 9}
        pooled_scores = pool(scores, range(wins + 9))
        rank = pooled_scores.ranks["a"]
        is_certain = rank.low == rank.high
        assert is_certain == (pooled_scores.strengths["a"].low > 0), wins
        certain.add(is_certain)
    assert certain == {True, False}


def test_groups_count_once() -> None:
    """The same wins at six depths of a question are as uncertain as at one depth."""
    random = np.random.default_rng(3)
    a, b = random.random((2, 40))
    once = pool({"a": a, "b": b}, range(40))
    copied = pool({"a": np.tile(a, 6), "b": np.tile(b, 6)}, list(range(40)) * 6)
    widths = [
        pooling.strengths["a"].high - pooling.strengths["a"].low
        for pooling in (once, copied)
    ]
    assert widths[1] == pytest.approx(widths[0], rel=0.1)


def test_failures_of_wrong_answers_give_no_rank() -> None:
    """Of two equal models, the one whose wrong answers fail seems stronger, but no rank is certain, and the pair is named."""
    random = np.random.default_rng(3)
    one = (random.random(300) < 0.5).astype(float)
    other = np.where(random.random(300) < 0.5, 1.0, np.nan)
    scores = {"one": one, "other": other}
    groups = list(range(300))
    assert pool(scores, groups).ranks["other"].high == 1
    failed = {"one": np.zeros(300, bool), "other": np.isnan(other)}
    pooled_scores = pool(scores, groups, failed)
    assert pooled_scores.ranks["other"].high == 2
    assert pooled_scores.open_pairs == (("one", "other"),)
