"""AA-LCR 1.1 is read from its two pinned files, and its grader's replies are JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.aa_lcr import BENCHMARK
from helm_longctx.benchmarks.aa_lcr.prompts import JUDGE_1_1
from helm_longctx.benchmarks.aa_lcr.tasks import (
    DOCUMENTS_1_1,
    QUESTIONS_1_1,
    judge_prompt,
    read_verdict_1_1,
)
from helm_longctx.data.download import sha256_of
from helm_longctx.data.fetch import describe_files, ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.results.comparability import data_caveats, describe
from helm_longctx.runs.files import read_data, write_data
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.aa_lcr.fabricate import build_version_1_1
from tests.data.hub_server import Hub, point_at, serve

TASK = BENCHMARK.task("questions_v1_1")


def load(root: Path) -> list[Example]:
    return list(TASK.load(TASK, Settings(None), DataRoot(root, mirror=True)))


def test_the_prompt(tmp_path: Path) -> None:
    """The documents stand in the order of the file names, whose composed and decomposed forms are equal."""
    build_version_1_1(tmp_path)
    (example,) = load(tmp_path)
    documents = "BEGIN DOCUMENT 1:\ntext of B\nEND DOCUMENT 1\n\nBEGIN DOCUMENT 2:\ntext of b\nEND DOCUMENT 2"
    assert TASK.prompt(example).messages[-1]["content"] == (
        f"BEGIN INPUT DOCUMENTS\n\n{documents}\n\nEND INPUT DOCUMENTS\n\nAnswer the following question using the input"
        " documents provided above.\n\nSTART QUESTION\n\nQ {x}?\n\nEND QUESTION\n"
    )
    assert example.references == ["67.5%"]


def test_a_missing_document_is_one_line(tmp_path: Path) -> None:
    """An archive without a document, or that is none, ends in one line that names the file."""
    build_version_1_1(tmp_path, ("b.txt",))
    with pytest.raises(
        InputError,
        match=r"extracted-text\.zip: it has no file 'lcr/Reports/set_1/Ba.*fetch it again",
    ):
        load(tmp_path)
    (tmp_path / DOCUMENTS_1_1.path).write_text("no archive")
    with pytest.raises(
        InputError, match=r"it is not a zip file of texts \(BadZipFile\)"
    ):
        load(tmp_path)


COMMIT_1_0 = "bdae010bbce259820c0e34c1d7cce210d966fb75"
COMMIT_1_1 = "9a77ef56b717057ade24ceab4d273712a0b4f19e"


def test_both_files_are_pinned() -> None:
    """Requests are built from the commit of version 1.1, and not of 1.0.0, whose questions have another SHA-256."""
    sources = TASK.sources(None)
    assert sources == (QUESTIONS_1_1, DOCUMENTS_1_1)
    assert {source.commit for source in sources} == {COMMIT_1_1}
    assert [source.sha256[:8] for source in sources] == ["aea51989", "5e839249"]


def test_requests_are_built_from_the_commit_of_version_1_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a hub with both versions and a newer commit, only version 1.1's files are read. Other content is refused."""
    made = tmp_path / "made"
    build_version_1_1(made)
    questions = (made / QUESTIONS_1_1.path).read_bytes()
    documents = (made / DOCUMENTS_1_1.path).read_bytes()
    files = {DOCUMENTS_1_1.name: documents}
    repo = QUESTIONS_1_1.repo
    repos = {
        f"{repo}@{COMMIT_1_1}": {**files, QUESTIONS_1_1.name: questions},
        f"{repo}@{COMMIT_1_0}": {**files, QUESTIONS_1_1.name: b"the old one"},
        repo: {**files, QUESTIONS_1_1.name: b"a newer one"},
    }
    with serve(Hub(repos, commits={repo: ["f" * 40, COMMIT_1_1, COMMIT_1_0]})) as hub:
        point_at(monkeypatch, hub.url, tmp_path)
        root = DataRoot(tmp_path / "data", mirror=False)
        # Fabricated files do not have the official digests.
        with pytest.raises(InputError, match=QUESTIONS_1_1.sha256):
            ensure([QUESTIONS_1_1], root, "fetch it")
        sources = [
            replace(source, sha256=sha256_of(made / source.path))
            for source in TASK.sources(None)
        ]
        ensure(sources, root, "fetch it")
        reads = [request for request in hub.requests if "/resolve/" in request]
        assert all(f"/resolve/{COMMIT_1_1}/" in request for request in reads)
    (example,) = load(root.path)
    assert example.references == ["67.5%"]
    assert "text of B" in TASK.prompt(example).messages[-1]["content"]
    described = describe_files(sources, root)
    assert {file["commit"] for file in described.values()} == {COMMIT_1_1}


def test_a_run_of_the_old_pin_is_marked(tmp_path: Path) -> None:
    """A run whose stored digest is that of version 1.0.0 has a mark, and one of the pinned file has none."""
    old = "2f90d9c30cfb4dd8df2c0f46547c384065e4c76917bd347a9a97bf797235c1ea"
    for digest, marks in (
        (
            old,
            [
                "another version of the data: AA-LCR_Dataset.csv with SHA-256 2f90d9c3 instead of aea51989 (questions_v1_1)"
            ],
        ),
        (QUESTIONS_1_1.sha256, []),
    ):
        write_data(tmp_path, {QUESTIONS_1_1.path: {"size": 1, "sha256": digest}})
        assert describe(data_caveats(TASK, None, read_data(tmp_path))) == marks


def test_the_digest_of_each_file_is_described(tmp_path: Path) -> None:
    """The digests of what is there are computed, or taken from the record of the fetch."""
    build_version_1_1(tmp_path)
    root = DataRoot(tmp_path, mirror=True)
    described = describe_files(TASK.sources(None), root)
    assert described[QUESTIONS_1_1.path]["sha256"] == sha256_of(
        root / QUESTIONS_1_1.path
    )
    record = {
        "repo": "r",
        "stored": {"AA-LCR_Dataset.csv": {**described[QUESTIONS_1_1.path]}},
    }
    record["stored"]["AA-LCR_Dataset.csv"]["sha256"] = "a" * 64  # type: ignore[index]
    (root / f"{QUESTIONS_1_1.path}.source.json").write_text(json.dumps(record))
    taken = describe_files(TASK.sources(None), root)[QUESTIONS_1_1.path]
    assert (taken["sha256"], taken["repo"]) == ("a" * 64, "r")
    (root / QUESTIONS_1_1.path).write_text("changed")
    assert describe_files(TASK.sources(None), root)[QUESTIONS_1_1.path]["size"] == 7


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('{"verdict": "CORRECT"}', 1.0),
        ('{"reason": "x", "verdict": "INCORRECT"}', 0.0),
        ('{"verdict": "correct"}', None),
        ("CORRECT", None),
        ('["CORRECT"]', None),
        (None, None),
    ],
)
def test_verdicts(reply: str | None, verdict: float | None) -> None:
    """Only a JSON object with one of the two verdicts is a verdict."""
    assert read_verdict_1_1(reply).get("judge_score") == verdict


@given(st.text())
def test_any_reply(reply: str) -> None:
    """No reply raises an error."""
    assert read_verdict_1_1(reply) in ({}, {"judge_score": 0.0}, {"judge_score": 1.0})


def test_the_graders_prompt() -> None:
    """Braces in question and answers stay, and the three texts are there."""
    prompt = judge_prompt(
        {"question": "{q}", "references": ["{a}"], "prediction": "{c}"}, JUDGE_1_1
    )
    assert prompt.startswith(
        "Decide whether the CANDIDATE ANSWER is correct or incorrect against the OFFICIAL ANSWER."
    )
    assert (
        "START QUESTION {q}\n\nEND QUESTION\n\nThe OFFICIAL ANSWER: {a}\n\nEND OFFICIAL"
        in prompt
    )
    assert prompt.endswith(
        "BEGIN CANDIDATE ANSWER TO ASSESS\n\n{c}\n\nEND CANDIDATE ANSWER TO ASSESS\n\nReply as JSON, with a verdict of CORRECT or INCORRECT."
    )
