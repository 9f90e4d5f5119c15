"""OOLONG: questions that every line of a long text helps to answer, on classified texts and on transcripts of games."""

from helm_longctx.benchmarks.oolong.tasks import OOLONG as BENCHMARK
