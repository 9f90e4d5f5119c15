"""HELMET's new tasks: recall and RULER up to 2m tokens, graphs, and LongBench v2. They are in no mean of HELMET."""

from helm_longctx.benchmarks.helmet.helmet2.tasks import HELMET2 as BENCHMARK
