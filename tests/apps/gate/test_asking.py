"""Tests of the sample that a gate plans, and of what it finds at depths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from helm_longctx.apps.gate.asking import DepthPlan, Goal, plan_depths, plan_lengths
from helm_longctx.results.statistics.noninferiority import (
    ONE_SIDED,
    changed_outcomes,
    power_to_fail,
    visible_drop,
)
from helm_longctx.runner.estimate import TaskSample

GOAL = Goal(margin=0.05, power=0.8, noise=0.1)


def plan(*depths: Sequence[tuple[int, int]]) -> DepthPlan | None:
    """Plan tasks with these numbers of clusters at depths in percent."""
    return plan_depths(
        [
            TaskSample("e", str(n), 8192, 200, 200, tuple(depths_of_task))
            for n, depths_of_task in enumerate(depths)
        ],
        GOAL,
    )


def test_one_depth_is_not_tested() -> None:
    """Questions without depths, or all at one depth, have no tests of depths."""
    assert plan(()) is None
    assert plan([(0, 60), (20, 40)], [(20, 30)]) is None


@pytest.mark.parametrize(
    ("depths", "clusters"),
    [
        ([[(0, 50), (100, 80)]], (50, 80)),
        ([[(0, 20), (20, 40), (40, 50)], [(60, 30), (80, 70)]], (60, 80, 70)),
    ],
)
def test_two_depths_are_tested(
    depths: list[list[tuple[int, int]]], clusters: tuple[int, ...]
) -> None:
    """The clusters of all tasks at a depth count together, and the smallest depth says which drop can be seen."""
    asked_plan = plan(*depths)
    assert asked_plan
    assert asked_plan.visible_drop == visible_drop(
        min(clusters), GOAL.noise, len(clusters), GOAL.power
    )
    level = ONE_SIDED / len(clusters)
    outcomes = changed_outcomes(GOAL.noise)
    alarms = [
        power_to_fail(((1.0, cluster),), outcomes, 0.0, level) for cluster in clusters
    ]
    assert asked_plan.false_alarm == pytest.approx(sum(alarms))


def test_the_power_is_divided_among_the_lengths() -> None:
    """Each of two lengths needs as many questions as one length with the square root of the power."""
    samples = [TaskSample("e", "t", length, 200, 200) for length in (8192, 16384)]
    (alone,) = plan_lengths(samples[:1], replace(GOAL, power=GOAL.power**0.5))
    assert [plan_length.needed for plan_length in plan_lengths(samples, GOAL)] == [
        alone.needed,
        alone.needed,
    ]
