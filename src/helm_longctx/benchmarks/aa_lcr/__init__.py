"""AA-LCR: long-context reasoning over sets of documents, judged by a language model."""

from helm_longctx.benchmarks.aa_lcr.tasks import AA_LCR as BENCHMARK
