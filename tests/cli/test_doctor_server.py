"""Tests of `doctor URL`, which finds what the stack around a model changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from helm_longctx.models.apis.answer_logprobs import Logprobs
from helm_longctx.models.endpoints.probe import ProbedEndpoint
from helm_longctx.models.endpoints.stack import (
    Stack,
    find_other_build,
    find_regular_text,
    is_one_change,
)
from helm_longctx.run_settings import WAIT
from helm_longctx.tasks.token_estimate import estimate_tokens
from tests.support.commands import Command
from tests.support.json_http import JsonHandler, ModelServer, serve_handler

FAULTS = {
    "system": r"a system turn of about \d+ tokens is dropped",
    "turns": r"earlier turns of about \d+ tokens is dropped",
    "cut": "the server cuts prompts: of about 8k tokens it counts 3,000",
    "model": "answers as 'small', not as 'm'",
    "stop": "an answer ends before 'User:'",
    "sampled": "3 greedy answers differ",
    "default": "without a temperature the server samples",
    "reasons": "the model reasons before it answers;",
    "inline": "the model reasons before it answers, in its text, from which it is removed",
    "field": "the answer is in the reasoning field, and the content is empty: the server's reasoning parser",
    "unknown": "answers may contain reasoning: they begin with a tag or a channel",
    "uncounted": "the server counts no tokens",
    "silent": "the server gives no log-probabilities",
    "builds": "two builds answer: 4 of 20 replies to the same chat come from another one, each 5th",
}
"""Faults of the server, and a pattern of the line about each of them."""

BROKEN = {"system", "turns", "cut", "model", "builds", "field"}


def answer(body: dict[str, Any], fault: str, number: int) -> dict[str, Any]:
    """Return the reply to a chat by a stack with a fault."""
    messages = body["messages"]
    if fault == "system":
        messages = [message for message in messages if message["role"] != "system"]
    if fault == "turns":
        messages = [
            message for message in messages if message["role"] == "system"
        ] + messages[-1:]
    question = messages[-1]["content"]
    count = sum(4 + estimate_tokens(message["content"]) for message in messages)
    count = min(count, 3000) if fault == "cut" else count
    text = question.partition("nothing else:\n")[2] or "yes"
    if fault == "stop":
        text = text.partition("User:")[0]
    if "random words" in question and (
        fault == "sampled" or (fault == "default" and "temperature" not in body)
    ):
        text = f"word {number}"
    if fault == "silent builds" and number % 5 == 0:
        text = "no"
    message = {"role": "assistant", "content": text}
    if fault == "reasons":
        message["reasoning_content"] = "Hm."
    if fault == "inline":
        message["content"] = f"[THINK]Hm.[/THINK]{text}"
    if fault == "parts":
        message["content"] = [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
            {"type": "text", "text": text},
        ]
    if fault == "unknown":
        message["content"] = f"<ponder>Hm.</ponder>{text}"
    if fault == "field":
        message = {"role": "assistant", "content": None, "reasoning_content": text}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "stop"}
    if body.get("logprobs") and not fault.startswith("silent"):
        noise = Random(number).uniform(0, 0.004)
        value = -0.1 - noise - 0.3 * (fault == "builds" and number % 5 == 0)
        choice["logprobs"] = {
            "content": [{"token": "yes", "logprob": value, "top_logprobs": []}]
        }
    usage = {"prompt_tokens": count, "completion_tokens": 2, "total_tokens": count + 2}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "small" if fault == "model" else "m",
        "choices": [choice],
        **({} if fault == "uncounted" else {"usage": usage}),
    }


@contextmanager
def serve(fault: str, tokenizer: Any = None) -> Iterator[str]:
    """Serve a stack with a fault until the block ends, and yield its address.

    Args:
        tokenizer: counts the tokens of prompts with its chat template.
    """
    numbers = iter(range(10**6))

    class Handler(JsonHandler):
        def do_GET(self) -> None:  # noqa: N802 (http.server's name)
            self.send_json(
                200, {"object": "list", "data": [{"id": "m", "object": "model"}]}
            )

        def do_POST(self) -> None:  # noqa: N802 (http.server's name)
            body = self.read_body()
            number = next(numbers)
            reply = answer(body, fault, number)
            if tokenizer is not None:
                if fault == "stripped":  # runs of white space become a space
                    body["messages"] = [
                        {**message, "content": " ".join(message["content"].split())}
                        for message in body["messages"]
                    ]
                tokens = tokenizer.apply_chat_template(
                    body["messages"], add_generation_prompt=True, return_dict=True
                )
                extra = {
                    "special token": 1,
                    "other template": 7 * len(body["messages"]),
                }.get(fault, 0)
                reply["usage"]["prompt_tokens"] = len(tokens["input_ids"]) + extra
            is_long = len(body["messages"]) > 1
            if fault == "refused" and is_long:
                self.send_json(500, {"error": {"message": "roles must alternate"}})
            elif (fault == "overloaded" and is_long) or (
                fault == "busy" and number % 4 == 1
            ):
                self.send_json(503, {"error": {"message": "overloaded"}})
            elif self.path.endswith("/chat/completions"):
                self.send_json(200, reply)
            else:
                self.send_json(404, {"error": {"message": "not found"}})

    with serve_handler(Handler) as address:
        yield address


def test_a_healthy_server(command: Command) -> None:
    """A server that changes nothing has no finding but good ones."""
    with serve("") as url:
        assert command("doctor", url) == 0, command.out
    lines = command.out.splitlines()
    assert all(line.startswith("ok      server: ") for line in lines), command.out
    assert "prompts up to 8k tokens are not cut" in command.out


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_its_line(command: Command, fault: str) -> None:
    """Each fault has a line, and only those that make scores wrong end with the status 1."""
    with serve(fault) as url:
        status = command("doctor", url)
    named = {name for name, line in FAULTS.items() if re.search(line, command.out)}
    assert named == {fault}, command.out
    assert status == (fault in BROKEN)


def test_content_in_parts(command: Command) -> None:
    """A server whose content is a list of parts is checked like any other."""
    with serve("parts") as url:
        assert command("doctor", url) == 0, command.out
    assert re.search(FAULTS["reasons"], command.out), command.out
    assert "prompts up to 8k tokens are not cut" in command.out


def test_a_second_build_without_log_probabilities(command: Command) -> None:
    """If a server gives no log-probabilities, another text at equal steps is a second build."""
    with serve("silent builds") as url:
        assert command("doctor", url) == 1, command.out
    assert re.search(FAULTS["builds"], command.out), command.out


@dataclass
class RoundingServer(ModelServer):
    """A server whose prefix cache rounds what it keeps, behind a router that sends each fifth request to a worse build.

    Each build has a cache of its own. What a build reads from its cache moves an answer by about as much as the builds
    differ.

    Args:
        takes: the field that keeps a request away from the cache; other fields are ignored.
        has_worse: whether there is a worse build; if not, the good one answers all requests.
        gap: nats by which the builds differ.
        strict: the builds, `good` and `worse`, that refuse such fields.
        counts: how cached tokens are counted: "all", "hits" (as vLLM, which counts no 0) or "none".
        is_busy: whether each fourth request is refused with 503.
    """

    takes: str = ""
    has_worse: bool = True
    gap: float = 0.07
    strict: tuple[str, ...] = ()
    counts: str = "all"
    is_busy: bool = False
    requests: int = 0
    salts: list[str] = field(default_factory=list)
    _kept: set[str] = field(default_factory=set)
    _chance: Random = field(default_factory=lambda: Random(1))

    def handle(self, handler: JsonHandler) -> None:
        """Answer a chat, if the server is not busy and the build takes all fields."""
        body = handler.read_body()
        self.requests += 1
        build = "worse" if self.has_worse and self.requests % 5 == 0 else "good"
        unknown = {"cache_prompt", "cache_salt"} & body.keys()
        if not handler.path.endswith("/chat/completions"):
            handler.send_json(404, {"error": {"message": "not found"}})
        elif self.is_busy and self.requests % 4 == 0:
            handler.send_json(503, {"error": {"message": "overloaded"}})
        elif unknown and build in self.strict:
            handler.send_json(
                400,
                {
                    "error": {
                        "message": f"Unrecognized request argument supplied: {unknown.pop()}"
                    }
                },
            )
        else:
            handler.send_json(200, self.answer_as(build, body))

    def answer_as(self, build: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the reply of a build to a chat."""
        salt = body.get("cache_salt", "") if self.takes == "cache_salt" else ""
        self.salts += filter(None, [salt])
        name = json.dumps([build, salt, body["messages"]])
        is_hit = name in self._kept and (
            self.takes != "cache_prompt" or body.get("cache_prompt", True)
        )
        self._kept.add(name)
        reply = answer(body, "", 0)
        usage = reply["usage"]
        choice = reply["choices"][0]
        if self.counts == "all" or (self.counts == "hits" and is_hit):
            usage["prompt_tokens_details"] = {
                "cached_tokens": (usage["prompt_tokens"] - 1) * is_hit
            }
        for token in (choice.get("logprobs") or {}).get("content", ()):
            token["logprob"] -= (
                self.gap * (build == "worse") + self._chance.uniform(0, 0.12) * is_hit
            )
        return reply


def find_builds(command: Command, server: RoundingServer) -> bool:
    """Return whether a check finds two builds, and nothing else that is wrong."""
    with server.serve() as url:
        status = command("doctor", url)
    is_found = "two builds answer" in command.out
    assert status == is_found, command.out
    assert command.out.count("BROKEN") == is_found, command.out
    return is_found


@pytest.mark.parametrize(
    ("server", "is_found", "more"),
    [
        (RoundingServer(counts="none"), False, 0),
        (RoundingServer("cache_prompt"), True, 1),
        (RoundingServer("cache_salt"), True, 2),
        (RoundingServer("cache_salt", counts="hits"), True, 2),
        (RoundingServer(), False, 2),
        (RoundingServer("cache_prompt", strict=("good", "worse")), False, 2),
        (RoundingServer("cache_prompt", has_worse=False), False, 1),
    ],
)
def test_a_second_build_behind_a_cache_that_rounds(
    command: Command, server: RoundingServer, is_found: bool, more: int
) -> None:
    """Builds that differ less than a cache rounds are found if the server answers past its cache, with few requests.

    A server that ignores or refuses all fields, or counts no cached tokens, is checked as it was before.
    """
    usual = RoundingServer(counts="none")
    find_builds(command, usual)
    assert find_builds(command, server) is is_found
    # What looks like two builds is asked again.
    assert server.requests == usual.requests + more + 20 * is_found
    assert (
        len(set(server.salts))
        == len(server.salts)
        == (41 if server.takes == "cache_salt" else 0)
    )


def test_a_busy_server_with_a_cache_that_rounds(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which fields a server takes is asked again if it is busy."""
    monkeypatch.setenv(WAIT, "0.01")
    assert find_builds(command, RoundingServer("cache_prompt", is_busy=True))
    assert not find_builds(
        command, RoundingServer("cache_prompt", is_busy=True, has_worse=False)
    )


def test_a_worse_build_that_refuses_the_fields_of_the_good_one(
    command: Command,
) -> None:
    """If only one of two builds takes the fields, the chats are sent without them, so that both builds answer."""
    server = RoundingServer("cache_prompt", strict=("worse",), gap=1.0)
    assert find_builds(command, server)
    assert "4 of 20 replies" in command.out, command.out


def test_an_address_that_is_none(command: Command) -> None:
    """A server that cannot be reached is named in one line."""
    assert command("doctor", "http://127.0.0.1:9/v1") == 2
    assert "cannot be reached" in command.err


def test_a_busy_server_is_not_broken(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failures that pass are asked again, so a server that refuses each fourth request has no fault."""
    monkeypatch.setenv(WAIT, "0.01")
    with serve("busy") as url:
        assert command("doctor", url) == 0, command.out
    assert "BROKEN" not in command.out


def test_an_overloaded_server_is_not_broken(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chat that has no answer although it was sent four times is a note, because another time it may have one.

    A status of 500 is a template that raises an error.
    """
    monkeypatch.setenv(WAIT, "0.01")
    with serve("overloaded") as url:
        assert command("doctor", url) == 0, command.out
    assert "note    server: a chat with earlier turns has no answer: " in command.out
    with serve("refused") as url:
        assert command("doctor", url) == 1, command.out
    assert (
        "a chat with a system turn has no answer: the server's template refuses it"
        in command.out
    )


@pytest.mark.parametrize(
    ("fault", "status", "line"),
    [
        ("", 0, r"three turns: the server counts (\d+) tokens, the tokenizer \1$"),
        (
            "special token",
            1,
            "a system turn: the server counts .*; a token at the start is doubled or missing$",
        ),
        (
            "",
            0,
            "the server divides texts as the tokenizer does: markers, .*, CJK, .*, white space$",
        ),
        (
            "stripped",
            1,
            "white space: the server counts .*; the server divides or changes such texts in another way$",
        ),
        (
            "other template",
            1,
            "three turns: the server counts .*; the templates differ$",
        ),
    ],
)
def test_a_tokenizer(
    command: Command, tmp_path: Path, fault: str, status: int, line: str
) -> None:
    """The server's counts are compared with those of a tokenizer and its chat template."""
    pytest.importorskip("torch")
    from tests.models.small_models import save_tokenizer

    tokenizer = save_tokenizer(tmp_path / "tokenizer")
    with serve(fault, tokenizer) as url:
        assert (
            command("doctor", url, "--tokenizer", str(tmp_path / "tokenizer")) == status
        ), command.out
    assert re.search(line, command.out, re.MULTILINE), command.out
    if fault == "stripped":
        assert command.out.count("divides or changes") == 1


@pytest.mark.parametrize(
    ("places", "is_one"),
    [
        ([17, 18, 19], True),
        ([0, 1], True),
        ([3, 8, 13, 18], False),
        ([9, 10, 11], False),
    ],
)
def test_a_change_of_the_load_is_no_second_build(
    places: list[int], is_one: bool
) -> None:
    """Answers that are all at the start or at the end come from one change in time, and not from a router."""
    assert is_one_change(places, 20) == is_one


def test_noise_is_no_second_build() -> None:
    """Answers that each differ by chance are of one build; two groups are of two, whatever the noise in a group is."""
    for seed in range(50):
        chance = Random(seed)
        level = chance.choice((0.0, 0.001, 0.01, 0.1, 0.5))
        answers = [
            [{"a": -0.2 + chance.gauss(0, level)}, {"b": -1 + chance.gauss(0, level)}]
            for _ in range(20)
        ]
        assert not find_other_build(answers), (seed, level)
        for position in (2, 7, 12, 17):
            answers[position] = [
                {key: value - 0.3 for key, value in answer.items()}
                for answer in answers[position]
            ]
        if level <= 0.01:
            assert find_other_build(answers) == [2, 7, 12, 17]


_USUAL = ({"a": -0.2}, {"b": -1.0})
_OTHER = ({"a": -0.3}, {"b": -1.1})
_MIXED = [_USUAL, _USUAL, _OTHER, _USUAL] * 5
_CHANGED = [_USUAL] * 12 + [_OTHER] * 8
_EQUAL = [_OTHER] * 20


@pytest.mark.parametrize(
    ("first", "second", "fine"),
    [
        (_MIXED, _MIXED, False),
        (_MIXED, _EQUAL, None),
        (_MIXED, _CHANGED, None),
        (_CHANGED, _MIXED, None),
    ],
)
def test_two_groups_of_answers_are_asked_again(
    monkeypatch: pytest.MonkeyPatch,
    first: list[Logprobs],
    second: list[Logprobs],
    fine: bool | None,
) -> None:
    """Two groups of answers make a server broken only if they come again, mixed; a change of the load is a note."""
    rounds = iter([first, second])
    stack = Stack(ProbedEndpoint("http://127.0.0.1:9/v1", "openai", "small", ("chat",)))
    monkeypatch.setattr(stack, "_ask_equal", lambda *_: (next(rounds), [""] * 20))
    ((is_fine, text),) = stack._check_builds()
    assert is_fine is fine
    is_repeated = fine is False
    assert ("one build computes replies in two ways" in text) is is_repeated
    assert ("a change of the load" in text) is not is_repeated


def test_texts_that_differ_by_chance_are_no_second_build() -> None:
    """A second text is told only if it comes at equal steps, and at least three times."""
    chance = Random(0)
    alarms = sum(
        bool(find_regular_text(chance.choices("ab", (4, 1), k=20))) for _ in range(2000)
    )
    assert alarms < 20
    assert find_regular_text(list("aabaaaab" * 2 + "aaba")) == []
    assert find_regular_text(list("aaaabaaaabaaaaaaaaaa")) == []
    assert find_regular_text(list("aabaa" * 4)) == [2, 7, 12, 17]
    assert find_regular_text(list("aabaa" * 3 + "aacaa")) == []
    assert find_regular_text([]) == []
