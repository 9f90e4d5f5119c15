"""Tests of the proxy that puts faults of serving in front of a real server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("gguf")

from helm_longctx.errors import InputError
from tests.support.json_http import JsonHandler, serve_handler
from tests.support.servers.real_cache import BLOCK, Model, RealCachedServer
from tests.support.servers.real_proxy import NAME, FaultyProxy, Upstream


@pytest.fixture(scope="module")
def model() -> Model:
    """SmolLM2, of which only the tokenizer is read."""
    try:
        return Model()
    except InputError as error:
        pytest.skip(str(error))


@contextmanager
def serve_echo(name: str = "echo") -> Iterator[Upstream]:
    """Serve chats whose answers are their last message, until the block ends."""

    class Handler(JsonHandler):
        def do_POST(self) -> None:  # noqa: N802 (http.server's name)
            body = self.read_body()
            text = f"{name} {len(body['messages'])} {body['messages'][-1]['content']}"
            self.send_json(
                200,
                {"model": body["model"], "choices": [{"message": {"content": text}}]},
            )

    with serve_handler(Handler) as address:
        yield Upstream(address, name)


def ask(proxy: FaultyProxy, texts: Sequence[str], **fields: Any) -> list[str]:
    """Return the texts that arrive at the server behind a proxy."""
    bodies = [
        {"messages": [{"role": "user", "content": text}], "max_tokens": 9, **fields}
        for text in texts
    ]
    return [proxy.answer(body)["choices"][0]["message"]["content"] for body in bodies]


def write_register(seed: int, start: int = 0) -> str:
    """Return a text of about 200 tokens. Texts with the same start differ from there on."""
    return "\n".join(
        f"Key {n} has the value {(7919 * n + (seed if n >= start else 0)) % 9973}."
        for n in range(20)
    )


@pytest.mark.parametrize("fault", ["", "wrong block", "dropped"])
def test_a_partial_hit(model: Model, fault: str) -> None:
    """A wrong block is a piece of another prompt, a dropped one is missing, and both only after a hit."""
    first = write_register(1)
    other = write_register(2)
    asked = write_register(3, start=12)
    shared = write_register(1, start=12)
    with serve_echo() as upstream:
        proxy = FaultyProxy(RealCachedServer(model, fault=fault), upstream)
        cold = ask(proxy, [first, other, shared])
        (hit,) = ask(proxy, [asked])
        (past,) = ask(proxy, [asked], cache_prompt=False)
    assert cold == [f"echo 1 {text}" for text in (first, other, shared)]
    assert past == f"echo 1 {asked}"
    assert (hit == past) == (not fault)
    count = {
        name: len(model.tokenizer(text)["input_ids"])
        for name, text in {"hit": hit, "past": past}.items()
    }
    assert abs(count["past"] - count["hit"] - (BLOCK if fault == "dropped" else 0)) <= 2


def test_a_router_and_a_dropped_turn(model: Model) -> None:
    """Each fifth request goes to the worse server, and system turns do not arrive."""
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello."},
    ]
    with serve_echo() as upstream, serve_echo("worse") as worse:
        proxy = FaultyProxy(RealCachedServer(model, drops_system=True), upstream, worse)
        replies = [
            proxy.answer({"messages": turns, "max_tokens": 9}) for _ in range(10)
        ]
    assert {reply["model"] for reply in replies} == {NAME}
    texts = [reply["choices"][0]["message"]["content"] for reply in replies]
    assert texts == 2 * [*(4 * ["echo 1 Hello."]), "worse 1 Hello."]
