"""Replacements for HELM's runner, by class path."""

from helm_longctx.running.runner import LongContextRunner

__all__ = ["LongContextRunner"]
