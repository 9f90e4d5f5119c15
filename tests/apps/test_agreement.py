"""Tests of agreement coefficients against worked examples and definitions, and of undefined coefficients."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.apps.judge_checks.measures import (
    agreement,
    agreement_of_all,
    pairwise,
)
from helm_longctx.apps.judge_checks.tables import (
    alpha_interval,
    kappas,
    ordinal_alphas,
    table_interval,
    weighted_kappas,
)
from helm_longctx.tasks.judge_scores import cohen_kappa, krippendorff_alpha

NAN = math.nan
# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section E: four observers, twelve units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]


def counted(table: list[list[int]]) -> tuple[list[int], list[int]]:
    """Return the ratings of two raters with these counts."""
    cells = [
        (a, b)
        for a, row in enumerate(table)
        for b, count in enumerate(row)
        for _ in range(count)
    ]
    return [a for a, _ in cells], [b for _, b in cells]


def test_a_textbook_table() -> None:
    """A textbook table of 50 items (agreement 0.7, by chance 0.5) has kappa 0.4."""
    agreed = agreement(*counted([[15, 10], [5, 20]]))
    assert agreed.n == 50
    assert agreed.same.value == pytest.approx(0.7)
    assert agreed.kappa.value == pytest.approx(0.4)
    assert agreed.weighted_kappa.value == pytest.approx(
        0.4
    )  # of two grades it is the same
    assert agreed.kappa.low < 0.4 < agreed.kappa.high
    assert agreed.same.low < 0.7 < agreed.same.high
    assert agreed.note == ""


@pytest.mark.parametrize(
    ("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorffs_example(level: str, alpha: float) -> None:
    """Krippendorff's alpha equals the published values."""
    assert krippendorff_alpha(OBSERVERS, level) == pytest.approx(alpha, abs=5e-4)


def test_many_raters() -> None:
    """The alpha of several raters is over units that two of them rated, and kappa exists for two raters only."""
    overall = agreement_of_all(OBSERVERS)
    assert (overall.n, overall.alpha.value) == (11, pytest.approx(0.815, abs=5e-4))
    assert math.isnan(overall.kappa.value)
    assert overall.alpha.low < 0.815 < overall.alpha.high
    raters = dict(zip("abcd", OBSERVERS, strict=True))
    assert [who for who, _ in pairwise(raters, "abc")][-2:] == ["c / d", "all 3 judges"]
    assert [who for who, _ in pairwise(raters, "ab")] == [
        "a / b",
        "a / c",
        "a / d",
        "b / c",
        "b / d",
        "c / d",
    ]


def test_the_interval_of_a_jury_is_right_for_uneven_grades() -> None:
    """Where a tenth of the grades is rare, a bootstrap of 20 items was right in two of three samples."""
    random = np.random.default_rng(3)
    shares = [0.1, 0.9]
    truth = 0.3
    hits = 0
    for _ in range(60):
        right = random.choice(2, size=20, p=shares)
        guess = random.choice(2, size=(3, 20), p=shares)
        ratings = np.where(random.random(20) < truth, right, guess).astype(float)
        if np.ptp(ratings):
            low, high = alpha_interval(ratings)
            hits += low <= truth <= high
    assert hits >= 54
    two = np.array(counted([[15, 10], [5, 20]]), dtype=float)
    assert alpha_interval(two) == pytest.approx(
        table_interval(*two, ordinal_alphas), abs=0.04
    )


def test_the_interval_of_scores_is_right_for_few_items() -> None:
    """Scores that are no grades have an interval from twenty items on, which is right; a bootstrap's was too narrow."""
    random = np.random.default_rng(6)
    hits = 0
    for _ in range(100):
        right = random.normal(size=20)
        scores = right + random.normal(size=(2, 20))
        alpha = agreement(scores[0], scores[1]).alpha
        hits += alpha.low <= 0.5 <= alpha.high
    assert hits >= 89
    with_gap = scores.copy()
    with_gap[0, 0] = NAN
    alpha = agreement_of_all([*with_gap, scores[1] + 0.1]).alpha
    assert alpha.low < alpha.value < alpha.high
    few = agreement(scores[0, :19], scores[1, :19])
    assert math.isnan(few.alpha.low)
    assert "fewer than 20 items: no interval" in few.note


GRADES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=40
)


@settings(max_examples=60)
@given(GRADES)
def test_weighted_kappa_by_its_definition(pairs: list[tuple[int, int]]) -> None:
    """Weighted kappa equals one minus the ratio of squared distances to those by chance, also if a grade never occurs."""
    first, second = np.array(pairs, dtype=float).T
    chance = ((first[:, None] - second[None, :]) ** 2).mean()
    kappa = cohen_kappa(first / 3, second / 3, "quadratic")
    if len(np.unique(np.concatenate([first, second]))) == 1:
        assert math.isnan(kappa)
    else:
        assert kappa == pytest.approx(1 - ((first - second) ** 2).mean() / chance)


@settings(max_examples=60)
@given(GRADES, st.permutations(range(4)))
def test_order_and_names_of_grades(
    pairs: list[tuple[int, int]], names: list[int]
) -> None:
    """Kappa is symmetric and at most 1, and without weights it does not depend on the names of grades."""
    first, second = np.array(pairs, dtype=float).T
    kappa = cohen_kappa(first, second)
    renamed = cohen_kappa(
        [names[int(a)] for a in first], [names[int(b)] for b in second]
    )
    assert kappa == pytest.approx(cohen_kappa(second, first), nan_ok=True)
    assert kappa == pytest.approx(renamed, nan_ok=True)
    assert math.isnan(kappa) or kappa <= 1 + 1e-9


def test_missing_verdicts_are_no_zeros() -> None:
    """Items that one rater did not rate are left out and do not count as zero."""
    agreed = agreement([0, 1, NAN, 1, 0], [0, 1, 1, NAN, 0])
    assert (agreed.n, agreed.same.value, agreed.kappa.value) == (3, 1.0, 1.0)


def test_what_is_not_defined() -> None:
    """Without items, with one category, with too few items or without grades, a coefficient is NaN with a reason."""
    nothing = agreement([], [])
    assert nothing.n == 0
    assert math.isnan(nothing.same.value)
    assert nothing.note == "no item has both ratings"
    constant = agreement([3] * 20, [3] * 20)
    assert constant.same.value == 1
    assert math.isnan(constant.kappa.value)
    assert math.isnan(constant.alpha.value)
    assert "agreement cannot be distinguished from chance" in constant.note
    few = agreement([0, 1, 2], [0, 1, 1])
    assert few.kappa.value == pytest.approx(0.5)
    assert math.isnan(few.kappa.low)
    assert few.note == "fewer than 10 items: no interval"
    rng = np.random.default_rng(1)
    fine = agreement(rng.random(30), rng.random(30))
    assert math.isnan(fine.kappa.value)
    assert math.isnan(fine.weighted_kappa.value)
    assert fine.alpha.low < fine.alpha.value < fine.alpha.high
    assert fine.note == "the ratings are not grades: no kappa"


def test_a_constant_judge_has_no_kappa_to_speak_of() -> None:
    """A constant judge agrees with a person where the person says the same, and its kappa is 0."""
    agreed = agreement([3] * 20, [3] * 15 + [0] * 5)
    assert (agreed.same.value, agreed.kappa.value, agreed.weighted_kappa.value) == (
        0.75,
        0.0,
        0.0,
    )


def test_an_interval_is_the_same_every_time_and_narrows() -> None:
    """An interval is the same every time, and is narrower for ten times the items."""
    one, other = counted([[8, 2, 0], [1, 6, 3], [1, 1, 8]])
    assert agreement(one, other) == agreement(one, other)
    narrow = agreement(one * 10, other * 10).kappa
    wide = agreement(one, other).kappa
    assert narrow.high - narrow.low < wide.high - wide.low


def test_numbers_too_far_apart_are_no_grades() -> None:
    """Ratings too far apart to be grades, such as lengths of texts, have an alpha and no kappa."""
    agreed = agreement([1, 1000, 50_000], [1, 990, 60_000])
    assert math.isnan(agreed.kappa.value)
    assert agreed.alpha.value > 0.5


def test_ten_of_ten_equal_ratings_are_not_certain() -> None:
    """For ten equal grades the share and the coefficients have intervals that say how little ten items show."""
    agreed = agreement([0, 1] * 5, [0, 1] * 5)
    assert (agreed.same.value, agreed.same.high) == (1.0, 1.0)
    assert 0.6 < agreed.same.low < 0.8
    for coefficient in (agreed.kappa, agreed.weighted_kappa, agreed.alpha):
        assert (coefficient.value, coefficient.high) == (1.0, 1.0)
        assert 0.4 < coefficient.low < 0.9
    assert agreed.note == ""


def test_equal_ratings_without_grades_have_no_interval_of_alpha() -> None:
    """Equal ratings that are no grades give alpha no interval, and the reason stands in the note."""
    scores = np.random.default_rng(2).random(30)
    agreed = agreement(scores, scores)
    assert agreed.alpha.value == 1.0
    assert math.isnan(agreed.alpha.low)
    assert agreed.note.endswith(
        "the raters never differ: only the share of equal ratings has an interval"
    )


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        pytest.param(
            [[1, 0], [0, 19]], 1.0, id="the rare grade once, without a difference"
        ),
        pytest.param([[0, 1], [1, 18]], -0.05, id="no agreement in the rare grade"),
        pytest.param([[2, 1], [0, 47]], 0.79, id="one difference in fifty"),
    ],
)
def test_uneven_grades_have_an_interval(table: list[list[int]], kappa: float) -> None:
    """Every table of uneven grades gives each coefficient an interval around its value, and a wide one."""
    agreed = agreement(*counted(table))
    for coefficient in (agreed.kappa, agreed.weighted_kappa, agreed.alpha):
        assert coefficient.low <= coefficient.value <= coefficient.high
        assert coefficient.high - coefficient.low > 0.4
    assert agreed.kappa.value == pytest.approx(kappa, abs=0.01)


def test_coefficients_of_tables_are_those_of_ratings() -> None:
    """The coefficients that are computed from tables of shares are those of the ratings."""
    first, second = counted([[30, 10, 1], [5, 60, 20], [2, 9, 80]])
    labels, codes = np.unique([first, second], return_inverse=True)
    counts = np.zeros((3, 3))
    np.add.at(counts, tuple(codes.reshape(2, -1)), 1)
    shares = (counts / counts.sum())[None]
    grades = labels.astype(float)
    assert kappas(shares, grades)[0] == pytest.approx(cohen_kappa(first, second))
    assert weighted_kappas(shares, grades)[0] == pytest.approx(
        cohen_kappa(first, second, "quadratic")
    )
    # Krippendorff's alpha has a correction for few ratings, which is 1 / (number of ratings) here.
    alpha = ordinal_alphas(shares, grades)[0]
    assert alpha == pytest.approx(krippendorff_alpha([first, second]), abs=0.003)


def test_intervals_of_uneven_grades_contain_the_true_kappa() -> None:
    """Of samples of 20 items with a grade of 10 %, at least 90 % of the intervals contain the true kappa."""
    random = np.random.default_rng(5)
    shares = np.array([0.1, 0.9])
    table = 0.7 * np.diag(shares) + 0.3 * np.outer(shares, shares)
    hits = []
    for _ in range(200):
        pairs = random.choice(4, size=20, p=table.ravel())
        first, second = np.divmod(pairs.astype(float), 2)
        if len(np.unique([first, second])) < 2:
            continue
        low, high = table_interval(first, second, kappas)
        hits.append(low <= 0.7 <= high)
    assert len(hits) > 160
    assert np.mean(hits) >= 0.9
