"""The local server, restarted at its address, with answers that can be found again in what a run stores."""

from __future__ import annotations

import hashlib
import random
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import ThreadingHTTPServer
from typing import Any

from helm_longctx.models import lexical
from tests.servers import faults
from tests.servers.llm import Server

_TAG = re.compile(rb"#[0-9a-f]{16}#")

SLOWEST = 0.3
"""Seconds that a slow answer takes; less than the client's timeout."""


def tag(prompt: str) -> str:
    """What the answer to a prompt ends in, and the answer to no other."""
    return f"#{hashlib.sha256(prompt.encode()).hexdigest()[:16]}#"


def tags(text: bytes) -> set[str]:
    """All tags in a text."""
    return {found.decode() for found in _TAG.findall(text)}


class Model:
    """Answers as the lexical baseline does, now and then slowly.

    Attributes:
        slow: the share of slow answers.
    """

    slow = 0.0

    def __call__(self, prompt: str) -> str:
        """The answer, with its tag."""
        time.sleep(SLOWEST if random.random() < self.slow else 0.02)
        return f"{lexical.answer(prompt)} {tag(prompt)}"


class Http(ThreadingHTTPServer):
    """It can cut all its connections."""

    def __init__(self, *arguments: Any):
        self._connections: set[socket.socket] = set()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget it."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A cut connection is no error here."""

    def cut(self) -> None:
        """Within whatever they are."""
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class RestartableServer(Server):
    """A server that goes away and comes back with what it remembers."""

    def __init__(self, model: Model):
        super().__init__(model, faults.none)
        self.model = model
        self._handler, port = self.http.RequestHandlerClass, self.http.server_port
        self.http.server_close()
        self._start(port)

    def restart(self, seconds: float) -> None:
        """Cut all connections, and refuse new ones for a while."""
        port = self.http.server_port
        self.stop()
        time.sleep(seconds)
        self._start(port)

    def stop(self) -> None:
        """Refuse connections from now on."""
        self.closed.set()
        self.http.shutdown()
        self.http.server_close()
        self.http.cut()

    def _start(self, port: int) -> None:
        self.closed.clear()
        self.http: Http = Http(("127.0.0.1", port), self._handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@contextmanager
def serve() -> Iterator[RestartableServer]:
    """A server on the loopback interface, until the block ends."""
    server = RestartableServer(Model())
    try:
        yield server
    finally:
        server.stop()
