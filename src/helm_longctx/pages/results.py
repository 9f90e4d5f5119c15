"""Reads the results of a benchmark for the report: a score with its interval for each model, part and length.

A part is a task, a category, or everything. Own runs have intervals from their instances. Of published results only
means are known; their intervals are the widest that the benchmark's sample sizes allow.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from helm_longctx.protocol.benchmark import Benchmark
from helm_longctx.protocol.entry import folder_name, group_name
from helm_longctx.protocol.lengths import length_label
from helm_longctx.protocol.task import Settings, Task
from helm_longctx.report.comparability import describe, find_outcome, task_lacks
from helm_longctx.report.reference import MAKER
from helm_longctx.report.results import (
    PUBLISHED,
    Result,
    category_results,
    overall_results,
    published_results,
    read_results,
    split_folders,
)
from helm_longctx.runs.files import RUN_SPEC, STATS, read_json, read_run_specs, reading
from helm_longctx.runs.scores import InstanceScore, read_scores
from helm_longctx.statistics.intervals import Interval, normal_quantile, wilson

OVERALL = "overall"
"""The part that is the mean of a benchmark's columns."""

FLOORS = {"longctx/null": "null", "longctx/lexical": "lexical"}
"""The models whose scores need no understanding, and their names in plots."""


class Place(NamedTuple):
    """The key of a score. `length` is None for a benchmark without lengths."""

    model: str
    part: str
    length: int | None


@dataclass(frozen=True)
class Score:
    """A score.

    Args:
        interval: the mean with its 95 % interval, 0 to 1.
        lacks: the reasons why the score is not comparable, as texts.
        is_published: whether the benchmark's authors published it.
        is_complete: whether all tasks have a score.
    """

    interval: Interval
    lacks: tuple[str, ...] = ()
    is_published: bool = False
    is_complete: bool = True


Values = dict[tuple[str, int], InstanceScore]
"""The answers to a task that have a score, by instance and repeat."""


@dataclass(frozen=True)
class Run:
    """A finished run of this package.

    Args:
        lacks: the reasons why a task's score is not comparable, by task.
        means: from (statistic, task) to the mean.
        scores: the scores by instance.
        folder: the folder of the user's own files; empty if there are none.
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
    folder: str


@dataclass(frozen=True, eq=False)
class Board:
    """All results of a benchmark.

    Args:
        results: scores of tasks and of categories, and overall scores, with context.
        values: the answers of the user's runs by task.
        reasons: the reasons why models have no overall score.
        closed: the scores of closed-book runs.
        tasks: the results of tasks, with context.
        runs: the user's runs.
    """

    benchmark: Benchmark
    results: Mapping[Place, Score]
    values: Mapping[Place, Values]
    reasons: Mapping[Place, str]
    closed: Mapping[Place, Score]
    tasks: Sequence[Result]
    runs: Sequence[Run]

    @cached_property
    def models(self) -> list[str]:
        """All models with a score, the user's own first."""
        names = dict.fromkeys(place.model for place in self.results)
        return sorted(names, key=lambda name: name.startswith(PUBLISHED))

    @cached_property
    def competitors(self) -> list[str]:
        """The models that are compared: all except the floors, or only the floors if there are no others."""
        return [model for model in self.models if model not in FLOORS] or self.models

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
        return [_part(self.benchmark, category.name) for category in averaged]

    @cached_property
    def titles(self) -> dict[str, str]:
        """The title of each part."""
        tasks = {task.name: task.title for task in self.benchmark.tasks}
        categories = {name: category.title or name for name, category in self.benchmark.entries.items()}
        return {OVERALL: self.benchmark.overall or "Overall", **categories, **tasks}

    def columns_at(self, length: int | None) -> list[str]:
        """Return the columns that exist at a length."""
        return [part for part in self.columns if any((model, part, length) in self.results for model in self.models)]

    def score(self, model: str, part: str, length: int | None) -> Score | None:
        """Return the score of a part, which can be `OVERALL`; None if the model lacks one."""
        return self.results.get(Place(model, part, length))

    def count(self, part: str, length: int | None) -> tuple[int, int]:
        """Return the number of the user's models with a score of a part, and the number of all models with one."""
        ranking = self.ranking(length, part)
        return sum(not result.is_published for _, result in ranking), len(ranking)

    @property
    def main_length(self) -> int | None:
        """The longest length at which at least half as many models have an overall score as at any other."""
        counts = {length: self.count(OVERALL, length) for length in self.lengths}
        own, every = (max(count[place] for count in counts.values()) for place in (0, 1))
        # Only the user's models count, if there are any.
        most, place = (own, 0) if own else (every, 1)
        # The lengths are ascending, so the last one is the longest.
        return [length for length, count in counts.items() if 2 * count[place] >= most][-1]

    @property
    def main_length_first(self) -> list[int | None]:
        """The lengths in the order of a page's sections: the main length, and then the others from long to short."""
        main = self.main_length
        return [main, *(length for length in reversed(self.lengths) if length != main)]

    def ranking(self, length: int | None, part: str = OVERALL) -> list[tuple[str, Score]]:
        """Return the models with a score of a part, the best first; without the floors if there are others."""
        scores = [(model, self.score(model, part, length)) for model in self.competitors]
        found = [(model, score) for model, score in scores if score]
        return sorted(found, key=lambda pair: -pair[1].interval.mean)

    def tasks_of(self, part: str, length: int | None) -> list[str]:
        """Return the tasks of a part."""
        if part == OVERALL:
            return [task for column in self.columns_at(length) for task in self.tasks_of(column, length)]
        if category := self.benchmark.entries.get(part):
            return [task.name for task in category.tasks_at(length)]
        return [part]

    def floor(self, part: str, length: int | None) -> float | None:
        """Return the best score that needs no understanding of the context; None if no such model was run."""
        return max((score.interval.mean for _, score in self.floors(part, length)), default=None)

    def floors(self, part: str, length: int | None) -> list[tuple[str, Score]]:
        """Return the short name and the score of each baseline that is not among the models that are compared."""
        names = [(model, name) for model, name in FLOORS.items() if model not in self.competitors]
        return [(name, score) for model, name in names if (score := self.score(model, part, length))]


def read_boards(suite: Path | None, benchmarks: Iterable[Benchmark], published: bool) -> list[Board]:
    """Read the results of all benchmarks that have some.

    Args:
        suite: the suite's folder; None for published results alone.
        published: whether to add the published results.

    Raises:
        InputError: a file of a run is damaged.
    """
    benchmarks = tuple(benchmarks)
    results = read_results(suite, benchmarks) if suite else []
    own = [result for result in results if result.rows]
    runs = list(_read_runs(suite, benchmarks, own)) if suite else []
    # A suite's report has no pages of benchmarks that were not run.
    used = [each for each in benchmarks if not runs or any(run.entry in each.entries for run in runs)]
    boards = [
        _make_board(part, found, _runs_of(runs, benchmark, part), published)
        for benchmark in used
        for part, found in split_folders(own, benchmark)
    ]
    return [board for board in boards if board.results]


def show_model(model: str) -> str:
    """Return a model's name for readers."""
    return model.removeprefix(PUBLISHED)


def lack_kinds(lacks: Iterable[str]) -> str:
    """Return a reason without its numbers and tasks."""
    return ", ".join(dict.fromkeys(lack.partition(":")[0].partition(" (")[0] for lack in lacks))


def label(length: int | None) -> str:
    """Return a length's label; empty for None."""
    return "" if length is None else length_label(length)


def _read_runs(suite: Path, benchmarks: tuple[Benchmark, ...], results: Iterable[Result]) -> Iterator[Run]:
    """Read the other data of each run. Its scores are taken from the results if they are of this run."""
    rows: dict[str, list[InstanceScore]] = defaultdict(list)
    for result in results:
        rows[result.rows[0].run] += result.rows
    for path, spec in read_run_specs(suite):
        with reading(path / RUN_SPEC):
            arguments, model = spec["scenario_spec"].get("args", {}), spec["adapter_spec"]["model"]
        # The folder of published results has the form of a run.
        if not (path / STATS).is_file() or MAKER in arguments:
            continue
        outcome = find_outcome(spec, read_json(path / STATS), benchmarks)
        if outcome is None:
            continue
        length = arguments.get("length")
        closed = arguments.get("context") == "none"
        lacks = {task.name: tuple(describe(task_lacks(outcome, task))) for task in outcome.tasks}
        # Only one of several runs of a task has results. The scores of the others are read here.
        scores = rows.get(path.name) or read_scores(path, benchmarks)
        about = (path, model, arguments["entry"], None if length is None else int(length), closed)
        yield Run(*about, outcome.tasks, lacks, outcome.means, scores, folder_name(arguments.get("path")))


def _runs_of(runs: Iterable[Run], benchmark: Benchmark, part: Benchmark) -> list[Run]:
    own = [run for run in runs if run.entry in benchmark.entries]
    return [run for run in own if group_name(benchmark, "", "", folder=run.folder) == part.name]


def _make_board(benchmark: Benchmark, own: Sequence[Result], runs: Sequence[Run], published: bool) -> Board:
    full = [result for result in own if result.context == "full"]
    if published:
        full += [_with_widest_interval(benchmark, result) for result in published_results(benchmark)]
    closed = [result for result in own if result.context == "none"]
    categories = category_results(full, benchmark)
    overall, reasons = _overall_scores(benchmark, categories)
    return Board(
        benchmark,
        {**_scores(benchmark, [*full, *categories]), **overall},
        {_place(benchmark, result): _values(result) for result in full if result.rows},
        reasons,
        _scores(benchmark, [*closed, *category_results(closed, benchmark)]),
        [result for result in full if result.task],
        runs,
    )


def _scores(benchmark: Benchmark, results: Iterable[Result]) -> dict[Place, Score]:
    scores: dict[Place, Score] = {}
    for result in results:
        if not math.isnan(result.interval.mean):
            complete = all(lack.kind != "missing" for lack in result.lacks)
            published = result.model.startswith(PUBLISHED)
            score = Score(result.interval, tuple(describe(result.lacks)), published, complete)
            scores.setdefault(_place(benchmark, result), score)
    return scores


def _overall_scores(benchmark: Benchmark, categories: list[Result]) -> tuple[dict[Place, Score], dict[Place, str]]:
    """Return the overall scores, and the reasons why models have none.

    Scores that are not comparable for other reasons than a missing task enter an overall score, which gets their mark.
    A benchmark with one category has that as its overall score.
    """
    averaged = [category.name for category in benchmark.categories if category.averaged]
    used = [result for result in categories if result.category in averaged]
    if len(averaged) == 1:
        parts = _scores(benchmark, used)
        return {place._replace(part=OVERALL): score for place, score in parts.items() if score.is_complete}, {}
    # `overall_results` gives no score if there is another lack, but the report shows such a score with a mark.
    bare = [replace(each, lacks=tuple(lack for lack in each.lacks if lack.kind == "missing")) for each in used]
    scores, reasons = {}, {}
    for overall in overall_results(bare, benchmark):
        place = Place(overall.model, OVERALL, overall.length)
        if overall.interval is None:
            reasons[place] = overall.reason
            continue
        lacks = [
            lack for each in used if (each.model, each.length) == (place.model, place.length) for lack in each.lacks
        ]
        scores[place] = Score(overall.interval, tuple(describe(lacks)), overall.model.startswith(PUBLISHED))
    return scores, reasons


def _place(benchmark: Benchmark, result: Result) -> Place:
    return Place(result.model, result.task or _part(benchmark, result.category), result.length)


def _part(benchmark: Benchmark, category: str) -> str:
    """Return the part that is a category: the name of its run entry, because a task can have the category's name."""
    return next(name for name, each in benchmark.entries.items() if each.name == category)


def _values(result: Result) -> Values:
    return {(row.instance, row.repeat): row for row in result.rows if row.score is not None}


def _with_widest_interval(benchmark: Benchmark, result: Result) -> Result:
    """Give a published mean the widest interval that its sample allows: Wilson's, of answers that are right or wrong.

    No scores in 0…1 with this mean vary more, and of the means of several tasks those vary most that are all equal.
    """
    category = benchmark.entries[_part(benchmark, result.category)]
    tasks = [benchmark.task(result.task)] if result.task else category.tasks_at(result.length)
    # This is the number of answers of all tasks together. The publication does not name the protocol of a model, so the
    # smallest sample is used.
    protocols = [[Settings(result.length, protocol=protocol) for protocol in task.variants] for task in tasks]
    count = sum(min(map(task.sample, each)) for task, each in zip(tasks, protocols, strict=True))
    mean = result.interval.mean
    return replace(result, interval=Interval(mean, *wilson(mean, count, normal_quantile()), count))
