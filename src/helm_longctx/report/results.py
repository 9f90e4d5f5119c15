"""Computes scores with intervals of tasks, categories and whole benchmarks, from runs and published tables."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from helm_longctx.protocol.benchmark import Benchmark, Category
from helm_longctx.protocol.entry import folder_name, group_name
from helm_longctx.protocol.metric_names import CONDITIONS, task_score
from helm_longctx.protocol.task import MAIN_METRIC, Task
from helm_longctx.report.comparability import Lack, describe, find_outcome, task_lacks
from helm_longctx.report.reference import read_reference
from helm_longctx.runs.files import INSTANCE_STATS, STATS, read_json, read_rows, read_run_specs, reading
from helm_longctx.runs.scores import InstanceScore, read_scores
from helm_longctx.statistics.intervals import Interval, mean_interval, mean_of_means

PUBLISHED = "published/"
"""Start of the names of published models."""


@dataclass(frozen=True)
class Result:
    """A model's score in a task or a category at a length.

    Args:
        benchmark: the benchmark's name.
        category: the category's name; empty if the benchmark has one category.
        task: the task's name; empty for the score of a whole category.
        length: the length; None if the benchmark has no lengths.
        context: `full`, or `none` for closed-book runs.
        interval: mean and 95 % interval. The ends are NaN if instances are unknown, as in published tables.
        judges: the judges of the answers; empty for a task without a judge.
        lacks: the reasons why the score is not comparable.
        rows: the scores of the answers; empty for published scores and for categories.
        folder: the folder of the user's own files; empty if there are none.
    """

    benchmark: str
    category: str
    task: str
    model: str
    length: int | None
    context: str
    interval: Interval
    judges: frozenset[str] = frozenset()
    lacks: tuple[Lack, ...] = ()
    rows: tuple[InstanceScore, ...] = ()
    folder: str = ""


class Overall(NamedTuple):
    """A model's overall score in a benchmark at a length.

    Args:
        interval: the score with its interval; None if there is no overall score.
        reason: the reason why there is none; empty if there is one.
    """

    model: str
    length: int | None
    interval: Interval | None
    reason: str


def read_results(suite: Path, benchmarks: Iterable[Benchmark]) -> list[Result]:
    """Read the scores of tasks in a suite's finished runs, in the order of the runs' names, and the published scores.

    Of several runs of one task, model and length, the run with the most answers counts.

    Raises:
        InputError: a file of a run is damaged.
    """
    benchmarks = tuple(benchmarks)
    runs = (result for run, spec in read_run_specs(suite) for result in run_results(run, spec, benchmarks))
    return [*best_results(runs), *reference_results(suite, benchmarks)]


def best_results(results: Iterable[Result]) -> list[Result]:
    """Return for each task, folder, model, length and context the result with the most answers.

    Of results with equally many answers, those of the official judge count.
    """
    best: dict[tuple[Any, ...], Result] = {}
    for result in results:
        key = (
            *(result.benchmark, result.folder, result.category, result.task),
            *(result.model, result.length, result.context),
        )
        # The comparison is strict, so that the first of equally good runs counts.
        if key not in best or _weight(result) > _weight(best[key]):
            best[key] = result
    return list(best.values())


def _weight(result: Result) -> tuple[int, bool]:
    return result.interval.n, all(lack.kind != "judge" for lack in result.lacks)


def reference_results(suite: Path, benchmarks: Iterable[Benchmark]) -> list[Result]:
    """Return the published results that a suite has."""
    return [
        result
        for benchmark in benchmarks
        for run in read_reference(suite, [benchmark])
        for result in _published_run(benchmark, _category(benchmark, run.spec), run.spec, run.stats)
    ]


def _category(benchmark: Benchmark, spec: Mapping[str, Any]) -> str:
    return benchmark.entries[spec["scenario_spec"]["args"]["entry"]].name


def statistic_intervals(rows: Iterable[InstanceScore]) -> dict[tuple[str, str], Interval]:
    """Return the mean and interval of every statistic of each task in a run, except the `CONDITIONS`.

    Args:
        rows: the answers of a run.

    Returns:
        From (task, statistic) to interval. A task's score is also there under its name in columns.
    """
    return {key: mean_interval(*values) for key, values in statistic_values(rows).items()}


def statistic_values(rows: Iterable[InstanceScore]) -> dict[tuple[str, str], tuple[list[float], list[str]]]:
    """Return the values of the statistics for `statistic_intervals`, and their groups."""
    values: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    for row in rows:
        scores = {name: value for name, value in row.values.items() if name not in CONDITIONS}
        scores |= {MAIN_METRIC: row.score} if row.score is not None else {}
        for name, value in scores.items():
            values[row.task, name].append((value, row.group))
    columns = {key: ([value for value, _ in pairs], [group for _, group in pairs]) for key, pairs in values.items()}
    scores_of_tasks = {key: each for key, each in columns.items() if key[1] == MAIN_METRIC}
    return columns | {(task, task_score(task)): each for (task, _), each in scores_of_tasks.items()}


def published_results(benchmark: Benchmark) -> list[Result]:
    """Return the published scores of tasks, or of categories if the publication has only those."""
    return [
        Result(benchmark.name, row.category, task, f"{PUBLISHED}{row.model}", row.length, "full", _without_ends(score))
        for row in benchmark.published()
        for task, score in row.scores.items()
    ]


def category_results(results: Iterable[Result], benchmark: Benchmark) -> list[Result]:
    """Average the results of the tasks of each category, for each model, length and context.

    If tasks of the category are missing at a length, they are in the mean's `lacks`. A published score of a whole
    category is returned unchanged.
    """
    groups: dict[tuple[str, str, str, int | None, str], list[Result]] = defaultdict(list)
    for result in results:
        if result.benchmark == benchmark.name:
            groups[result.category, result.folder, result.model, result.length, result.context].append(result)
    categories = {category.name: category for category in benchmark.categories}
    return [_of_category(categories[name], rows) for (name, *_), rows in groups.items()]


def split_folders(results: Iterable[Result], benchmark: Benchmark) -> Iterator[tuple[Benchmark, list[Result]]]:
    """Yield a benchmark with its results, or for each folder of the user's own files a benchmark of its own."""
    own = [result for result in results if result.benchmark == benchmark.name]
    for folder in dict.fromkeys(result.folder for result in own) or [""]:
        part = benchmark
        if folder:
            name = group_name(benchmark, "", "", folder=folder)
            part = replace(benchmark, name=name, title=f"{benchmark.title} {folder}")
        yield part, [replace(result, benchmark=part.name) for result in own if result.folder == folder]


def overall_results(categories: Iterable[Result], benchmark: Benchmark) -> list[Overall]:
    """Average the categories of each model at each length, if the benchmark declares an overall score.

    There is a score only if all categories are complete, and if categories with the same official judge had one judge.

    Args:
        categories: results of `category_results`.
    """
    if not benchmark.overall:
        return []
    groups: dict[tuple[str, int | None], dict[str, Result]] = defaultdict(dict)
    for result in categories:
        if result.context == "full":
            groups[result.model, result.length][result.category] = result
    return [_overall(benchmark, model, length, found) for (model, length), found in groups.items()]


def run_results(run: Path, spec: Mapping[str, Any], benchmarks: Sequence[Benchmark]) -> Iterator[Result]:
    """Yield the score of each task of a run; nothing for a run of another package's scenario.

    Raises:
        InputError: a file of the run is damaged.
    """
    arguments = spec["scenario_spec"].get("args", {})
    benchmark = next((each for each in benchmarks if arguments.get("entry") in each.entries), None)
    if benchmark is None or not (run / STATS).is_file():
        return
    category = _category(benchmark, spec)
    stats = read_json(run / STATS)
    # Suites of earlier versions have a run of this form for each published model.
    if next(read_rows(run / INSTANCE_STATS), None) is None:
        with reading(run / STATS):
            yield from _published_run(benchmark, category, spec, stats)
        return
    outcome = find_outcome(spec, stats, benchmarks)
    tasks = {task.name: task for task in outcome.tasks} if outcome else {}
    by_task: dict[str, list[InstanceScore]] = defaultdict(list)
    for row in read_scores(run, [benchmark]):
        by_task[row.task].append(row)
    for name, rows in by_task.items():
        task, first = tasks.get(name), rows[0]
        yield Result(
            benchmark.name,
            category,
            name,
            first.model,
            first.length,
            first.context,
            interval_of(rows),
            _judges(task, first.judge),
            tuple(task_lacks(outcome, task)) if outcome and task else (),
            tuple(rows),
            folder_name(arguments.get("path")),
        )


def _judges(task: Task | None, judge: str) -> frozenset[str]:
    """Return a run's judge: the one that its entry names, or the official one on any host. Empty without a judge."""
    if task is None or task.official_judge is None:
        return frozenset()
    return frozenset([task.official_judge if not judge or task.is_official(judge) else judge])


def interval_of(rows: Iterable[InstanceScore]) -> Interval:
    """Return the mean of the answers' scores, clustered by their groups; repeats of a question are one cluster."""
    scored = [(row.score, row.group) for row in rows if row.score is not None]
    return mean_interval([score for score, _ in scored], [group for _, group in scored])


def _published_run(
    benchmark: Benchmark, category: str, spec: Mapping[str, Any], stats: Iterable[Mapping[str, Any]]
) -> Iterator[Result]:
    length, model = spec["scenario_spec"]["args"].get("length"), spec["adapter_spec"]["model"]
    for stat in stats:
        if stat["name"]["name"] == MAIN_METRIC:
            task = stat["name"].get("sub_split", "")
            yield Result(benchmark.name, category, task, model, length, "full", _without_ends(stat["mean"]))


def _without_ends(score: float) -> Interval:
    return Interval(score, math.nan, math.nan, 0)


def _of_category(category: Category, rows: Sequence[Result]) -> Result:
    whole = [row for row in rows if not row.task]
    if whole:
        return whole[0]
    scores = {row.task: row for row in rows if not math.isnan(row.interval.mean)}
    expected = category.tasks_at(rows[0].length)
    missing = [Lack("missing", task.name) for task in expected if task.name not in scores]
    # A run of a variant is not in the mean, only the tasks of the category are.
    counted = [scores[task.name] for task in expected if task.name in scores]
    return replace(
        rows[0],
        task="",
        interval=mean_of_means([row.interval for row in counted]),
        judges=frozenset(judge for row in counted for judge in row.judges),
        lacks=(*missing, *(lack for row in counted for lack in row.lacks)),
        rows=(),
    )


def _overall(benchmark: Benchmark, model: str, length: int | None, found: Mapping[str, Result]) -> Overall:
    categories = [each for each in benchmark.categories if each.averaged]
    missing = [category.title for category in categories if category.name not in found]
    reasons = [f"no {', '.join(missing)}"] if missing else []
    for category in categories:
        # Another judge is allowed if it judged all categories alike, which is checked below.
        if lacks := [each for each in found[category.name].lacks if each.kind != "judge"] if not missing else []:
            reasons.append(f"{category.title}: {'; '.join(describe(lacks))}")
    reasons += _judge_reasons(categories, found)
    if reasons:
        return Overall(model, length, None, "; ".join(reasons))
    return Overall(model, length, mean_of_means([found[category.name].interval for category in categories]), "")


def _judge_reasons(categories: Sequence[Category], found: Mapping[str, Result]) -> Iterator[str]:
    """Yield reasons for categories that had several judges instead of one official judge, as published scores had."""
    judges: dict[str, dict[str, None]] = defaultdict(dict)
    for category in categories:
        for official in {task.official_judge for task in category.tasks if task.official_judge}:
            if category.name in found:
                judges[official].update(dict.fromkeys(sorted(found[category.name].judges)))
    for official, used in judges.items():
        if len(used) > 1:
            yield f"judged by {' and '.join(used)} (the benchmark's judge is {official})"
