"""A suite's runs as tables for other programs: scores and answers as CSV."""

from __future__ import annotations

import csv
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, BinaryIO, NamedTuple

import ijson

from helm_longctx.protocol.averages import AVERAGE, Cell, averaged
from helm_longctx.protocol.lengths import length_label, parse_length
from helm_longctx.protocol.metric_names import task_score
from helm_longctx.protocol.task import MAIN_METRIC, Benchmark, Category, Task
from helm_longctx.report.comparability import Lack, find_outcome, task_lacks
from helm_longctx.report.files import read_json, reading


class Score(NamedTuple):
    """One statistic of a task in a run; `score` is a mean over its instances.

    `length` is empty where the benchmark has no lengths.
    `instances` is None where nobody knows: of published scores. `lacking` says why it is not comparable: codes of
    `Lack` with `;` between them.
    """

    run: str
    model: str
    entry: str
    task: str
    length: str
    context: str
    metric: str
    score: float
    instances: int | None
    lacking: str


class Average(NamedTuple):
    """A mean of `longctx_score` over tasks or lengths, where that is `average`; `of` says over how many.

    `lacking` holds the codes of all scores in it, and of a category's tasks that have none.
    """

    model: str
    entry: str
    task: str
    length: str
    context: str
    score: float
    of: int
    lacking: str


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


def scores(suite: Path, benchmarks: Iterable[Benchmark]) -> Iterator[Score]:
    """Every statistic of every finished run, in the order of the runs' names.

    Args:
        suite: `<output path>/runs/<suite>`.

    Raises:
        InputError: a run's file is damaged.
    """
    benchmarks = tuple(benchmarks)
    for run, spec in _runs(suite):
        stats = read_json(run / "stats.json")
        with reading(run / "stats.json"):
            outcome = find_outcome(spec, stats, benchmarks)
            shown = [stat for stat in stats if _is_shown(stat)]
            lacking = {t.name: _codes(task_lacks(outcome, t)) for t in outcome.tasks} if outcome else {}
        counts = _counts(run, shown, outcome.tasks if outcome else ())
        arguments, model = spec["scenario_spec"]["args"], spec["adapter_spec"]["model"]
        where = (_length(spec), arguments.get("context", "full"))
        for stat in shown:
            name, task = _key(stat)
            count = counts.get((name, task), counts.get(("num_instances", task)))
            about = lacking.get(task, "")
            yield Score(run.name, model, arguments["entry"], task, *where, name, stat["mean"], count, about)


def averages(scores: Iterable[Score], benchmarks: Iterable[Benchmark]) -> Iterator[Average]:
    """Of each model's tasks at each length, and of the lengths of each task, in each run entry."""
    categories = {name: category for each in benchmarks for name, category in each.entries.items()}
    tables: dict[tuple[str, str], dict[Cell, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for score in scores:
        if score.metric == MAIN_METRIC:
            tables[score.entry, score.context][Cell(score.model, score.task, score.length)].append(score)
    for (entry, context), cells in sorted(tables.items()):
        for cell, groups in averaged(cells).items():
            mean = fmean(fmean(score.score for score in group) for group in groups)
            rows = [score for group in groups for score in group]
            wanted = _tasks_of(categories[entry], cell) if entry in categories and cell.task == AVERAGE else ()
            lacking = _all_codes(rows, wanted)
            yield Average(cell.model, entry, cell.task, cell.length, context, mean, len(groups), lacking)


def answers(suite: Path) -> Iterator[Answer]:
    """Every answer of every finished run, one instance in memory at a time.

    Raises:
        InputError: a run's file is damaged.
    """
    for run, spec in _runs(suite):
        path = run / "scenario_state.json"
        if not path.is_file():
            continue  # published results have none
        found = _instance_scores(run)
        with reading(path), path.open("rb") as file:
            for state in _states(file, at_least=len(found)):
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
    """Write rows, whole or not at all; how many they were.

    With a byte-order mark, without which spreadsheets misread Chinese text.
    """
    count = 0
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8-sig", errors="surrogatepass", newline="") as file:
            table = csv.writer(file)
            table.writerow(columns)
            for row in rows:
                table.writerow(row)
                count += 1
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return count


def _runs(suite: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Finished runs of ours, with their specs."""
    for path in sorted(suite.glob("*/run_spec.json")):
        spec = read_json(path)
        with reading(path):
            ours = "entry" in spec["scenario_spec"].get("args", {})
            if ours:
                _length(spec), spec["adapter_spec"]["model"]  # what every row has
        if ours and (path.parent / "stats.json").is_file():
            yield path.parent, spec


def _states(file: BinaryIO, at_least: int) -> Iterator[dict[str, Any]]:
    for state in ijson.items(file, "request_states.item", use_float=True):
        at_least -= 1
        yield state
    if at_least > 0:
        raise ValueError("instances that have a score are missing")


def _is_shown(stat: Mapping[str, Any]) -> bool:
    return stat["name"].get("split") == "test" and "perturbation" not in stat["name"] and stat.get("mean") is not None


def _length(spec: Mapping[str, Any]) -> str:
    """The label; empty if the benchmark has no lengths."""
    length = spec["scenario_spec"]["args"].get("length")
    return "" if length is None else length_label(int(length))


def _codes(lacks: Iterable[Lack]) -> str:
    return ";".join(lack.code for lack in lacks)


def _all_codes(scores: Sequence[Score], wanted: Iterable[Task]) -> str:
    """Codes of scores, once each, and of tasks that should be among them and are not.

    A published score of a whole category has no task, and lacks none.
    """
    has = {score.task for score in scores}
    missing = [Lack("missing", task.name).code for task in wanted if not has & {task.name, ""}]
    return ";".join(dict.fromkeys([*missing, *(code for score in scores for code in score.lacking.split(";") if code)]))


def _tasks_of(category: Category, cell: Cell) -> tuple[Task, ...]:
    """The tasks that an average over a category's tasks should have."""
    return category.tasks_at(parse_length(cell.length)) if cell.length else category.tasks


def _counts(run: Path, stats: Iterable[Mapping[str, Any]], tasks: Iterable[Task]) -> dict[tuple[str, str], int]:
    """Of how many instances each statistic of each task is the mean, as far as that is written."""
    path = run / "per_instance_stats.json"
    rows = read_json(path)
    with reading(path):
        # An instance that is asked several times is one.
        each = {(row["instance_id"], *_key(stat)) for row in rows for stat in row["stats"] if _is_shown(stat)}
    counts = dict(Counter((name, task) for _, name, task in each))
    for task in tasks:  # a mean of means is no instance's
        headline = max(counts.get((name, task.name), 0) for name in (MAIN_METRIC, *task.headline))
        counts |= {(name, task.name): headline for name in (MAIN_METRIC, task_score(task.name))}
    whole = {_key(stat): int(stat["mean"]) for stat in stats if stat["name"]["name"] == "num_instances"}
    return counts | whole


def _key(stat: Mapping[str, Any]) -> tuple[str, str]:
    """Statistic and task."""
    return stat["name"]["name"], stat["name"].get("sub_split", "")


def _instance_scores(run: Path) -> dict[str, float]:
    path = run / "per_instance_stats.json"
    rows = read_json(path)
    with reading(path):
        return {
            row["instance_id"]: stat["mean"]
            for row in rows
            for stat in row["stats"]
            if stat["name"]["name"] == MAIN_METRIC and stat.get("mean") is not None
        }
