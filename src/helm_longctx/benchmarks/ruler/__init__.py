"""RULER: thirteen generated tasks of any length, which the model's own tokenizer measures."""

from helm_longctx.benchmarks.ruler.tasks import RULER as BENCHMARK
