from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from helm_longctx.models.apis import batches
from helm_longctx.models.baselines import lexical
from helm_longctx.run_settings import WAIT
from helm_longctx.runner.batches import collection, submission
from tests.runner import making
from tests.support.servers.batches import BatchServer, serve_batches


@pytest.fixture(scope="module", autouse=True)
def deployments(own_baselines: None) -> None:
    """Register the test clients in HELM, also for fixtures of modules."""
    making.register()


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the test clients in HELM again, and forget earlier questions."""
    making.register()
    monkeypatch.setattr(making.PlainClient, "asked", [])
    monkeypatch.setattr(making.CachedClient, "asked", [])
    monkeypatch.setenv(WAIT, "0.01")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    """A server with batches. The tests do not wait between polls."""
    monkeypatch.setattr(submission, "_SETTLE", 0)
    monkeypatch.setattr(collection, "_POLL", 0)
    monkeypatch.setattr(batches, "_RETRIES", 0)
    with serve_batches(lexical.answer) as running:
        # What a prompt cache has depends on what was asked before.
        running.cache = SimpleNamespace(
            read=lambda prefixes: 0, write=lambda prefixes, seconds: None
        )
        yield running
