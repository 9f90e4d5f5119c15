"""SCBench: questions on a context that they share, as the turns of a conversation or as separate requests."""

from helm_longctx.benchmarks.scbench.tasks import SCBENCH as BENCHMARK
