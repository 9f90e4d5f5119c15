"""∞Bench's files are downloaded and read, and questions on one text are a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.benchmarks.infinite_bench.tasks import (
    INFINITE_BENCH,
    REPO,
    ROWS,
    find_source,
)
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.infinite_bench.fabricate import ROWS_OF_TASK, make_rows
from tests.data.hub_server import Hub, point_at, serve
from tests.support.fabricate import write


def test_every_file_is_downloaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file of each task is fetched from a server in the hub's form and read."""
    files = {
        f"{name}.jsonl": "".join(
            json.dumps(row) + "\n" for row in make_rows(name)
        ).encode()
        for name in ROWS
    }
    root = DataRoot(tmp_path / "data", mirror=False)
    with serve(Hub({REPO: files})) as hub:
        point_at(monkeypatch, hub.url, tmp_path)
        for name in ROWS:
            task = INFINITE_BENCH.task(name)
            ensure(task.sources(None), root, "fetch it")
            examples = list(load_examples(task, Settings(None), root))
            assert [example.id for example in examples] == [
                f"{name}-{number}" for number in range(ROWS_OF_TASK)
            ]


def test_questions_on_one_text_are_a_cluster(tmp_path: Path) -> None:
    """Questions on the same book share a group in all tasks, and synthetic contexts only if they are wholly equal."""
    start = "x" * 3000
    groups = {}
    for name in ("longbook_qa_eng", "longbook_choice_eng", "passkey"):
        rows = [
            make_rows(name)[0] | {"context": start + end} for end in ("a", "a", "b")
        ]
        write(tmp_path / find_source(name).path, rows)
        task = INFINITE_BENCH.task(name)
        groups[name] = [
            example.group
            for example in load_examples(
                task, Settings(None), DataRoot(tmp_path, mirror=True)
            )
        ]
    assert set(groups["longbook_qa_eng"]) == set(groups["longbook_choice_eng"])
    assert len(set(groups["longbook_qa_eng"])) == 1
    assert groups["passkey"][0] == groups["passkey"][1] != groups["passkey"][2]
