"""Runs the local server, which can restart at its address, with answers that can be found again in what a run stores."""

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
from types import SimpleNamespace
from typing import Any

from helm_longctx.models.baselines import lexical
from tests.support.servers import faults
from tests.support.servers.llm import Server

_TAG = re.compile(rb"#[0-9a-f]{16}#")

SLOWEST = 0.3
"""Seconds that a slow answer takes; less than the client's timeout."""


def tag(prompt: str) -> str:
    """Return the end of the answer to a prompt, which no other answer has."""
    return f"#{hashlib.sha256(prompt.encode()).hexdigest()[:16]}#"


def tags(text: bytes) -> set[str]:
    """Return all tags in a text."""
    return {match.decode() for match in _TAG.findall(text)}


class Model:
    """A model that answers as the lexical baseline does, and sometimes slowly.

    Attributes:
        slow: the share of slow answers.
        padding: characters in each answer before its tag.
    """

    slow = 0.0
    padding = 0

    def __call__(self, prompt: str) -> str:
        """Return the answer, with its tag."""
        time.sleep(SLOWEST if random.random() < self.slow else 0.02)
        return f"{lexical.answer(prompt)} {'x' * self.padding}{tag(prompt)}"


class Http(ThreadingHTTPServer):
    """A server that can cut all its connections."""

    def __init__(self, *arguments: Any):
        self._connections: set[socket.socket] = set()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection of a request."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection of a request."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors, because cut connections are intended."""

    def cut(self) -> None:
        """Cut all connections, whatever they do."""
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class RestartableServer(Server):
    """A server that goes away and comes back with what it remembers."""

    def __init__(self, model: Model):
        super().__init__(model, faults.none)
        self.model = model
        # What a prompt cache has depends on what was asked before.
        self.cache = SimpleNamespace(
            read=lambda prefixes: 0, write=lambda prefixes, seconds: None
        )  # type: ignore[assignment]
        self._handler = self.http.RequestHandlerClass
        self._port = self.http.server_port
        self.http.server_close()
        self.start()

    def restart(self, seconds: float) -> None:
        """Cut all connections, and refuse new ones for a while."""
        self.stop()
        time.sleep(seconds)
        self.start()

    def stop(self) -> None:
        """Refuse connections from now on."""
        self.closed.set()
        self.http.shutdown()
        self.http.server_close()
        self.http.cut()

    def start(self) -> None:
        """Accept connections at the same address again."""
        self.closed.clear()
        self.http: Http = Http(("127.0.0.1", self._port), self._handler)
        threading.Thread(
            target=self.http.serve_forever, args=(0.01,), daemon=True
        ).start()


@contextmanager
def serve() -> Iterator[RestartableServer]:
    """Run a server on the loopback interface until the block ends."""
    server = RestartableServer(Model())
    try:
        yield server
    finally:
        server.stop()
