"""Own questions: yours, about your documents, padded to any length."""

from helm_longctx.benchmarks.any_jsonl.tasks import ANY_JSONL as BENCHMARK
