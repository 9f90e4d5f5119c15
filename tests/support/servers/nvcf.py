"""Runs a local stand-in for NVIDIA's cloud functions: a function in front of a server of `tests.support.servers.llm`.

The cloud answers only to the function's address without a route, says 202 at first and once more when it is asked, and keeps
the form of NVIDIA's documentation: `NVCF-REQID`, `/v2/nvcf/pexec/functions/ID`, `/v2/nvcf/pexec/status/ID`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import requests

from tests.support.servers.llm import Server
from tests.support.servers.threads import serve_in_thread

ROOT = "/v2/nvcf/pexec"
FUNCTION = f"{ROOT}/functions/13e4f873-0000-4000-8000-000000000000"


class Cloud:
    """A running cloud.

    Attributes:
        seen: number of requests by method and status.
        keys: the `Authorization` headers.
        never: whether functions never finish.
    """

    def __init__(self, backend: Server):
        self.backend = backend
        self.never = False
        self.seen: Counter[tuple[str, int]] = Counter()
        self.keys: set[str] = set()
        self.replies: dict[str, requests.Response] = {}
        self.asked: Counter[str] = Counter()
        self.http = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (_Handler,), {"cloud": self})
        )

    @property
    def function(self) -> str:
        """Return the function's address as NVIDIA's examples write it, with a slash at its end."""
        return f"http://127.0.0.1:{self.http.server_port}{FUNCTION}/"


@contextmanager
def serve_function(backend: Server) -> Iterator[Cloud]:
    """Run a cloud on the loopback interface until the block ends."""
    cloud = Cloud(backend)
    with serve_in_thread(cloud.http):
        yield cloud


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cloud: Cloud

    def log_message(self, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.cloud.keys.add(self.headers["Authorization"])
        if self.path != FUNCTION:
            return self._send(404, b'{"detail": "no such function"}')
        route = (
            "chat/completions" if "messages" in json.loads(content) else "completions"
        )
        headers = {
            "Content-Type": "application/json",
            "Authorization": self.headers["Authorization"],
        }
        identifier = str(uuid4())
        self.cloud.replies[identifier] = requests.post(
            self.cloud.backend.openai + route, content, headers=headers
        )
        return self._send(202, b"", identifier)

    def do_GET(self) -> None:
        identifier = self.path.removeprefix(f"{ROOT}/status/")
        if identifier not in self.cloud.replies:
            return self._send(404, b'{"detail": "no such request"}')
        self.cloud.keys.add(self.headers["Authorization"])
        self.cloud.asked[identifier] += 1
        if self.cloud.never or self.cloud.asked[identifier] == 1:
            return self._send(202, b"", identifier)
        reply = self.cloud.replies[identifier]
        return self._send(reply.status_code, reply.content, identifier)

    def _send(self, status: int, content: bytes, identifier: str = "") -> None:
        self.cloud.seen[self.command, status] += 1
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if identifier:
            self.send_header("NVCF-REQID", identifier)
        self.end_headers()
        self.wfile.write(content)
