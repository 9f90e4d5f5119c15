"""Tests of the cells of HELM's tables, the overall column, and the table with which the leaderboard opens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.presentation.schema import read_schema

from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, make_boards
from helm_longctx.results.leaderboard.members import find_first_group
from helm_longctx.results.leaderboard.pages import MOST_OPTIONS
from helm_longctx.results.leaderboard.tables import MOST_PUBLISHED, NOTES
from helm_longctx.results.reading import read_results
from helm_longctx.results.suite import write_reference
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from tests.apps.report.suites import write_suite
from tests.support.fabricate_runs import long_prompts, write_run
from tests.support.leaderboards import summarize_suite

HELMET = find_benchmark("helmet")


def read_table(suite: Path, group: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads((suite / f"groups/{group}.json").read_text())[0]
    return table


def names(table: dict[str, Any]) -> list[str]:
    return [title["value"] for title in table["header"]]


@pytest.mark.parametrize(
    ("name", "group"), [("helmet", "helmet_128k"), ("lv_eval", "lv_eval_256k")]
)
def test_first_tables_of_published_results(
    tmp_path: Path, name: str, group: str
) -> None:
    """A suite without runs opens at the longest length that most published models have."""
    write_reference(find_benchmark(name), tmp_path)
    results = read_results(tmp_path, BENCHMARKS)
    assert find_first_group(make_boards(results, BENCHMARKS)) == group


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a summarized suite of two models and several benchmarks, with the published results of three."""
    folder = tmp_path_factory.mktemp("scores")
    runs = folder / "runs/s"
    entries = [
        *(
            f"helmet_{category.name}:length=8k"
            for category in HELMET.categories
            if category.averaged
        ),
        *(
            "helmet_recall:length=4k",
            "helmet_recall:length=16k",
            "helmet_ruler:length=8k",
        ),
        *(f"longbench_v2:mode={mode}" for mode in ("0shot", "cot", "no_context")),
        "lv_eval:length=16k",
        "any_jsonl:path=data/law,length=8k",
    ]
    write_suite(runs, entries, {"acme/good": 0.7, "acme/bad": 0.1}, instances=3)
    # Only one of the models has the longest length.
    write_suite(runs, ["helmet_recall:length=32k"], {"acme/good": 0.7}, instances=3)
    for name in ("helmet", "lv_eval", "ada_leval"):
        write_reference(find_benchmark(name), runs)
    summarize_suite("s", folder)
    return runs


def test_the_first_table(suite: Path) -> None:
    """The first table shows the user's benchmark at the longest length that most of the user's models have."""
    index = json.loads((suite / "groups.json").read_text())
    groups = [row[0]["href"] for table in index for row in table["rows"]]
    assert groups[0] == "helmet_16k"
    (table,) = [table for table in index if table["title"] == "HELMET leaderboards"]
    assert [row[0]["value"] for row in table["rows"]] == [
        "HELMET", *(f"HELMET {length}" for length in ("4k", "8k", "32k", "64k", "128k"))
    ]  # fmt: skip


def test_the_selector(suite: Path) -> None:
    """The selector has few options, each once, in the order of the second column, by which the front end sorts."""
    index = json.loads((suite / "groups.json").read_text())
    titles = [row[0]["value"] for table in index for row in table["rows"]]
    assert len(titles) == len(set(titles)) <= MOST_OPTIONS
    assert (
        titles.index("LV-Eval")
        < titles.index("Ada-LEval")
        < titles.index("HELMET Recall")
    )
    for table in index:
        assert table["header"][1]["lower_is_better"]
        assert [row[1]["value"] for row in table["rows"]] == [
            *range(1, len(table["rows"]) + 1)
        ]
        assert all(
            cell.get("value") is not None for row in table["rows"] for cell in row
        )


def test_no_cell_leads_to_all_predictions(suite: Path) -> None:
    """Each second cell has a list of runs, because the front end links it to all predictions otherwise."""
    files = [suite / "groups.json", *(suite / "groups").glob("*.json")]
    tables = [table for path in files for table in json.loads(path.read_text())]
    assert all(
        "run_spec_names" in row[1]
        for table in tables
        for row in table["rows"]
        if "value" in row[1]
    )
    rows = {row[0]["value"]: row[1] for row in read_table(suite, "helmet_8k")["rows"]}
    assert len(rows["acme/good"]["run_spec_names"]) == 7


def test_own_models_among_published_ones(suite: Path) -> None:
    """The user's models are bold among the best published models, and the description counts the other published ones."""
    table = read_table(suite, "helmet_8k")
    published = [
        row for row in table["rows"] if row[0]["value"].startswith("published/")
    ]
    own = [row for row in table["rows"] if row not in published]
    assert len(published) == MOST_PUBLISHED
    assert {row[0]["value"] for row in own} == {"acme/good", "acme/bad"}
    assert all(row[0]["style"] == {"font-weight": "bold"} for row in own)
    assert not any("style" in row[0] for row in published)
    descriptions = {
        group.name: group.description
        for group in read_schema(str(suite / "schema.json")).run_groups
    }
    assert f"the {MOST_PUBLISHED} best of 65 published ones" in str(
        descriptions["helmet_8k"]
    )
    assert len(read_table(suite, "ada_leval_8k")["rows"]) > MOST_PUBLISHED


def test_tasks_of_published_models_alone(suite: Path) -> None:
    """A task that no model of the user has is a column of its category, and has no page of its own."""
    pages = {path.stem for path in (suite / "groups").glob("*.json")}
    assert {"helmet_json_kv", "helmet_json_kv_8k", "helmet_icl_64k"} <= pages
    assert not pages & {"helmet_json_kv_64k", "helmet_trec_coarse_64k"}
    listed = {
        row[0]["href"]
        for table in json.loads((suite / "groups.json").read_text())
        for row in table["rows"]
    }
    scenarios = {
        group.name
        for group in read_schema(str(suite / "schema.json")).run_groups
        if group.taxonomy
    }
    assert listed | scenarios <= pages
    tables = json.loads((suite / "groups/helmet_icl_64k.json").read_text())
    assert [table["title"] for table in tables] == ["Score"]
    assert len(tables[0]["rows"]) == 65
    columns = ["TREC Coarse", "TREC Fine", "BANKING77", "CLINIC150", "NLU"]
    assert names(tables[0]) == [
        "Model",
        "ICL 64k",
        *(f"{column} 64k" for column in columns),
    ]
    # A task has several official metrics only here.
    cited = json.loads((suite / "groups/helmet_cite_64k.json").read_text())
    assert [table["title"] for table in cited] == ["Score", "Official metrics"]
    assert names(cited[1])[1:5] == [
        "String EM",
        "Citation recall",
        "Citation precision",
        "List recall, top 5",
    ]


def test_columns_outside_the_mean(suite: Path) -> None:
    """RULER is a column of HELMET's leaderboard, LongBench v2's modes are columns, and no column is their mean."""
    assert "RULER 8k" in names(read_table(suite, "helmet_8k"))
    table = read_table(suite, "longbench_v2")
    assert names(table) == ["Model", "Zero-shot", "With CoT", "Without the text", NOTES]


def test_own_questions_have_short_names(suite: Path) -> None:
    """Own questions are named by the last part of their folder."""
    groups = {
        group.name: group.display_name
        for group in read_schema(str(suite / "schema.json")).run_groups
    }
    assert groups["any_jsonl_8k_in_folder_data--law"] == "Own questions law 8k"


def test_the_page_of_scenarios(suite: Path) -> None:
    """The page of scenarios has each benchmark, category and task once."""
    groups = [
        group
        for group in read_schema(str(suite / "schema.json")).run_groups
        if group.taxonomy
    ]
    titles = [group.display_name for group in groups]
    assert len(titles) == len(set(titles))
    assert {
        "HELMET",
        "HELMET Recall",
        "HELMET JSON KV",
        "LongBench v2 With CoT",
    } <= set(titles)


def test_unregistered_models_are_on_the_page_of_models(suite: Path) -> None:
    """The page of models lists unregistered models, because HELM's page is blank without a model."""
    models = json.loads((suite / "schema.json").read_text())["models"]
    assert [model["display_name"] for model in models] == ["acme/bad", "acme/good"]


def test_the_overall_column(tmp_path: Path) -> None:
    """The overall column comes first and is sorted; a model without an overall score comes last, with the reason."""
    suite = tmp_path / "runs/s"
    entry = "helmet_recall:task=json_kv,length=128k,model=longctx/null"
    write_run(suite, entry, long_prompts(3, 200))
    write_reference(HELMET, suite, ["GPT-4o-*", "Llama-3.1-8B"])
    summarize_suite("s", tmp_path)
    table = read_table(suite, "helmet_128k")
    assert names(table)[1:3] == ["Average 128k", "Recall 128k"]
    assert names(table)[-1] == NOTES
    scores = [row[1].get("number") for row in table["rows"]]
    assert scores[:-1] == sorted(scores[:-1], reverse=True)
    assert scores[0] == pytest.approx(0.648, abs=0.001)
    assert table["rows"][0][1]["value"].startswith(f"{100 * scores[0]:.1f} (")
    own = table["rows"][-1]
    assert "published" not in own[0]["value"]
    assert ["missing", "rag", ""] in own[1]["caveats"]
    assert own[-1]["value"].startswith(
        "Average 128k: none, because of no score (rag, icl, cite and "
    )
    assert (own[2]["number"], own[2]["high"]) == (1.0, 1.0)
    assert 0.2 < own[2]["low"] < 0.9


def test_a_suite_without_runs(tmp_path: Path) -> None:
    """A suite without finished runs is an error, and no pages are written."""
    (tmp_path / "runs/s").mkdir(parents=True)
    with pytest.raises(InputError, match="has no finished run"):
        summarize_suite("s", tmp_path)


def test_a_board_without_scores_is_not_the_first() -> None:
    """A board on which all requests failed is not the first table, because it has no length with a score."""
    assert find_first_group([Board(HELMET, "", "", [], [], [], [])]) is None
