"""Runs a local server that no provider should resemble: it redirects, sends bombs, and never comes to an end."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.servers.threads import serve_in_thread

Handler = BaseHTTPRequestHandler
Act = Callable[[Handler], None]
"""A function that sends the reply to a request."""

CHAT = {"message": {"role": "assistant", "content": "Yes"}}
CHOICE = {"index": 0, "finish_reason": "stop"}
WHOLE: dict[str, Any] = {
    "chat": {"model": "m", "choices": [{**CHOICE, **CHAT}]},
    "completions": {"model": "m", "choices": [{**CHOICE, "text": "Yes"}]},
    "anthropic": {
        **{
            "id": "1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
        **{"content": [{"type": "text", "text": "Yes"}], "stop_reason": "end_turn"},
    },
}
"""A good reply of each kind of client."""

END = 100
"""Pieces after which what would never end does end, so that a client without limits fails its test and not the run."""


@dataclass
class Hostile:
    """A running server, with its address and one text for each request that arrived."""

    address: str
    seen: list[str] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)


@contextmanager
def attack(act: Act, path: str = "") -> Iterator[Hostile]:
    """Answer every request in one way until the block ends.

    Args:
        path: the only path that is answered in this way; others get a good chat. Empty for all paths.
    """

    class AnyHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
            server.seen.append(f"{self.command} {self.path}\n{self.headers}\n{body}")
            self.close_connection = True
            with suppress(ConnectionError):  # the client has had enough
                (act if self.path.startswith(path) else send(WHOLE["chat"]))(self)

        do_POST = do_CONNECT = do_GET  # noqa: N815

    http = ThreadingHTTPServer(("127.0.0.1", 0), AnyHandler)
    server = Hostile(f"http://127.0.0.1:{http.server_port}")
    with serve_in_thread(http):
        try:
            yield server
        finally:
            server.closed.set()


def send(content: Any, status: int = 200, **headers: str) -> Act:
    """Return an action that sends one reply, as JSON or as given bytes."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()

    def act(handler: Handler) -> None:
        _head(handler, status, {"Content-Length": str(len(body)), **headers})
        handler.wfile.write(body)

    return act


def redirect(address: str, status: int = 307) -> Act:
    """Return an action that redirects to another address."""
    return send(b"", status, Location=address)


def bomb(
    size: int, reply: dict[str, Any], status: int = 200, encoding: str = "gzip"
) -> Act:
    """Return an action that sends a reply and this number of spaces after it, which compress to a thousandth."""

    @cache  # Compressing takes as long as many tests, so it is not done while tests are collected.
    def make() -> Act:
        body = json.dumps(reply).encode() + b" " * size
        return send(
            gzip.compress(body),
            status,
            **{"Content-Encoding": encoding, "Content-Type": "application/json"},
        )

    return lambda handler: make()(handler)


def stream(events: list[Any], again: Any = None, pause: float = 0.0) -> Act:
    """Return an action that sends one event again and again, and then a stream of events."""

    first = _event(again)
    last = b"".join(map(_event, events))

    def act(handler: Handler) -> None:
        _head(handler, 200, {"Content-Type": "text/event-stream"})
        for _ in range(END if again else 0):
            handler.wfile.write(first)
            threading.Event().wait(pause)
        handler.wfile.write(last)

    return act


def drip(reply: dict[str, Any], pause: float) -> Act:
    """Return an action that sends spaces one by one, and then a good reply."""

    def act(handler: Handler) -> None:
        _head(handler, 200, {"Content-Type": "application/json"})
        for _ in range(END):
            handler.wfile.write(b" ")
            threading.Event().wait(pause)
        handler.wfile.write(json.dumps(reply).encode())

    return act


def drip_headers(reply: dict[str, Any], pause: float) -> Act:
    """Return an action that sends a good reply whose headers come one by one."""

    def act(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(END):
            handler.wfile.write(f"X-{number}: 1\r\n".encode())
            threading.Event().wait(pause)
        handler.wfile.write(b"\r\n" + json.dumps(reply).encode())

    return act


def events(kind: str, pieces: list[Any]) -> list[Any]:
    """Return a stream with pieces of an answer in a client's protocol; a piece that is no text is kept unchanged."""
    if kind == "chat":
        start = [
            {
                "choices": [
                    {"index": 0, "delta": {"role": "assistant", "content": piece}}
                ]
            }
            for piece in pieces
        ]
        return [
            *start,
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
    if kind == "completions":
        start = [{"choices": [{"index": 0, "text": piece}]} for piece in pieces]
        return [
            *start,
            {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]},
        ]
    block = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    deltas = [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": p},
        }
        for p in pieces
    ]
    start = [
        {"type": "message_start", "message": {"model": "m", "content": []}},
        block,
        *deltas,
    ]
    return [
        *start,
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 1},
        },
    ]


def _event(content: Any) -> bytes:
    name = (
        f"event: {content['type']}\n"
        if isinstance(content, dict) and "type" in content
        else ""
    )
    return f"{name}data: {json.dumps(content)}\n\n".encode()


def _head(handler: Handler, status: int, headers: dict[str, str]) -> None:
    handler.send_response(status)
    for name, value in {"Connection": "close", **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
