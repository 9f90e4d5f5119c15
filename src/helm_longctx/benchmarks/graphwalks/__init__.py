"""GraphWalks: the model finds nodes by breadth-first search, or the parents of a node, in a long list of edges."""

from helm_longctx.benchmarks.graphwalks.tasks import GRAPHWALKS as BENCHMARK

__all__ = ["BENCHMARK"]
