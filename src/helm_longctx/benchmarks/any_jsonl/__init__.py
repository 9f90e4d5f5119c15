"""Your own test: questions about your own documents, in JSON lines."""

from helm_longctx.benchmarks.any_jsonl.tasks import ANY_JSONL as BENCHMARK

__all__ = ["BENCHMARK"]
