"""Tests of the groups of a suite's schema: their columns and the tables that combine them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from helm_longctx.results.leaderboard.schema import (
    all_sections,
    make_schema,
    suite_schema,
)
from helm_longctx.tasks.registry import find_benchmark
from tests.support.boards import make_entry_boards


def make_groups(*entries: str) -> dict[str, dict[str, Any]]:
    """Return the groups of a suite that has a run of each entry, by name."""
    groups = suite_schema(make_entry_boards(*entries))["run_groups"]
    assert len({group["name"] for group in groups}) == len(groups)
    return {group["name"]: group for group in groups}


def test_each_judge_is_a_column() -> None:
    """Each judge has a column next to the official judge's in every table, and the length is the last word of its title."""
    groups = make_groups(
        "helmet_summ:length=8k",
        "helmet_summ:length=8k,judge=a/b",
        "helmet_summ:length=8k,judge=a/b+c",
    )
    columns = [
        "helmet_summ_8k",
        "helmet_summ_8k_judged_by_a--b",
        "helmet_summ_8k_judged_by_a--b+c",
    ]
    for table in ("helmet", "helmet_8k", "helmet_summ"):
        assert groups[table]["subgroups"] == columns
    assert [groups[name]["short_display_name"] for name in columns] == [
        "Summ 8k",
        "Summ by a/b 8k",
        "Summ by a/b+c 8k",
    ]
    assert groups["helmet_multi_lexsum"]["subgroups"] == [
        name.replace("summ", "multi_lexsum") for name in columns
    ]


def test_a_benchmark_that_is_one_column() -> None:
    """The table of a one-column benchmark has the benchmark's own name and includes the columns of other judges."""
    assert "subgroups" not in make_groups("aa_lcr")["aa_lcr"]
    both = make_groups("aa_lcr", "aa_lcr:judge=a/b")
    assert both["aa_lcr"]["subgroups"] == ["aa_lcr_judged_by_a--b"]
    assert (
        both["aa_lcr"]["metric_groups"]
        == both["aa_lcr_judged_by_a--b"]["metric_groups"]
    )
    other = make_groups("aa_lcr:judge=a/b")
    assert other["aa_lcr"]["subgroups"] == ["aa_lcr_judged_by_a--b"]


def test_names_come_back() -> None:
    """Headings show judges and folders as the user gave them, also with `--` and with more than 60 characters."""
    judge = "vllm/a--b" + "c" * 70
    folder = "data/my--questions" + "d" * 70
    groups = make_groups(
        f"helmet_summ:length=8k,judge={judge}", f"any_jsonl:path={folder},length=8k"
    )
    titles = [
        group["short_display_name"]
        for group in groups.values()
        if "short_display_name" in group
    ]
    assert f"Summ by {judge} 8k" in titles
    assert f"Own questions {Path(folder).name} 8k" in titles


def test_folders_with_the_same_last_part() -> None:
    """Titles have the whole path of a folder only if two folders share the last part."""
    entries = [
        f"any_jsonl:path={path},length=8k" for path in ("a/law", "b/law", "c/tax")
    ]
    titles = [group["display_name"] for group in make_groups(*entries).values()]
    assert {"Own questions a/law", "Own questions b/law", "Own questions tax"} <= set(
        titles
    )


def test_categories_outside_the_mean() -> None:
    """Categories outside the mean are columns after the others, in the table of all lengths and in the table of one length."""
    groups = make_groups(
        "helmet_ruler:length=8k", "helmet_summ:length=8k", "helmet_recall:length=8k"
    )
    for table in ("helmet", "helmet_8k"):
        assert groups[table]["subgroups"] == [
            "helmet_recall_8k",
            "helmet_summ_8k",
            "helmet_ruler_8k",
        ]


def test_the_order_of_groups() -> None:
    """The leaderboards of all benchmarks come first, HELMET's at the top, and lengths ascend."""
    entries = [
        f"helmet_recall:length={length}" for length in ("64k", "8k", "4k", "16k")
    ]
    names = list(make_groups("lv_eval:length=16k", *entries))
    boards = [
        "helmet",
        "helmet_4k",
        "helmet_8k",
        "helmet_16k",
        "helmet_64k",
        "lv_eval",
        "lv_eval_16k",
    ]
    assert names[: len(boards)] == boards


def test_closed_book_columns() -> None:
    """Tasks that can be asked without their context have closed-book columns, as do categories that have only such tasks."""
    groups = make_schema(all_sections([find_benchmark("helmet")]))["run_groups"]
    columns = {
        group["name"]
        for group in groups
        if "helmet_closed" in group["name"] and "subgroups" not in group
    }
    categories = {"rag", "longqa"}
    tasks = {
        "nq",
        "triviaqa",
        "hotpotqa",
        "popqa",
        "narrativeqa",
        "infbench_qa",
        "infbench_choice",
    }
    assert {name for name in columns if name.endswith("_8k")} == {
        f"helmet_closed_{name}_8k" for name in categories | tasks
    }
    names = {group["name"] for group in groups}
    assert "helmet_overall_8k" in names
    assert "helmet_closed_overall_8k" not in names
    assert {"helmet_summ_8k", "helmet_nq_8k"} <= names


def test_categories_with_some_closed_book_tasks() -> None:
    """A category with only some closed-book tasks has no closed-book column, because its mean would be over other tasks."""
    helmet = find_benchmark("helmet")
    category = replace(
        helmet.entries["helmet_rag"], tasks=(helmet.task("nq"), helmet.task("json_kv"))
    )
    groups = make_schema(all_sections([replace(helmet, categories=(category,))]))[
        "run_groups"
    ]
    names = {group["name"] for group in groups}
    assert "helmet_closed_nq_8k" in names
    assert "helmet_closed_rag_8k" not in names
    assert "helmet_rag_8k" in names
