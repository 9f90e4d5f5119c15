"""LV-Eval's run entry: `lv_eval:length=…[,dataset=…]`."""

from helm_longctx.core.specs import register_run_specs
from helm_longctx.lv_eval.scenario import LvEvalMetric, LvEvalScenario

register_run_specs(LvEvalScenario, LvEvalMetric, judges={})
