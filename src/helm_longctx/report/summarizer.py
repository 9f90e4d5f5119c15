"""`helm-summarize --summarizer-class-name helm_longctx.report.LongContextSummarizer`."""

from __future__ import annotations

from pathlib import Path

from helm.benchmark.presentation.summarize import Run, Summarizer
from helm.common.general import parallel_map

from helm_longctx.errors import InputError
from helm_longctx.report.display import write_display


class LongContextSummarizer(Summarizer):
    """HELM's summarizer, whose display files stay small at any length of prompts: see `write_display`.

    Tables and statistics are HELM's.
    """

    def read_run(self, run_path: str) -> Run:
        """A run's spec and statistics.

        Raises:
            InputError: they are damaged.
        """
        try:
            return super().read_run(run_path)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{run_path}: run_spec.json or stats.json is damaged; make that run again") from error

    def write_run_display_json(self, skip_completed: bool) -> None:
        """Write the display files of all runs, of two side by side unless `num_threads` is one.

        More would only take memory: texts are compressed in parallel, but read in turns.
        """

        def process(run: Run) -> None:
            write_display(Path(run.run_path), run.run_spec, self.schema, skip_completed)

        parallel_map(process, self.runs, parallelism=min(self.num_threads, 2))
