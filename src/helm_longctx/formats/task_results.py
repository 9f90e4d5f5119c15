"""Reads the results of a suite's runs by task, for exports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from helm_longctx.errors import InputError
from helm_longctx.protocol.benchmark import Benchmark, Metric
from helm_longctx.protocol.entry import Entry
from helm_longctx.protocol.task import MAIN_METRIC, Task
from helm_longctx.report.answers import answer_record, entry_of
from helm_longctx.report.export import Score, scores
from helm_longctx.runs.files import RUN_SPEC, STATES, State, read_json, read_states
from helm_longctx.runs.scores import InstanceScore, read_scores

HEADLINE = Metric(MAIN_METRIC, "Score", "The task's official headline metric, 0 to 1.")


@dataclass(frozen=True)
class TaskResult:
    """The result of a model in a task at a length.

    Args:
        folder: the run's folder.
        spec: content of the folder's `run_spec.json`.
        entry: the run entry of this task alone.
        scores: the statistics of the task by name.
    """

    folder: Path
    spec: Mapping[str, Any]
    entry: Entry
    scores: Mapping[str, Score]

    @property
    def task(self) -> Task:
        """The task."""
        return self.entry.tasks[0]

    @property
    def name(self) -> str:
        """The name of the task's run group, such as `helmet_nq_8k`, which is unique for task and length."""
        return self.entry.groups[-1]

    @property
    def any_score(self) -> Score:
        """Any statistic, for the fields that all of them share."""
        return next(iter(self.scores.values()))

    @property
    def num_examples(self) -> int:
        """Number of examples in the run."""
        count = self.scores.get("num_instances")
        return round(count.score) if count else self.num_scored

    @property
    def num_scored(self) -> int:
        """Number of the examples with a score."""
        main = self.scores.get(MAIN_METRIC)
        return (main.instances or 0) if main else 0

    def metrics(self) -> Iterator[tuple[Metric, Score]]:
        """Yield the headline and the official metrics that have a value."""
        known = {metric.name: metric for metric in self.entry.benchmark.metrics}
        for metric in (HEADLINE, *(known[name] for name in self.task.metrics if name in known)):
            if metric.name in self.scores:
                yield metric, self.scores[metric.name]

    def answers(self) -> Iterator[tuple[State, InstanceScore | None, str]]:
        """Yield the request states of the task with their scores and records, one state in memory at a time."""
        rows = read_scores(self.folder, [self.entry.benchmark])
        by_key = {(row.instance, row.repeat): row for row in rows if row.task == self.task.name}
        for state in read_states(self.folder / STATES):
            instance = state["instance"]
            if instance.get("sub_split", "") == self.task.name and not instance.get("perturbation"):
                key = (instance["id"], state.get("train_trial_index", 0))
                yield state, by_key.get(key), answer_record(state)


def task_results(suite: Path, benchmarks: Iterable[Benchmark]) -> Iterator[TaskResult]:
    """Yield the result of each task in each finished run with answers, in the order of the runs' names.

    Raises:
        InputError: a file of a run is damaged.
    """
    benchmarks = tuple(benchmarks)
    rows = [row for row in scores(suite, benchmarks) if row.task]
    for run, of_run in groupby(rows, key=lambda row: row.run):
        folder = suite / run.replace("/", "_")
        if not (folder / STATES).is_file():
            continue  # published results
        spec = read_json(folder / RUN_SPEC)
        by_task: dict[str, dict[str, Score]] = {}
        for row in of_run:
            by_task.setdefault(row.task, {})[row.metric] = row
        benchmark = next(each for each in benchmarks if spec["scenario_spec"]["args"]["entry"] in each.entries)
        for task, statistics in by_task.items():
            yield TaskResult(folder, spec, _entry(folder, benchmark, spec, task), statistics)


def best_of(results: Iterable[TaskResult]) -> dict[tuple[str, str], TaskResult]:
    """Return for each model and task the result with the most answers, by the model's and the task's name."""
    best: dict[tuple[str, str], TaskResult] = {}
    for result in results:
        key = (result.any_score.model, result.name)
        if key not in best or result.num_scored > best[key].num_scored:
            best[key] = result
    return best


def _entry(folder: Path, benchmark: Benchmark, spec: Mapping[str, Any], task: str) -> Entry:
    try:
        return entry_of(benchmark, spec, task)
    except InputError as error:
        raise InputError(f"{folder / RUN_SPEC}: {error}") from error
