"""The overall column, and the table that the leaderboard opens with."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest
import yaml
from helm.benchmark.presentation import summarize

from helm_longctx.benchmarks import BENCHMARKS, find_benchmark
from helm_longctx.report.marks import NOTES
from helm_longctx.report.overall import common_length, first_table, overall_runs
from helm_longctx.report.reference import write_reference
from helm_longctx.report.results import Overall, category_results, overall_results, published_results
from helm_longctx.report.schema import make_schema
from helm_longctx.report.suite import read_contents, score_tables
from helm_longctx.statistics.intervals import Interval
from tests.fabricate_runs import long_prompts, write_run

HELMET, LV_EVAL = find_benchmark("helmet"), find_benchmark("lv_eval")


@pytest.mark.parametrize(
    ("scored", "length"),
    [
        ([], None),
        ([("a", 8), ("b", 8), ("a", 16)], 8),
        ([("a", 8), ("b", 8), ("c", 8), ("a", 16), ("b", 16), ("a", 32)], 16),
        ([("a", 8), ("published/x", 16), ("published/y", 16)], 8),
        ([("published/x", 8), ("published/x", 16), ("published/y", 16), ("published/z", 8)], 16),
    ],
)
def test_common_length(scored: list[tuple[str, int]], length: int | None) -> None:
    """The longest that more than half of the models have; published ones count only among themselves."""
    assert common_length(scored) == length


def test_first_tables_of_published_results() -> None:
    """HELMET's is 128k, which four of its models do not have; LV-Eval's is its only category's at 256k."""
    for benchmark, name in ((HELMET, "helmet_128k"), (LV_EVAL, "lv_eval_256k")):
        categories = category_results(published_results(benchmark), benchmark)
        assert first_table(benchmark, categories, overall_results(categories, benchmark)) == name


def test_a_model_without_overall_score_keeps_the_reason() -> None:
    """For each of its deployments; a benchmark with one category has no further column."""
    overalls = [Overall("m", 8192, None, "no Cite"), Overall("n", 8192, Interval(0.5, math.nan, math.nan, 0), "")]
    runs = list(overall_runs(HELMET, overalls, {"m": ["x/m", "y/m"]}))
    assert [each.run.spec["adapter_spec"]["model_deployment"] for each in runs] == ["x/m", "y/m", "n"]
    assert [len(each.run.stats) for each in runs] == [0, 0, 1]
    assert {group for each in runs for group in each.run.spec["groups"]} == {"helmet_overall_8k"}
    assert list(overall_runs(LV_EVAL, overalls, {})) == []


def test_the_overall_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the first, sorted, without links to runs; a model without it comes last, with the reason."""
    suite = tmp_path / "benchmark_output/runs/s"
    entry = "helmet_recall:task=json_kv,length=128k,model=longctx/null"
    write_run(suite, entry, long_prompts(3, 200))
    write_reference(HELMET, suite, ["GPT-4o-*", "Llama-3.1-8B"])
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(make_schema(BENCHMARKS, *read_contents(suite, BENCHMARKS))))
    monkeypatch.chdir(tmp_path)
    arguments = ["helm-summarize", "--suite", "s", "--schema-path", "schema.yaml", "--summarizer-class-name"]
    monkeypatch.setattr(sys, "argv", [*arguments, "helm_longctx.report.LongContextSummarizer"])
    summarize.main()
    index = json.loads((suite / "groups.json").read_text())
    assert index[0]["rows"][0][0]["value"] == "HELMET 128k"
    table = json.loads((suite / "groups/helmet_128k.json").read_text())[0]
    assert [title["value"] for title in table["header"]][1:3] == ["Average 128k", "Recall 128k"]
    assert table["header"][-1]["value"] == NOTES
    scores = [row[1].get("value") for row in table["rows"]]
    assert scores[:-1] == sorted(scores[:-1], reverse=True)
    assert scores[0] == pytest.approx(0.648, abs=0.001)
    assert not any("run_spec_names" in row[1] for row in table["rows"])
    own = table["rows"][-1]
    assert "published" not in own[0]["value"]
    assert own[1]["reason"].startswith("no RAG, ")
    assert own[-1]["value"].startswith("Average 128k: no score, because no RAG, ")
    assert (own[2]["number"], own[2]["high"]) == (1.0, 1.0)
    assert 0.3 < own[2]["low"] < 0.9
    titles = [each.title for each in score_tables(suite, BENCHMARKS)]
    assert titles == [f"HELMET {length}" for length in ("8k", "16k", "32k", "64k", "128k")]
    last = list(score_tables(suite, BENCHMARKS))[-1]
    assert [str(cell) for cell in last.columns[2].cells][-1].startswith("1.000 †\n0.")
    assert [len(each.rows) for each in score_tables(suite, BENCHMARKS)] == [4, 4, 4, 4, 5]
