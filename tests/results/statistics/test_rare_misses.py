"""Tests of the summaries of log-probabilities of which a few are very low."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from helm_longctx.results.reading import task_statistics
from helm_longctx.results.statistics.intervals import (
    ValueKind,
    mean_interval,
    simultaneous_intervals,
)
from helm_longctx.results.statistics.rare_misses import (
    FEWEST_TEXTS,
    interval_with_misses,
    is_too_few,
    summarize,
)
from helm_longctx.runs.scores import Score
from helm_longctx.tasks.metric_names import ANSWER_LOGPROB, MEAN_LOGPROB, window_logprob
from tests.support.scores import make_score

USUAL = np.linspace(-1.2, -0.8, 99).tolist()


@pytest.mark.parametrize(
    ("values", "groups", "expected"),
    [
        pytest.param(USUAL[:20], None, True, id="20 texts show no rare miss"),
        pytest.param([*USUAL, -1.0], None, False, id="100 texts without a miss"),
        pytest.param(
            [*USUAL, -12.0], None, True, id="one miss is too few to know the share"
        ),
        pytest.param([*USUAL, *[-12.0] * 40], None, False, id="40 misses"),
        pytest.param(USUAL * 2, [*range(99)] * 2, True, id="repeats are no more texts"),
        pytest.param([-1.0] * 100, None, False, id="equal values"),
        pytest.param([], None, True, id="no value"),
    ],
)
def test_when_a_mean_has_an_interval(
    values: list[float], groups: list[int] | None, expected: bool
) -> None:
    """A mean has an interval only from 100 texts on, and if its variance comes from at least ten of them."""
    assert is_too_few(values, groups) is expected
    interval = interval_with_misses(values, groups)
    student = mean_interval(values, groups, ValueKind.NATS)
    assert math.isnan(interval.low) is expected
    if values:
        assert interval.mean == student.mean
    if not expected:
        assert interval == student


def test_misses_of_three_percent_are_seen_in_time() -> None:
    """The smallest number of texts shows at least one of 3 % of misses in 95 % of samples."""
    assert 1 - 0.97**FEWEST_TEXTS > 0.95
    assert 1 - 0.97 ** (FEWEST_TEXTS - 5) < 0.95


@pytest.mark.parametrize("count", [5, 6, 10, 25, 100])
def test_the_median_has_the_ranks_of_the_binomial_distribution(count: int) -> None:
    """The ends of the median's interval are the narrowest pair of ranks that is right in 95 %."""
    values = list(map(float, range(count)))
    median = summarize(values, range(count)).median
    assert median.mean == np.median(values)
    if count < 6:
        assert math.isnan(median.low)
        return
    # The interval is right unless at most `low` or at least `high` values are below the median.
    error = 2 * binom.cdf(median.low, count, 0.5)
    assert error <= 0.05
    assert 2 * binom.cdf(median.low + 1, count, 0.5) > 0.05
    assert median.high == count - 1 - median.low


def test_misses_do_not_move_robust_summaries() -> None:
    """However low a miss is, the median, the trimmed mean and the share of misses stay as they are."""
    mild = summarize([*USUAL[:19], -6.0], range(20))
    wild = summarize([*USUAL[:19], -600.0], range(20))
    assert mild == wild
    assert mild.misses.mean == 0.05
    assert mild.misses.low < 0.05 < mild.misses.high
    assert mild.trimmed_mean == pytest.approx(np.mean(USUAL[1:17]))


def test_repeats_of_a_text_count_once() -> None:
    """The median is over the means of texts, so a text that is asked often has no more weight."""
    summary = summarize([-1.0, -2.0, -9.0, -9.0, -9.0], ["a", "b", "c", "c", "c"])
    assert summary.median.mean == -2.0
    assert summary.median.n == 3


def test_curves_are_right_as_a_whole() -> None:
    """Of curves with 16 windows of 10 texts, at least 93 % of the bands contain the truth everywhere, and one is Student's."""
    random = np.random.default_rng(3)
    groups = [range(10)] * 16
    hits = []
    for _ in range(400):
        values = random.normal(size=(16, 10)) + random.normal(size=(1, 10))
        bands = simultaneous_intervals(list(values), groups)
        hits.append(all(band.low <= 0 <= band.high for band in bands))
    assert np.mean(hits) >= 0.93
    values = random.normal(size=10)
    (alone,) = simultaneous_intervals([values], [range(10)])
    assert alone == mean_interval(values, kind=ValueKind.NATS)


def make_row(number: int, values: dict[str, float]) -> Score:
    """Return the row of a question of its own."""
    return make_score(None, f"id{number}", length=4096, values=values)


@pytest.mark.parametrize(
    ("names", "has_interval"),
    [
        pytest.param((MEAN_LOGPROB, ANSWER_LOGPROB), False, id="gold answers"),
        pytest.param((window_logprob(1024),), True, id="windows of texts"),
    ],
)
def test_few_answers_give_no_interval_of_nats(
    names: tuple[str, ...], has_interval: bool
) -> None:
    """Log-probabilities of twelve gold answers have a mean without an interval; means of texts' windows have one."""
    rows = [
        make_row(number, dict.fromkeys(names, -1.0 - number / 10))
        for number in range(12)
    ]
    statistics = task_statistics(None, rows, dict.fromkeys(names, -1.55), {})
    for name in names:
        assert statistics[name].interval.mean == -1.55
        assert statistics[name].error > 0
        assert math.isfinite(statistics[name].interval.low) is has_interval
