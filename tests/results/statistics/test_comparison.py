"""Paired comparisons are compared with scipy and with numbers computed by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from helm_longctx.results.statistics.comparison import (
    _EQUAL,
    FAILURES_DECIDE,
    AskedPairs,
    Comparison,
    Pairs,
    compare_intervals,
    compare_intervals_with_failures,
    compare_pairs,
    compare_parts,
    decide_all,
    find_differences,
    holm,
    smallest_shares,
)
from helm_longctx.results.statistics.intervals import Floats, Interval
from tests.results.statistics.simulation import (
    KINDS,
    Case,
    Field,
    cases,
    effect_coverage,
    false_positives,
)


@pytest.mark.parametrize("wins", range(4, 40))
@pytest.mark.parametrize("losses", [0, 2, 10])
def test_differences_of_one_size_agree_with_the_exact_test(
    wins: int, losses: int
) -> None:
    """The p-value is near the exact and the mid-p value of McNemar's test, also in the tail."""
    from scipy.stats import binomtest
    from statsmodels.stats.contingency_tables import mcnemar

    scores = np.array([1] * wins + [-1] * losses + [0] * 50)
    p_value = compare_pairs(scores, np.zeros(len(scores))).p_value
    exact = mcnemar([[50, wins], [losses, 0]], exact=True).pvalue
    assert exact == pytest.approx(min(1.0, binomtest(wins, wins + losses).pvalue))
    assert exact / 2.2 <= p_value <= max(1.6 * exact, exact**0.75)


def test_many_differences_agree_with_scipy() -> None:
    """The p-value of many differences is equal to the p-value of scipy's permutation test."""
    from scipy.stats import permutation_test

    random = np.random.default_rng(0)
    a = random.random(200)
    b = random.random(200) + 0.05
    expected = permutation_test(
        (a - b,), np.mean, permutation_type="samples", n_resamples=9999, random_state=1
    ).pvalue
    result = compare_pairs(a, b)
    assert result.p_value == pytest.approx(expected, abs=0.02)
    assert result.effect.mean == pytest.approx((a - b).mean())
    assert compare_pairs(b, a).p_value == pytest.approx(result.p_value)


def test_the_interval_of_an_effect_is_that_of_statsmodels() -> None:
    """The interval of many independent differences is equal to statsmodels' one."""
    from statsmodels.stats.weightstats import DescrStatsW

    differences = np.random.default_rng(3).normal(0.1, 0.3, 2000).clip(-1, 1)
    effect = compare_pairs(differences, np.zeros(2000)).effect
    assert (effect.low, effect.high) == pytest.approx(
        DescrStatsW(differences).tconfint_mean(), abs=2e-4
    )


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 0.25, 1 / 3, 1]),
            st.sampled_from([0, 0.5, 1]),
            st.integers(0, 6),
        ),
        min_size=1,
    )
)
def test_the_p_value_agrees_with_the_interval(
    rows: list[tuple[float, float, int]],
) -> None:
    """The p-value is below 0.05 if and only if 0 is outside the interval, and the interval always has a width."""
    for groups in (None, [group for *_, group in rows]):
        result = compare_pairs([a for a, *_ in rows], [b for _, b, _ in rows], groups)
        effect = result.effect
        assert (result.p_value < 0.05) == (effect.low > 0 or effect.high < 0)
        assert effect.low <= effect.mean <= effect.high
        assert effect.high - effect.low > 1e-3


INTERVALS = st.tuples(
    st.floats(0.1, 0.9), st.floats(0, 0.1), st.floats(0, 0.1), st.integers(0, 900)
).map(
    lambda numbers: Interval(
        numbers[0], numbers[0] - numbers[1], numbers[0] + numbers[2], numbers[3]
    )
)


@given(INTERVALS, INTERVALS)
def test_published_scores_agree_with_their_interval(
    one: Interval, other: Interval
) -> None:
    """The p-value of two published scores is below 0.05 if and only if the interval of their difference excludes 0."""
    result = compare_intervals(one, other)
    reverse = compare_intervals(other, one)
    assert (result.p_value < 0.05) == (result.effect.low > 0 or result.effect.high < 0)
    assert result.p_value == pytest.approx(reverse.p_value)
    assert result.effect.low == pytest.approx(-reverse.effect.high)


def test_published_scores_agree_with_statsmodels() -> None:
    """Two published shares of right answers differ by Newcombe's interval, with half an answer of each added for the steps."""
    from scipy.stats import chi2_contingency
    from statsmodels.stats.proportion import (
        confint_proportions_2indep,
        proportion_confint,
    )

    one, other = (
        Interval(right / 400, *proportion_confint(right, 400, method="wilson"), 400)
        for right in (300, 260)
    )
    result = compare_intervals(one, other)
    low, high = confint_proportions_2indep(
        300, 400, 260, 400, method="newcomb", compare="diff"
    )
    assert (result.effect.low, result.effect.high) == pytest.approx(
        (low - 1 / 400, high + 1 / 400)
    )
    expected = chi2_contingency([[300, 100], [260, 140]], correction=True).pvalue
    assert result.p_value == pytest.approx(expected, rel=0.1)
    assert math.isnan(
        compare_intervals(one, Interval(0.5, math.nan, math.nan, 0)).p_value
    )


def test_a_certain_difference_is_found_among_many_models() -> None:
    """A model with 600 of 600 right answers differs from one with 0 of 600 among 65 models; a floor of 1 / 10,000 hid that."""
    certain = compare_pairs([1] * 600, [0] * 600)
    assert certain.p_value < 1e-100
    others = {
        (f"model {number}", "other"): Comparison(certain.effect, 0.5)
        for number in range(65 * 64 // 2 - 1)
    }
    decisions = find_differences({("best", "worst"): certain, **others})
    assert decisions["best", "worst"].is_different
    assert not any(
        decision.is_different
        for pair, decision in decisions.items()
        if pair != ("best", "worst")
    )


def test_missing_p_values_are_ties() -> None:
    """Missing p-values are ties, and do not count as tests."""
    unknown = Comparison(Interval(0.5, math.nan, math.nan, 0), math.nan)
    decisions = find_differences(
        {("a", "b"): compare_pairs([1] * 7, [0] * 7), ("a", "c"): unknown}
    )
    assert decisions["a", "b"].adjusted == decisions["a", "b"].comparison.p_value < 0.05
    assert not decisions["a", "c"].is_different


@pytest.mark.parametrize(("models", "rounds"), [(2, 800), (10, 100), (30, 20)])
@pytest.mark.parametrize("is_shared", [True, False])
def test_equal_models_are_seldom_told_apart(
    models: int, rounds: int, is_shared: bool
) -> None:
    """Any two equal models are told apart in at most 5 % of rounds, with an allowance for the number of rounds."""
    error = Field((0.8,) * models, 100, is_shared).family_error(rounds, seed=4)
    assert error <= 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / rounds)


@pytest.mark.parametrize(
    "case", [Case("right or wrong", 0.5, 100, 6, 0.3), Case("skewed", 0.5, 100, 1, 0)]
)
def test_the_test_is_not_too_cautious(case: Case) -> None:
    """Two equally good models differ in about 5 % of rounds if there are many clusters."""
    assert 0.02 <= false_positives(case, 500, seed=5) <= 0.075


def test_clusters_make_a_test_less_sure() -> None:
    """The same difference at six depths of a question counts as one difference."""
    a = np.ones(30)
    b = np.array([0] * 4 + [1] * 26)
    alone = compare_pairs(a, b)
    copied = compare_pairs(np.tile(a, 6), np.tile(b, 6), list(range(30)) * 6)
    assert copied.p_value == pytest.approx(alone.p_value)
    assert compare_pairs(np.tile(a, 6), np.tile(b, 6)).p_value < alone.p_value
    assert copied.effect.low == pytest.approx(alone.effect.low)


def test_models_that_never_differ() -> None:
    """Models that never differ have the effect 0, and its interval is narrower with more instances."""
    few = compare_pairs([1] * 10, [1] * 10)
    many = compare_pairs([1] * 1000, [1] * 1000)
    assert few.p_value == many.p_value == 1
    assert few.effect.low < many.effect.low < 0 < many.effect.high
    assert math.isnan(compare_pairs([], []).effect.mean)


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        (_EQUAL, (0, 0, 1)),
        (2 * _EQUAL, (1, 0, 0)),
        (-_EQUAL, (0, 0, 1)),
        (-2 * _EQUAL, (0, 1, 0)),
    ],
)
def test_differences_of_rounding_are_ties(
    difference: float, expected: tuple[int, int, int]
) -> None:
    """A difference counts as a win or a loss only if it is larger than what rounding makes."""
    comparison = compare_pairs([max(difference, 0.0)], [max(-difference, 0.0)])
    assert (comparison.wins, comparison.losses, comparison.ties) == expected


def test_parts_have_their_weights_whatever_their_sizes() -> None:
    """The effect is the weighted mean of the parts' differences, and instances are counted without weights."""
    parts = [
        Pairs([1, 1, 0, 0], [0, 0, 0, 0], "abcd", 0.25),
        Pairs([0.0], [1.0], "e", 0.75),
    ]
    comparison = compare_parts(parts)
    assert comparison.effect.mean == pytest.approx(0.25 * 0.5 - 0.75)
    assert (
        comparison.wins,
        comparison.losses,
        comparison.ties,
        comparison.effect.n,
    ) == (2, 1, 2, 5)


def test_holm() -> None:
    """Adjusted p-values are equal to the example in Holm's paper, and never decrease."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    adjusted = holm([math.nan, 0.02])
    assert math.isnan(adjusted[0])
    assert adjusted[1] == 0.02


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("clusters", "size"), [(5, 1), (10, 6), (100, 1)])
def test_intervals_of_differences_cover(kind: str, clusters: int, size: int) -> None:
    """Intervals contain the true difference as often as they say, even if few instances differ, and these differ by little."""
    for case in cases(kind, clusters, size):
        assert effect_coverage(case, 200, seed=6) >= 0.93 - 2.6 * math.sqrt(
            0.93 * 0.07 / 200
        ), case


def test_few_small_differences_do_not_show_the_large_ones() -> None:
    """Ten small differences prove nothing about the mean, and hundreds do."""
    few = compare_pairs([0.01] * 10, [0.0] * 10)
    many = compare_pairs([0.01] * 400, [0.0] * 400)
    assert few.effect.low < 0 < few.effect.high < 0.2
    assert many.effect.low > 0


@pytest.mark.parametrize(("wins", "n"), [(5, 5), (3, 20), (30, 100)])
def test_two_clusters_are_added_to_the_variance(wins: int, n: int) -> None:
    """The statistic of wins alone is their number over the root of the wins and two more."""
    expected = 2 * norm.sf(wins / math.sqrt(wins + 2))
    assert compare_pairs(
        [1.0] * wins + [0.0] * (n - wins), [0.0] * n
    ).p_value == pytest.approx(expected)


def test_few_clusters_limit_the_statistic() -> None:
    """One book with half of the weight limits the statistic, although a hundred others agree that a model is better.

    The book shows no difference, but by the next sample of books another one can have its place.
    """
    book = Pairs([1.0] * 50, [1.0] * 50, ["book"] * 50, 0.5)
    others = Pairs([1.0] * 100, [0.0] * 100, [*map(str, range(100))], 0.5)
    limit = 1 / math.sqrt(0.5**2 + 100 * 0.005**2)
    assert compare_parts([book, others]).p_value == pytest.approx(2 * norm.sf(limit))


RULES: dict[str, Callable[[Floats, Floats], NDArray[np.bool_]]] = {
    "wrong answers": lambda right, draws: (right == 0) & (draws < 0.9),
    "right answers": lambda right, draws: (right == 1) & (draws < 0.9),
    "some right answers": lambda right, draws: (right == 1) & (draws < 0.1),
    "at random": lambda right, draws: draws < 0.3,
    "a part of the questions": lambda right, draws: np.arange(len(draws)) % 3 == 0,
}


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_of_failing_makes_one_of_two_equal_models_better(rule: str) -> None:
    """Whatever decides which questions of one model fail, equal models are called different in about 5 % at most."""
    random = np.random.default_rng(1)
    different = 0
    groups = list(range(150))
    for _ in range(200):
        scores = (random.random((2, 150)) < 0.6).astype(float)
        failed = RULES[rule](scores[1], random.random(150))
        answers = np.where(failed, math.nan, scores[1])
        asked = AskedPairs(
            a=list(scores[0]),
            b=list(answers),
            a_failed=[0.0] * 150,
            b_failed=list(failed.astype(float)),
            groups=groups,
        )
        pairs = Pairs(
            a=scores[0][~failed],
            b=scores[1][~failed],
            groups=list(np.flatnonzero(~failed)),
            weight=1.0,
            asked=asked,
        )
        different += decide_all([compare_parts([pairs])])[0].is_different
    assert different / 200 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def test_means_with_failures_hold_in_each_case() -> None:
    """Published and own means differ only if failures as wrong and as right would not change that."""
    own = Interval(0.9, 0.85, 0.94, 200)
    other = Interval(0.7, 0.63, 0.76, 200)
    assert (
        decide_all([compare_intervals_with_failures(own, other, 0.0, 0.0)])[0].verdict
        == "better"
    )
    comparison = compare_intervals_with_failures(own, other, 0.25, 0.0)
    assert comparison.failures is not None
    assert comparison.failures.as_wrong.effect.mean == pytest.approx(0.9 * 0.75 - 0.7)
    assert decide_all([comparison])[0].verdict == FAILURES_DECIDE


def test_shares_that_a_sign_test_finds() -> None:
    """Six signs must all be positive, so 97 % of them are comparison with 80 %; with five nothing is."""
    assert smallest_shares(6, 0.025) == (0.97, 0.97)
    assert smallest_shares(5, 0.025) == (None, None)
    exact, noisy = smallest_shares(20, 0.025)
    assert exact is not None
    assert noisy is not None
    assert 0.3 < exact < 0.5 < noisy < 0.9
