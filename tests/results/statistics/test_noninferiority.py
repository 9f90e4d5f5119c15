"""Tests of the decision whether a candidate is worse than a base by more than a margin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.results.statistics.comparison import Pairs, compare_parts, p_value_of
from helm_longctx.results.statistics.noninferiority import (
    Verdict,
    changed_spread,
    combine_verdicts,
    decide_drops,
    fewest_instances,
    sample_needed,
)
from helm_longctx.results.statistics.power import detectable_difference, power_to_detect

Scores = list[tuple[int, int]]


def pairs(wins: int, losses: int, ties: int) -> list[Pairs]:
    """Return one task with so many instances on which the candidate is better, worse and equal."""
    a, b = [1] * wins + [0] * losses + [1] * ties, [0] * wins + [1] * losses + [1] * ties
    return [Pairs(a, b, range(len(a)), 1.0)]


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40), st.floats(-0.9, 0.9), st.data()
)
def test_the_p_value_of_a_difference_agrees_with_the_interval(
    scores: Scores, difference: float, data: st.DataObject
) -> None:
    """A difference has a p-value below 0.05 if and only if the interval excludes it."""
    groups = data.draw(st.lists(st.integers(0, 9), min_size=len(scores), max_size=len(scores)))
    parts = [Pairs(*zip(*scores, strict=True), groups, 1.0)]
    effect = compare_parts(parts).effect
    if min(abs(difference - effect.low), abs(difference - effect.high)) > 1e-6:
        assert (effect.low <= difference <= effect.high) == (p_value_of(parts, difference) >= 0.05)


def test_verdicts() -> None:
    """Equal scores are no worse, a large drop is worse, and a small sample cannot tell and says what is missing."""
    parts = {"equal": pairs(0, 0, 200), "drop": pairs(0, 60, 140), "few": pairs(0, 0, 40)}
    drops = decide_drops(parts, 0.02, 0.8)
    assert [drops[name].verdict for name in parts] == [Verdict.NO_WORSE, Verdict.WORSE, Verdict.UNDECIDED]
    assert [drops[name].more for name in parts] == [0, 0, fewest_instances(0.02) - 40]
    assert drops["few"].p_worse == pytest.approx(1, abs=0.3)


def test_a_certain_drop_within_the_margin_is_no_worse() -> None:
    """A drop that is certain but smaller than the margin is accepted."""
    drop = decide_drops({"": pairs(0, 30, 2970)}, 0.02, 0.8)[""]
    assert drop.comparison.effect.high < 0
    assert drop.verdict is Verdict.NO_WORSE


def test_parts_are_adjusted_for_their_number() -> None:
    """A drop that is worse alone cannot be told among many lengths."""
    alone = decide_drops({"4k": pairs(4, 28, 168)}, 0.05, 0.8)["4k"]
    assert alone.verdict is Verdict.WORSE
    many = decide_drops({"4k": pairs(4, 28, 168), **{str(n): pairs(0, 0, 200) for n in range(9)}}, 0.05, 0.8)["4k"]
    assert many.verdict is Verdict.UNDECIDED
    assert many.p_worse > alone.p_worse


def test_verdicts_are_combined() -> None:
    """One worse part decides, and each part must be no worse."""
    no, yes, open_ = Verdict.NO_WORSE, Verdict.WORSE, Verdict.UNDECIDED
    assert combine_verdicts([no, no]) is no
    assert combine_verdicts([no, open_]) is open_
    assert combine_verdicts([no, open_, yes]) is yes
    assert [int(no), int(yes), int(open_)] == [0, 1, 3]


@pytest.mark.parametrize("margin", [0.01, 0.02, 0.05, 0.2, 0.5])
def test_the_fewest_instances(margin: float) -> None:
    """Equal scores of the smallest sample decide, and those of one instance less do not."""
    size = fewest_instances(margin)
    assert decide_drops({"": pairs(0, 0, size)}, margin, 0.8)[""].verdict is Verdict.NO_WORSE
    assert decide_drops({"": pairs(0, 0, size - 1)}, margin, 0.8)[""].verdict is not Verdict.NO_WORSE


def test_the_number_of_missing_instances_is_enough() -> None:
    """With the missing instances, a candidate without a drop passes about as often as the power says."""
    random, margin = np.random.default_rng(1), 0.05
    drop = decide_drops({"": pairs(8, 8, 84)}, margin, 0.8)[""]
    assert drop.verdict is Verdict.UNDECIDED
    size = 100 + drop.more
    found = []
    for _ in range(150):
        wins, losses, ties = random.multinomial(size, [0.08, 0.08, 0.84])
        found.append(decide_drops({"": pairs(wins, losses, ties)}, margin, 0.8)[""].verdict is Verdict.NO_WORSE)
    assert 0.68 < np.mean(found) < 0.92


@pytest.mark.parametrize(("margin", "changed"), [(0.02, 0.05), (0.05, 0.1)])
def test_errors_at_the_margin(margin: float, changed: float) -> None:
    """A candidate whose drop is the margin is called no worse, or worse, in about 2.5 % of samples each."""
    random, size = np.random.default_rng(2), 600
    shares = [(changed - margin) / 2, (changed + margin) / 2, 1 - changed]
    drops = [decide_drops({"": pairs(*random.multinomial(size, shares))}, margin, 0.8)[""] for _ in range(250)]
    for verdict in (Verdict.NO_WORSE, Verdict.WORSE):
        assert np.mean([drop.verdict is verdict for drop in drops]) < 0.06


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 0.3), st.floats(0.02, 1.0), st.floats(0.6, 0.95))
def test_the_sample_has_the_power(margin: float, changed: float, power: float) -> None:
    """The sample that is needed has the wanted power, and both functions of power agree."""
    size = sample_needed(changed_spread(changed), margin, power)
    assert power_to_detect(changed_spread(changed), margin, size, size) >= power - 1e-4
    smallest = detectable_difference(changed_spread(changed), size, size, power)
    assert power_to_detect(changed_spread(changed), smallest, size, size) == pytest.approx(power, abs=1e-4)


def test_a_single_cluster_decides_nothing() -> None:
    """Instances of one cluster leave every difference open, and more instances are asked for."""
    parts = {"": [Pairs([1, 1, 1], [1, 1, 1], ["a", "a", "a"], 1.0)]}
    drop = decide_drops(parts, 0.02, 0.8)[""]
    assert drop.verdict is Verdict.UNDECIDED
    assert drop.more > 100
    assert power_to_detect(changed_spread(0.1), 0.1, 3, 1) == 0
