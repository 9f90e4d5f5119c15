"""A suite's runs as tables for other programs: scores and answers as CSV."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import ijson
import orjson

from helm_longctx.core.averages import Cell, averaged
from helm_longctx.core.lengths import length_label
from helm_longctx.core.task import MAIN_METRIC


class Score(NamedTuple):
    """One statistic of a task in a run; `score` is a mean over its instances."""

    run: str
    model: str
    entry: str
    task: str
    length: str
    context: str
    metric: str
    score: float
    instances: int


class Average(NamedTuple):
    """A mean of `longctx_score` over tasks or lengths, where that is `average`; `of` says over how many."""

    model: str
    entry: str
    task: str
    length: str
    context: str
    score: float
    of: int


class Answer(NamedTuple):
    """What a model said to one instance."""

    run: str
    model: str
    task: str
    length: str
    instance: str
    question: str
    references: str
    answer: str
    score: float | None


def scores(suite: Path) -> Iterator[Score]:
    """Every statistic of every finished run, in the order of the runs' names.

    Args:
        suite: `<output path>/runs/<suite>`.
    """
    for run, spec in _runs(suite):
        arguments, model = spec["scenario_spec"]["args"], spec["adapter_spec"]["model"]
        where = (arguments["entry"], _length(spec), arguments.get("context", "full"))
        for stat in orjson.loads((run / "stats.json").read_bytes()):
            about = stat["name"]
            if about.get("split") == "test" and "perturbation" not in about and stat.get("mean") is not None:
                entry, length, context = where
                task = about.get("sub_split", "")
                yield Score(run.name, model, entry, task, length, context, about["name"], stat["mean"], stat["count"])


def averages(scores: Iterable[Score]) -> Iterator[Average]:
    """Of each model's tasks at each length, and of the lengths of each task, in each run entry."""
    tables: dict[tuple[str, str], dict[Cell, float]] = defaultdict(dict)
    for score in scores:
        if score.metric == MAIN_METRIC:
            tables[score.entry, score.context][Cell(score.model, score.task, score.length)] = score.score
    for (entry, context), cells in sorted(tables.items()):
        for cell, group in averaged(cells).items():
            yield Average(cell.model, entry, cell.task, cell.length, context, fmean(group), len(group))


def answers(suite: Path) -> Iterator[Answer]:
    """Every answer of every finished run, one instance in memory at a time."""
    for run, spec in _runs(suite):
        path = run / "scenario_state.json"
        if not path.is_file():
            continue  # published results have none
        found = _instance_scores(run)
        with path.open("rb") as file:
            for state in ijson.items(file, "request_states.item", use_float=True):
                instance = state["instance"]
                completions = (state.get("result") or {}).get("completions") or [{}]
                yield Answer(
                    run.name,
                    spec["adapter_spec"]["model"],
                    instance.get("sub_split", ""),
                    _length(spec),
                    instance["id"],
                    instance.get("extra_data", {}).get("question", ""),
                    " | ".join(reference["output"]["text"] for reference in instance["references"]),
                    completions[0].get("text", ""),
                    found.get(instance["id"]),
                )


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write rows; how many they were. With a byte-order mark, without which spreadsheets misread Chinese text."""
    count = 0
    with path.open("w", encoding="utf-8-sig", errors="surrogatepass", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        for row in rows:
            table.writerow(row)
            count += 1
    return count


def _runs(suite: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Finished runs of ours, with their specs."""
    for path in sorted(suite.glob("*/run_spec.json")):
        spec = orjson.loads(path.read_bytes())
        if (path.parent / "stats.json").is_file() and "entry" in spec["scenario_spec"].get("args", {}):
            yield path.parent, spec


def _length(spec: dict[str, Any]) -> str:
    return length_label(int(spec["scenario_spec"]["args"]["length"]))


def _instance_scores(run: Path) -> dict[str, float]:
    rows = orjson.loads((run / "per_instance_stats.json").read_bytes())
    return {
        row["instance_id"]: stat["mean"]
        for row in rows
        for stat in row["stats"]
        if stat["name"]["name"] == MAIN_METRIC and stat.get("mean") is not None
    }
