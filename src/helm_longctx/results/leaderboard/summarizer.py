"""`helm-summarize --summarizer-class-name helm_longctx.results.leaderboard.LongContextSummarizer`."""

from typing import Any

import helm_longctx.helm.codec  # noqa: F401

# The module above must be imported before HELM's.
# isort: split
from helm.benchmark.presentation.summarize import Summarizer

from helm_longctx.results.leaderboard.pages import write_release


class LongContextSummarizer:
    """What `helm-summarize` calls in place of HELM's summarizer: it has the same two functions.

    Args:
        options: the options of HELM's summarizer.
    """

    def __init__(self, **options: Any):
        self._helm = Summarizer(**options)

    def run_pipeline(self, skip_completed: bool) -> None:
        """Write our tables and pages, with those of HELM's own scenarios."""
        write_release(self._helm, skip_completed=skip_completed)
