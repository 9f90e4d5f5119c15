"""The groups of a suite's schema: their columns and the tables that combine them."""

from __future__ import annotations

from typing import Any

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.protocol.entry import parse_entry
from helm_longctx.report.schema import make_schema


def make_groups(*entries: str) -> dict[str, dict[str, Any]]:
    """The groups of a suite that has a run of each entry, by name."""
    names = {name for entry in entries for name in parse_entry(BENCHMARKS, entry).groups}
    groups = make_schema(BENCHMARKS, names)["run_groups"]
    assert len({group["name"] for group in groups}) == len(groups)
    return {group["name"]: group for group in groups}


def test_each_judge_is_a_column() -> None:
    """Beside the official judge's, in every table that has the category or the task; the length is the last word."""
    groups = make_groups(
        "helmet_summ:length=8k", "helmet_summ:length=8k,judge=a/b", "helmet_summ:length=8k,judge=a/b+c"
    )
    columns = ["helmet_summ_8k", "helmet_summ_8k_judged_by_a--b", "helmet_summ_8k_judged_by_a--b+c"]
    for table in ("helmet", "helmet_8k", "helmet_summ"):
        assert groups[table]["subgroups"] == columns
    assert [groups[name]["short_display_name"] for name in columns] == ["Summ 8k", "Summ by a/b 8k", "Summ by a/b+c 8k"]
    assert groups["helmet_multi_lexsum"]["subgroups"] == [name.replace("summ", "multi_lexsum") for name in columns]


def test_a_benchmark_that_is_one_column() -> None:
    """Its table has the benchmark's own name; other judges' columns stand in the same table."""
    assert "subgroups" not in make_groups("aa_lcr")["aa_lcr"]
    both = make_groups("aa_lcr", "aa_lcr:judge=a/b")
    assert both["aa_lcr"]["subgroups"] == ["aa_lcr_judged_by_a--b"]
    assert both["aa_lcr"]["metric_groups"] == both["aa_lcr_judged_by_a--b"]["metric_groups"]
    other = make_groups("aa_lcr:judge=a/b")
    assert other["aa_lcr"]["subgroups"] == ["aa_lcr_judged_by_a--b"]
