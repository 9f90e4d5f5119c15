"""MRCR: OpenAI's multi-round co-reference resolution in long conversations."""

from helm_longctx.benchmarks.mrcr.tasks import HELMET2
from helm_longctx.benchmarks.mrcr.tasks import MRCR as BENCHMARK

__all__ = ["BENCHMARK", "HELMET2"]
