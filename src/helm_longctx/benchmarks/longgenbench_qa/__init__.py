"""LongGenBench, questions: many questions of GSM8K or MMLU, asked together and answered in one long text."""

from helm_longctx.benchmarks.longgenbench_qa.tasks import LONGGENBENCH_QA as BENCHMARK
