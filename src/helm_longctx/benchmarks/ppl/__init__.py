"""Perplexity: the loss of a model on your own texts over the position: where it stops using its context."""

from helm_longctx.benchmarks.ppl.tasks import PPL as BENCHMARK
