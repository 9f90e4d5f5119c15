"""Rankings are compared with numbers computed by hand and with the best of all orders."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from helm_longctx.results.statistics.comparison import (
    compare_intervals,
    compare_pairs,
    find_differences,
)
from helm_longctx.results.statistics.intervals import mean_interval
from helm_longctx.results.statistics.ranking import (
    Rank,
    rank_ranges,
)
from tests.results.statistics.simulation import Field


def ranks_of(scores: dict[str, list[int]]) -> dict[str, Rank]:
    pairs = {
        (one, other): compare_pairs(scores[one], scores[other])
        for one, other in combinations(scores, 2)
    }
    return rank_ranges(
        {model: np.mean(model_scores) for model, model_scores in scores.items()},
        find_differences(pairs),
    )


@pytest.mark.parametrize("n", [10, 200])
def test_one_instance_makes_no_rank_certain(n: int) -> None:
    """One wrong answer makes no rank certain; the bootstrap gave "1 to 1" and "2 to 2", although p is above 0.5."""
    ranks = ranks_of({"a": [1] * n, "b": [1] * (n - 1) + [0]})
    assert ranks == {"a": Rank(1, 1, 2), "b": Rank(2, 1, 2)}


def test_ranges_of_ranks() -> None:
    """A clear winner has rank 1 alone, and equal models share the best of their ranks."""
    ranks = ranks_of({"a": [1] * 100, "b": [0, 1] * 50, "c": [1, 0] * 50})
    assert ranks == {"a": Rank(1, 1, 1), "b": Rank(2, 2, 3), "c": Rank(2, 2, 3)}
    assert rank_ranges({"a": 0.3, "b": 0.1 + 0.2}, {}) == {
        "a": Rank(1, 1, 2),
        "b": Rank(1, 1, 2),
    }


@pytest.mark.parametrize(("models", "rounds"), [(3, 300), (12, 60)])
@pytest.mark.parametrize("is_shared", [True, False])
def test_ranges_contain_the_true_ranks(
    models: int, rounds: int, is_shared: bool
) -> None:
    """The ranges of all models contain their true ranks in at least 95 % of rounds, with an allowance for the number of rounds."""
    chances = tuple(0.9 - 0.02 * position for position in range(models))
    right = Field(chances, 200, is_shared).rank_coverage(rounds, seed=6)
    assert right >= 0.95 - 2.6 * np.sqrt(0.05 * 0.95 / rounds)


def test_comparisons_of_a_family_are_decided_together() -> None:
    """Comparisons that are decided together are one family, paired or by intervals, and each makes the other's p-values larger."""
    a = [1] * 60
    b = [1] * 48 + [0] * 12
    paired = compare_pairs(a, b)
    published = compare_intervals(mean_interval(a), mean_interval([1] * 50 + [0] * 10))
    decisions = find_differences(
        {("a", "b"): paired, ("a", "published"): published, ("b", "published"): paired}
    )
    assert decisions["a", "published"].adjusted > published.p_value
    assert decisions["a", "b"].adjusted == pytest.approx(3 * paired.p_value)
