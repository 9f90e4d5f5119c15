"""Writes published results as HELM runs without instances, so that tables show them beside the user's runs."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import orjson

from helm_longctx.errors import InputError
from helm_longctx.protocol.entry import check_entry
from helm_longctx.protocol.lengths import length_label
from helm_longctx.protocol.metric_names import task_score
from helm_longctx.protocol.task import MAIN_METRIC, Benchmark, Published

MAKER = "published"
"""Prefix of the models' names, and name of a statistic that is 1: these scores were not run here."""

_NO_INSTANCES: dict[str, Any] = {
    name: [] for name in ("per_instance_stats", "instances", "display_predictions", "display_requests")
}


def write_reference(
    benchmark: Benchmark, folder: Path, models: Sequence[str] = ("*",), length: int | None = None
) -> list[Path]:
    """Write a run for each published row, and return the folders. Other runs of the suite are not changed.

    Args:
        folder: the suite's folder, `<output path>/runs/<suite>`.
        models: patterns of model names, in which `*` stands for any characters; case is ignored.
        length: only results at this length; None for all lengths.

    Raises:
        InputError: no published result matches.
    """
    rows = [row for row in benchmark.published() if length in (None, row.length)]
    chosen = [row for row in rows if any(fnmatch(row.model.lower(), pattern.lower()) for pattern in models)]
    if not chosen:
        names = ", ".join(dict.fromkeys(row.model for row in rows)) or "none at that length"
        raise InputError(
            f"no published result of {benchmark.title} fits model={','.join(models)!r}; there are: {names}"
        )
    return [_write(benchmark, row, folder) for row in chosen]


def _write(benchmark: Benchmark, row: Published, folder: Path) -> Path:
    (name,) = (name for name, category in benchmark.entries.items() if category.name == row.category)
    entry = check_entry(benchmark, name, {} if row.length is None else {"length": length_label(row.length)})
    run = folder / f"{entry.description},model={MAKER}_{row.model}"
    run.mkdir(parents=True, exist_ok=True)
    spec = {
        "name": run.name,
        "scenario_spec": {
            "class_name": "helm_longctx.helm.scenario.LongContextScenario",
            "args": {"entry": name, "length": row.length, MAKER: benchmark.url},
        },
        "adapter_spec": {"method": "longctx", "model": f"{MAKER}/{row.model}", "model_deployment": ""},
        "metric_specs": [],
        "groups": entry.groups[:1] if "" in row.scores else entry.groups,
    }
    about = f"Published results, not run here. Source: {benchmark.url}"
    scenario = {"name": entry.groups[0], "description": about, "definition_path": benchmark.url, "tags": [MAKER]}
    # The run's page needs the files of instances, which are empty here. The run spec makes the run complete, so it is
    # written last.
    files = {"scenario": scenario, "stats": _stats(benchmark, row), **_NO_INSTANCES, "run_spec": spec}
    for stem, content in files.items():
        (run / f"{stem}.json").write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    return run


def _stats(benchmark: Benchmark, row: Published) -> list[dict[str, Any]]:
    stats = []
    for name, score in row.scores.items():
        values = {MAIN_METRIC: score, MAKER: 1.0}
        if name:
            (headline,) = benchmark.task(name).headline
            values |= {task_score(name): score, headline: score}
        stats += [_stat(metric, name, value) for metric, value in values.items()]
    return stats


def _stat(metric: str, task: str, value: float) -> dict[str, Any]:
    """Return the JSON of HELM's `Stat` with one value."""
    counts = {"count": 1, "sum": value, "sum_squared": value**2, "min": value, "max": value, "mean": value}
    name = {"name": metric, "split": "test", **({"sub_split": task} if task else {})}
    return {"name": name, **counts, "variance": 0.0, "stddev": 0.0}
