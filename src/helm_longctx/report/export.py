"""Exports a suite's scores and averages as tables for other programs."""

from __future__ import annotations

import csv
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from helm_longctx.protocol.benchmark import Benchmark, Category
from helm_longctx.protocol.entry import folder_name
from helm_longctx.protocol.lengths import length_label, parse_length
from helm_longctx.protocol.metric_names import AVERAGE, Cell, group_for_averages, task_score
from helm_longctx.protocol.task import MAIN_METRIC, Task
from helm_longctx.report.comparability import Lack, find_outcome, task_lacks
from helm_longctx.report.reference import read_reference
from helm_longctx.report.results import statistic_values
from helm_longctx.runs.files import (
    INSTANCE_STATS,
    RUN_SPEC,
    STATS,
    read_json,
    read_run_specs,
    reading,
)
from helm_longctx.runs.scores import read_scores
from helm_longctx.statistics.intervals import Interval, mean_interval, mean_of_means, standard_error


class Score(NamedTuple):
    """One statistic of a task in a run.

    Args:
        length: the length's label; empty if the benchmark has no lengths.
        score: the mean over the task's instances.
        low, high: the ends of the 95 % interval; None if they are unknown, as for published scores.
        error: the standard error, with the same clusters as the interval.
        failed: number of the task's requests without an answer, which are in no score.
        instances: number of instances with this statistic; None for published scores, where it is unknown.
        lacking: the reasons why the score is not comparable: codes of `Lack`, separated by `;`.
        package: version of helm-longctx that made the run; empty for older runs.
        comparability: the benchmark's comparability number; empty for older runs. Only runs with equal numbers are
            comparable.
        judge: the judge, as in run entries; empty if no judge decides the task's score.
        folder: name of the folder of the user's own files; empty for published benchmarks.
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
    package: str = ""
    comparability: str = ""
    judge: str = ""
    low: float | None = None
    high: float | None = None
    error: float | None = None
    failed: int | None = None
    folder: str = ""


class Average(NamedTuple):
    """A mean of `longctx_score` over the tasks at a length or over the lengths of a task.

    Args:
        task, length: `average` stands for the one over which the mean is.
        of: number of scores in the mean.
        low, high: the ends of the 95 % interval; None if those of a score are unknown, and for means over lengths.
        lacking: codes of `Lack` of these scores and of the category's tasks without a score, separated by `;`.
        package, comparability: the values of these scores, separated by `;`.
        judge: the judge of the scores that have one. No mean is over scores of two judges.
        folder: the folder of the scores. No mean is over scores of two folders.
    """

    model: str
    entry: str
    task: str
    length: str
    context: str
    score: float
    of: int
    lacking: str
    package: str = ""
    comparability: str = ""
    judge: str = ""
    low: float | None = None
    high: float | None = None
    folder: str = ""


def scores(suite: Path, benchmarks: Iterable[Benchmark]) -> Iterator[Score]:
    """Yield every statistic of every finished run, sorted by the runs' names, and then the published scores.

    Args:
        suite: the suite's folder, `<output path>/runs/<suite>`.

    Raises:
        InputError: a file of a run is damaged.
    """
    benchmarks = tuple(benchmarks)
    for run, spec in read_own_runs(suite):
        judges = _judges(spec, benchmarks)
        stats = read_json(run / STATS)
        with reading(run / STATS):
            outcome = find_outcome(spec, stats, benchmarks)
            rows = [stat for stat in stats if _is_test_stat(stat)]
        lacking = {t.name: _codes(task_lacks(outcome, t)) for t in outcome.tasks} if outcome else {}
        counts = _count_instances(run, rows, outcome.tasks if outcome else ())
        answered = read_scores(run, benchmarks)
        values, failed = statistic_values(answered), Counter(row.task for row in answered if row.failure)
        for stat in rows:
            name, task = _key(stat)
            count = counts.get((name, task), counts.get(("num_instances", task)))
            found = values.get((task, name))
            yield _score(spec, stat, count, lacking.get(task, ""), found, judges.get(task, ""), failed[task])
    for published in read_reference(suite, benchmarks):
        judges = _judges(published.spec, benchmarks)
        for stat in published.stats:
            yield _score(published.spec, stat, None, "", judge=judges.get(_key(stat)[1], ""))


def _score(
    spec: Mapping[str, Any],
    stat: Mapping[str, Any],
    count: int | None,
    lacking: str,
    values: tuple[list[float], list[str]] | None = None,
    judge: str = "",
    failed: int | None = None,
) -> Score:
    arguments, (name, task) = spec["scenario_spec"]["args"], _key(stat)
    group = (find_length(spec), arguments.get("context", "full"))
    error = standard_error(*values) if values else math.nan
    ends = _ends(mean_interval(*values) if values else None)
    about = (*group, name, stat["mean"], count, lacking, *find_versions(spec), judge, *ends)
    rest = (None if math.isnan(error) else error, failed, folder_name(arguments.get("path")))
    return Score(spec["name"], spec["adapter_spec"]["model"], arguments["entry"], task, *about, *rest)


def averages(scores: Iterable[Score], benchmarks: Iterable[Benchmark]) -> Iterator[Average]:
    """Yield the means over tasks at each length and over lengths of each task, for each run entry and model."""
    categories = {name: category for each in benchmarks for name, category in each.entries.items()}
    for (entry, context, folder, judge), cells in sorted(_group_scores(scores).items()):
        for cell, groups in group_for_averages(cells).items():
            mean = fmean(fmean(score.score for score in group) for group in groups)
            rows = [score for group in groups for score in group]
            tasks = _tasks_of(categories[entry], cell) if entry in categories and cell.task == AVERAGE else ()
            texts = (_all_codes(rows, tasks), _join(row.package for row in rows), _join(r.comparability for r in rows))
            # The same questions are asked at several lengths, so these means are not independent.
            parts = [mean_of_means([_interval(score) for score in group]) for group in groups]
            interval = mean_of_means(parts) if cell.task == AVERAGE else None
            about = (cell.model, entry, cell.task, cell.length, context)
            yield Average(*about, mean, len(groups), *texts, judge, *_ends(interval), folder)


_Group = tuple[str, str, str, str]
"""Entry, context, folder and judge: what all scores of a mean have in common."""


def _group_scores(scores: Iterable[Score]) -> dict[_Group, dict[Cell, list[Score]]]:
    """Group the main scores. Scores that no judge decides are in the group of each judge."""
    by_model: dict[_Group, list[Score]] = defaultdict(list)
    for score in scores:
        if score.metric == MAIN_METRIC:
            by_model[score.entry, score.context, score.folder, score.model].append(score)
    groups: dict[_Group, dict[Cell, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for (entry, context, folder, _), rows in by_model.items():
        for judge in {row.judge for row in rows if row.judge} or {""}:
            for row in rows:
                if row.judge in ("", judge):
                    groups[entry, context, folder, judge][Cell(row.model, row.task, row.length)].append(row)
    return groups


def _interval(score: Score) -> Interval:
    low, high = (math.nan if end is None else end for end in (score.low, score.high))
    return Interval(score.score, low, high, score.instances or 0)


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    # The difference is NaN if one of the ends is.
    if interval is None or math.isnan(interval.high - interval.low):
        return None, None
    return interval.low, interval.high


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write a CSV file, completely or not at all, and return the number of rows.

    The file has a byte-order mark, because spreadsheets misread Chinese text without it.
    """
    count = 0
    part = path.with_name(f"{path.name}.part")
    try:
        # The csv module writes the line ends. Answers of models can have lone surrogates, which UTF-8 does not allow.
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


def read_own_runs(suite: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield this package's finished runs with their run specs."""
    for run, spec in read_run_specs(suite):
        with reading(run / RUN_SPEC):
            ours = "entry" in spec["scenario_spec"].get("args", {})
            if ours:
                find_length(spec), spec["adapter_spec"]["model"]  # every row needs them
        if ours and (run / STATS).is_file():
            yield run, spec


def _is_test_stat(stat: Mapping[str, Any]) -> bool:
    return stat["name"].get("split") == "test" and "perturbation" not in stat["name"] and stat.get("mean") is not None


def find_versions(spec: Mapping[str, Any]) -> tuple[str, str]:
    """Return the package version and the comparability number in a run spec; empty in run specs of older versions."""
    packages = (metric.get("args", {}).get("package") for metric in spec["metric_specs"])
    return next(filter(None, packages), ""), str(spec["scenario_spec"]["args"].get("comparability", ""))


def _judges(spec: Mapping[str, Any], benchmarks: Iterable[Benchmark]) -> dict[str, str]:
    """Return the judge of each task with judged scores. The empty name stands for a published score of a category."""
    entry = spec["scenario_spec"]["args"]["entry"]
    category = next((each.entries[entry] for each in benchmarks if entry in each.entries), None)
    annotators = spec.get("annotators") or []
    judge = next((each.get("args", {}).get("judge", "auto") for each in annotators), "auto")
    judged = [task for task in (*category.tasks, *category.variants) if task.official_judge] if category else []
    judges = {task.name: (task.official_judge or "") if task.is_official(judge) else judge for task in judged}
    return {"": next(iter(judges.values()), ""), **judges}


def _join(values: Iterable[str]) -> str:
    return ";".join(dict.fromkeys(filter(None, values)))


def find_length(spec: Mapping[str, Any]) -> str:
    """Return the length's label; empty if the benchmark has no lengths."""
    length = spec["scenario_spec"]["args"].get("length")
    return "" if length is None else length_label(int(length))


def _codes(lacks: Iterable[Lack]) -> str:
    return ";".join(lack.code for lack in lacks)


def _all_codes(scores: Sequence[Score], tasks: Iterable[Task]) -> str:
    """Return the codes of scores, and one for each of `tasks` without a score.

    A published score of a whole category has no task and stands for all of them.
    """
    scored = {score.task for score in scores}
    missing = [Lack("missing", task.name).code for task in tasks if not scored & {task.name, ""}]
    return _join([*missing, *(code for score in scores for code in score.lacking.split(";"))])


def _tasks_of(category: Category, cell: Cell) -> tuple[Task, ...]:
    """Return the tasks whose scores an average over the category should have."""
    return category.tasks_at(parse_length(cell.length)) if cell.length else category.tasks


def _count_instances(
    run: Path, stats: Iterable[Mapping[str, Any]], tasks: Iterable[Task]
) -> dict[tuple[str, str], int]:
    """Return the number of instances in the mean of each statistic and task, as far as the run's files have it."""
    path = run / INSTANCE_STATS
    rows = read_json(path)
    with reading(path):
        # A set, because an instance with several repeats counts once.
        values = {(row["instance_id"], *_key(stat)) for row in rows for stat in row["stats"] if _is_test_stat(stat)}
    counts = dict(Counter((name, task) for _, name, task in values))
    for task in tasks:  # the score of a task with several headline metrics is a mean of means, which no instance has
        headline = max(counts.get((name, task.name), 0) for name in (MAIN_METRIC, *task.headline))
        counts |= {(name, task.name): headline for name in (MAIN_METRIC, task_score(task.name))}
    totals = {_key(stat): int(stat["mean"]) for stat in stats if stat["name"]["name"] == "num_instances"}
    return counts | totals


def _key(stat: Mapping[str, Any]) -> tuple[str, str]:
    """Return the statistic's name and its task."""
    return stat["name"]["name"], stat["name"].get("sub_split", "")
