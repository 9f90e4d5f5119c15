"""A local server that speaks OpenAI's and Anthropic's protocols, fails by plan, and remembers every call."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.servers import faults
from tests.servers.faults import STATUS, Fault, Plan
from tests.servers.protocols import PROTOCOLS, Body, Reply

Answer = Callable[[str], str]
"""From a prompt to the answer."""

RETRY_AFTER = "0.05"
"""Seconds."""


@dataclass(frozen=True)
class Call:
    """A request that came in.

    Attributes:
        key: the `Authorization` header, or Anthropic's.
        fault: what went wrong; None if it succeeded.
        at: seconds on a clock that never goes back.
    """

    path: str
    body: Body
    prompt: str
    key: str
    fault: Fault | None
    at: float = field(default_factory=time.monotonic)

    @property
    def question(self) -> str:
        """Model and prompt, as a digest."""
        return hashlib.sha256(f"{self.body['model']}\0{self.prompt}".encode("utf-8", "surrogatepass")).hexdigest()


def asked_again(calls: Iterable[Call]) -> list[Call]:
    """Calls whose question had been answered before."""
    answered: set[str] = set()
    again = []
    for call in calls:
        again += [call] if call.question in answered else []
        answered |= set() if call.fault else {call.question}
    return again


class Server:
    """A running server.

    Attributes:
        calls: all calls as they came.
        plan: when calls fail; may be replaced between two runs.
    """

    def __init__(self, answer: Answer, plan: Plan):
        self.calls: list[Call] = []
        self.answer, self.plan = answer, plan
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.closed = threading.Event()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"service": self}))

    @property
    def address(self) -> str:
        """What Anthropic's client calls the base address; OpenAI's is `openai`."""
        return f"http://127.0.0.1:{self.http.server_port}"

    @property
    def openai(self) -> str:
        """What OpenAI's client calls the base address."""
        return f"{self.address}/v1/"

    @property
    def bodies(self) -> list[Body]:
        """Of all calls."""
        return [call.body for call in self.calls]

    def failed(self) -> Counter[Fault]:
        """How often each fault occurred."""
        return Counter(call.fault for call in self.calls if call.fault)

    def forget(self) -> None:
        """As if nothing had been asked."""
        with self._lock:
            self.calls.clear()
            self._asked.clear()

    def note(self, path: str, body: Body, key: str) -> Call:
        """A call, with what becomes of it."""
        prompt = PROTOCOLS[path].prompt(body)
        with self._lock:
            call = Call(path, body, prompt, key, self.plan(prompt, self._asked[prompt]))
            self._asked[prompt] += 1
            self.calls.append(call)
        return call

    def reply(self, call: Call) -> Reply:
        """What the model says, or is made to say."""
        text = self.answer(call.prompt)
        if call.fault is None:
            return Reply(text)
        odd = {
            Fault.REFUSED: Reply(None),
            Fault.FILTERED: Reply("", "content_filter"),
            Fault.EMPTY: Reply(""),
            Fault.SHORT: Reply(text[: len(text) // 2], "length"),
            Fault.UNREADABLE: Reply("It reads well {on the whole."),
        }
        return odd.get(call.fault, Reply(text))


@contextmanager
def serve(answer: Answer, plan: Plan = faults.none) -> Iterator[Server]:
    """A server on the loopback interface, until the block ends."""
    server = Server(answer, plan)
    threading.Thread(target=server.http.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.closed.set()
        server.http.shutdown()
        server.http.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # else a stream that is cut looks like one that has ended
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

    def _respond(self, call: Call) -> None:
        if call.fault in STATUS:
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
        kind, extra = "api_error", {}
        message = _MESSAGES.get(call.fault, "It went wrong.").format(key=call.key)
        if call.fault is Fault.RATE_LIMIT:
            kind, extra = "rate_limit_error", {"Retry-After": RETRY_AFTER}
        if call.fault is Fault.OVERLOADED and call.path == "/v1/messages":
            kind, status = "overloaded_error", 529
        self._send(json.dumps(PROTOCOLS[call.path].error(kind, message)), None, status, **extra)

    def _send(self, text: str, fault: Fault | None, status: int = 200, **headers: Any) -> None:
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
            content, self.close_connection = content[: len(content) // 2], True
        self.wfile.write(content)

    def _stream(self, call: Call) -> None:
        protocol = PROTOCOLS[call.path]
        events = list(protocol.events(call.body, self.service.reply(call)))
        lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events]
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
        self._send(json.dumps(PROTOCOLS[self.path].error("api_error", "It went wrong.")), None)

    def _page(self) -> None:
        content = b"<html><body>One moment, please</body></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


_MESSAGES: dict[Fault | None, str] = {
    Fault.UNAUTHORIZED: "It went wrong. Your key: {key}",
    Fault.FLAGGED: "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
    Fault.GONE: "The model `gpt-4o-2024-05-13` has been deprecated and does not exist: model_not_found",
    Fault.TOO_LONG: "This model's maximum context length is 8192 tokens. Please reduce the length of the messages.",
}


def _as_it_is(content: Body) -> Body:
    return content


def _without_text(content: Body) -> Body:
    (choice,) = content["choices"]
    odd = {"message": {"role": "assistant", "content": None}} if "message" in choice else {"text": None}
    return {**content, "choices": [{**choice, **odd}]}


_ODD: dict[Fault | None, Callable[[Body], Body]] = {
    Fault.NULL: _without_text,
    Fault.NO_CHOICES: lambda content: {**content, "choices": []},
    Fault.NO_LOGPROBS: lambda content: {**content, "choices": [{**content["choices"][0], "logprobs": None}]},
}

_BROKEN = {
    Fault.TIMEOUT: _Handler._wait,
    Fault.DROPPED: _Handler._drop,
    Fault.PAGE: _Handler._page,
    Fault.STRANGE: _Handler._strange,
}
