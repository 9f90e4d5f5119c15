"""LongBench-Write: requests to write texts of 100 to 20,000 words, scored by length and by a judge."""

from helm_longctx.benchmarks.longbench_write.tasks import LONGBENCH_WRITE as BENCHMARK

__all__ = ["BENCHMARK"]
