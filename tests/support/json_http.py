"""A local HTTP server whose handler answers JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.servers.threads import serve_in_thread


class JsonHandler(BaseHTTPRequestHandler):
    """Reads and sends JSON, and logs nothing."""

    protocol_version = "HTTP/1.1"

    def read_body(self) -> dict[str, Any]:
        """Return the body of the request."""
        body: dict[str, Any] = json.loads(
            self.rfile.read(int(self.headers["Content-Length"]))
        )
        return body

    def send_json(self, status: int, body: Mapping[str, Any]) -> None:
        """Send the headers and a body in JSON, so that the connection can be used again."""
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        """Leave the log of the tests empty."""


@contextmanager
def serve_handler(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve on the loopback interface until the block ends, and yield the address with `/v1`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with serve_in_thread(server) as address:
        yield f"{address}/v1"


class ModelServer:
    """A server of one model, `m`, in OpenAI's protocol."""

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to the body of a POST request."""
        raise NotImplementedError

    def handle(self, handler: JsonHandler) -> None:
        """Answer a POST request with the reply to its body. A client that is gone gets none."""
        with suppress(ConnectionError):
            handler.send_json(200, self.answer(handler.read_body()))

    def reply(
        self,
        choice: dict[str, Any],
        usage: dict[str, Any],
        kind: str = "chat.completion",
    ) -> dict[str, Any]:
        """Return a reply with one choice."""
        usage = {
            **usage,
            "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"],
        }
        choices = [{"index": 0, "finish_reason": "stop", **choice}]
        return {
            "id": "x",
            "object": kind,
            "created": 0,
            "model": "m",
            "choices": choices,
            "usage": usage,
        }

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Serve on the loopback interface until the block ends, and yield the address."""
        server = self

        class Handler(JsonHandler):
            def do_GET(self) -> None:
                self.send_json(
                    200, {"object": "list", "data": [{"id": "m", "object": "model"}]}
                )

            def do_POST(self) -> None:
                server.handle(self)

        with serve_handler(Handler) as address:
            yield address
