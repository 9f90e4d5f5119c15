"""HELMET for HELM: the classes that run specs name."""

from typing import Any

from helm.benchmark.metrics.metric import MetricResult

from helm_longctx.benchmarks.helmet.jury import jury_stats
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.helm.metric import LongContextMetric
from helm_longctx.helm.scenario import LongContextScenario


class HelmetScenario(LongContextScenario):
    """HELMET's tasks."""

    benchmark = HELMET


class HelmetMetric(LongContextMetric):
    """HELMET's metrics, and how far a jury agrees."""

    benchmark = HELMET

    def evaluate(self, *arguments: Any, **named: Any) -> MetricResult:
        """All statistics of a run."""
        result = super().evaluate(*arguments, **named)
        return MetricResult(
            [*result.aggregated_stats, *jury_stats(result.per_instance_stats)], result.per_instance_stats
        )
