"""Makes NeMo Evaluator's results and the files of its output folder from the runs of a suite."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, TextIO

from helm_longctx.errors import InputError
from helm_longctx.results.boards import average
from helm_longctx.results.reading import Result, read_run
from helm_longctx.results.statistics.intervals import standard_error
from helm_longctx.runs.files import (
    RUN_SPEC,
    STATS,
    find_runs,
    read_json,
    read_run_spec,
    read_undamaged,
    reading,
)
from helm_longctx.runs.records import Record, read_records
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.groups import group_name
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.metric_names import GENERATED_DATA
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import GENERATED_SOURCE, MAIN_METRIC
from helm_longctx.writing import replacing

_TaskScores = dict[str, dict[str, Any]]
"""From the name of a statistic to its `value` and `stats`, as in NeMo Evaluator's `Score`."""


def read_results(suite: Path) -> dict[str, Any]:
    """Read the scores of a suite's runs in the form of NeMo Evaluator's `EvaluationResult`.

    A damaged run is left out with a warning.

    Returns:
        `tasks`: every statistic of each task, by its run group; `groups`: the score of each run entry, which is the
        unweighted mean over its tasks, and the share of its questions that this package made in place of the
        benchmark's own.

    Raises:
        InputError: all runs are damaged.
    """
    tasks: dict[str, _TaskScores] = {}
    groups: dict[str, _TaskScores] = {}
    for _, run in read_undamaged(_find_finished_runs(suite), _read_scores):
        tasks |= run.tasks
        groups[run.group] = run.scores
    return {"tasks": _wrap(tasks), "groups": _wrap(groups)}


@dataclass(frozen=True)
class RunScores:
    """The scores of a run.

    Args:
        group: the name of its run entry's group.
        scores: the statistics of the run entry.
        tasks: the statistics of each of its tasks, by run group.
    """

    group: str
    scores: _TaskScores
    tasks: Mapping[str, _TaskScores]


def _find_finished_runs(suite: Path) -> list[Path]:
    return [run for run in find_runs(suite) if (run / STATS).is_file()]


def _read_scores(path: Path) -> RunScores:
    """Read the scores of a finished run, or raise an `InputError`."""
    spec = read_run_spec(path)
    results = read_run(path, spec, BENCHMARKS)
    with reading(path / RUN_SPEC):
        group = _group_of(spec)
    # HELM's own runs have no tasks: theirs is the entry's group.
    names = {"": group}
    if results and results[0].run and results[0].run.tasks:
        benchmark = next(
            benchmark
            for benchmark in BENCHMARKS
            if benchmark.name == results[0].benchmark
        )
        names = {
            task.name: _group_name(benchmark, task.name, spec)
            for task in results[0].run.tasks
        }
    tasks = {
        names[result.task]: _scores(result)
        for result in results
        if result.task in names
    }
    scores = next(iter(tasks.values())) if len(tasks) == 1 else _mean(results)
    return RunScores(group=group, scores=scores, tasks=tasks)


def _wrap(results: Mapping[str, _TaskScores]) -> dict[str, Any]:
    return {
        name: {"metrics": {"score": {"scores": scores}}}
        for name, scores in results.items()
    }


def _group_of(spec: Mapping[str, Any]) -> str:
    """Return the group of the category without judge and folder; the entry's group, the last one of HELM's own runs."""
    # All runs of a suite have the same judges and files. Without them, results always have the same names.
    entry = spec["scenario_spec"].get("args", {}).get("entry")
    benchmark = next(
        (candidate for candidate in BENCHMARKS if entry in candidate.entries), None
    )
    if benchmark is None:
        return str(spec["groups"][-1])
    return _group_name(benchmark, benchmark.entries[entry].name, spec)


def _group_name(benchmark: Benchmark, part: str, spec: Mapping[str, Any]) -> str:
    arguments = spec["scenario_spec"]["args"]
    length = length_label(arguments["length"]) if "length" in arguments else ""
    return group_name(benchmark, part, length, arguments.get("context") == "none")


def _scores(result: Result) -> _TaskScores:
    """Return the statistics of a task: the means on HELM's pages, and the spread over answers."""
    values: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for row in result.answers:
        main = {} if row.score is None else {MAIN_METRIC: row.score}
        for name, value in {**row.values, **main}.items():
            values[name].append((value, row.group))
    scores: _TaskScores = {}
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


def _mean(results: Sequence[Result]) -> _TaskScores:
    """Return the score of a run with several tasks: the unweighted mean of their scores."""
    scored = [result for result in results if result.has_score]
    if not scored or not scored[0].run:
        return {}
    mean = average(scored[0].entry, scored[0].run.tasks, scored)
    errors = [result.statistics[MAIN_METRIC].error for result in scored]
    known = (
        {}
        if any(map(math.isnan, errors))
        else {"stderr": math.hypot(*errors) / len(errors)}
    )
    count = sum(row.score is not None for result in scored for row in result.answers)
    scores: _TaskScores = {
        MAIN_METRIC: {"value": mean.interval.mean, "stats": {"count": count, **known}}
    }
    generated = [
        result.statistics[GENERATED_DATA].interval.mean
        for result in scored
        if GENERATED_DATA in result.statistics
    ]
    if generated:
        scores[GENERATED_DATA] = {"value": fmean(generated), "stats": {}}
    return scores


def write_files(suite: Path, folder: Path) -> None:
    """Write `responses/`, `instances.jsonl` and `results.jsonl` from a suite's runs.

    Long prompts are shortened, as in the run's own files; `helm-longctx show` prints them whole. A damaged run is left
    out with a warning.

    Raises:
        InputError: all runs are damaged.
    """
    (folder / "responses").mkdir(exist_ok=True)
    with (
        _writing(folder / "instances.jsonl") as instances,
        _writing(folder / "results.jsonl") as statistics,
    ):

        def write_run(run: Path) -> None:
            # A run that has no scores because of a damaged file has no lines, either.
            read_run_spec(run)
            read_json(run / STATS)
            ends = [(file, file.tell()) for file in (instances, statistics)]
            responses = folder / "responses" / f"{run.name}.jsonl"
            try:
                with _writing(responses) as file:
                    for record in read_records(run):
                        _write_line(file, _describe_response(record))
                        # Repeats are of the same instances.
                        if record.repeat == 0:
                            instance = record.to_state()["instance"]
                            _write_line(instances, {"run": run.name, **instance})
                        if record.values:
                            _write_line(
                                statistics, {"run": run.name, **record.to_row()}
                            )
            except InputError:
                # An earlier call can have written it.
                responses.unlink(missing_ok=True)
                for file, end in ends:
                    file.seek(end)
                    file.truncate()
                raise

        for _ in read_undamaged(_find_finished_runs(suite), write_run):
            pass


@contextmanager
def _writing(path: Path) -> Iterator[TextIO]:
    """Yield a text file, which takes the place of the one with this path at the end of the block."""
    with replacing(path) as part, part.open("w", encoding="utf-8") as file:
        yield file


def _describe_response(record: Record) -> dict[str, Any]:
    """Return the result of a request as HELM has it, with what is known of the answer besides."""
    result = record.to_state().get("result") or {}
    sample = record.sample
    return {
        "id": record.instance,
        "task": record.task or None,
        "repeat": record.repeat,
        "generated_data": sample is not None and sample.source == GENERATED_SOURCE,
        "facts": result.get("facts"),
        "success": result.get("success"),
        "completions": result.get("completions"),
        "error": result.get("error"),
    }


def _write_line(file: TextIO, row: Mapping[str, Any]) -> None:
    file.write(json.dumps(row, ensure_ascii=False) + "\n")
