"""LongProc: long procedural generation, with six tasks at several output lengths."""

from helm_longctx.benchmarks.longproc.tasks import LONGPROC as BENCHMARK
