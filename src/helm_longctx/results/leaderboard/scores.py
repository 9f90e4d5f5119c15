"""Looks up the scores for the cells of HELM's tables, and makes published and overall scores into HELM's runs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.presentation.schema import MetricNameMatcher
from helm.benchmark.presentation.summarize import Run
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import ScenarioSpec

from helm_longctx.results.boards import OVERALL, Suite, average, label, mean_over_tasks, tasks_of
from helm_longctx.results.comparability import Caveat
from helm_longctx.results.reading import Result, read_runs
from helm_longctx.results.reference import MAKER, SCENARIO_CLASS
from helm_longctx.results.score_rows import score_notes
from helm_longctx.results.statistics.intervals import Interval, mean_of_means
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import ADAPTER_METHOD
from helm_longctx.tasks.groups import group_name
from helm_longctx.tasks.metric_names import CONDITIONS, DEPTHS, depth_score, task_score
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import MAIN_METRIC, Task

_DEPTH_SCORES = tuple(map(depth_score, DEPTHS))


class SuiteScores:
    """A suite's boards, the results behind each run in HELM's tables, and other scores as HELM's runs."""

    def __init__(self, suite: Suite, runs: Iterable[Run]):
        results, self.boards = suite
        # The keys are the identities of run specs, because a run in a table can be a copy with fewer statistics.
        self._results: dict[int, list[Result]] = {}
        self._deployments: dict[str, dict[str, None]] = defaultdict(dict)
        of_run = {run.path: found for run, found in read_runs(results)}
        for run in runs:
            self._results[id(run.run_spec)] = found = of_run.get(Path(run.run_path), [])
            for result in found:
                self._deployments[result.model][run.run_spec.adapter_spec.model_deployment] = None
        # Published and overall scores are in no list of runs of HELM's.
        self.helm_runs = list(self._helm_runs(results))

    @property
    def first(self) -> str | None:
        """The group of the leaderboard's first table: of the user's benchmark, at its main length."""
        board = next((board for board in self.boards if board.scores), None)
        if board is None:
            return None
        length = board.main_length
        return group_name(board.benchmark, "", label(length), folder=board.folder_at(length), metric=board.metric)

    def find(self, runs: Iterable[Run]) -> list[Result]:
        """Return the results of runs; results of another package's scenario have an empty benchmark."""
        return [result for run in runs for result in self._results.get(id(run.run_spec), [])]

    def _helm_runs(self, results: Iterable[Result]) -> Iterator[Run]:
        published: dict[tuple[str, str, str, int | None], list[Result]] = defaultdict(list)
        for each in results:
            if each.is_published:
                published[each.benchmark, each.entry, each.model, each.length].append(each)
        for (name, _, model, _), found in published.items():
            yield self._add_run(f"{MAKER}_{name}", model, find_benchmark(name), found)
        for board in self.boards:
            for overall in board.overalls if len(board.benchmark.categories) > 1 else ():
                # HELM's tables have a row for each deployment of a model.
                for deployment in self._deployments.get(overall.model, [overall.model]):
                    yield self._add_run("", deployment, board.benchmark, [overall])

    def _add_run(self, name: str, deployment: str, benchmark: Benchmark, results: Sequence[Result]) -> Run:
        """Return results of a category or an overall score as a run, of which tables use the names of statistics."""
        first, stats = results[0], []
        category = benchmark.entries[first.entry].name if first.entry in benchmark.entries else OVERALL
        parts = [category, *(each.task for each in results if each.task)]
        for each in results:
            names = dict.fromkeys([MAIN_METRIC, *each.statistics]) if each.has_score else ()
            stats += [Stat(MetricName(name, sub_split=each.task or None, split="test")) for name in names]
        spec = RunSpec(
            name,
            ScenarioSpec(SCENARIO_CLASS),
            AdapterSpec(method=ADAPTER_METHOD, model=first.model, model_deployment=deployment),
            [],
            groups=[group_name(benchmark, part, label(first.length), metric=first.metric) for part in parts],
        )
        self._results[id(spec)] = list(results)
        return Run("", spec, stats)


def cell_score(results: Sequence[Result], matcher: MetricNameMatcher) -> tuple[Interval, Sequence[Caveat], list[str]]:
    """Return the statistic of results that a column of HELM's tables has, and why it is not comparable.

    Also return what a score would be without a limit on tokens, and without known errors.
    """
    name = matcher.name
    if whole := next((each for each in results if not each.task), None):
        is_score = name == MAIN_METRIC
        return whole.interval if is_score else mean_of_means([]), whole.caveats, score_notes(whole) if is_score else []
    tasks = _column_tasks(results, matcher)
    names, having = {each.name for each in tasks}, {each.task for each in results if name in each.statistics}
    tasks_with = [task for task in tasks if task.name in having]
    if name == MAIN_METRIC or name in map(task_score, names):
        # Published scores have no answers, which such notes are about.
        is_own = not all(each.is_published for each in results)
        rows = [each for each in results if each.task in names and is_own]
        return *mean_over_tasks(tasks, results, name), score_notes(average(rows[0].entry, tasks, rows)) if rows else []
    if name in (*CONDITIONS, *_DEPTH_SCORES):
        caveats = () if name in CONDITIONS else mean_over_tasks(tasks, results)[1]
        return mean_over_tasks(tasks_with, results, name)[0], caveats, []
    # An official metric is only expected of the tasks that have it.
    return *mean_over_tasks([task for task in tasks if name in task.metrics] or tasks_with, results, name), []


def _column_tasks(results: Sequence[Result], matcher: MetricNameMatcher) -> list[Task]:
    """Return the tasks that a column is about: the one that it names, or the tasks of the category."""
    benchmark = find_benchmark(results[0].benchmark)
    if matcher.sub_split:
        return [benchmark.task(matcher.sub_split)]
    # HELM's schema cannot name a sub-split in a column, so a task's score also has its own name.
    named = _tasks_by_score(benchmark.name).get(matcher.name)
    return [named] if named else list(tasks_of(benchmark.entries[results[0].entry], results))


@cache
def _tasks_by_score(benchmark: str) -> dict[str, Task]:
    return {task_score(task.name): task for task in find_benchmark(benchmark).tasks}
