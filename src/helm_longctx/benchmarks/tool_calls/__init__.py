"""Tool calls: the one right call of a tool, far from its definition, in agents' logs that are drawn anew."""

from helm_longctx.benchmarks.tool_calls.tasks import TOOL_CALLS as BENCHMARK
