"""A run's files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat

from helm_longctx.running.results import write_json


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever the process ends."""
    path = tmp_path / "stats.json"
    write_json(path, [Stat(MetricName("a")).add(1)])
    before = path.read_bytes()
    assert json.loads(before)[0]["name"]["name"] == "a"

    def killed(source: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_json(path, [Stat(MetricName("b")).add(1)] * 100)
    assert path.read_bytes() == before
