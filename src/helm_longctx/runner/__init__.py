"""The runner for long prompts (`helm_longctx.runner.LongContextRunner`), estimates of runs, and repeated judging."""

from helm_longctx.runner.runner import LongContextRunner

__all__ = ["LongContextRunner"]
