"""What is said about scores over lengths: which one is effective, which are possible, the means, the area and the drop."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from helm_longctx.results.statistics.intervals import (
    Interval,
    drop,
    effective_length,
    length_means,
    possible_lengths,
    share_of_shortest,
    weigh_lengths,
)


def exact(
    scores: Mapping[int, float], width: float = 0.01, n: int = 100
) -> dict[int, Interval]:
    """Return scores with intervals of a half-width."""
    return {
        length: Interval(score, score - width, score + width, n)
        for length, score in scores.items()
    }


def test_the_longest_sufficient_length_is_effective() -> None:
    """A shorter length below the threshold changes nothing, and a score equal to the threshold is sufficient."""
    scores = {4: 0.8, 8: 0.6, 16: 0.68, 32: 0.1}
    assert share_of_shortest(scores) == pytest.approx(0.68)
    assert effective_length(scores, 0.68) == 16
    assert effective_length(scores, 0.81) is None


@pytest.mark.parametrize(
    ("scores", "width", "expected"),
    [
        ({4: 0.8, 8: 0.8, 16: 0.1}, 0.01, [8]),
        ({4: 0.8, 8: 0.1, 16: 0.1}, 0.01, [4]),
        ({4: 0.8, 8: 0.8, 16: 0.8}, 0.01, [16]),
        ({4: 0.8, 8: 0.68, 16: 0.1}, 0.01, [4, 8]),
        ({4: 0.8, 8: 0.7, 16: 0.66}, 0.2, [4, 8, 16]),
        ({4: 0.0, 8: 0.0}, 0.0, []),
    ],
)
def test_possible_lengths_of_a_share(
    scores: dict[int, float], width: float, expected: list[int]
) -> None:
    """A length is possible if it can be above the threshold and no longer one is above it for sure."""
    assert possible_lengths(exact(scores, width)) == expected


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({4: 0.8, 8: 0.8, 16: 0.1}, [8]),
        ({4: 0.1, 8: 0.2, 16: 0.1}, [None]),
        ({4: 0.8, 8: 0.505, 16: 0.1}, [4, 8]),
        ({4: 0.505, 8: 0.2, 16: 0.1}, [None, 4]),
        ({4: 0.0, 8: 0.0, 16: 0.0}, [None]),
    ],
)
def test_possible_lengths_of_a_score(
    scores: dict[int, float], expected: list[int | None]
) -> None:
    """With a threshold of its own, a benchmark can have no effective length."""
    assert possible_lengths(exact(scores), score=0.5) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.49, 0.6, [4, 8]), (0.52, 0.6, [8]), (0.4, 0.6, [4, 8])],
)
def test_ends_of_a_score_with_a_threshold(
    low: float, high: float, expected: list[int]
) -> None:
    """The lower end, which is moved for the number of longer lengths, decides whether shorter lengths are possible."""
    intervals = {4: Interval(0.9, 0.8, 1.0, 9), 8: Interval(0.55, low, high, 9)}
    assert possible_lengths(intervals, score=0.5) == expected


def test_longer_lengths_share_the_error() -> None:
    """A length that one longer length alone would exclude is possible if seven longer ones share the error."""
    score = {4: 1.0, 8: 0.5 + 0.0105}
    assert possible_lengths(exact(score), score=0.5) == [8]
    more = {**score, **dict.fromkeys((16, 32, 64, 128, 256, 512), 0.5)}
    assert possible_lengths(exact(more), score=0.5)[:2] == [4, 8]


def test_the_difference_from_a_share_combines_both_ends() -> None:
    """The distances to the ends are combined as in a right-angled triangle, those of the shortest length by the share."""
    first = Interval(0.8, 0.7, 0.84, 9)
    # 0.68 is the threshold; the combined distance below is the hypotenuse of 0.04 and 0.85 of 0.04, so 0.0525.
    for mean, expected in ((0.73, [4, 8]), (0.735, [8])):
        assert (
            possible_lengths({4: first, 8: Interval(mean, mean - 0.04, mean + 0.01, 9)})
            == expected
        )
    # Above, it is that of 0.04 and 0.85 of 0.1, so 0.0939.
    for mean, expected in ((0.58, [4]), (0.59, [4, 8])):
        assert (
            possible_lengths({4: first, 8: Interval(mean, mean - 0.01, mean + 0.04, 9)})
            == expected
        )


def test_means_with_weights_by_length() -> None:
    """The weights are 1 to n in the order of the lengths, or n to 1."""
    means = length_means({16: 0.3, 4: 0.9, 8: 0.6})
    assert means == pytest.approx(
        (0.6, (0.9 + 2 * 0.6 + 3 * 0.3) / 6, (3 * 0.9 + 2 * 0.6 + 0.3) / 6)
    )


def test_the_area_is_that_of_trapezoids() -> None:
    """The weights are those of the area under straight lines between the scores, divided by its width."""
    weights = weigh_lengths([8, 4, 16])
    assert list(weights) == [4, 8, 16]
    assert sum(weights.values()) == pytest.approx(1)
    scores = {4: 1.0, 8: 0.6, 16: 0.2}
    area = sum(weights[length] * score for length, score in scores.items())
    assert area == pytest.approx((4 * 0.8 + 8 * 0.4) / 12)


def test_the_drop_combines_opposite_ends() -> None:
    """The lower end of the drop is that of a low first score and a high last one."""
    loss = drop(
        {
            4: Interval(0.9, 0.86, 0.95, 10),
            8: Interval(0.0, 0.0, 1.0, 5),
            16: Interval(0.5, 0.38, 0.53, 30),
        }
    )
    assert loss.mean == pytest.approx(0.4)
    assert loss.mean - loss.low == pytest.approx(0.05)
    assert loss.high - loss.mean == pytest.approx(0.13)
    assert loss.n == 40
