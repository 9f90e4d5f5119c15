"""HelloBench: answers, summaries, stories and essays of a thousand words or more, judged with checklists."""

from helm_longctx.benchmarks.hellobench.tasks import HELLOBENCH as BENCHMARK
