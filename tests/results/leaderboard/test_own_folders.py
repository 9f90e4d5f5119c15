"""Tests that own questions of two sets are two boards, and those of one set in a folder for each length are one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helm.benchmark.model_metadata_registry import (
    MODEL_NAME_TO_MODEL_METADATA,
    ModelMetadata,
)

from helm_longctx.apps.exchange.export import averages
from helm_longctx.apps.exchange.tables import wide_tables
from helm_longctx.apps.lengths.curves import length_sections
from helm_longctx.results.boards import find_question_sets, read_suite
from helm_longctx.results.cells import leaderboard_rows
from helm_longctx.results.comparison import SharedTable
from helm_longctx.tasks.registry import BENCHMARKS
from tests.apps.report.suites import write_suite
from tests.support.leaderboards import summarize_suite


def test_models_of_the_same_last_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On HELM's pages `my/x` and `other/x`, whose display name is `x`, have their whole names, and other models keep theirs."""
    for name in ("my/x", "other/x", "my/y"):
        about = ModelMetadata(
            name, "someone", name.partition("/")[2], "", "open", None, []
        )
        monkeypatch.setitem(MODEL_NAME_TO_MODEL_METADATA, name, about)
    suite = tmp_path / "runs/s"
    write_suite(
        suite,
        ["helmet_recall:task=json_kv,length=8k"],
        {"my/x": 0.9, "other/x": 0.5, "my/y": 0.1},
        instances=3,
    )
    summarize_suite("s", tmp_path)
    table = json.loads((suite / "groups/helmet_recall_8k.json").read_text())[0]
    assert {row[0]["value"] for row in table["rows"]} == {"my/x", "other/x", "y"}
    models = json.loads((suite / "schema.json").read_text())["models"]
    assert {model["name"]: model["display_name"] for model in models} == {
        "my/x": "my/x",
        "other/x": "other/x",
        "my/y": "y",
    }


def test_two_folders(tmp_path: Path) -> None:
    """Two folders have two boards, and instances with the same ids in both are not confused."""
    suite = tmp_path / "runs/s"
    entries = [f"any_jsonl:path={path},length=8k" for path in ("law", "data/bills/")]
    write_suite(suite, entries, {"a/good": 0.9, "a/bad": 0.1}, instances=5)
    summarize_suite("s", tmp_path)
    results, boards = read_suite(suite, BENCHMARKS)
    scores = {(result.model, result.folder): result.interval.mean for result in results}
    assert len(scores) == 4
    titles = {"Own questions law": "law", "Own questions bills": "data/bills"}
    assert {board.title: len(board.runs) for board in boards} == dict.fromkeys(
        titles, 2
    )
    rows = list(leaderboard_rows(boards))
    assert len(rows) == 4
    for row in rows:
        (score,) = row["scores"].values()
        assert score == scores[row["model"], titles[row["leaderboard"]]]
    for folder in titles.values():
        name = folder.replace("/", "--")
        table = json.loads(
            (suite / f"groups/any_jsonl_8k_in_folder_{name}.json").read_text()
        )[0]
        assert {row[0]["value"]: row[1]["number"] for row in table["rows"]} == {
            model: scores[model, folder] for model in ("a/good", "a/bad")
        }
    assert {wide.board.folder for wide in wide_tables(boards)} == set(titles.values())
    models = ["a/good", "a/bad"]
    assert len(SharedTable(boards, models).items) == sum(
        len(SharedTable([board], models).items) for board in boards
    )


@pytest.mark.parametrize(
    ("folders", "sets"),
    [
        ({"law-8k": [8], "law-32k": [32]}, {"law-8k": "law", "law-32k": "law"}),
        ({"law/8k": [8], "law/32768": [32]}, {"law/8k": "law", "law/32768": "law"}),
        ({"8K/law": [8], "32K/law": [32]}, {"8K/law": "law", "32K/law": "law"}),
        (
            {"../q/law_8k_v2": [8], "../q/law_16k_v2": [16]},
            dict.fromkeys(("../q/law_8k_v2", "../q/law_16k_v2"), "../q/law_v2"),
        ),
        # Alone, at several lengths, at another length than its name says, beside a folder with the set's name, and twice
        # for one length.
        ({"law-8k": [8]}, {}),
        ({"law-8k": [8, 16], "law-32k": [32]}, {}),
        ({"law-8k": [16], "law-32k": [32]}, {}),
        ({"law-8k": [8], "law-32k": [32], "law": [16]}, {}),
        ({"law-8k": [8], "law_8k": [8]}, {}),
        ({"8k": [8], "32k": [32]}, {}),
        ({"": [None, 8]}, {}),
    ],
)
def test_sets(folders: dict[str, list[int | None]], sets: dict[str, str]) -> None:
    """Folders are one set if their names differ only in the length of their runs."""
    places = [
        (folder, length and length * 1024)
        for folder, lengths in folders.items()
        for length in lengths
    ]
    assert find_question_sets(places) == ({folder: folder for folder in folders} | sets)


def test_folder_for_each_length(tmp_path: Path) -> None:
    """A set with a folder for each length is one board with a curve, and HELM's pages have all its lengths."""
    suite = tmp_path / "runs/s"
    lengths = ("8k", "32k")
    entries = [
        f"any_jsonl:path=data/law-{length},length={length}" for length in lengths
    ]
    write_suite(
        suite,
        [*entries, "any_jsonl:path=data/bills,length=8k"],
        {"a/good": 0.9, "a/bad": 0.1},
        instances=5,
    )
    summarize_suite("s", tmp_path)
    boards = read_suite(suite, BENCHMARKS).boards
    law, bills = sorted(boards, key=lambda board: -len(board.lengths))
    assert (law.title, law.lengths, law.folder) == (
        "Own questions law",
        [8192, 32768],
        "data/law",
    )
    assert (bills.title, bills.lengths) == ("Own questions bills", [8192])
    assert [section.title for section in length_sections(law)] == ["Scores over length"]
    assert {row.folder for row in averages([law]) if row.length == "average"} == {
        "data/law"
    }
    schema = json.loads((suite / "schema.json").read_text())
    names = {group["name"] for group in schema["run_groups"]}
    for length in lengths:
        group = f"any_jsonl_{length}_in_folder_data--law-{length}"
        assert group in names
        table = json.loads((suite / f"groups/{group}.json").read_text())[0]
        assert {row[0]["value"] for row in table["rows"]} == {"a/good", "a/bad"}
