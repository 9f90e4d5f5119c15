"""∞Bench: twelve tasks on texts of more than 100,000 tokens, in English and Chinese, code and numbers."""

from helm_longctx.benchmarks.infinite_bench.tasks import INFINITE_BENCH as BENCHMARK
