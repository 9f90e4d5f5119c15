"""CorpusQA's files are downloaded and read, and the judge of a run is asked over HTTP."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.corpusqa.prompts import SYSTEM
from helm_longctx.benchmarks.corpusqa.tasks import (
    CORPUSQA,
    DOMAINS,
    REPOSITORY,
    SIZES,
    answer_line,
    source_of,
)
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.run_settings import MIRROR
from helm_longctx.runner import LongContextRunner
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.corpusqa.fabricate import LENGTH, ROWS, build_corpusqa, make_rows
from tests.data.hub_server import Hub, point_at, serve
from tests.runner.making import make_run, means, read
from tests.support.commands import Command
from tests.support.fabricate import write
from tests.support.judges import deploy
from tests.support.servers.llm import serve as serve_model


def load(root: Path, domain: str = "education_en", **settings: Any) -> list[Example]:
    """Load the questions of a domain."""
    return list(
        load_examples(
            CORPUSQA.task(domain),
            Settings(LENGTH, **settings),
            DataRoot(root, mirror=True),
        )
    )


def test_every_length_is_downloaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The files that the hub has are fetched from a server in its form, and the others are read from a mirror."""
    lines = "".join(json.dumps(row) + "\n" for row in make_rows()).encode()
    files = {"128k_4domains.jsonl": lines, "1m_4domains.jsonl": lines}
    root = DataRoot(tmp_path / "data", mirror=False)
    with serve(Hub({REPOSITORY: files})) as hub:
        point_at(monkeypatch, hub.url, tmp_path)
        for length in SIZES:
            source = source_of(length)
            if source.is_published:
                ensure([source], root, "fetch it")
            else:
                with pytest.raises(InputError, match="does not have this file"):
                    ensure([source], root, "fetch it")
                (root / source.path).write_bytes(lines)
            loaded = list(
                load_examples(CORPUSQA.task("financial_zh"), Settings(length), root)
            )
            assert [example.id for example in loaded] == [
                f"financial_zh_{number}" for number in range(ROWS)
            ]


def test_only_what_can_be_had_is_offered(command: Command) -> None:
    """`list` offers the lengths whose files the hub has."""
    assert command("list", "corpusqa", "--json") == 0
    assert [load["lengths"] for load in json.loads(command.out)] == ["128k-1m"] * 4


def test_questions_on_the_same_documents_are_a_cluster(tmp_path: Path) -> None:
    """Questions on one of several sets of documents are a cluster. If a domain has only one set, none are."""
    for corpora in (1, 2):
        write(tmp_path / source_of(LENGTH).path, make_rows(corpora))
        for domain in DOMAINS:
            groups = Counter(example.group for example in load(tmp_path, domain))
            assert (len(groups), "" in groups) == (corpora, corpora == 1)


def test_a_run_is_judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run sends the conversations, and its judge gets the official messages over HTTP and decides the score."""
    build_corpusqa(tmp_path / "data")
    monkeypatch.setenv(MIRROR, str(tmp_path / "data"))
    with serve_model(
        lambda prompt: "Equal. [[YES]]" if "Answer 2: []" in prompt else "[[NO]]"
    ) as server:
        judge = deploy("tests/equal", "OpenAIClient", base_url=server.openai)
        entry = f"corpusqa:length=128k,task=education_en,judge={judge},model=longctx/lexical,model_deployment=longctx/lexical"
        run = make_run(tmp_path, entry, LongContextRunner)
        # The first call asks whether the judge exists.
        asked = [body["messages"] for body in server.bodies][1:]
    # One of the six official answers is the empty list.
    (mean,) = {mean for name, mean in means(run).items() if name[0] == "judge_score"}
    assert mean == pytest.approx(1 / ROWS)
    assert [[message["role"] for message in messages] for messages in asked] == [
        ["system", "user"]
    ] * ROWS
    assert {messages[0]["content"] for messages in asked} == {SYSTEM}
    for state in read(run, "scenario_state")["request_states"]:
        assert [message["role"] for message in state["request"]["messages"]] == [
            "system",
            "user",
        ]
        assert state["result"]["completions"][0]["text"].startswith("The answer is: ")


def test_the_lexical_baseline() -> None:
    """The baseline answers with the line that shares most words with the question, and leaves other prompts."""
    prompt = make_rows()[0]["prompt"]
    user = "# Document 1:\nthe total revenue was 7\nother\n\n# Question:\nWhich revenue?\n\nThe answer is: xxx."
    assert (
        answer_line([prompt[0], {"role": "user", "content": user}])
        == "The answer is: the total revenue was 7"
    )
    assert (
        answer_line([{"role": "user", "content": "# Question:\nThe answer is: x"}])
        is None
    )
    assert answer_line([{"role": "user", "content": "Why?"}]) is None


def test_published_means() -> None:
    """The means over domains are the paper's overall scores."""
    means_of = {
        (result.model, length_label(result.length or 0)): sum(result.scores.values())
        / 4
        for result in CORPUSQA.published()
    }
    assert len(means_of) == 19
    assert means_of["GPT-5", "128k"] == pytest.approx(0.8202, abs=1e-4)
    assert means_of["Gemini-2.5-Pro", "1m"] == pytest.approx(0.5073, abs=1e-4)
    assert means_of["RAG - Gemini-2.5-Pro", "10m"] == pytest.approx(0.0120, abs=1e-4)
