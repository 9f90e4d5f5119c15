"""HELMET (arXiv 2410.02694): seven categories of long-context tasks."""

from helm_longctx.benchmarks.helmet.tasks import HELMET as BENCHMARK

__all__ = ["BENCHMARK"]
