"""Files for HELM from the benchmarks' tables (run entries, schema), and tables, pages and plots from a suite's runs.

This folder names no benchmark.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    # HELM's summarizer takes a second to import, and only helm-summarize needs it.
    if name == "LongContextSummarizer":
        from helm_longctx.results.leaderboard.pages import LongContextSummarizer

        return LongContextSummarizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
