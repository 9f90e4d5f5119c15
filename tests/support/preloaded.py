"""Imports what programs import when they need it. The server of `tests.support.programs` imports this module."""

import gc
import importlib
from functools import partial

import vl_convert

from helm_longctx.__main__ import ALLOCATIONS
from helm_longctx.documents import site
from tests.support import drawing, quick_files

MODULES = (
    "helm.benchmark.metrics.basic_metrics",
    "helm.benchmark.presentation.summarize",
    "helm.benchmark.run",
    "helm.benchmark.server",
    "helm.benchmark.window_services.no_tokenizer_window_service",
    "helm_longctx.benchmarks.helmet.scoring",
    "helm_longctx.cli.main",
    "helm_longctx.config.plan",
    "helm_longctx.models.apis.providers.openai",
    "helm_longctx.apps.judge_checks.measures",
    "helm_longctx.results.leaderboard.pages",
    "helm_longctx.documents.plots",
    "helm_longctx.runner",
    "helm_longctx.runner.batches.collection",
    "helm_longctx.runner.rejudge",
    "anthropic.resources",
    "genai_prices",
    "httpcore",
    "openai.resources",
    "pandas",
    "tokenizers.processors",
    "transformers",
)

gc.disable()  # because what is imported stays
gc.set_threshold(ALLOCATIONS)
for module in MODULES:
    importlib.import_module(module)
quick_files.replace_parsers()
quick_files.read_own_files()
# Making the script of plots makes threads that a fork would lack.
bundle = vl_convert.javascript_bundle
vl_convert.javascript_bundle = partial(drawing.draw, "javascript_bundle")
site.make_plot_script()
vl_convert.javascript_bundle = bundle
gc.freeze()  # so that a fork's garbage collection does not copy these objects
gc.enable()
