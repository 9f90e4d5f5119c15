"""LV-Eval: bilingual question answering at five lengths, with confusing facts."""

from helm_longctx.benchmarks.lv_eval.tasks import LV_EVAL as BENCHMARK
