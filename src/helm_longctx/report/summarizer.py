"""`helm-summarize --summarizer-class-name helm_longctx.report.LongContextSummarizer`."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from helm.benchmark.presentation.schema import MetricNameMatcher
from helm.benchmark.presentation.summarize import Run, Summarizer
from helm.benchmark.presentation.table import Cell, Table
from helm.common.general import asdict_without_nones, parallel_map

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.errors import InputError
from helm_longctx.protocol.entry import shorten_name
from helm_longctx.report.comparability import Outcome, cell_lacks, describe, find_lacks, find_outcome
from helm_longctx.report.display import write_display
from helm_longctx.report.marks import mark_table, tag_run, with_lacks

_LONGEST_NAME = 150
"""Longest name of a table."""


class LongContextSummarizer(Summarizer):
    """HELM's summarizer with small pages for long prompts (`write_display`) and marks at scores that do not compare.

    All numbers are those of HELM's summarizer.
    """

    def read_run(self, run_path: str) -> Run:
        """Read a run's spec and statistics.

        Raises:
            InputError: they are damaged.
        """
        try:
            return super().read_run(run_path)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{run_path}: run_spec.json or stats.json is damaged; make that run again") from error

    def create_cell(self, runs: list[Run], matcher: MetricNameMatcher, *arguments: Any, **options: Any) -> Cell:
        """Make HELM's cell, and add the reasons why its score is not comparable."""
        cell = super().create_cell(runs, matcher, *arguments, **options)
        outcomes = [outcome for run in runs if (outcome := self._outcome(run))]
        return with_lacks(cell, cell_lacks(matcher.name, matcher.sub_split, outcomes))

    def create_group_table(self, *arguments: Any, **options: Any) -> Table:
        """Make HELM's table, and add the marks."""
        # HELM makes file names of it, which have the group's name before it: a jury's can be long.
        options = {**options, "name": shorten_name(options["name"], _LONGEST_NAME)}
        return mark_table(super().create_group_table(*arguments, **options))

    def write_run_display_json(self, skip_completed: bool) -> None:
        """Write the display files of all runs, two runs at a time unless `num_threads` is one.

        More threads would only cost memory: compressing texts runs in parallel, but parsing them does not.
        """

        def process(run: Run) -> None:
            write_display(Path(run.run_path), run.run_spec, self.schema, skip_completed)
            if outcome := self._outcome(run):
                tag_run(Path(run.run_path), describe(find_lacks(outcome.tasks, [outcome])))

        parallel_map(process, self.runs, parallelism=min(self.num_threads, 2))

    def _outcome(self, run: Run) -> Outcome | None:
        # A run appears in many cells.
        if run.run_path not in self._outcomes:
            spec, stats = asdict_without_nones(run.run_spec), map(asdict_without_nones, run.stats)
            self._outcomes[run.run_path] = find_outcome(spec, stats, BENCHMARKS)
        return self._outcomes[run.run_path]

    @cached_property
    def _outcomes(self) -> dict[str, Outcome | None]:
        return {}
