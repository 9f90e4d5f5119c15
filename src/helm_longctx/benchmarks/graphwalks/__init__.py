"""GraphWalks: breadth-first searches and parents in a long list of edges."""

from helm_longctx.benchmarks.graphwalks.tasks import GRAPHWALKS as BENCHMARK
