"""LongHealth: multiple-choice questions on the documents of fictional patients, of which some have no answer."""

from helm_longctx.benchmarks.longhealth.tasks import LONGHEALTH as BENCHMARK

__all__ = ["BENCHMARK"]
