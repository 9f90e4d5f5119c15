"""Tests that the share of unread answers stands beside scores in tables, in the report and in exports."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from helm_longctx.results.boards import read_suite
from helm_longctx.results.cells import score_tables, unread_share
from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.commands import Command

ANSWERS = {
    "a": "The correct answer is (B)",
    "b": "B",
    "c": "The correct answer is (C)",
    "d": "(B), of course.",
}
"""One answer is right and read, two are right and unread, and one is wrong and read."""


@pytest.fixture
def suite(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Import four answers to questions of LongBench v2."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "instance": name,
            "task": "0shot",
            "entry": "longbench_v2:mode=0shot",
            "model": "my/model",
            "answer": text,
            "record": json.dumps({"references": ["B"]}),
        }
        for name, text in ANSWERS.items()
    ]
    with Path("answers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert command("import", "answers.csv", "--suite", "s") == 0, command.err
    return Path("benchmark_output/runs/s")


def test_the_share_stands_beside_the_score(command: Command, suite: Path) -> None:
    """The terminal has a column with the share, JSON has the number, and the official score is as before."""
    (board,) = read_suite(suite, BENCHMARKS).boards
    (result,) = board.tasks
    assert result.interval.mean == 0.25
    assert unread_share(result) == 0.5
    assert result.statistics["accuracy_lenient"].interval.mean == 0.75
    (table,) = score_tables([board])
    heads = [column.title.split("\n") for column in table.columns]
    assert "unread" in heads[-1]
    assert table.rows[0][-1].value == 0.5
    assert command("summarize", "--suite", "s", "--json") == 0, command.err
    (row,) = json.loads(command.out)
    assert set(row["unread"].values()) == {0.5}


def test_exports_have_the_share(command: Command, suite: Path) -> None:
    """Each export says which share of the answers could not be read."""
    for form in (
        "csv",
        "lm-eval",
        "every-eval-ever",
        "eval-results",
        "markdown",
        "latex",
    ):
        assert command("export", "--suite", "s", "--format", form, "--to", form) == 0, (
            command.err
        )
    with Path("csv/scores.csv").open(newline="", encoding="utf-8-sig") as file:
        scores = {row["metric"]: row["score"] for row in csv.DictReader(file)}
    assert float(scores["unread"]) == 0.5
    with Path("csv/averages.csv").open(newline="", encoding="utf-8-sig") as file:
        assert {row["unread"] for row in csv.DictReader(file)} == {"0.5"}
    (path,) = Path("lm-eval").rglob("results_*.json")
    (config,) = json.loads(path.read_text())["configs"].values()
    assert config["metadata"]["unread"] == 0.5
    (path,) = Path("every-eval-ever").rglob("*.json")
    details = json.loads(path.read_text())["evaluation_results"][0]["score_details"][
        "details"
    ]
    assert details["unread"] == "0.5"
    texts = [
        *Path("eval-results").rglob("*.yaml"),
        Path("markdown/scores.md"),
        Path("latex/scores.tex"),
    ]
    assert len(texts) == 3
    for text in texts:
        assert re.search(r"50 \\?% (of the answers )?unread", text.read_text()), text


def test_the_report_leads_to_unread_answers(command: Command, suite: Path) -> None:
    """The share on the page is a link to the list of answers, which shows only the unread ones."""
    assert command("report", "--suite", "s", "--to", "report") == 0, command.err
    page = Path("report/index.html").read_text(encoding="utf-8")
    link = re.search(r'href="(instances-[^"#]+)\.html#show=unread"', page)
    assert link
    runs = next(Path("report").glob("*runs.html")).read_text(encoding="utf-8")
    assert link[0] in runs
    content = Path("report", link[1], "index.js").read_text(encoding="utf-8")
    index = json.loads(
        content.removeprefix("window.INDEX = ").rstrip().removesuffix(";")
    )
    assert index["flags"]["unread"] == "unread"
    flagged = {row["id"] for row in index["rows"] if "unread" in row["answers"][0][1]}
    assert flagged == {"b", "d"}
