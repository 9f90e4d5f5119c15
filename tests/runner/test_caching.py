"""Tests of questions about one book: a provider's cache is written once and read by all others, with equal texts."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment

from helm_longctx.helm_log import helm_log
from helm_longctx.run_settings import MIRROR, PRICES
from helm_longctx.runs.prompts import read_prompts
from tests.runner import making
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import Model

ENTRY = "lv_eval:dataset=hotpotwikiqa_mixup,length=128k,style=chat,model=longctx/lexical,model_deployment=test/caching"
QUESTIONS = 10
WORDS = 100_000
PRICE = {"input": 3, "cached_input": 0.3, "cache_write": 3.75, "output": 15}


@pytest.fixture(autouse=True)
def prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the deployment's prices, equal to Anthropic's."""
    (tmp_path / "prices.yaml").write_text(json.dumps({"test/caching": PRICE}))
    monkeypatch.setenv(PRICES, str(tmp_path / "prices.yaml"))


@pytest.fixture
def books(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Write a mirror with questions about one book of about 128k tokens, ten unless a test says otherwise."""
    rng = random.Random(1)
    count = getattr(request, "param", 1)
    words = ["".join(rng.choices("aeionrst", k=4)) for _ in range(1000)]
    texts = [" ".join(rng.choices(words, k=WORDS)) for _ in range(count)]
    row = {
        "answers": ["a"],
        "length": WORDS,
        "language": "en",
        "answer_keywords": "a",
        "confusing_facts": [],
    }
    rows = [
        {**row, "input": f"What is {n}?", "context": texts[n % count]}
        for n in range(QUESTIONS)
    ]
    file = tmp_path / "mirror/lveval/hotpotwikiqa_mixup/hotpotwikiqa_mixup_128k.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv(MIRROR, str(tmp_path / "mirror"))
    return texts


@pytest.fixture
def server() -> Iterator[Server]:
    """Start a server slow enough for two requests to be read at a time."""
    with serve(lambda prompt: time.sleep(0.1) or "a", models={"m": Model()}) as running:
        yield running


def sent_texts(server: Server) -> list[bytes]:
    """Return the texts of the user's turns, whether they were sent in one block or in several."""
    contents = [call.body["messages"][0]["content"] for call in server.calls]
    return [
        (
            content
            if isinstance(content, str)
            else "".join(block["text"] for block in content)
        ).encode()
        for content in contents
    ]


def run_and_log(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    address: str,
    at_most: int = QUESTIONS,
) -> tuple[Path, str]:
    """Make a run with one of our clients, and return its folder and the log about its requests."""
    lines: list[str] = []
    monkeypatch.setattr(helm_log, "info", lines.append)
    spec = ClientSpec(
        f"helm_longctx.models.apis.{client}", {"base_url": address, "model": "m"}
    )
    with making.deployed(ModelDeployment("test/caching", spec, "longctx/lexical")):
        return making.make_run(folder, ENTRY, cache=False, at_most=at_most), "\n".join(
            lines
        )


def test_a_book_is_written_once(
    books: list[str], server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Anthropic's protocol a book is marked and written once, no other text is sent, and the log has the savings."""
    run, log = run_and_log(tmp_path, monkeypatch, "AnthropicClient", server.address)
    assert len(server.calls) == QUESTIONS
    assert sorted(sent_texts(server)) == sorted(text for _, text in read_prompts(run))
    blocks = [call.body["messages"][0]["content"] for call in server.calls]
    assert len({block[0]["text"] for block in blocks}) == 1
    assert all(
        "cache_control" in block[0] and "cache_control" not in block[1]
        for block in blocks
    )
    rows = [
        {stat["name"]["name"]: stat["mean"] for stat in row["stats"]}
        for row in making.read(run, "per_instance_stats")
    ]
    (first,) = [row for row in rows if row.get("cache_write_tokens")]
    others = [row for row in rows if row is not first]
    shared = first["cache_write_tokens"]
    assert shared > 0.95 * len(books[0]) / 4 > 110_000
    assert first["cached_tokens"] == 0
    assert [row["cached_tokens"] for row in others] == [shared] * (QUESTIONS - 1)
    saved = (9 * 2.7 - 0.75) * shared / 1e6
    assert f"{9 * shared / sum(row['billed_prompt_tokens'] for row in rows):.0%}" in log
    assert f"{9 * shared:,.0f} of them cached" in log
    assert f"the provider's cache saved ${saved:.4f}" in log


@pytest.mark.parametrize("books", [2], indirect=True)
def test_automatic_caches_are_warm_too(
    books: list[str], server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In OpenAI's protocol nothing is marked, and the first request of each book is still sent alone."""
    run, _ = run_and_log(tmp_path, monkeypatch, "OpenAIClient", server.openai)
    assert all(
        isinstance(call.body["messages"][0]["content"], str) for call in server.calls
    )
    cached = [
        row["mean"]
        for row in making.read(run, "stats")
        if row["name"]["name"] == "cached_tokens"
    ]
    assert cached[0] == pytest.approx(0.8 * len(books[0]) / 4, rel=0.02)


def test_one_question_is_not_marked(
    books: list[str], server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single question about a book is not marked, because a write that nobody reads costs more."""
    run_and_log(tmp_path, monkeypatch, "AnthropicClient", server.address, at_most=1)
    (call,) = server.calls
    assert isinstance(call.body["messages"][0]["content"], str)
