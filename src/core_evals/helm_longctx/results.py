"""Makes NeMo Evaluator's results and the files of its output folder from the runs of a suite."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.protocol.entry import base_group
from helm_longctx.protocol.task import MAIN_METRIC
from helm_longctx.report.comparability import find_outcome
from helm_longctx.runs.files import INSTANCE_STATS, STATES, STATS, read_json, read_rows, read_run_specs, read_states
from helm_longctx.runs.scores import InstanceScore, read_scores
from helm_longctx.statistics.intervals import standard_error

Scores = dict[str, dict[str, Any]]
"""From the name of a statistic to its `value` and `stats`, as in NeMo Evaluator's `Score`."""


def read_results(suite: Path) -> dict[str, Any]:
    """Read the scores of a suite's runs in the form of NeMo Evaluator's `EvaluationResult`.

    Returns:
        `tasks`: every statistic of each task, by its run group; `groups`: the score of each run entry, which is the
        unweighted mean over its tasks.

    Raises:
        InputError: there is no finished run, or a file is damaged.
    """
    tasks: dict[str, Scores] = {}
    groups: dict[str, Scores] = {}
    for run, spec in read_run_specs(suite):
        if (run / STATS).is_file():
            names = _group_names(run, spec)
            found = {names[task]: scores for task, scores in _read_run(run).items() if task in names}
            tasks |= found
            groups[_group_of(spec)] = _mean(list(found.values()))
    return {"tasks": _wrap(tasks), "groups": _wrap(groups)}


def _wrap(results: Mapping[str, Scores]) -> dict[str, Any]:
    return {name: {"metrics": {"score": {"scores": scores}}} for name, scores in results.items()}


def _group_of(spec: Mapping[str, Any]) -> str:
    """Return the category's group, the first one of our runs; the entry's group, the last one of HELM's own runs."""
    # All runs of a suite have the same judges and files. Without them, results always have the same names.
    return base_group(spec["groups"][0 if "entry" in spec["scenario_spec"].get("args", {}) else -1])


def _group_names(run: Path, spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the run group of each task of a run. HELM's own runs have no tasks: theirs is the entry's group."""
    outcome = find_outcome(spec, read_json(run / STATS), BENCHMARKS)
    if outcome is None:
        return {"": _group_of(spec)}
    groups = map(base_group, spec["groups"][1:])
    return dict(zip((task.name for task in outcome.tasks), groups, strict=True))


def _read_run(run: Path) -> dict[str, Scores]:
    """Return the statistics of each task: the means on HELM's pages, and the spread over answers."""
    values = _values(read_scores(run, BENCHMARKS))
    results: dict[str, Scores] = defaultdict(dict)
    for stat in read_json(run / STATS):
        name = stat["name"]
        if name.get("split", "test") == "test" and "perturbation" not in name and stat.get("mean") is not None:
            task = name.get("sub_split", "")
            spread = _spread(values.get((task, name["name"]), []))
            results[task][name["name"]] = {"value": stat["mean"], "stats": spread}
    return results


def _values(rows: Iterable[InstanceScore]) -> dict[tuple[str, str], list[tuple[float, str]]]:
    """Return the value and the cluster of every answer, by task and statistic."""
    values: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    for row in rows:
        main = {} if row.score is None else {MAIN_METRIC: row.score}
        for name, value in {**row.values, **main}.items():
            values[row.task, name].append((value, row.group))
    return values


def _spread(pairs: list[tuple[float, str]]) -> dict[str, float]:
    if not pairs:
        return {}
    values, groups = zip(*pairs, strict=True)
    spread = {
        "count": len(values),
        "min": min(values),
        "max": max(values),
        "mean": fmean(values),
        "stddev": pstdev(values),
    }
    error = standard_error(values, groups)
    return spread if math.isnan(error) else {**spread, "stderr": error}


def _mean(tasks: list[Scores]) -> Scores:
    """Return a category's score: the unweighted mean of its tasks' main metric, or all statistics of a single task."""
    if len(tasks) == 1:
        return tasks[0]
    scores = [scores[MAIN_METRIC] for scores in tasks if MAIN_METRIC in scores]
    if not scores:
        return {}
    errors = [score["stats"].get("stderr") for score in scores]
    known = {} if None in errors else {"stderr": math.hypot(*errors) / len(errors)}
    count = sum(score["stats"].get("count", 0) for score in scores)
    return {MAIN_METRIC: {"value": fmean(score["value"] for score in scores), "stats": {"count": count, **known}}}


def write_files(suite: Path, folder: Path) -> None:
    """Write `responses/`, `instances.jsonl` and `results.jsonl` from a suite's runs.

    Long prompts are shortened, as in the run's own files; `helm-longctx show` prints them whole.

    Raises:
        InputError: a file of a run is damaged.
    """
    runs = [run for run, _ in read_run_specs(suite) if (run / STATS).is_file()]
    _write_lines(folder / "instances.jsonl", (row for run in runs for row in _instances(run)))
    _write_lines(folder / "results.jsonl", (row for run in runs for row in _results(run)))
    (folder / "responses").mkdir(exist_ok=True)
    for run in runs:
        _write_lines(folder / "responses" / f"{run.name}.jsonl", _responses(run))


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _instances(run: Path) -> Iterator[dict[str, Any]]:
    for state in read_states(run / STATES):
        if not state.get("train_trial_index"):
            yield {"run": run.name, **state["instance"]}


def _responses(run: Path) -> Iterator[dict[str, Any]]:
    for state in read_states(run / STATES):
        instance, result = state["instance"], state.get("result") or {}
        place = {"id": instance["id"], "task": instance.get("sub_split"), "repeat": state.get("train_trial_index", 0)}
        yield {**place, **{name: result.get(name) for name in ("success", "completions", "error")}}


def _results(run: Path) -> Iterator[dict[str, Any]]:
    for row in read_rows(run / INSTANCE_STATS):
        yield {"run": run.name, **row}
