"""What is made of the task table and of HELM's output: run-entry files, schema, tables. No benchmark's name here."""

from typing import Any


def __getattr__(name: str) -> Any:
    # HELM names a summarizer by its class path; its own takes seconds to import, which only helm-summarize needs.
    if name == "LongContextSummarizer":
        from helm_longctx.report.summarizer import LongContextSummarizer

        return LongContextSummarizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
