"""Tests of the provider's cache before a batch: a shared book is sent once directly, and the batch reads it at a discount."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.models.apis.prices import _user_prices
from helm_longctx.models.apis.providers.anthropic import PROVIDER
from helm_longctx.run_settings import MIRROR, PRICES
from helm_longctx.runner.estimate import Rate, estimate_runs
from helm_longctx.runner.runner import LongContextRunner, runner_arguments
from helm_longctx.tasks.answer import Usage
from tests.runner import making
from tests.support.batches import Folder, direct, register, stated
from tests.support.servers.batches import BatchServer
from tests.support.servers.faults import Fault
from tests.support.servers.models import Model, PromptCache

ENTRY = "lv_eval:dataset=hotpotwikiqa_mixup,length=16k,style=chat,model=longctx/lexical,model_deployment="
QUESTIONS = 8
WORDS = 12_000
PRICE = {"input": 3, "cached_input": 0.3, "cache_write": 3.75, "output": 15}
HALF = {name: price / 2 for name, price in PRICE.items()}
HALF_HOUR = 1800.0


@pytest.fixture(autouse=True)
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a mirror with questions about one book, and Anthropic's prices."""
    rng = random.Random(1)
    text = " ".join("".join(rng.choices("aeionrst", k=4)) for _ in range(WORDS))
    row = {
        "answers": ["a"],
        "length": WORDS,
        "language": "en",
        "answer_keywords": "a",
        "confusing_facts": [],
    }
    rows = [
        {**row, "input": f"What is {number}?", "context": text}
        for number in range(QUESTIONS)
    ]
    file = tmp_path / "mirror/lveval/hotpotwikiqa_mixup/hotpotwikiqa_mixup_16k.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv(MIRROR, str(tmp_path / "mirror"))
    return text


def folder_of(
    path: Path,
    protocol: str,
    server: BatchServer,
    monkeypatch: pytest.MonkeyPatch,
    price: Any,
) -> Folder:
    server.models = {"m": Model()}
    server.seconds_before = HALF_HOUR
    server.cache = PromptCache()
    name = register(protocol, server, model="m")
    (path / "prices.yaml").write_text(json.dumps({name: price}))
    monkeypatch.setenv(PRICES, str(path / "prices.yaml"))
    return Folder(path, ENTRY + name)


def cached_tokens(run: Path) -> list[float]:
    rows = making.read(run, "per_instance_stats")
    return sorted(
        stat["mean"]
        for row in rows
        for stat in row["stats"]
        if stat["name"]["name"] == "cached_tokens"
    )


def texts(run: Path) -> list[str]:
    return [state["result"]["completions"][0]["text"] for state in stated(run)]


def test_a_batch_reads_the_book_that_a_direct_request_has_written(
    book: str, server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One question is sent directly and paid for once. The others find the book half an hour later, in Anthropic's cache of an hour."""
    folder = folder_of(
        tmp_path, "anthropic", server, monkeypatch, {**PRICE, "batch": HALF}
    )
    folder.submit(batch_size=3)
    assert len(direct(folder, server)) == 1
    assert [batch.total for batch in server.batches.values()] == [3, 3, 1]
    folder.submit()
    assert len(direct(folder, server)) == 1
    folder.batches.collect()
    run = folder.make()
    assert len(direct(folder, server)) == 1
    assert cached_tokens(run)[0] == 0
    assert all(count > 0.95 * len(book) / 4 for count in cached_tokens(run)[1:])
    assert len(cached_tokens(run)) == QUESTIONS
    plain = making.make_run(tmp_path / "direct", folder._entry, cache=False)
    assert texts(run) == texts(plain)


def test_nothing_is_sent_directly_if_it_is_not_known_to_pay(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a price of batches, all requests are in the batch and carry no mark."""
    folder = folder_of(tmp_path, "anthropic", server, monkeypatch, PRICE)
    folder.submit()
    assert direct(folder, server) == []
    (batch,) = server.batches.values()
    assert batch.total == QUESTIONS
    folder.batches.collect()
    assert set(cached_tokens(folder.make())) == {0}


def test_a_failed_first_request_leaves_the_group_in_the_batch(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the direct request is refused, all questions go into the batch."""
    folder = folder_of(
        tmp_path, "anthropic", server, monkeypatch, {**PRICE, "batch": HALF}
    )
    asked: list[str] = []

    def refuse_first(prompt: str, before: int) -> Fault | None:
        asked.append(prompt)
        return Fault.REFUSED if asked == [prompt] else None

    server.plan = refuse_first
    folder.submit()
    (batch,) = server.batches.values()
    assert batch.total == QUESTIONS


def test_when_it_pays() -> None:
    """With Anthropic's prices, where an hour's write costs twice the input, five requests with a long book are enough."""
    prices = _user_prices("m", {**PRICE, "batch": HALF})
    assert [
        n
        for n in range(1, 9)
        if prices.warming_pays(100_000, 0, n, PROVIDER.batch_write_price)
    ] == [5, 6, 7, 8]
    written = Usage(100_000, cache_write_tokens=100_000)
    assert prices.warming_dollars(written, PROVIDER.batch_write_price) == pytest.approx(
        0.6
    )


def test_the_estimate_of_a_batch_with_a_cache(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The estimate is one direct request that writes at twice the price of input, and seven that read at half of a tenth."""
    folder = folder_of(
        tmp_path, "anthropic", server, monkeypatch, {**PRICE, "batch": HALF}
    )
    runner = LongContextRunner(
        **runner_arguments(tmp_path / "benchmark_output", "s", tmp_path, 1)
    )
    estimate = estimate_runs(runner, [folder.spec], {}, Rate())[0]
    shared = estimate.prompt_tokens.cache_writes
    output = estimate.output_tokens.typical / QUESTIONS
    rest = estimate.prompt_tokens.total / QUESTIONS - shared
    direct_cost = 3 * rest + 2 * 3 * shared + 15 * output
    batch_cost = (3 * rest + 0.3 * shared + 15 * output) / 2
    assert estimate.dollars.batch_cached == pytest.approx(
        (direct_cost + 7 * batch_cost) / 1e6
    )
    assert estimate.dollars.batch_cached < estimate.dollars.batch
    assert server.calls == []
