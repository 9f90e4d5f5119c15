"""LongMemEval's files are downloaded and read, and a run asks the judge over HTTP."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.longmemeval import BENCHMARK
from helm_longctx.benchmarks.longmemeval.judge import LabelAnnotator
from helm_longctx.benchmarks.longmemeval.tasks import FILES, REPO, find_source
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.models.apis.availability import PROMPT
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.longmemeval.fabricate import build_longmemeval, make_rows
from tests.data.hub_server import Hub, point_at, serve
from tests.e2e.commands import run
from tests.judging.deployments import write_judges
from tests.support.leaderboards import stats
from tests.support.servers.llm import serve as serve_llm


def load(root: Path, *rows: dict[str, Any]) -> list[Example]:
    """Return the examples of these rows."""
    path = root / find_source("s").path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows), encoding="utf-8")
    return list(
        load_examples(BENCHMARK.task("s"), Settings(None), DataRoot(root, mirror=True))
    )


def test_every_file_is_downloaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The three files are fetched from a server in the hub's form and read in file order."""
    files = {
        f"{file}.json": json.dumps(make_rows(name)).encode()
        for name, file in FILES.items()
    }
    root = DataRoot(tmp_path / "data", mirror=False)
    with serve(Hub({REPO: files})) as hub:
        point_at(monkeypatch, hub.url, tmp_path)
        for name in FILES:
            task = BENCHMARK.task(name)
            (source,) = task.sources(None)
            with pytest.raises(InputError, match=r"has SHA-256 .*, expected"):
                ensure([source], root, "fetch it")
            digest = hashlib.sha256(files[f"{FILES[name]}.json"]).hexdigest()
            ensure([replace(source, sha256=digest)], root, "fetch it")
            ids = [example.id for example in load_examples(task, Settings(None), root)]
            assert ids == [row["question_id"] for row in make_rows(name)]


def test_places_and_clusters(tmp_path: Path) -> None:
    """The place of the only session with evidence is that after sorting, and an abstention question is in the cluster of
    the question that it is made from."""
    row = make_rows("s")[1] | {
        "haystack_dates": ["2023/05/02", "2023/05/01", "2023/05/03"]
    }
    evidence = {"a": ["s0"], "b": ["s1"], "c": ["s0", "s1"], "c_abs": ["other"]}
    rows = [
        row | {"question_id": name, "answer_session_ids": ids}
        for name, ids in evidence.items()
    ]
    examples = load(tmp_path, *rows)
    assert [example.depth for example in examples] == [0.5, 0.0, None, None]
    assert [example.group for example in examples] == [
        "question a",
        "question b",
        "question c",
        "question c",
    ]
    assert [example.record["abstention"] for example in examples] == [
        False,
        False,
        False,
        True,
    ]
    assert all("has_answer" not in example.fields["context"] for example in examples)


def test_a_record_without_a_type_is_not_judged() -> None:
    """The judge is not asked about a question of an unknown type."""
    annotator = LabelAnnotator.__new__(LabelAnnotator)
    with pytest.raises(
        InputError, match="the record has no question_type of single-session-user"
    ):
        annotator.questions(
            "s", {"question": "x", "references": ["y"], "prediction": "z"}
        )


def test_a_run(tmp_path: Path) -> None:
    """`helm-run` asks the judge once about each answer of the lexical baseline, and has accuracies by type."""
    root = build_longmemeval(tmp_path / "data")
    entry = "longmemeval:task=oracle,judge=tests/judge"

    def judge(prompt: str) -> str:
        return "Yes." if prompt == PROMPT or "unanswerable" in prompt else "no"

    with serve_llm(judge) as judging:
        models = write_judges(tmp_path / "models", {"tests/judge": judging.openai})
        line = [
            "--run-entries",
            f"{entry},model=longctx/lexical",
            "--suite",
            "s",
            "-m",
            "99",
        ]
        made = run(
            "helm-run",
            *line,
            "--local-path",
            str(models),
            folder=tmp_path,
            HELM_LONGCTX_DATA=str(root),
        )
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr
    name = f"{entry},model=longctx_lexical".replace("/", "_")
    values = {
        metric: value for (metric, task), value in stats(tmp_path, name).items() if task
    }
    assert values["longctx_score"] == values["judge_score_multi_session"] == 0.5
    assert values["judge_score_abstention"] == 1
    asked = [body for body in judging.bodies if PROMPT not in str(body["messages"])]
    assert len(asked) == 12
    assert {(body["temperature"], body["max_tokens"]) for body in asked} == {(0.0, 10)}
