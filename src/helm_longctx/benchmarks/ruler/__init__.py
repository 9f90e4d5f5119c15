"""RULER: thirteen generated tasks of any length, measured by the model's own tokenizer."""

from helm_longctx.benchmarks.ruler.tasks import RULER as BENCHMARK
