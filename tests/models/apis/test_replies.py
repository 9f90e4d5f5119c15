"""Replies that are no answers, counts that are none, and other models, in both protocols and streamed or not."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helm.common.cache import BlackHoleCacheConfig, SqliteCacheConfig
from helm.common.request import RequestResult
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.models.apis import AnthropicClient, OpenAIClient
from helm_longctx.models.apis.client import ProviderClient
from helm_longctx.models.apis.sending import Attempt, Retries, Sender
from helm_longctx.models.results import (
    add_facts,
    answer_of,
    facts_of,
    failure_of,
    usage_of,
)
from helm_longctx.run_settings import JUDGE_WAIT, MAX_COST, PRICES
from helm_longctx.runner.follow_up import join_answers
from helm_longctx.runner.score_log import find_reasons
from helm_longctx.tasks.answer import MOST_TOKENS, Usage, is_same_model
from tests.models.apis.making import KINDS, REQUEST
from tests.models.endpoints.scripted import scripted
from tests.runner.making import make_run, means, read
from tests.support.commands import Command
from tests.support.judges import ask, deploy
from tests.support.servers import hostile
from tests.support.servers.hostile import WHOLE, Hostile, attack

ENTRY = "helmet_recall:length=8k,num_samples=3,model=longctx/lexical,model_deployment="
"""Twelve requests."""

CLIENTS = {
    "chat": "OpenAIClient",
    "completions": "OpenAIClient",
    "anthropic": "AnthropicClient",
}


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM_LONGCTX_WAIT", "0.01")
    monkeypatch.setenv(JUDGE_WAIT, "0.01")


def arguments(kind: str, server: Hostile) -> dict[str, Any]:
    form = {} if kind == "anthropic" else {"form": kind}
    return {
        "base_url": server.address if kind == "anthropic" else f"{server.address}/v1/",
        **form,
    }


def make(
    kind: str, server: Hostile, cache: Any = None, **settings: Any
) -> ProviderClient:
    client = AnthropicClient if kind == "anthropic" else OpenAIClient
    return client(
        cache or BlackHoleCacheConfig(), **arguments(kind, server), **settings
    )


def reply(kind: str, answer: Any, reason: str | None = None) -> dict[str, Any]:
    """Return a reply with any value as its answer."""
    if kind == "anthropic":
        return {**WHOLE[kind], "content": answer, "stop_reason": reason or "end_turn"}
    choice = {"message": {"content": answer}} if kind == "chat" else {"text": answer}
    return {
        "model": "m",
        "choices": [{"index": 0, "finish_reason": reason or "stop", **choice}],
    }


TOOL = {"type": "tool_use", "id": "1", "name": "f", "input": {}}

NO_ANSWERS = [
    *(
        ("anthropic", content)
        for content in ([], ["x"], [TOOL], [None], {}, "Yes", None)
    ),
    *(("anthropic", [{"type": "text", "text": text}]) for text in (None, 5, ["Yes"])),
    ("anthropic", [{"type": "text", "text": "Yes"}, "x"]),
    *(
        (kind, text)
        for kind in ("chat", "completions")
        for text in (
            None,
            5,
            ["Yes"],
            [{"type": "text", "text": 5}],
            [{"type": "reference"}],
        )
    ),
    ("completions", [{"type": "text", "text": "Yes"}]),
]


@pytest.mark.parametrize(("kind", "answer"), NO_ANSWERS)
def test_replies_without_a_text(kind: str, answer: Any, tmp_path: Path) -> None:
    """Replies without a text are malformed and not empty answers. None of them is cached."""
    cache = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    with attack(hostile.send(reply(kind, answer))) as server:
        results = [make(kind, server, cache).make_request(REQUEST) for _ in range(2)]
    assert [failure_of(result) for result in results] == [Failure.MALFORMED] * 2
    assert len(server.seen) == 2


def blocks(
    *contents: tuple[dict[str, Any], list[Any]], reason: str = "end_turn"
) -> list[Any]:
    """Return a stream of Anthropic's protocol with blocks and the deltas of each block."""
    events: list[Any] = [
        {"type": "message_start", "message": {"model": "m", "content": []}}
    ]
    for number, (block, deltas) in enumerate(contents):
        events.append(
            {"type": "content_block_start", "index": number, "content_block": block}
        )
        events += [
            {"type": "content_block_delta", "index": number, "delta": delta}
            for delta in deltas
        ]
    return [
        *events,
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason},
            "usage": {"output_tokens": 1},
        },
    ]


def text_block(start: Any, *pieces: Any) -> tuple[dict[str, Any], list[Any]]:
    return {"type": "text", "text": start}, [
        {"type": "text_delta", "text": piece} for piece in pieces
    ]


NO_STREAMS = [
    ("anthropic", blocks()),
    ("anthropic", blocks(("x", []))),  # type: ignore[arg-type]
    ("anthropic", blocks((TOOL, []))),
    ("anthropic", blocks(text_block(None))),
    ("anthropic", blocks(text_block(5))),
    ("anthropic", blocks(text_block(5, "Yes"))),
    ("anthropic", blocks(text_block("", 5))),
    ("anthropic", blocks(text_block("", "Yes", 5))),
    *(
        (kind, hostile.events(kind, pieces))
        for kind in ("chat", "completions")
        for pieces in ([5], ["Yes", 5], [["Yes"]])
    ),
    ("chat", hostile.events("chat", [None])),
]


@pytest.mark.parametrize(("kind", "events"), NO_STREAMS)
def test_streams_without_a_text(kind: str, events: list[Any]) -> None:
    """Streams without a text are malformed and not empty answers."""
    with attack(hostile.stream(events)) as server:
        result = make(kind, server, stream=True).make_request(REQUEST)
    assert failure_of(result) is Failure.MALFORMED, result


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff\xfe{}", b'{"a": "\xe4"}', b"[" * 100_000, b"null", b"7", b"<html>"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_replies_that_are_no_json(kind: str, body: bytes, stream: bool) -> None:
    """Malformed JSON and bytes that are not UTF-8 are malformed replies, for which the same request is not sent again."""
    content = b"event: message_start\ndata: " + body + b"\n\n" if stream else body
    headers = {"Content-Type": "text/event-stream" if stream else "application/json"}
    with attack(hostile.send(content, **headers)) as server:
        sender = Sender(make(kind, server, stream=stream), Retries(3, 0.01))
        result = sender(REQUEST).result
    assert failure_of(result) is Failure.MALFORMED, result.error
    assert len(server.seen) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_reply_on_a_connection(kind: str) -> None:
    """A reply that nobody has asked for is not the answer to the next request, which gets a connection of its own."""
    first, second = (
        json.dumps(_whole(kind, reason)).encode()
        for reason in ("stop_sequence", "max_tokens")
    )

    def act(handler: hostile.Handler) -> None:
        handler.close_connection = False
        bodies = [first, second] if len(server.seen) == 1 else [first]
        heads = [
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            for body in bodies
        ]
        handler.wfile.write(
            b"".join(
                head.encode() + body for head, body in zip(heads, bodies, strict=True)
            )
        )

    with attack(act) as server:
        client = make(kind, server)
        results = [
            client.make_request(replace(REQUEST, prompt=prompt))
            for prompt in ("one", "two", "three")
        ]
    assert [answer_of(result).is_any_cut for result in results] == [False, False, False]
    assert len(server.seen) == 3


THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "s"}


@pytest.mark.parametrize(
    ("kind", "answer", "reason"),
    [
        ("anthropic", [{"type": "text", "text": ""}], "end_turn"),
        ("anthropic", [], "max_tokens"),
        ("anthropic", [], "stop_sequence"),
        ("anthropic", [THINKING], "end_turn"),
        ("chat", "", "stop"),
        ("chat", None, "length"),
        ("completions", "", "stop"),
    ],
)
def test_empty_answers(kind: str, answer: Any, reason: str) -> None:
    """An answer is empty at its limit, at a stop sequence, after reasoning, and if the model says nothing."""
    with attack(hostile.send(reply(kind, answer, reason))) as server:
        result = make(kind, server).make_request(REQUEST)
    assert failure_of(result) is None
    assert result.completions[0].text == ""


BAD_REASONS = {
    "error": Failure.TEMPORARY,
    "abort": Failure.TEMPORARY,
    "insufficient_system_resource": Failure.TEMPORARY,
    "tool_calls": Failure.MALFORMED,
    "function_call": Failure.MALFORMED,
    "tool_use": Failure.MALFORMED,
    "pause_turn": Failure.MALFORMED,
    "content_filter": Failure.REFUSED,
    "refusal": Failure.REFUSED,
    "SAFETY": Failure.REFUSED,
    "a new reason": Failure.MALFORMED,
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reason", BAD_REASONS)
@pytest.mark.parametrize("kind", KINDS)
def test_texts_that_are_no_answers(
    kind: str, reason: str, stream: bool, tmp_path: Path
) -> None:
    """A text whose finish reason says that it is no answer, or is not known, is a failure that names the reason."""
    cache = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    with attack(
        hostile.stream(_end(kind, reason))
        if stream
        else hostile.send(_whole(kind, reason))
    ) as server:
        result = make(kind, server, cache, stream=stream).make_request(REQUEST)
        again = make(kind, server, cache, stream=stream).make_request(REQUEST)
    assert failure_of(result) is failure_of(again) is BAD_REASONS[reason], result.error
    assert repr(reason) in str(result.error)
    assert ("which is not known" in str(result.error)) == (reason == "a new reason")
    assert len(server.seen) == 2


def _whole(kind: str, reason: str) -> dict[str, Any]:
    return reply(
        kind,
        [{"type": "text", "text": "A part of it"}]
        if kind == "anthropic"
        else "A part of it",
        reason,
    )


def _end(kind: str, reason: str) -> list[Any]:
    """Return a stream that ends with a reason."""
    *events, last = hostile.events(kind, ["A part", " of it"])
    if kind == "anthropic":
        return [*events, {**last, "delta": {"stop_reason": reason}}]
    return [*events, {"choices": [{**last["choices"][0], "finish_reason": reason}]}]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("chat", "stop"), ("chat", None), ("completions", "eos"), ("chat", "STOP")],
)
def test_texts_that_are_whole(kind: str, reason: Any) -> None:
    """A text is an answer at each reason of a model's own end, and without a reason."""
    with attack(hostile.send(_whole(kind, reason))) as server:
        result = make(kind, server).make_request(REQUEST)
    assert result.completions[0].text == "A part of it"
    assert not answer_of(result).is_any_cut


def test_tool_calls_in_the_place_of_a_text() -> None:
    """An empty text beside a tool call is no answer, whatever the reason is. A text beside one is an answer."""
    for text, kind in (
        ("", Failure.MALFORMED),
        (None, Failure.MALFORMED),
        ("Yes", None),
    ):
        choice = {
            "finish_reason": "stop",
            "message": {"content": text, "tool_calls": [{"id": "1", "function": {}}]},
        }
        result = OpenAIClient(None, base_url="http://localhost").result(
            REQUEST, {"choices": [choice]}
        )
        assert failure_of(result) is kind


@pytest.mark.parametrize(
    ("tokens", "reasoning", "is_cut"),
    [(50, 0, True), (49, 0, False), (80, 30, True), (80, 0, False)],
)
@pytest.mark.parametrize("kind", KINDS)
def test_as_many_tokens_as_the_limit(
    kind: str, tokens: int, reasoning: int, is_cut: bool
) -> None:
    """An answer with as many tokens as were allowed is cut, also if the server says that it is whole.

    Servers count reasoning towards the limit or not.
    """
    if kind == "anthropic":
        usage = {
            "input_tokens": 9,
            "output_tokens": tokens,
            "output_tokens_details": {"thinking_tokens": reasoning},
        }
    else:
        usage = {"prompt_tokens": 9, "completion_tokens": tokens}
        usage |= {"completion_tokens_details": {"reasoning_tokens": reasoning}}  # type: ignore[dict-item]
    with attack(hostile.send({**WHOLE[kind], "usage": usage})) as server:
        result = make(kind, server).make_request(REQUEST)
    assert (failure_of(result), answer_of(result).is_any_cut) == (None, is_cut)


@pytest.mark.parametrize("kind", KINDS)
def test_reasons_in_replies_to_other_clients(kind: str) -> None:
    """A text that ends with an error is a failure although the client has not passed on the reason."""
    attempt = Attempt()
    attempt.replies = [_whole(kind, "error")]
    result = attempt.check(RequestResult(True, [], make_completion(), False))
    assert failure_of(result) is Failure.TEMPORARY
    assert "'error'" in str(result.error)


@pytest.mark.parametrize("kind", ["chat", "completions"])
def test_other_choices(kind: str) -> None:
    """Other choices are ignored, because requests ask for the choice with the index 0."""
    good = hostile.events(kind, ["Y", "es"])
    others = [
        {**event, "choices": [{**event["choices"][0], "index": 1}]}
        for event in hostile.events(kind, ["No"])
    ]
    mixed = [*others, good[0], others[0], good[1], good[2], *others]
    with attack(hostile.stream(mixed)) as server:
        streamed = make(kind, server, stream=True).make_request(REQUEST)
    first, second = (reply(kind, text)["choices"][0] for text in ("Yes", "No"))
    with attack(
        hostile.send({"model": "m", "choices": [{**second, "index": 1}, first]})
    ) as server:
        whole = make(kind, server).make_request(REQUEST)
    assert [result.completions[0].text for result in (streamed, whole)] == [
        "Yes",
        "Yes",
    ]
    with attack(
        hostile.send({"model": "m", "choices": [{**second, "index": 1}]})
    ) as server:
        assert failure_of(make(kind, server).make_request(REQUEST)) is Failure.MALFORMED


def test_judges_replies_without_a_text(tmp_path: Path) -> None:
    """A judge's reply without a text has no verdict, and is not cached."""
    for answer in ([], [TOOL], [{"type": "text", "text": 5}]):
        with attack(hostile.send(reply("anthropic", answer))) as server:
            name = deploy(
                "hostile/some-judge", "AnthropicClient", base_url=server.address
            )
            assert [ask(name, tmp_path).verdict for _ in range(2)] == [None, None]
        assert len(server.seen) == 2


BAD_COUNTS = [
    "many",
    [1],
    {"n": 1},
    float("nan"),
    float("inf"),
    -5,
    1.5,
    True,
    MOST_TOKENS + 1,
    10**40,
]
BAD_USAGES = {
    "chat": ["many", [1, 2], 7, {}, {"prompt_tokens": 5, "prompt_tokens_details": "x"}]
    + [{"prompt_tokens": count, "completion_tokens": 1} for count in BAD_COUNTS]
    + [{"prompt_tokens": 5, "completion_tokens": count} for count in BAD_COUNTS]
    + [
        {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": count}}
        for count in [*BAD_COUNTS, 6]
    ],
    "anthropic": [
        "many",
        [1, 2],
        7,
        {},
        {"input_tokens": 5, "output_tokens_details": "x"},
    ]
    + [{"input_tokens": count, "output_tokens": 1} for count in BAD_COUNTS]
    + [{"input_tokens": 5, "output_tokens": count} for count in BAD_COUNTS]
    + [{"input_tokens": 5, "cache_read_input_tokens": count} for count in BAD_COUNTS],
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["chat", "anthropic"])
def test_counts_that_are_none(kind: str, stream: bool) -> None:
    """The answer is kept, and its tokens count as not reported."""
    sent: list[Any] = []
    act = lambda handler: (hostile.stream if stream else hostile.send)(sent[0])(handler)  # noqa: E731
    with attack(act) as server:
        client = make(kind, server, stream=stream)
        for usage in BAD_USAGES[kind]:
            whole = {**WHOLE[kind], "usage": usage}
            events = [
                *hostile.events(kind, ["Yes"])[:-1],
                {**hostile.events(kind, ["Yes"])[-1], "usage": usage},
            ]
            sent[:] = [events if stream else whole]
            result = client.make_request(REQUEST)
            assert (failure_of(result), usage_of(result)) == (None, None), usage
            assert result.completions[0].text == "Yes"
    assert len(server.seen) == len(BAD_USAGES[kind])


def test_a_count_of_many_digits() -> None:
    """A reply with a count of more than 4,300 digits, which Python refuses to read, is an answer."""
    body = (
        json.dumps({**WHOLE["chat"], "usage": {"prompt_tokens": 17}})
        .replace("17", "1" * 5000)
        .encode()
    )
    with attack(hostile.send(body)) as server:
        result = make("chat", server).make_request(REQUEST)
    assert (result.completions[0].text, usage_of(result)) == ("Yes", None)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.dictionaries(st.text(max_size=3), parts, max_size=3)
    ),
    max_leaves=5,
)
NAMES = [
    *(
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
    ),
    *(
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    ),
]


@given(JSON | st.dictionaries(st.sampled_from(NAMES), JSON | st.integers(0, 100)))
def test_any_usage(usage: Any) -> None:
    """Any value of `usage` leaves the answer as it is. Its counts can be added and priced."""
    for kind, client in (("chat", OpenAIClient), ("anthropic", AnthropicClient)):
        result = client(None, base_url="http://localhost").result(
            REQUEST, {**WHOLE[kind], "usage": usage}
        )
        assert failure_of(result) is None
        if reported := usage_of(result):
            assert all(
                isinstance(count, int) and 0 <= count <= 3 * MOST_TOKENS
                for count in vars(reported).values()
            )
            assert (
                reported.cached_tokens + reported.cache_write_tokens
                <= reported.input_tokens
            )


def test_stored_counts_that_are_none() -> None:
    """Counts that no request can have are not known."""
    usage = Usage(-5, output_tokens=1)
    result = add_facts(RequestResult(True, [], make_completion(), False), usage=usage)
    assert usage_of(result) is None


def make_completion() -> Any:
    return (
        OpenAIClient(None, base_url="http://localhost")
        .result(REQUEST, WHOLE["chat"])
        .completions
    )


def test_a_follow_up_without_counts() -> None:
    """If only one of two requests has counts, the answer has no counts."""
    plain = RequestResult(True, [], make_completion(), False)
    counted = add_facts(plain, usage=Usage(5, output_tokens=1))
    assert usage_of(join_answers(counted, counted)) == Usage(10, output_tokens=2)
    assert usage_of(join_answers(counted, plain)) is None
    assert usage_of(join_answers(plain, counted)) is None


@pytest.fixture
def prices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A prompt of the test entry costs about 80 cents."""
    file = tmp_path / "prices.yaml"
    file.write_text(
        json.dumps({"hostile/paid": {"input": 100, "cached_input": 10, "output": 1000}})
    )
    monkeypatch.setenv(PRICES, str(file))


@pytest.mark.usefixtures("prices")
@pytest.mark.parametrize(
    "usage",
    [{"prompt_tokens": -(10**9), "completion_tokens": 1}, "many", {"prompt_tokens": 0}],
)
def test_the_limit_in_dollars(
    usage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without counts, a request has cost what was reserved for it. Without a limit, each answer is paid for once."""
    with attack(hostile.send({**WHOLE["chat"], "usage": usage})) as server:
        name = deploy("hostile/paid", "OpenAIClient", base_url=f"{server.address}/v1/")
        monkeypatch.setenv(MAX_COST, "4")
        with pytest.raises(
            InputError,
            match=rf"{MAX_COST}=4 allows \$\d\.\d+ more after \$\d\.\d+ were spent",
        ):
            make_run(tmp_path, ENTRY + name, cache=False)
        before = len(server.seen)
        assert 0 < before <= 4 / 0.8
        monkeypatch.delenv(MAX_COST)
        make_run(tmp_path, ENTRY + name, cache=False)
    assert len(server.seen) == 12


def test_a_model_that_was_not_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Every answer has the name of the model that replied. One warning names it, and a statistic counts the answers."""
    with attack(hostile.send({**WHOLE["chat"], "model": "tiny-1b"})) as server:
        name = deploy(
            "hostile/other",
            "OpenAIClient",
            base_url=f"{server.address}/v1/",
            model="big-400b",
        )
        run = make_run(tmp_path, ENTRY + name, cache=False)
    told = f"{name}: the server answers as 'tiny-1b', not as 'big-400b'"
    assert caplog.text.count(told) == 1
    states = read(run, "scenario_state")["request_states"]
    assert {state["result"]["facts"]["served_model"] for state in states} == {"tiny-1b"}
    assert {
        value
        for (statistic, *_), value in means(run).items()
        if statistic == "other_model"
    } == {1.0}


def counted(prompt: int, cached: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


@pytest.mark.parametrize(
    ("usage", "is_cut"),
    [
        (counted(200), True),
        (counted(7000), False),
        (counted(200, 150), True),
        (counted(3900, 3000), False),
        (None, None),
    ],
)
def test_prompts_that_the_server_cuts(
    usage: Any,
    is_cut: bool | None,
    command: Command,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Prompts of which a server counts far too few tokens have a statistic, a warning, and a mark with its reason.

    Without a tokenizer, half of an estimate is what a prompt has at least. Some servers leave out cached tokens.
    """
    with attack(hostile.send({**WHOLE["chat"], "usage": usage})) as server:
        name = deploy(
            "hostile/cuts", "OpenAIClient", base_url=f"{server.address}/v1/", model="m"
        )
        # Of a few prompts, equal counts are no sign of a limit.
        run = make_run(
            tmp_path, ENTRY.replace(":", ":task=json_kv,", 1) + name, cache=False
        )
    values = {
        value
        for (statistic, *_), value in means(run).items()
        if statistic == "prompt_cut_by_server"
    }
    assert values == ({float(is_cut)} if is_cut is not None else set())
    assert ("the server has cut 3 of 3 prompts" in caplog.text) == bool(is_cut)
    assert ("further cut prompts are only counted" in caplog.text) == bool(is_cut)
    assert ("prompts that the server cut: 100 %" in find_reasons(run)) == bool(is_cut)
    command("doctor", "--suite", "s", "-o", tmp_path / "benchmark_output")
    assert ("prompts that the server cut: 100 %" in command.out) == bool(is_cut)


@pytest.mark.parametrize(("limit", "cut"), [(1200, 6), (1400, 0), (10**6, 0)])
def test_counts_that_stop_at_a_limit(
    limit: int, cut: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a tokenizer, prompts are cut if the largest count is that of five different prompts or more."""
    rows = [
        {"context": "fog lamp " * size, "question": "Where?", "answers": ["here"]}
        for size in range(400, 900, 50)
    ]
    (tmp_path / "questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        tokens = len(body["messages"][-1]["content"].split())
        return 200, {**WHOLE["chat"], "usage": counted(min(tokens, limit))}

    with scripted({"/v1/chat/completions": answer}) as server:
        name = deploy(
            "hostile/limit", "OpenAIClient", base_url=f"{server.address}/v1/", model="m"
        )
        entry = f"any_jsonl:path={tmp_path},length=8k,count_with=longctx/words,model=longctx/lexical,model_deployment={name}"
        run = make_run(tmp_path, entry, cache=False)
    (share,) = {
        value
        for (statistic, *_), value in means(run).items()
        if statistic == "prompt_cut_by_server"
    }
    assert share * len(rows) == pytest.approx(cut)
    assert (
        f"the server counts {limit:,} tokens of prompts of different lengths"
        in caplog.text
    ) == bool(cut)
    assert (f"the server has cut {cut} of {len(rows)} prompts" in caplog.text) == bool(
        cut
    )


@pytest.mark.parametrize(
    "message",
    [
        {"content": ""},
        {"content": None, "reasoning_content": "Hm."},
        {"content": "<think>\n</think>\n"},
    ],
)
def test_answers_without_a_text(
    message: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Empty answers, and reasoning alone, score 0 and are counted; a mark says how many they are."""
    caplog.set_level(logging.INFO, "helm")
    whole = {
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }
    with attack(hostile.send(whole)) as server:
        name = deploy(
            "hostile/empty", "OpenAIClient", base_url=f"{server.address}/v1/", model="m"
        )
        run = make_run(tmp_path, ENTRY + name, cache=False)
    assert {
        value
        for (statistic, *_), value in means(run).items()
        if statistic == "answer_empty"
    } == {1.0}
    assert "12 of 12 answers are empty" in caplog.text
    assert "3 of 3 answers are empty (json_kv, " in find_reasons(run)
    assert caplog.text.count("3 of 3 answers are empty (json_kv, ") == 1, (
        "the log's last table has the mark"
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_names_of_models(
    kind: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The model's name is read from replies and streams of each protocol. Values that are not names are left out."""
    for sent, expected in (
        ("m-2024-08-06", "m-2024-08-06"),
        ("n" * 500, "n" * 200),
        (7, None),
        ("", None),
        (None, None),
    ):
        whole = {**WHOLE[kind], "model": sent}
        events = hostile.events(kind, ["Yes"])
        start = (
            {**events[0], "message": {"model": sent}}
            if kind == "anthropic"
            else {**events[0], "model": sent}
        )
        act = hostile.stream([start, *events[1:]]) if stream else hostile.send(whole)
        with attack(act) as server:
            result = make(kind, server, stream=stream).make_request(
                replace(REQUEST, model_deployment="an/m")
            )
        assert (failure_of(result), facts_of(result).served_model) == (None, expected)
    warnings = [
        record.message for record in caplog.records if record.levelno >= logging.WARNING
    ]
    assert [message.partition(" answers")[0] for message in warnings] == [
        "an/m: the server"
    ]


@pytest.mark.parametrize(
    ("asked", "replied", "is_same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4", "gpt-4-0613", True),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku-20241022", True),
        ("claude-3-5-haiku@20241022", "claude-3-5-haiku", True),
        ("mistral-large-latest", "mistral-large-2407", True),
        ("llama3", "llama3:latest", True),
        ("gemini-2.0-flash", "models/gemini-2.0-flash-001", True),
        ("openai/gpt-4o", "gpt-4o", True),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b-instruct", True),
        ("gpt-4-0613", "gpt-4-1106", False),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06", False),
        ("gpt-4o", "gpt-4o-mini", False),
        ("llama-3.1-70b", "llama-3.1-8b", False),
        ("llama-3.1-8b-instruct", "llama-3.1-8b-instruct-fp8", False),
    ],
)
def test_aliases(asked: str, replied: str, is_same: bool) -> None:
    """Names with a snapshot, a prefix or capitals are the same model. Another snapshot is another model."""
    assert is_same_model(asked, replied) is is_same
    assert is_same_model(replied, asked) is is_same


def test_answers_of_other_clients() -> None:
    """Answers of HELM's own clients have no name of a model, so there is no warning."""
    result = RequestResult(True, [], make_completion(), False)
    assert (answer_of(result).served_model, answer_of(result).other_model) == (
        None,
        None,
    )
