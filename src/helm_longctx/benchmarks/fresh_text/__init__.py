"""Fresh text: five kinds of questions about texts that are drawn anew, so that no model can have seen them."""

from helm_longctx.benchmarks.fresh_text.tasks import FRESH_TEXT as BENCHMARK
