"""Tests of servers that go away and come back while a client asks."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from helm.common.request import Request, RequestResult

from helm_longctx.failures import Failure
from helm_longctx.models.apis.sending import Retries, Sender, ask_again
from helm_longctx.models.results import failure_of
from helm_longctx.run_settings import WAIT
from tests.chaos.server import serve
from tests.models.apis.making import CHAT, KINDS, REQUEST, make
from tests.support.servers.faults import Fault


class Counting:
    """A client that counts how often it is asked."""

    def __init__(self, client: Any):
        self._client = client
        self.asked = 0
        self.has_failed = threading.Event()

    def make_request(self, request: Request) -> RequestResult:
        """Ask the client."""
        self.asked += 1
        result: RequestResult = self._client.make_request(request)
        if not result.success:
            self.has_failed.set()
        return result


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_restarts(kind: str) -> None:
    """A server that has answered and cannot be reached is asked again until it is back."""
    with serve() as server:
        client = Counting(make(kind, server))
        sender = Sender(client, Retries(8, 0.05))
        request = REQUEST if kind == "completions" else CHAT
        assert sender(request).result.success
        server.stop()
        results: list[RequestResult] = []
        asking = threading.Thread(target=lambda: results.append(sender(request).result))
        asking.start()
        assert client.has_failed.wait(30)
        server.start()
        asking.join(60)
        assert [result.success for result in results] == [True]
        assert client.asked > 2


def test_a_server_that_never_answered() -> None:
    """A server that was never reached is asked once, because its address is probably wrong."""
    with serve() as server:
        client = Counting(make("chat", server))
        server.stop()
        result = Sender(client, Retries(8, 5.0))(CHAT).result
        assert failure_of(result) is Failure.UNREACHABLE
        assert client.asked == 1
        server.start()


def test_a_server_that_stays_away() -> None:
    """A server that does not come back is given up after the attempts, with the reason."""
    with serve() as server:
        client = Counting(make("chat", server))
        sender = Sender(client, Retries(3, 0.01))
        assert sender(CHAT).result.success
        server.stop()
        result = sender(CHAT).result
        assert failure_of(result) is Failure.TEMPORARY
        assert client.asked == 4
        server.start()


def test_a_check_waits_before_it_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request of a check to a busy server is sent again after growing waits, and then has the answer."""
    monkeypatch.setenv(WAIT, "0.1")
    with serve() as server:
        server.plan = lambda prompt, before: Fault.OVERLOADED if before < 2 else None
        client = Counting(make("chat", server))
        start = time.monotonic()
        result = ask_again(client, CHAT)
        assert result.success
        assert client.asked == 3
        assert time.monotonic() - start >= 0.3
