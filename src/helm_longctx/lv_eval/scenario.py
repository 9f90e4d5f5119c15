"""LV-Eval for HELM: the classes that run specs name."""

from helm_longctx.core.metric import LongContextMetric
from helm_longctx.core.scenario import LongContextScenario
from helm_longctx.lv_eval.tasks import LV_EVAL


class LvEvalScenario(LongContextScenario):
    """LV-Eval's tasks."""

    benchmark = LV_EVAL


class LvEvalMetric(LongContextMetric):
    """LV-Eval's metrics."""

    benchmark = LV_EVAL
