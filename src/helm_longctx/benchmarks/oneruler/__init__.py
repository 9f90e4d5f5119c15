"""OneRuler: needles in books and common words in lists, in 26 languages."""

from helm_longctx.benchmarks.oneruler.tasks import ONERULER as BENCHMARK
