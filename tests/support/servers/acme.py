"""Runs a server with a made-up protocol, which the guide to adding a provider translates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.servers.threads import serve_in_thread

KEY = "acme-00112233445566778899"
OTHER_KEY = "acme-ffeeddccbbaa99887766"
"""The key that the server accepts, and one that it quotes in an error."""


class AcmeServer(ThreadingHTTPServer):
    """A server that answers every prompt with the prompt's length.

    Attributes:
        bodies: the bodies of all requests.
        keys: the keys that were sent.
        breaks: whether requests fail with an error that quotes a key.
        is_used_up: whether requests fail with the provider's own error for a used-up quota.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.breaks = False
        self.is_used_up = False

    @property
    def address(self) -> str:
        """Return the address in the form that the guide gives to `models add`."""
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serve_acme() -> Iterator[AcmeServer]:
    """Run a server until the block ends."""
    server = AcmeServer()
    with serve_in_thread(server):
        yield server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: AcmeServer

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        models = {
            "/v2/models": {"data": [{"id": "large"}, {"id": "small"}]},
            "/v2/models/large": {"id": "large"},
        }
        self._send(
            models.get(self.path, {"error": "not found"}),
            200 if self.path in models else 404,
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v2/generate":
            return self._send({"error": "not found"}, 404)
        self.server.bodies.append(body)
        assert "Authorization" not in self.headers
        self.server.keys.add(self.headers["x-acme-key"])
        if self.server.is_used_up:
            return self._send({"fault": "E-QUOTA"}, 400)
        if self.server.breaks:
            return self._send(
                {"error": {"message": f"The shard with {OTHER_KEY} is broken."}}, 400
            )
        size = len(json.dumps(body["messages"]))
        self._send(
            {
                "output": str(size),
                "ended": "stop",
                "tokens": {"read": size // 4, "written": 2},
            }
        )

    def _send(self, content: Any, status: int = 200) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
