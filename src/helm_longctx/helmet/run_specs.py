"""HELMET's run entries: `helmet_<category>:length=…[,task=…]`."""

from helm_longctx.core.specs import register_run_specs
from helm_longctx.helmet.judge import CitationAnnotator, RubricAnnotator
from helm_longctx.helmet.scenario import HelmetMetric, HelmetScenario

register_run_specs(
    HelmetScenario, HelmetMetric, judges={"cite": CitationAnnotator, "longqa": RubricAnnotator, "summ": RubricAnnotator}
)
