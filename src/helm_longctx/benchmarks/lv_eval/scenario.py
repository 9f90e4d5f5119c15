"""LV-Eval for HELM: the classes that run specs name."""

from helm_longctx.benchmarks.lv_eval.tasks import LV_EVAL
from helm_longctx.helm.metric import LongContextMetric
from helm_longctx.helm.scenario import LongContextScenario


class LvEvalScenario(LongContextScenario):
    """LV-Eval's tasks."""

    benchmark = LV_EVAL


class LvEvalMetric(LongContextMetric):
    """LV-Eval's metrics."""

    benchmark = LV_EVAL
