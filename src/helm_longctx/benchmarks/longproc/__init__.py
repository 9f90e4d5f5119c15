"""LongProc: long procedural generation, six tasks graded by the length of the output."""

from helm_longctx.benchmarks.longproc.tasks import LONGPROC as BENCHMARK

__all__ = ["BENCHMARK"]
