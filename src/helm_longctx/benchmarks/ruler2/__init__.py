"""RULER v2: retrieval, and then questions on what was retrieved, in twelve generated tasks of growing difficulty."""

from helm_longctx.benchmarks.ruler2.tasks import RULER2 as BENCHMARK
