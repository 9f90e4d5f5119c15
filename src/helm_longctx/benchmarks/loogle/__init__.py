"""LooGLE: questions, clozes and summaries about books' worth of text, with evidence in one passage or in many."""

from helm_longctx.benchmarks.loogle.tasks import LOOGLE as BENCHMARK
