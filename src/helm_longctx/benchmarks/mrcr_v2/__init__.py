"""Google DeepMind's MRCR v2: the model repeats one of several similar texts in a long transcript."""

from helm_longctx.benchmarks.mrcr_v2.tasks import MRCR_V2 as BENCHMARK

__all__ = ["BENCHMARK"]
