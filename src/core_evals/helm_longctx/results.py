"""Makes NeMo Evaluator's results and the files of its output folder from the runs of a suite."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from helm_longctx.results.boards import average
from helm_longctx.results.reading import Result, read_run
from helm_longctx.results.statistics.intervals import standard_error
from helm_longctx.runs.files import (
    INSTANCE_STATS,
    STATES,
    STATS,
    State,
    read_rows,
    read_run_specs,
    read_states,
    repeat_of,
)
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.groups import group_name
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import MAIN_METRIC

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
    for path, spec in read_run_specs(suite):
        if (path / STATS).is_file():
            results = read_run(path, spec, BENCHMARKS)
            # HELM's own runs have no tasks: theirs is the entry's group.
            names = {"": _group_of(spec)}
            if results and results[0].run and results[0].run.tasks:
                benchmark = next(each for each in BENCHMARKS if each.name == results[0].benchmark)
                names = {
                    task.name: _group_name(benchmark, task.name, spec)
                    for task in results[0].run.tasks
                }
            found = {
                names[result.task]: _scores(result) for result in results if result.task in names
            }
            tasks |= found
            groups[_group_of(spec)] = (
                next(iter(found.values())) if len(found) == 1 else _mean(results)
            )
    return {"tasks": _wrap(tasks), "groups": _wrap(groups)}


def _wrap(results: Mapping[str, Scores]) -> dict[str, Any]:
    return {name: {"metrics": {"score": {"scores": scores}}} for name, scores in results.items()}


def _group_of(spec: Mapping[str, Any]) -> str:
    """Return the group of the category without judge and folder; the entry's group, the last one of HELM's own runs."""
    # All runs of a suite have the same judges and files. Without them, results always have the same names.
    entry = spec["scenario_spec"].get("args", {}).get("entry")
    benchmark = next((each for each in BENCHMARKS if entry in each.entries), None)
    if benchmark is None:
        return str(spec["groups"][-1])
    return _group_name(benchmark, benchmark.entries[entry].name, spec)


def _group_name(benchmark: Benchmark, part: str, spec: Mapping[str, Any]) -> str:
    arguments = spec["scenario_spec"]["args"]
    length = length_label(arguments["length"]) if "length" in arguments else ""
    return group_name(benchmark, part, length, arguments.get("context") == "none")


def _scores(result: Result) -> Scores:
    """Return the statistics of a task: the means on HELM's pages, and the spread over answers."""
    values: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for row in result.answers:
        main = {} if row.score is None else {MAIN_METRIC: row.score}
        for name, value in {**row.values, **main}.items():
            values[name].append((value, row.group))
    scores: Scores = {}
    for name, statistic in result.statistics.items():
        spread: dict[str, float] = {}
        if name in values:
            numbers, groups = zip(*values[name], strict=True)
            spread = {
                "count": len(numbers),
                "min": min(numbers),
                "max": max(numbers),
                "mean": fmean(numbers),
            }
            spread["stddev"] = pstdev(numbers)
            if not math.isnan(error := standard_error(numbers, groups)):
                spread["stderr"] = error
        scores[name] = {"value": statistic.interval.mean, "stats": spread}
    return scores


def _mean(results: Sequence[Result]) -> Scores:
    """Return the score of a run with several tasks: the unweighted mean of their scores."""
    scored = [result for result in results if result.has_score]
    if not scored or not scored[0].run:
        return {}
    mean = average(scored[0].entry, scored[0].run.tasks, scored)
    errors = [each.statistics[MAIN_METRIC].error for each in scored]
    known = {} if any(map(math.isnan, errors)) else {"stderr": math.hypot(*errors) / len(errors)}
    count = sum(row.score is not None for each in scored for row in each.answers)
    return {MAIN_METRIC: {"value": mean.interval.mean, "stats": {"count": count, **known}}}


def write_files(suite: Path, folder: Path) -> None:
    """Write `responses/`, `instances.jsonl` and `results.jsonl` from a suite's runs.

    Long prompts are shortened, as in the run's own files; `helm-longctx show` prints them whole.

    Raises:
        InputError: a file of a run is damaged.
    """
    runs = [run for run, _ in read_run_specs(suite) if (run / STATS).is_file()]
    _write_lines(folder / "instances.jsonl", _instances(runs))
    rows = ({"run": run.name, **row} for run in runs for row in read_rows(run / INSTANCE_STATS))
    _write_lines(folder / "results.jsonl", rows)
    (folder / "responses").mkdir(exist_ok=True)
    for run in runs:
        responses = map(_response, read_states(run / STATES))
        _write_lines(folder / "responses" / f"{run.name}.jsonl", responses)


def _instances(runs: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Yield the instances of runs, each once for all of its repeats."""
    for run in runs:
        for state in read_states(run / STATES):
            if repeat_of(state) == 0:
                yield {"run": run.name, **state["instance"]}


def _response(state: State) -> dict[str, Any]:
    """Return the result of a request as HELM has it, with what is known of the answer besides."""
    result = state.get("result") or {}
    instance = state["instance"]
    response = {
        "id": instance["id"],
        "task": instance.get("sub_split"),
        "repeat": repeat_of(state),
    }
    for name in ("success", "completions", "error", "facts"):
        response[name] = result.get(name)
    return response


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
