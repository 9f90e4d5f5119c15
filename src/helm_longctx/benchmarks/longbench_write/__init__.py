"""LongBench-Write: texts of 100 to 20,000 words on request, scored by length and by a judge."""

from helm_longctx.benchmarks.longbench_write.tasks import LONGBENCH_WRITE as BENCHMARK
