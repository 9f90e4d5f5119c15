"""The results of a benchmark as the report shows them: a score with its interval for each model, part and length.

A part is a task, a category, or everything. Own runs have intervals from their instances. Of published results only
means are known; their intervals are the widest that the benchmark's sample sizes allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from helm_longctx.protocol.lengths import length_label
from helm_longctx.protocol.task import Benchmark, Category, Task
from helm_longctx.report.comparability import describe, find_outcome, task_lacks
from helm_longctx.report.reference import MAKER
from helm_longctx.runs.files import RUN_SPEC, STATS, read_json, read_run_specs, reading
from helm_longctx.runs.scores import InstanceScore, read_scores
from helm_longctx.statistics.intervals import Interval, mean_interval, mean_of_means

OVERALL = "overall"
"""The part that is the mean of a benchmark's columns."""

FLOORS = {"longctx/null": "null", "longctx/lexical": "lexical"}
"""The models whose scores need no understanding, and how plots call them."""

NO_SCORE = "no score"
"""Begins the reason of a category in which a task has no score."""

_QUANTILE = 1.96
"""The 97.5 % quantile of the normal distribution."""


class Place(NamedTuple):
    """What a score is of. `length` is None for a benchmark without lengths."""

    model: str
    part: str
    length: int | None


@dataclass(frozen=True)
class Result:
    """A score.

    Args:
        interval: the mean with its 95 % interval, 0 to 1.
        lacks: why the score is not comparable, each reason as a text.
        is_published: whether the benchmark's authors published it.
    """

    interval: Interval
    lacks: tuple[str, ...] = ()
    is_published: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether all tasks have a score."""
        return not any(lack.startswith(NO_SCORE) for lack in self.lacks)


class Value(NamedTuple):
    """The score of an answer.

    Args:
        group: answers with the same group are not independent.
        depth: position of the evidence, 0 to 1; None if it has none.
    """

    score: float
    group: str
    depth: float | None


Values = dict[tuple[str, int], Value]
"""The scores of a task by instance and repeat."""


@dataclass(frozen=True)
class Run:
    """A finished run of this package.

    Args:
        means: (statistic, task) to its mean.
        scores: its scores by instance.
    """

    path: Path
    model: str
    entry: str
    length: int | None
    is_closed_book: bool
    tasks: tuple[Task, ...]
    lacks: Mapping[str, tuple[str, ...]]
    means: Mapping[tuple[str, str], float]
    scores: Sequence[InstanceScore]


@dataclass(frozen=True, eq=False)
class Board:
    """All results of a benchmark.

    Args:
        results: scores of tasks and of categories, with context.
        values: the scores of own runs by task.
        closed: the scores of closed-book runs.
        runs: own runs.
    """

    benchmark: Benchmark
    results: Mapping[Place, Result]
    values: Mapping[Place, Values]
    closed: Mapping[Place, Result]
    runs: Sequence[Run]

    @cached_property
    def models(self) -> list[str]:
        """All models with a score, own ones first."""
        names = dict.fromkeys(place.model for place in self.results)
        return sorted(names, key=lambda name: name.startswith(f"{MAKER}/"))

    @cached_property
    def lengths(self) -> list[int | None]:
        """All lengths with a score, ascending."""
        return sorted({place.length for place in self.results}, key=lambda length: length or 0)

    @cached_property
    def columns(self) -> list[str]:
        """The parts whose mean is the overall score: the averaged categories, or the tasks of a single one."""
        averaged = [category for category in self.benchmark.categories if category.averaged]
        if len(averaged) == 1:
            return [task.name for task in averaged[0].tasks]
        return [_entry_name(self.benchmark, category) for category in averaged]

    @cached_property
    def titles(self) -> dict[str, str]:
        """The title of each part."""
        tasks = {task.name: task.title for task in self.benchmark.tasks}
        categories = {name: category.title or name for name, category in self.benchmark.entries.items()}
        return {OVERALL: self.benchmark.overall or "Overall", **categories, **tasks}

    def columns_at(self, length: int | None) -> list[str]:
        """The columns that exist at a length."""
        return [part for part in self.columns if any((model, part, length) in self.results for model in self.models)]

    @cached_property
    def _overalls(self) -> dict[Place, Result]:
        """The mean of all columns for each model that has them, with all their tasks."""
        found = {}
        for length in self.lengths:
            columns = self.columns_at(length)
            for model in self.models:
                parts = [result for each in columns if (result := self.results.get(Place(model, each, length)))]
                if columns and len(parts) == len(columns) and all(part.is_complete for part in parts):
                    found[Place(model, OVERALL, length)] = _mean_result(parts)
        return found

    def score(self, model: str, part: str, length: int | None) -> Result | None:
        """The score of a part, which can be `OVERALL`; None if the model lacks one."""
        return (self._overalls if part == OVERALL else self.results).get(Place(model, part, length))

    def count(self, part: str, length: int | None) -> tuple[int, int]:
        """How many own models have a score of a part, and how many in all."""
        ranking = self.ranking(length, part)
        return sum(not result.is_published for _, result in ranking), len(ranking)

    @property
    def main_length(self) -> int | None:
        """The longest length at which at least half as many models have an overall score as at any other."""
        counts = {length: self.count(OVERALL, length) for length in self.lengths}
        own, every = (max(count[place] for count in counts.values()) for place in (0, 1))
        most, place = (own, 0) if own else (every, 1)
        return [length for length, count in counts.items() if 2 * count[place] >= most][-1]

    def ranking(self, length: int | None, part: str = OVERALL) -> list[tuple[str, Result]]:
        """The models with a score of a part, the best first, without the floors."""
        scores = [(model, self.score(model, part, length)) for model in self.models if model not in FLOORS]
        found = [(model, score) for model, score in scores if score]
        return sorted(found, key=lambda pair: -pair[1].interval.mean)

    def tasks_of(self, part: str, length: int | None) -> list[str]:
        """The tasks of a part."""
        if part == OVERALL:
            return [task for column in self.columns_at(length) for task in self.tasks_of(column, length)]
        if category := self.benchmark.entries.get(part):
            return [task.name for task in category.tasks_at(length)]
        return [part]

    def floor(self, part: str, length: int | None) -> float | None:
        """The best score that needs no understanding of the context; None if no such model was run."""
        scores = [self.score(model, part, length) for model in FLOORS]
        return max((score.interval.mean for score in scores if score), default=None)


def read_boards(suite: Path | None, benchmarks: Iterable[Benchmark], published: bool) -> list[Board]:
    """Read the results of all benchmarks that have some.

    Args:
        suite: the suite's folder; None for published results alone.
        published: whether to add the published results.

    Raises:
        InputError: a file of a run is damaged.
    """
    benchmarks = tuple(benchmarks)
    runs = list(_read_runs(suite, benchmarks)) if suite else []
    boards = []
    for benchmark in benchmarks:
        own = [run for run in runs if run.entry in benchmark.entries]
        if own or published:
            boards.append(_make_board(benchmark, own, published))
    with_own = [board for board in boards if board.runs]
    # A suite's report has no pages of benchmarks that were not run.
    return with_own or [board for board in boards if board.results]


def show_model(model: str) -> str:
    """A model's name for readers."""
    return model.removeprefix(f"{MAKER}/")


def label(length: int | None) -> str:
    """A length's label; empty for None."""
    return "" if length is None else length_label(length)


def _read_runs(suite: Path, benchmarks: tuple[Benchmark, ...]) -> Iterator[Run]:
    for path, spec in read_run_specs(suite):
        with reading(path / RUN_SPEC):
            arguments, model = spec["scenario_spec"].get("args", {}), spec["adapter_spec"]["model"]
        if not (path / STATS).is_file() or MAKER in arguments:
            continue
        outcome = find_outcome(spec, read_json(path / STATS), benchmarks)
        if outcome is None:
            continue
        length = arguments.get("length")
        yield Run(
            path,
            model,
            arguments["entry"],
            None if length is None else int(length),
            arguments.get("context") == "none",
            outcome.tasks,
            {task.name: tuple(describe(task_lacks(outcome, task))) for task in outcome.tasks},
            outcome.means,
            read_scores(path, benchmarks),
        )


def _make_board(benchmark: Benchmark, runs: Sequence[Run], published: bool) -> Board:
    values, own = _read_tasks([run for run in runs if not run.is_closed_book])
    _, closed = _read_tasks([run for run in runs if run.is_closed_book])
    full = {**(_published_tasks(benchmark) if published else {}), **own}
    fixed = _published_categories(benchmark) if published else {}
    results = {**fixed, **_categories(benchmark, full), **full}
    return Board(benchmark, results, values, {**_categories(benchmark, closed), **closed}, runs)


def _read_tasks(runs: Iterable[Run]) -> tuple[dict[Place, Values], dict[Place, Result]]:
    """The scores of each task, and their mean. Of several runs of a task the first counts."""
    values: dict[Place, Values] = {}
    results = {}
    for run in runs:
        for task in run.tasks:
            place = Place(run.model, task.name, run.length)
            scores: Values = {
                (each.instance, each.repeat): Value(each.score, each.group, each.depth)
                for each in run.scores
                if each.task == task.name and each.score is not None
            }
            if scores and place not in values:
                values[place], results[place] = scores, Result(mean_of(scores.values()), run.lacks[task.name])
    return values, results


def mean_of(values: Iterable[Value]) -> Interval:
    """The mean of scores with its interval."""
    scores = list(values)
    return mean_interval([each.score for each in scores], [each.group for each in scores])


def _categories(benchmark: Benchmark, tasks: Mapping[Place, Result]) -> dict[Place, Result]:
    """The score of each category: the mean of its tasks, with a reason where some have no score."""
    found = {}
    for model, length in {(place.model, place.length) for place in tasks}:
        for name, category in benchmark.entries.items():
            expected = category.tasks_at(length)
            results = [tasks.get(Place(model, task.name, length)) for task in expected]
            scored = [result for result in results if result]
            if scored:
                missing = [task.name for task, result in zip(expected, results, strict=True) if result is None]
                reasons = (f"{NO_SCORE} ({', '.join(missing)})",) if missing else ()
                found[Place(model, name, length)] = _mean_result(scored, reasons)
    return found


def _mean_result(results: Sequence[Result], reasons: tuple[str, ...] = ()) -> Result:
    lacks = dict.fromkeys((*reasons, *(lack for result in results for lack in result.lacks)))
    interval = mean_of_means([result.interval for result in results])
    return Result(interval, tuple(lacks), all(result.is_published for result in results))


def _published_tasks(benchmark: Benchmark) -> dict[Place, Result]:
    return {
        Place(f"{MAKER}/{row.model}", task, row.length): _widest(score, [benchmark.task(task)])
        for row in benchmark.published()
        for task, score in row.scores.items()
        if task
    }


def _published_categories(benchmark: Benchmark) -> dict[Place, Result]:
    by_name = {category.name: name for name, category in benchmark.entries.items()}
    return {
        Place(f"{MAKER}/{row.model}", by_name[row.category], row.length): _widest(
            row.scores[""], benchmark.entries[by_name[row.category]].tasks_at(row.length)
        )
        for row in benchmark.published()
        if "" in row.scores
    }


def _widest(mean: float, tasks: Sequence[Task]) -> Result:
    """A published mean with the widest interval that the sample allows: Wilson's, of answers that are right or wrong.

    No scores in 0…1 with this mean vary more, and of the means of several tasks those vary most that are all equal.
    """
    count = sum(task.num_samples for task in tasks)
    weight = _QUANTILE**2 / count
    middle = (mean + weight / 2) / (1 + weight)
    half = _QUANTILE * math.sqrt(mean * (1 - mean) / count + weight / (4 * count)) / (1 + weight)
    return Result(Interval(mean, max(middle - half, 0.0), min(middle + half, 1.0), count), is_published=True)


def _entry_name(benchmark: Benchmark, category: Category) -> str:
    return next(name for name, each in benchmark.entries.items() if each is category)


def plain(results: Mapping[Place, Result]) -> list[dict[str, Any]]:
    """All scores as rows for programs."""
    return [
        {
            "model": place.model,
            "part": place.part,
            "length": label(place.length),
            "score": result.interval.mean,
            "low": result.interval.low,
            "high": result.interval.high,
            "n": result.interval.n,
            "published": result.is_published,
            "lacking": "; ".join(result.lacks),
        }
        for place, result in results.items()
    ]
