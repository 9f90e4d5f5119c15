"""MRCR v2: Google DeepMind's task of repeating one of several similar texts in a long transcript."""

from helm_longctx.benchmarks.mrcr_v2.tasks import MRCR_V2 as BENCHMARK
