"""The runner for long prompts (`helm_longctx.running.LongContextRunner`), estimates of runs, and repeated judging."""

from helm_longctx.running.runner import LongContextRunner

__all__ = ["LongContextRunner"]
