"""A run's statistics and files, as HELM makes them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.metrics.metric import PerInstanceStats, Stat, create_metric
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.runner import Runner, remove_per_instance_stats_nans, remove_stats_nans
from helm.common.general import asdict_without_nones
from helm.common.hierarchical_logger import htrack_block

_END = 16
"""Bytes of a file's end that are read."""


def evaluated(runner: Runner, spec: RunSpec, state: ScenarioState) -> tuple[list[Stat], list[PerInstanceStats]]:
    """What a run's metrics say of its answers: of the whole, and of each instance."""
    metrics = [create_metric(metric) for metric in spec.metric_specs]
    parallelism = runner.executor.execution_spec.parallelism
    with htrack_block(f"{len(metrics)} metrics"):
        results = [
            metric.evaluate(state, runner.metric_service, runner.eval_cache_path, parallelism) for metric in metrics
        ]
    stats = remove_stats_nans([stat for result in results for stat in result.aggregated_stats])
    return stats, remove_per_instance_stats_nans([row for result in results for row in result.per_instance_stats])


def write_json(path: Path, content: Any) -> None:
    """One of HELM's objects, or a list of them; the file is there whole or as it was, whenever the process ends."""
    several = isinstance(content, list)
    plain = [asdict_without_nones(part) for part in content] if several else asdict_without_nones(content)
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(json.dumps(plain, indent=2))
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def cut_files(run_path: Path) -> list[str]:
    """Names of HELM's files of a run that are missing or lack their end. Only the ends are read.

    HELM indents its JSON, so that the bracket that closes a file is the only one at the beginning of a line.
    """
    names = [f"{stem}.json" for stem in ("run_spec", "scenario", "scenario_state", "stats", "per_instance_stats")]
    return [name for name in names if not _has_end(run_path / name)]


def _has_end(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _END))
            end = file.read().rstrip()
    except OSError:
        return False
    return end.endswith((b"\n}", b"\n]")) or end in (b"{}", b"[]")
