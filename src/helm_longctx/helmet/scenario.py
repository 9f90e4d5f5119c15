"""HELMET for HELM: the classes that run specs name."""

from helm_longctx.core.metric import LongContextMetric
from helm_longctx.core.scenario import LongContextScenario
from helm_longctx.helmet.tasks import HELMET


class HelmetScenario(LongContextScenario):
    """HELMET's tasks."""

    benchmark = HELMET


class HelmetMetric(LongContextMetric):
    """HELMET's metrics."""

    benchmark = HELMET
