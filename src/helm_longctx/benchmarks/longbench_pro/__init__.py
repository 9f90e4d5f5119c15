"""LongBench Pro: 25 tasks on natural texts in English and Chinese at six lengths, with and without thinking first."""

from helm_longctx.benchmarks.longbench_pro.tasks import LONGBENCH_PRO as BENCHMARK
