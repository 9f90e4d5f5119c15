"""Tests that HELM's own sampling of instances is reported and otherwise unchanged."""

from __future__ import annotations

import pytest
from helm.benchmark import runner
from helm.benchmark.scenarios.scenario import EVAL_SPLITS, TEST_SPLIT, Input, Instance

from helm_longctx.helm.patches import apply_patches
from helm_longctx.run_settings import RunSettings
from helm_longctx.tasks.sample import Sample

STOCK = runner.downsample_eval_instances


@pytest.mark.parametrize(
    ("extra", "limit", "on_purpose", "marked", "told"),
    [
        (Sample("official", 9, 9).to_json(), 3, False, True, True),
        (Sample("official", 9, 9).to_json(), 3, True, True, False),
        (Sample("official", 9, 9).to_json(), 10, False, False, False),
        ({"own": 1}, 3, False, False, False),
        (None, 3, False, False, False),
    ],
)
def test_instances_that_are_left_out(
    extra: dict[str, object] | None,
    limit: int,
    on_purpose: bool,
    marked: bool,
    told: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Only our instances record that others are left out, and it is told unless the command draws samples itself."""
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
    with RunSettings(draws_samples=on_purpose).use():
        drawn = runner.downsample_eval_instances(instances, limit, EVAL_SPLITS)
    assert [(instance.extra_data or {}).get("drawn_from") for instance in drawn] == [
        10 if marked else None
    ] * len(drawn)
    assert [instance.id for instance in drawn] == [instance.id for instance in expected]
    assert marked or drawn == expected
    said = [
        message
        for message in caplog.messages
        if "not the benchmark's sample" in message
    ]
    assert len(said) == told
