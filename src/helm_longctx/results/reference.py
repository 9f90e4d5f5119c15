"""Stores published results in a suite, so that tables show them beside the user's runs.

There is one folder for each benchmark. It is a run without instances and groups, so that HELM's pages can link to it.
Its file `published.json` has the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from helm_longctx.errors import InputError
from helm_longctx.protocol.benchmark import Benchmark, Published
from helm_longctx.protocol.entry import METHOD, check_entry
from helm_longctx.protocol.lengths import length_label
from helm_longctx.protocol.metric_names import task_score
from helm_longctx.protocol.task import MAIN_METRIC
from helm_longctx.runs.files import read_json, reading, replace_file

MAKER = "published"
"""Prefix of the models' names, and name of a statistic that is 1: these scores were not run here."""

ROWS = "published.json"

_NO_INSTANCES: dict[str, Any] = {
    name: [] for name in ("stats", "per_instance_stats", "instances", "display_predictions", "display_requests")
}


class ResultRun(NamedTuple):
    """A result without instances, published or computed, in the form of a run.

    Args:
        spec: data as in `run_spec.json`. Its name is the folder with published rows; empty for a computed result.
        stats: data as in `stats.json`.
    """

    spec: dict[str, Any]
    stats: list[dict[str, Any]]


def write_reference(
    benchmark: Benchmark, folder: Path, models: Sequence[str] = ("*",), length: int | None = None
) -> int:
    """Add published rows to those in the suite, and return the number of chosen rows. Runs are not changed.

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
            f"no published result of {benchmark.title} matches model={','.join(models)!r}; allowed: {names}"
        )
    add_rows(benchmark, folder, chosen)
    return len(chosen)


def add_rows(benchmark: Benchmark, folder: Path, rows: Iterable[Published]) -> None:
    """Add results without instances to those in the suite. A new score of a task replaces the old one.

    Args:
        folder: the suite's folder, which need not exist.
    """
    run = folder / f"{MAKER}_{benchmark.name}"
    run.mkdir(parents=True, exist_ok=True)
    # Existing rows are replaced, not doubled.
    every: dict[tuple[str, str, int | None], Published] = {}
    for row in (*_read_rows(run / ROWS), *rows):
        key = (row.model, row.category, row.length)
        earlier = every[key].scores if key in every else {}
        every[key] = replace(row, scores={**earlier, **row.scores})
    about = f"Published results, not run here. Source: {benchmark.url}"
    # The run's page needs the files of instances, which are empty. The run spec makes the run complete, so it is last.
    files = {
        "scenario": {"name": benchmark.name, "description": about, "definition_path": benchmark.url, "tags": [MAKER]},
        **_NO_INSTANCES,
        Path(ROWS).stem: [asdict(row) for row in every.values()],
        "run_spec": make_run_spec(run.name, (MAKER, MAKER), {MAKER: benchmark.url}, []),
    }
    for stem, content in files.items():
        replace_file(run / f"{stem}.json", orjson.dumps(content))


def read_reference(folder: Path, benchmarks: Iterable[Benchmark]) -> Iterator[ResultRun]:
    """Yield the published results in a suite.

    Raises:
        InputError: the rows are damaged.
    """
    for benchmark in benchmarks:
        path = folder / f"{MAKER}_{benchmark.name}" / ROWS
        for row in _read_rows(path):
            yield ResultRun(_row_spec(benchmark, row, path.parent.name), _stats(benchmark, row))


def _read_rows(path: Path) -> list[Published]:
    if not path.is_file():
        return []
    rows = read_json(path)
    with reading(path):
        return [Published(**row) for row in rows]


def _row_spec(benchmark: Benchmark, row: Published, name: str) -> dict[str, Any]:
    (entry_name,) = (name for name, category in benchmark.entries.items() if category.name == row.category)
    entry = check_entry(benchmark, entry_name, {} if row.length is None else {"length": length_label(row.length)})
    arguments = {"entry": entry_name, "length": row.length, MAKER: benchmark.url}
    # A score of the whole category has no place in the tables of tasks.
    groups = entry.groups[:1] if "" in row.scores else entry.groups
    model = f"{MAKER}/{row.model}"
    # HELM also needs the name of a deployment. A published model has none, so the model's name is used.
    return make_run_spec(name, (model, model), arguments, groups)


def make_run_spec(name: str, model: tuple[str, str], arguments: dict[str, Any], groups: list[str]) -> dict[str, Any]:
    """Return the JSON of HELM's `RunSpec`.

    Args:
        model: the model's and the deployment's name.
    """
    return {
        "name": name,
        "scenario_spec": {"class_name": "helm_longctx.helm.scenario.LongContextScenario", "args": arguments},
        "adapter_spec": {"method": METHOD, "model": model[0], "model_deployment": model[1]},
        "metric_specs": [],
        "groups": groups,
    }


def _stats(benchmark: Benchmark, row: Published) -> list[dict[str, Any]]:
    stats = []
    for name, score in row.scores.items():
        values = {MAIN_METRIC: score, MAKER: 1.0}
        if name:
            headline = benchmark.task(name).headline
            values |= {task_score(name): score, **({headline[0]: score} if len(headline) == 1 else {})}
        stats += [make_stat(metric, name, value) for metric, value in values.items()]
    return stats


def make_stat(metric: str, task: str, value: float) -> dict[str, Any]:
    """Return the JSON of HELM's `Stat` with one value."""
    counts = {"count": 1, "sum": value, "sum_squared": value**2, "min": value, "max": value, "mean": value}
    name = {"name": metric, "split": "test", **({"sub_split": task} if task else {})}
    return {"name": name, **counts, "variance": 0.0, "stddev": 0.0}
