"""Own questions of two folders are two columns and two pages, although their metric and length are the same."""

from __future__ import annotations

from pathlib import Path

import yaml

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.formats.tables import wide_tables
from helm_longctx.pages.results import read_boards
from helm_longctx.report.compare import Table
from helm_longctx.report.results import read_results
from helm_longctx.report.schema import make_schema
from helm_longctx.report.suite import read_contents, score_rows
from helm_longctx.report.summarizer import summarize_suite
from tests.pages.suites import write_suite


def test_two_folders(tmp_path: Path) -> None:
    """The instances of both have the same ids, and are not confused either."""
    suite = tmp_path / "runs/s"
    entries = [f"any_jsonl:path={path},length=8k" for path in ("law", "data/bills/")]
    write_suite(suite, entries, {"a/good": 0.9, "a/bad": 0.1}, instances=5)
    schema = tmp_path / "schema.yaml"
    schema.write_text(yaml.safe_dump(make_schema(BENCHMARKS, *read_contents(suite, BENCHMARKS))))
    summarize_suite("s", tmp_path, schema)
    results = read_results(suite, BENCHMARKS)
    scores = {(result.model, result.folder): result.interval.mean for result in results}
    assert len(scores) == 4
    for row in score_rows(suite, BENCHMARKS):
        assert row["scores"] == {
            "law 8k": scores[row["model"], "law"],
            "data/bills 8k": scores[row["model"], "data/bills"],
        }
    titles = {"Own questions law", "Own questions data/bills"}
    boards = read_boards(suite, BENCHMARKS, published=True)
    assert {board.benchmark.title: len(board.runs) for board in boards} == dict.fromkeys(titles, 2)
    assert {table.benchmark.title for table in wide_tables(suite, BENCHMARKS)} == titles
    compared = {item.entry for item in Table(results, ["a/good", "a/bad"]).items}
    assert compared == {"any_jsonl law", "any_jsonl data/bills"}
