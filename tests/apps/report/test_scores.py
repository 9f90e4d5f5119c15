"""Tests of the report's file of all scores, and of the error for an empty report."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from helm_longctx.apps.report.build import write_report
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, label
from helm_longctx.results.cells import score_rows
from helm_longctx.tasks.registry import BENCHMARKS
from tests.apps.report.suites import write_suite


def test_every_score_of_a_board_is_a_row(mixed: Board) -> None:
    """Every score of a board is a row with interval, number of instances and reasons; a missing overall score says what it lacks."""
    rows = list(score_rows(mixed))
    places = {
        tuple(row[name] for name in ("model", "part", "length", "context")): row
        for row in rows
    }
    assert len(places) == len(rows)
    for cell_key, result in mixed.scores.items():
        row = places[cell_key]
        ends = (row["score"], row["low"], row["high"], row["n"])
        interval = result.interval
        assert ends == (interval.mean, interval.low, interval.high, interval.n)
        assert row["caveats"] == [caveat.code for caveat in result.caveats]
        assert (row["published"], row["floor"]) == (
            result.is_published,
            result.model == "longctx/null",
        )
    overall = places["acme/one", "overall", 8192, "full"]
    assert overall["score"] is None
    assert "missing:rerank" in overall["caveats"]


def test_files_have_the_rows(mixed: Board, beside: Path) -> None:
    """The JSON and CSV files have the same rows, and missing values are null or empty."""
    rows = json.loads((beside / "data" / "scores.json").read_bytes())
    assert rows == [json.loads(json.dumps(row)) for row in score_rows(mixed)]
    with (beside / "data" / "scores.csv").open(
        encoding="utf-8-sig", newline=""
    ) as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == list(rows[0])
    assert [row["score"] for row in table] == [
        "" if row["score"] is None else str(row["score"]) for row in rows
    ]
    assert [row["caveats"].split(";") for row in table] == [
        row["caveats"] or [""] for row in rows
    ]


def test_tables_and_plots_have_the_same_scores(mixed: Board, beside: Path) -> None:
    """Every score in a leaderboard's files is in the file of all scores, and each own score is in a table."""
    rows = json.loads((beside / "data" / "scores.json").read_bytes())
    parts = {title: part for part, title in mixed.titles.items()}
    scores = {
        (row["model"].removeprefix("published/"), row["part"], row["length"]): row[
            "score"
        ]
        for row in rows
    }
    scores = {
        key: score for key, score in scores.items() if key[2] and score is not None
    }
    for length in mixed.lengths:
        stem = f"leaderboard-helmet-{label(length)}"
        with (beside / "data" / f"{stem}-table.csv").open(
            encoding="utf-8-sig", newline=""
        ) as file:
            table = list(csv.DictReader(file))
        shown_scores = {
            (row["Model"], parts[title], length): float(value)
            for row in table
            for title, value in row.items()
            if title in parts and value
        }
        # A closed-book row has the name of its model and is in another column.
        assert shown_scores == {
            key: pytest.approx(scores[key], abs=1e-8) for key in shown_scores
        }
        for row in json.loads((beside / "data" / f"{stem}-plot.json").read_bytes()):
            model = "longctx/null" if row["model"] == "null" else row["model"]
            assert row["score"] == pytest.approx(
                scores[model, mixed.main_part(length), length], abs=1e-6
            )
        own = {key for key in scores if key[0].startswith("acme") and key[2] == length}
        assert {
            key for key in own if key[1].startswith("helmet_")
        } <= shown_scores.keys()


@pytest.mark.parametrize("published", [False, True])
def test_a_suite_without_scores_is_an_error(tmp_path: Path, published: bool) -> None:
    """A suite without scores is an error, and does not become a report of published results."""
    suite = tmp_path / "runs" / "empty"
    suite.mkdir(parents=True)
    with pytest.raises(
        InputError,
        match="empty has no scores to report; first use helm-longctx run with it",
    ):
        write_report(
            suite, BENCHMARKS, tmp_path / "site", "html", published=published, server=""
        )
    assert not (tmp_path / "site").exists()


@pytest.mark.usefixtures("empty_pictures")
def test_benchmarks_are_in_one_order_with_short_names(tmp_path: Path) -> None:
    """HELMET is first, only benchmarks of the suite have pages, and folders with the same name are shown with their paths."""
    entries = ["lv_eval:length=16k", "helmet_recall:task=json_kv,length=8k"]
    entries += [
        f"any_jsonl:path={folder},length=8k"
        for folder in ("a/law", "b/law", "data/bills")
    ]
    write_suite(
        tmp_path / "s", entries, {"acme/one": 0.8, "acme/two": 0.5}, instances=6
    )
    index = write_report(
        tmp_path / "s",
        BENCHMARKS,
        tmp_path / "site",
        "markdown",
        published=True,
        server="",
    )
    text = index.read_text(encoding="utf-8").replace("\\", "")
    titles = [
        line.removeprefix("## ").partition(":")[0]
        for line in text.splitlines()
        if line.startswith("## ")
    ]
    assert list(dict.fromkeys(titles)) == [
        *(
            "HELMET",
            "Own questions a/law",
            "Own questions b/law",
            "Own questions bills",
            "LV-Eval",
        ),
        "All benchmarks",
    ]
    assert len(list((tmp_path / "site" / "plots").iterdir())) == text.count("](plots/")


def test_a_run_without_an_answer_has_its_reasons(tmp_path: Path) -> None:
    """A model whose requests all failed is in the table of runs and in the file of scores, without a score and with the reason."""
    write_suite(
        tmp_path / "s",
        ["helmet_recall:task=json_kv,length=8k"],
        {"acme/one": 0.8, "acme/down": 0.8},
    )
    (run,) = (tmp_path / "s").glob("*acme_down")
    for name in ("per_instance_stats", "stats"):
        content = json.loads((run / f"{name}.json").read_text())
        for stats in (
            [row["stats"] for row in content]
            if name == "per_instance_stats"
            else [content]
        ):
            stats[:] = [
                stat
                for stat in stats
                if stat["name"]["name"] in ("request_failed", "depth")
            ]
            for stat in stats:
                stat["mean"] = (
                    1.0 if stat["name"]["name"] == "request_failed" else stat["mean"]
                )
        (run / f"{name}.json").write_text(json.dumps(content))
    write_report(
        tmp_path / "s",
        BENCHMARKS,
        tmp_path / "site",
        "html",
        published=False,
        server="",
    )
    rows = json.loads((tmp_path / "site" / "data" / "scores.json").read_bytes())
    (down,) = (
        row for row in rows if row["model"] == "acme/down" and row["part"] == "json_kv"
    )
    assert down["score"] is None
    assert "request_failed:json_kv=1" in down["caveats"]
    table = list(
        csv.DictReader(
            (tmp_path / "site/data/leaderboard-helmet-8k-tasks.csv").open(
                encoding="utf-8-sig"
            )
        )
    )
    assert [(row["Model"], row["Score"] == "", row["n"]) for row in table] == [
        *(("acme/one", False, table[0]["n"]), ("acme/down", True, "0"))
    ]
    assert "acme/down" in (tmp_path / "site/helmet-runs.html").read_text(
        encoding="utf-8"
    )
