"""LongHealth: multiple-choice questions on the documents of fictional patients. They can lack the answer."""

from helm_longctx.benchmarks.longhealth.tasks import LONGHEALTH as BENCHMARK
