"""CorpusQA: questions that need the numbers of a whole set of documents, up to ten million tokens, with a judge."""

from helm_longctx.benchmarks.corpusqa.tasks import CORPUSQA as BENCHMARK
