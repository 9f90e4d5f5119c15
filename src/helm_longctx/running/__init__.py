"""The runner for long prompts, `helm_longctx.running.LongContextRunner`, and judging a run again."""

from helm_longctx.running.runner import LongContextRunner

__all__ = ["LongContextRunner"]
