"""Runs a local server that speaks OpenAI's and Anthropic's protocols, fails by plan, and remembers every call.

A server with models behaves as the providers do: it answers 404 for others and 400 for parameters that a model
refuses and for prompts that are too long, counts tokens, caches prefixes of prompts, and lists its models.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

from helm_longctx.models.apis.availability import PROMPT
from helm_longctx.models.baselines import lexical
from tests.support.servers import faults
from tests.support.servers.faults import STATUS, Fault, Plan
from tests.support.servers.models import (
    CHARACTERS,
    Counts,
    Model,
    PromptCache,
    Refusal,
    count_tokens,
)
from tests.support.servers.protocols import PROTOCOLS, Body, Reply
from tests.support.servers.threads import serve_in_thread

Answer = Callable[[str], str]
"""A function that returns the answer to a prompt."""

RETRY_AFTER = "0.05"
"""The seconds after which a limited client may ask again."""


@dataclass(frozen=True)
class Call:
    """A request that arrived.

    Attributes:
        key: the `Authorization` header, or Anthropic's.
        fault: what went wrong; None if it succeeded.
        refusal: why the server or the model declines it.
        at: seconds on a clock that never goes back.
    """

    path: str
    body: Body
    prompt: str
    key: str
    fault: Fault | None
    refusal: Refusal | None = None
    at: float = field(default_factory=time.monotonic)

    @property
    def question(self) -> str:
        """Return a digest of model and prompt."""
        return hashlib.sha256(
            f"{self.body['model']}\0{self.prompt}".encode("utf-8", "surrogatepass")
        ).hexdigest()


def asked_again(calls: Iterable[Call]) -> list[Call]:
    """Return the calls whose question had been answered before."""
    answered: set[str] = set()
    again = []
    for call in calls:
        again += [call] if call.question in answered else []
        answered |= set() if call.fault else {call.question}
    return again


AnyServer = TypeVar("AnyServer", bound="Server")


class Server:
    """A local server that is running.

    Attributes:
        calls: all calls as they came.
        plan: when calls fail; may be replaced between two runs.
        models: by name; None if every name is a model that takes everything.
        delay: seconds before each answer.
        accepts: whether a key is valid.
    """

    def __init__(
        self, answer: Answer, plan: Plan, models: Mapping[str, Model] | None = None
    ):
        self.calls: list[Call] = []
        self.answer = answer
        self.plan = plan
        self.models = models
        self.delay = 0.0
        self.accepts: Callable[[str], bool] = lambda key: True
        self.cache = PromptCache()
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.closed = threading.Event()
        self.http = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (_Handler,), {"service": self})
        )

    @property
    def address(self) -> str:
        """Return what Anthropic's client calls the base address; OpenAI's is `openai`."""
        return f"http://127.0.0.1:{self.http.server_port}"

    @property
    def openai(self) -> str:
        """Return what OpenAI's client calls the base address."""
        return f"{self.address}/v1/"

    @property
    def bodies(self) -> list[Body]:
        """Return the bodies of all calls."""
        return [call.body for call in self.calls]

    def failed(self) -> Counter[Fault]:
        """Return how often each fault occurred."""
        return Counter(call.fault for call in self.calls if call.fault)

    def forget(self) -> None:
        """Forget all calls, and what was asked before."""
        with self._lock:
            self.calls.clear()
            self._asked.clear()

    def note(self, path: str, body: Body, key: str) -> Call:
        """Record a call with its outcome, and return it."""
        prompt = PROTOCOLS[path].prompt(body)
        refusal = self.decline(path, body)
        with self._lock:
            fault = (
                Fault.DECLINED if refusal else self.plan(prompt, self._asked[prompt])
            )
            fault = fault if self.accepts(key) else Fault.UNAUTHORIZED
            call = Call(path, body, prompt, key, fault, refusal)
            self._asked[prompt] += not refusal
            self.calls.append(call)
        return call

    def decline(self, path: str, body: Body) -> Refusal | None:
        """Return why the server or the model refuses a body, whatever the plan; None if it does not."""
        protocol = PROTOCOLS[path]
        model = self._model(body)
        if model is None:
            return protocol.unknown_model(body["model"])
        if (
            refusal := protocol.refuse_parameter(body, model)
            if self.models is not None
            else None
        ):
            return refusal
        prompt = count_tokens(protocol.prompt(body))
        answer = self._limit(path, body) or 0
        is_too_long = model.context is not None and prompt + answer > model.context
        return (
            protocol.too_long(model.context or 0, prompt, answer)
            if is_too_long
            else None
        )

    def reply(self, call: Call) -> Reply:
        """Return what the model says, or what a fault makes it say."""
        reply = self._answer(call)
        text = reply.text or ""
        if call.fault is None:
            return reply
        odd = {
            Fault.REFUSED: Reply(None),
            Fault.FILTERED: Reply("", "content_filter"),
            Fault.EMPTY: Reply(""),
            Fault.SHORT: Reply(text[: len(text) // 2], "length"),
            Fault.UNREADABLE: Reply("It reads well {on the whole."),
        }
        return odd.get(call.fault, reply)

    def _answer(self, call: Call) -> Reply:
        """Return the answer, cut at its limit, after the model's reasoning, which counts as a part of it."""
        protocol = PROTOCOLS[call.path]
        model = self._model(call.body) or Model()
        readable, written = protocol.prefixes(call.body, model)
        cached = self.cache.read(
            readable
        )  # before the answer, so that prompts sent at a time do not find each other
        # The lexical baseline answers the prompts of benchmarks alone, and a model answers the request for a word, too.
        is_probe = self.answer is lexical.answer and call.prompt == PROMPT
        text = "yes" if is_probe else self.answer(call.prompt)
        if not isinstance(text, str):  # what no model says
            return Reply(text)
        thinking = model.reasoning if protocol.thinks(call.body, model) else ""
        limit = self._limit(call.path, call.body)
        room = (
            limit * CHARACTERS
            if limit and model.cuts and self.models is not None
            else 1 << 62
        )
        shown = thinking[:room], text[: max(0, room - len(thinking))]
        reasoning = count_tokens(shown[0])
        counts = Counts(
            prompt=count_tokens(call.prompt),
            cached=cached,
            written=max((tokens - cached for tokens, _ in written), default=0)
            if call.path == "/v1/messages"
            else 0,
            output=reasoning + count_tokens(shown[1]),
            reasoning=reasoning,
        )
        self.cache.write(written, protocol.kept_seconds(call.body))
        finish = "length" if len(thinking) + len(text) > room else "stop"
        return Reply(
            shown[1], finish, None if model.hides or not thinking else shown[0], counts
        )

    def _model(self, body: Body) -> Model | None:
        return Model() if self.models is None else self.models.get(body["model"])

    def _limit(self, path: str, body: Body) -> int | None:
        return next(
            (body[name] for name in PROTOCOLS[path].limits if name in body), None
        )


def serve(
    answer: Answer, plan: Plan = faults.none, models: Mapping[str, Model] | None = None
) -> AbstractContextManager[Server]:
    """Run a server on the loopback interface until the block ends."""
    return run(Server(answer, plan, models))


@contextmanager
def run(server: AnyServer) -> Iterator[AnyServer]:
    """Let a server answer until the block ends."""
    with serve_in_thread(server.http):
        try:
            yield server
        finally:
            server.closed.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = (
        "HTTP/1.1"  # else a stream that is cut looks like one that has ended
    )
    service: Server

    def log_message(self, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers["Authorization"] or self.headers["X-Api-Key"] or ""
        call = self.service.note(self.path, body, key)
        try:
            self._respond(call)
        except ConnectionError:  # a client need not wait for the end
            self.close_connection = True

    def do_GET(self) -> None:
        """Send the list of models, or one of them, in the protocol of the client's headers."""
        names = list(self.service.models or {})
        anthropic = "anthropic-version" in self.headers
        _, _, name = self.path.partition("/v1/models/")
        if name and name not in names:
            protocol = PROTOCOLS[
                "/v1/messages" if anthropic else "/v1/chat/completions"
            ]
            refusal = protocol.unknown_model(name)
            self._send(json.dumps(protocol.error(refusal)), None, refusal.status)
        elif name:
            self._send(json.dumps(_model_row(name, self.service, anthropic)), None)
        else:
            rows = [_model_row(name, self.service, anthropic) for name in names]
            self._send(
                json.dumps({"object": "list", "data": rows, "has_more": False}), None
            )

    def _respond(self, call: Call) -> None:
        self.service.closed.wait(self.service.delay)
        if call.refusal:
            self._send(
                json.dumps(PROTOCOLS[call.path].error(call.refusal)),
                None,
                call.refusal.status,
            )
        elif call.fault in STATUS:
            self._error(call, STATUS[call.fault])
        elif call.fault in _BROKEN:
            _BROKEN[call.fault](self)
        elif call.body.get("stream"):
            self._stream(call)
        else:
            content = PROTOCOLS[self.path].whole(call.body, self.service.reply(call))
            content = _ODD.get(call.fault, _as_it_is)(content)
            self._send(json.dumps(content), call.fault)

    def _error(self, call: Call, status: int) -> None:
        kind = "api_error"
        code = None
        extra = {}
        message = _MESSAGES.get(call.fault, "It went wrong.").format(key=call.key)
        if status == 429:
            kind = "rate_limit_error"
            code = "rate_limit_exceeded"
        if call.fault is Fault.NO_QUOTA:
            kind = code = "insufficient_quota"
        if call.fault is Fault.RATE_LIMIT:
            extra = {"Retry-After": RETRY_AFTER}
        if call.fault is Fault.OVERLOADED and call.path == "/v1/messages":
            kind = "overloaded_error"
            status = 529
        error = PROTOCOLS[call.path].error(Refusal(status, kind, message, code=code))
        self._send(json.dumps(error), None, status, **extra)

    def _send(
        self, text: str, fault: Fault | None, status: int = 200, **headers: Any
    ) -> None:
        content = text.encode()
        if fault in (Fault.ENDED, Fault.MALFORMED):
            content = content[: len(content) // 2]
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if fault is Fault.CUT:
            content = content[: len(content) // 2]
            self.close_connection = True
        self.wfile.write(content)

    def _stream(self, call: Call) -> None:
        protocol = PROTOCOLS[call.path]
        events = list(protocol.events(call.body, self.service.reply(call)))
        lines = [
            (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"
            for name, data in events
        ]
        lines += [f"data: {protocol.last_event}\n\n"] if protocol.last_event else []
        if call.fault in (Fault.CUT, Fault.ENDED):
            lines = lines[: len(lines) // 2]
        if call.fault is Fault.MALFORMED:
            lines = [line.replace("}\n\n", "\n\n") for line in lines]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            self.wfile.write(f"{len(line.encode()):x}\r\n{line}\r\n".encode())
        if call.fault is Fault.CUT:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _wait(self) -> None:
        self.service.closed.wait(60)
        self._drop()

    def _drop(self) -> None:
        self.close_connection = True

    def _strange(self) -> None:
        self._send(
            json.dumps(
                PROTOCOLS[self.path].error(Refusal(200, "api_error", "It went wrong."))
            ),
            None,
        )

    def _page(self) -> None:
        content = b"<html><body>One moment, please</body></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


_MESSAGES: dict[Fault | None, str] = {
    Fault.UNAUTHORIZED: "It went wrong. Your key: {key}",
    Fault.BUSY: "Rate limit reached for requests. Please try again later.",
    Fault.THROTTLED: "ThrottlingException: Too many tokens, please wait before trying again.",
    Fault.NO_QUOTA: "You exceeded your current quota, please check your plan and billing details.",
    Fault.FLAGGED: "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
    Fault.GONE: "The model `gpt-4o-2024-05-13` has been deprecated and does not exist: model_not_found",
    Fault.TOO_LONG: "This model's maximum context length is 8192 tokens. Please reduce the length of the messages.",
}


def _model_row(name: str, server: Server, anthropic: bool) -> Body:
    """Return a model's row in the list, with its context as vLLM or Anthropic gives it."""
    context = (server.models or {})[name].context
    if anthropic:
        return {
            "type": "model",
            "id": name,
            "display_name": name,
            "created_at": "2026-01-01T00:00:00Z",
        } | ({"max_input_tokens": context} if context else {})
    row = {"id": name, "object": "model", "created": 1, "owned_by": "tests"}
    return row | ({"max_model_len": context} if context else {})


def _as_it_is(content: Body) -> Body:
    return content


def _without_text(content: Body) -> Body:
    (choice,) = content["choices"]
    odd = (
        {"message": {"role": "assistant", "content": None}}
        if "message" in choice
        else {"text": None}
    )
    return {**content, "choices": [{**choice, **odd}]}


_ODD: dict[Fault | None, Callable[[Body], Body]] = {
    Fault.NULL: _without_text,
    Fault.NO_CHOICES: lambda content: {**content, "choices": []},
    Fault.NO_LOGPROBS: lambda content: {
        **content,
        "choices": [{**content["choices"][0], "logprobs": None}],
    },
}

_BROKEN = {
    Fault.TIMEOUT: _Handler._wait,
    Fault.DROPPED: _Handler._drop,
    Fault.PAGE: _Handler._page,
    Fault.STRANGE: _Handler._strange,
}
