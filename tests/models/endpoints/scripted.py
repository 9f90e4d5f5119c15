"""A server whose routes are given, so that each provider's answers can be copied."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.servers.threads import serve_in_thread

Reply = tuple[int, Any]
"""HTTP status and JSON body."""

Route = Reply | Callable[[dict[str, Any]], Reply]
"""A reply, or a function that makes it from a request's body."""

CHAT: Reply = (
    200,
    {
        "choices": [
            {
                "message": {"role": "assistant", "content": "yes"},
                "finish_reason": "stop",
            }
        ]
    },
)
TEXT: Reply = (200, {"choices": [{"text": "yes", "finish_reason": "stop"}]})
MESSAGE: Reply = (
    200,
    {"content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn"},
)


@dataclass
class Scripted:
    """A running server, with its address and the headers and bodies that arrived."""

    address: str
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def scripted(routes: dict[str, Route], key: str | None = None) -> Iterator[Scripted]:
    """Serve some routes until the block ends.

    Args:
        routes: replies by path; other paths are answered with 404.
        key: the bearer token that is required; None if none is.
    """

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            server.headers.append(dict(self.headers))
            body = json.loads(
                self.rfile.read(int(self.headers["Content-Length"] or 0)) or "{}"
            )
            server.bodies += [body] if body else []
            reply = routes.get(
                self.path.partition("?")[0], (404, {"detail": "Not Found"})
            )
            if key and self.headers["Authorization"] != f"Bearer {key}":
                reply = (
                    401,
                    {
                        "error": {
                            "message": f"Incorrect API key: {self.headers['Authorization']}"
                        }
                    },
                )
            status, content = reply(body) if callable(reply) else reply
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET  # noqa: N815

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Scripted(f"http://127.0.0.1:{http.server_port}")
    with serve_in_thread(http):
        yield server
