"""LoCoMo: questions on what two people said in a conversation over months, with official F1 and exchangeable judges."""

from helm_longctx.benchmarks.locomo.tasks import LOCOMO as BENCHMARK
