"""Tests that HELM's own sampling of instances is reported and otherwise unchanged."""

from __future__ import annotations

import pytest
from helm.benchmark import runner
from helm.benchmark.scenarios.scenario import EVAL_SPLITS, TEST_SPLIT, Input, Instance

from helm_longctx.helm.patches import apply_patches
from helm_longctx.tasks.sample import Sample

STOCK = runner.downsample_eval_instances


@pytest.mark.parametrize(
    ("extra", "limit", "told"),
    [
        (Sample("official", 9, 9).to_json(), 3, True),
        (Sample("official", 9, 9).to_json(), 10, False),
        ({"own": 1}, 3, False),
        (None, 3, False),
    ],
)
def test_instances_that_are_left_out(
    extra: dict[str, object] | None,
    limit: int,
    told: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Only our instances are reported as left out, and the remaining ones record it."""
    monkeypatch.setattr(
        runner, "downsample_eval_instances", getattr(STOCK, "__wrapped__", STOCK)
    )
    instances = [
        Instance(Input(str(n)), [], TEST_SPLIT, id=str(n), extra_data=extra)
        for n in range(10)
    ]
    expected = runner.downsample_eval_instances(instances, limit, EVAL_SPLITS)
    apply_patches()
    apply_patches()
    drawn = runner.downsample_eval_instances(instances, limit, EVAL_SPLITS)
    assert [(instance.extra_data or {}).get("drawn_from") for instance in drawn] == [
        10 if told else None
    ] * len(drawn)
    assert [instance.id for instance in drawn] == [instance.id for instance in expected]
    assert told or drawn == expected
    said = [
        message
        for message in caplog.messages
        if "not the benchmark's sample" in message
    ]
    assert len(said) == told
