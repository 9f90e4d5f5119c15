"""LongMemEval: questions on what was said in dozens or hundreds of chats, judged by a language model."""

from helm_longctx.benchmarks.longmemeval.tasks import LONGMEMEVAL as BENCHMARK
