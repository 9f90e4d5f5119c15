"""Every benchmark of the suite. Adding one: its folder, its line here and its import in `plugin.py`."""

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.benchmarks.lv_eval.tasks import LV_EVAL

BENCHMARKS = (HELMET, LV_EVAL)
