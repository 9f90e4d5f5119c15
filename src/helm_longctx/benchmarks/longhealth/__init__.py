"""LongHealth: multiple-choice questions on the documents of fictional patients, which do not always have the answer."""

from helm_longctx.benchmarks.longhealth.tasks import LONGHEALTH as BENCHMARK

__all__ = ["BENCHMARK"]
