"""AgentLongBench: questions on logs of agents that guess an entity with tools, up to 4M tokens."""

from helm_longctx.benchmarks.agentlongbench.tasks import AGENTLONGBENCH as BENCHMARK
