"""LongBench: 21 tasks in English, Chinese and code, on texts of mostly 5,000 to 15,000 words."""

from helm_longctx.benchmarks.longbench.tasks import LONGBENCH as BENCHMARK
