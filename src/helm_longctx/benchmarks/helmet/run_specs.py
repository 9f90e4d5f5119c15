"""HELMET's run entries: `helmet_<category>:length=…[,task=…]`."""

from helm_longctx.benchmarks.helmet.judge import CitationAnnotator, RubricAnnotator
from helm_longctx.benchmarks.helmet.scenario import HelmetMetric, HelmetScenario
from helm_longctx.helm.run_specs import register_run_specs

register_run_specs(
    HelmetScenario, HelmetMetric, judges={"cite": CitationAnnotator, "longqa": RubricAnnotator, "summ": RubricAnnotator}
)
