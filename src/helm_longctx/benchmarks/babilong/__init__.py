"""BABILong: facts of small stories hidden in books, with 20 kinds of questions, up to ten million tokens."""

from helm_longctx.benchmarks.babilong.tasks import BABILONG as BENCHMARK
