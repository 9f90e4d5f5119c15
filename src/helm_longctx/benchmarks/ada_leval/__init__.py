"""Ada-LEval: the best of many answers, and the order of four parts of a book, at up to ten lengths."""

from helm_longctx.benchmarks.ada_leval.tasks import ADA_LEVAL as BENCHMARK
