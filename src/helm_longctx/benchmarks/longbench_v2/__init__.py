"""LongBench v2: multiple-choice questions on long texts, with and without reasoning first."""

from helm_longctx.benchmarks.longbench_v2.tasks import LONGBENCH_V2 as BENCHMARK
