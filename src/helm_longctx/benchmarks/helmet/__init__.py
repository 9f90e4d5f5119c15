"""HELMET: recall, RAG, ICL, citations, re-ranking, questions about books, and summaries."""

from helm_longctx.benchmarks.helmet.tasks import HELMET as BENCHMARK
