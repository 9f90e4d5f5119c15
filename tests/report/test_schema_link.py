"""HELM's leaderboards lead to the report."""

from __future__ import annotations

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.report.schema import link_report, make_schema


def test_leaderboards_link_to_the_report() -> None:
    """The descriptions of groups with subgroups, and no others, end with a link that helm-server serves."""
    schema = make_schema(BENCHMARKS)
    link_report(schema, "my suite")
    link = "](benchmark_output/reports/my%20suite/index.html)"
    for group in schema["run_groups"]:
        assert group["description"].endswith(link) == ("subgroups" in group)
