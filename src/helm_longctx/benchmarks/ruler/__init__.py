"""RULER: thirteen generated tasks that grow to any length, counted by the model's own tokenizer."""

from helm_longctx.benchmarks.ruler.tasks import RULER as BENCHMARK

__all__ = ["BENCHMARK"]
