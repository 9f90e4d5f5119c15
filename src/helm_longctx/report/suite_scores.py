"""Reads intervals, published results and overall scores for the summarizer's tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.presentation.schema import MetricNameMatcher
from helm.benchmark.presentation.summarize import Run
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import ScenarioSpec

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.protocol.task import MAIN_METRIC
from helm_longctx.report.overall import first_table, overall_runs
from helm_longctx.report.reference import ResultRun, read_reference
from helm_longctx.report.results import (
    Overall,
    Result,
    best_results,
    category_results,
    overall_results,
    reference_results,
    run_results,
    statistic_intervals,
)
from helm_longctx.runs.files import INSTANCE_STATS, RUN_SPEC, read_json
from helm_longctx.runs.scores import read_scores
from helm_longctx.statistics.intervals import Interval, mean_of_means

Intervals = dict[tuple[str, str], Interval]
"""From (task, statistic) to interval."""


class SuiteScores:
    """The intervals of runs, the results that have no run, and the first table of the leaderboard.

    Args:
        folders: the folders of the suites.
        runs: HELM's runs in the suites. Their answers are read one run at a time.
    """

    def __init__(self, folders: Sequence[Path], runs: Iterable[Run]):
        self.helm_runs: list[Run] = []
        self.first: str | None = None
        self.groups: set[str] = set()
        # The keys are the identities of run specs, because a run in a table can be a copy with fewer statistics.
        self._intervals: dict[int, Intervals] = {}
        self._reasons: dict[int, str] = {}
        self._deployments: dict[str, dict[str, None]] = defaultdict(dict)
        results = best_results(result for run in runs for result in self._read(run))
        for folder in folders:
            self.helm_runs += [_helm_run(each) for each in read_reference(folder, BENCHMARKS)]
            results += reference_results(folder, BENCHMARKS)
        self._add_overall(results)
        self.groups.update(group for run in self.helm_runs if run.stats for group in run.run_spec.groups)

    def reason(self, run: Run) -> str:
        """Return why a model has no overall score; empty for any other run."""
        return self._reasons.get(id(run.run_spec), "")

    def interval(self, runs: Iterable[Run], matcher: MetricNameMatcher) -> Interval | None:
        """Return the interval of a mean over runs and tasks; None where one of them has none."""
        keys = [(run, stat.name) for run in runs for stat in run.stats if matcher.matches(stat.name)]
        found = [self._intervals.get(id(run.run_spec), {}).get((name.sub_split or "", name.name)) for run, name in keys]
        known = [each for each in found if each is not None]
        # An interval of a part of the runs would be too narrow or too wide for the mean of all.
        return mean_of_means(known) if known and len(known) == len(found) else None

    def _read(self, run: Run) -> list[Result]:
        """Keep the intervals of a run's statistics, and return its results without the answers."""
        folder = Path(run.run_path)
        self.groups.update(run.run_spec.groups)
        self._deployments[run.run_spec.adapter_spec.model][run.run_spec.adapter_spec.model_deployment] = None
        if not (folder / INSTANCE_STATS).is_file():
            return []
        results = list(run_results(folder, read_json(folder / RUN_SPEC), BENCHMARKS))
        rows = [row for result in results for row in result.rows] or read_scores(folder)
        self._intervals[id(run.run_spec)] = statistic_intervals(rows)
        return [replace(result, rows=()) for result in results]

    def _add_overall(self, results: Sequence[Result]) -> None:
        for benchmark in BENCHMARKS:
            categories = category_results(results, benchmark)
            overalls = overall_results(categories, benchmark)
            # The first benchmark with scores gives the first table.
            self.first = self.first or first_table(benchmark, categories, overalls)
            for overall, result in overall_runs(benchmark, overalls, self._deployments):
                self._add_overall_run(overall, _helm_run(result))

    def _add_overall_run(self, overall: Overall, run: Run) -> None:
        self.helm_runs.append(run)
        if overall.interval:
            self._intervals[id(run.run_spec)] = {("", MAIN_METRIC): overall.interval}
        else:
            self._reasons[id(run.run_spec)] = overall.reason


def _helm_run(result: ResultRun) -> Run:
    spec = result.spec
    return Run(
        run_path="",
        run_spec=RunSpec(
            spec["name"],
            ScenarioSpec(**spec["scenario_spec"]),
            AdapterSpec(**spec["adapter_spec"]),
            spec["metric_specs"],
            groups=spec["groups"],
        ),
        stats=[Stat(**{**stat, "name": MetricName(**stat["name"])}) for stat in result.stats],
    )
