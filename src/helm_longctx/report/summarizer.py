"""`helm-summarize --summarizer-class-name helm_longctx.report.LongContextSummarizer`."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import helm_longctx.helm_json  # noqa: F401

# The module above must be imported before HELM's.
# isort: split
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.presentation.schema import Field, MetricNameMatcher, RunGroup, Schema
from helm.benchmark.presentation.summarize import Run, Summarizer
from helm.benchmark.presentation.table import Cell, Table
from helm.common.general import asdict_without_nones
from tqdm import tqdm

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.errors import InputError
from helm_longctx.protocol.entry import shorten_name
from helm_longctx.report.comparability import Outcome, cell_lacks, describe, find_lacks, find_outcome
from helm_longctx.report.display import write_display
from helm_longctx.report.layout import arrange_table, select_groups
from helm_longctx.report.marks import ScoreCell, add_interval, add_lacks, mark_table, tag_run
from helm_longctx.report.suite_scores import SuiteScores


def summarize_suite(suite: str, output_path: Path, schema_path: Path) -> None:
    """Write the tables and pages of a suite, as `helm-summarize` does. HELM's registries must be filled."""
    LongContextSummarizer(
        release=None,
        suites=None,
        suite=suite,
        schema_path=str(schema_path),
        output_path=str(output_path),
        verbose=False,
        num_threads=2,
        allow_unknown_models=True,
    ).run_pipeline(skip_completed=False)


class ColumnMatcher(MetricNameMatcher):
    """HELM's matcher with a cache: HELM compiles a template for each column of each table."""

    def substitute(self, environment: dict[str, str]) -> MetricNameMatcher:
        """Fill in the name and the split."""
        return _substitute(MetricNameMatcher(**vars(self)), tuple(sorted(environment.items())))


@cache
def _substitute(matcher: MetricNameMatcher, environment: tuple[tuple[str, str], ...]) -> MetricNameMatcher:
    return matcher.substitute(dict(environment))


_LONGEST_NAME = 150
"""Longest name of a table."""


class LongContextSummarizer(Summarizer):
    """HELM's summarizer with published results, small pages for long prompts, and marks at incomparable scores.

    All numbers are the same as with HELM's summarizer.
    """

    runs: list[Run]
    schema: Schema

    def read_run(self, run_path: str) -> Run:
        """Read a run's spec and statistics.

        Raises:
            InputError: the spec or the statistics are damaged.
        """
        try:
            return super().read_run(run_path)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{run_path}: run_spec.json or stats.json is damaged; make that run again") from error

    def group_runs(self) -> None:
        """Group the runs, the published results and the overall scores. The latter two are in no other list of runs."""
        own = self.runs
        self.runs = [*own, *self._scores.helm_runs]
        super().group_runs()
        self.runs = own

    def fix_up_schema(self) -> None:
        """Complete the schema as HELM does, with the scenarios of other packages, and put the first table first."""
        # Ours come first: without a run of our benchmarks, HELM would give its scenarios our columns.
        self._add_other_scenarios()
        super().fix_up_schema()
        for group in self.schema.metric_groups:
            group.metrics[:] = [ColumnMatcher(**vars(each)) for each in group.metrics]
        groups = select_groups(self.schema.run_groups, self._scores.groups)
        # The front end opens with the first group.
        groups.sort(key=lambda group: group.name != self._scores.first)
        self.schema = replace(self.schema, run_groups=groups)

    def _add_other_scenarios(self) -> None:
        """Add the groups and columns that HELM finds for runs of scenarios that are not in the schema."""
        own, schema = self.runs, self.schema
        self.runs = [run for run in own if run.run_spec.groups and not _is_in(schema, run)]
        if self.runs:
            self.schema = Schema()
            super().fix_up_schema()
            mains = {name for group in self.schema.run_groups if (name := group.environment.get("main_name"))}
            fields = {name: Field(name) for name in sorted(mains)} | {each.name: each for each in self.schema.metrics}
            self.schema = replace(
                schema,
                metrics=list((fields | schema.name_to_metric).values()),
                metric_groups=[*schema.metric_groups, *self.schema.metric_groups],
                run_groups=[*schema.run_groups, *self.schema.run_groups],
            )
        self.runs = own

    def filter_runs_by_visibility(self, runs: list[Run], group: RunGroup) -> list[Run]:
        """Return all runs. HELM would look for groups that hide runs, but our schema has none."""
        return runs

    def check_metrics_defined(self) -> None:
        """Do nothing. HELM warns of each statistic without a column, but runs have many that no page shows."""

    def create_cell(self, runs: list[Run], matcher: MetricNameMatcher, *arguments: Any, **options: Any) -> Cell:
        """Make HELM's cell, and add its interval, the reasons why its score is not comparable, or why there is none."""
        # HELM looks through all statistics of a run, and warns if none matches.
        parts = [part for run in runs if (part := self._stats_by_name(run).get(matcher.name))]
        having = [part for part in parts if any(matcher.matches(stat.name) for stat in part.stats)]
        if not having:
            return ScoreCell(None, reason=next(filter(None, map(self._scores.reason, runs)), None))
        cell = super().create_cell(having, matcher, *arguments, **options)
        outcomes = [outcome for run in runs if (outcome := self._outcome(run))]
        lacks = cell_lacks(matcher.name, matcher.sub_split, outcomes)
        return add_lacks(add_interval(cell, self._scores.interval(having, matcher)), lacks)

    def create_group_table(self, **options: Any) -> Table:
        """Make HELM's table of the models that have a value in it, arrange it, and add the marks."""
        columns, sub_split = options["columns"], options.get("sub_split")
        names = {
            column.substitute(group.environment).name
            for group, metric_group in columns
            if metric_group in group.metric_groups
            for column in self.schema.name_to_metric_group[metric_group].metrics
        }
        rows = {
            adapter: runs
            for adapter, runs in options["adapter_to_runs"].items()
            if any(self._has_statistic(run, names, sub_split) for run in runs)
        }
        if not rows:
            return Table("empty", [], [])
        # HELM makes a file name of the names of the group and the table, which are long for a jury.
        options |= {"adapter_to_runs": rows, "name": shorten_name(options["name"], _LONGEST_NAME)}
        return mark_table(arrange_table(super().create_group_table(**options)))

    def _has_statistic(self, run: Run, names: set[str], sub_split: str | None) -> bool:
        parts = self._stats_by_name(run)
        return any(
            sub_split in (None, stat.name.sub_split) for name in names & parts.keys() for stat in parts[name].stats
        )

    def create_group_tables_by_subgroup(self, group: RunGroup) -> list[Table]:
        """Make the tables of a group with one subgroup that have rows."""
        return [table for table in super().create_group_tables_by_subgroup(group) if table.rows]

    def create_group_tables_by_metric_group(self, group: RunGroup) -> list[Table]:
        """Make the tables of a group with several subgroups that have rows."""
        return [table for table in super().create_group_tables_by_metric_group(group) if table.rows]

    def write_run_display_json(self, skip_completed: bool) -> None:
        """Write the display files of all runs, two runs at a time unless `num_threads` is one.

        More threads would only need more memory, because compression runs in parallel but parsing does not.
        """

        def process(run: Run) -> None:
            write_display(Path(run.run_path), run.run_spec, self.schema, skip_completed)
            if outcome := self._outcome(run):
                tag_run(Path(run.run_path), describe(find_lacks(outcome.tasks, [outcome])))

        with ThreadPoolExecutor(min(self.num_threads, 2)) as pool:
            list(tqdm(pool.map(process, self.runs), "Pages of runs", len(self.runs), disable=None))

    def _outcome(self, run: Run) -> Outcome | None:
        # A run appears in many cells.
        if id(run.run_spec) not in self._outcomes:
            spec, stats = asdict_without_nones(run.run_spec), map(asdict_without_nones, run.stats)
            self._outcomes[id(run.run_spec)] = find_outcome(spec, stats, BENCHMARKS)
        return self._outcomes[id(run.run_spec)]

    @cached_property
    def _scores(self) -> SuiteScores:
        folders = list(map(Path, self.run_suite_paths))
        return SuiteScores(folders, tqdm(self.runs, "Scores of runs", disable=None))

    @cached_property
    def _outcomes(self) -> dict[int, Outcome | None]:
        return {}

    def _stats_by_name(self, run: Run) -> dict[str, Run]:
        """Return the run with the statistics of one name, for each name."""
        # The copies of a run share its run spec, so the identity of the run spec is the key.
        if id(run.run_spec) not in self._parts:
            stats: dict[str, list[Stat]] = defaultdict(list)
            for stat in run.stats:
                stats[stat.name.name].append(stat)
            self._parts[id(run.run_spec)] = {name: replace(run, stats=each) for name, each in stats.items()}
        return self._parts[id(run.run_spec)]

    @cached_property
    def _parts(self) -> dict[int, dict[str, Run]]:
        return {}


def _is_in(schema: Schema, run: Run) -> bool:
    return any(name in schema.name_to_run_group for name in run.run_spec.groups)
