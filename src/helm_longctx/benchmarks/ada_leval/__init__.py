"""Ada-LEval: the best of many answers to a question, and the order of four parts of a book, at ten lengths."""

from helm_longctx.benchmarks.ada_leval.tasks import ADA_LEVAL as BENCHMARK

__all__ = ["BENCHMARK"]
