"""LongGenBench, Golden Thread: long texts of numbered entries, some of which must mention what the prompt asks for."""

from helm_longctx.benchmarks.longgenbench.tasks import LONGGENBENCH as BENCHMARK
