"""LV-Eval's run entry: `lv_eval:length=…[,dataset=…]`."""

from helm_longctx.benchmarks.lv_eval.scenario import LvEvalMetric, LvEvalScenario
from helm_longctx.helm.run_specs import register_run_specs

register_run_specs(LvEvalScenario, LvEvalMetric, judges={})
