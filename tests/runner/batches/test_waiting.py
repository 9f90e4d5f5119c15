"""Tests of the wait for batches: how often the provider is asked, and what one that hangs or is down costs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from helm_longctx.errors import InputError
from helm_longctx.runner.batches import collection
from tests.support.batches import ENTRY, Folder, register
from tests.support.servers.batches import BatchServer


@pytest.fixture
def folder(tmp_path: Path, server: BatchServer) -> Folder:
    """A folder with a run in three batches, which are answered after some polls."""
    server.polls = 2
    folder = Folder(tmp_path, ENTRY + register("openai", server))
    folder.submit(batch_size=5)
    return folder


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between two looks, in seconds, which take no time."""
    seconds: list[float] = []
    monkeypatch.setattr(collection, "_POLL", 30.0)
    monkeypatch.setattr(collection.time, "sleep", seconds.append)
    return seconds


def test_a_batch_is_asked_for_once_in_a_round(
    folder: Folder, server: BatchServer, waits: list[float]
) -> None:
    """Each look asks once for each open batch. What it has learned is also what is shown."""
    asked: list[str] = []
    server.moment = asked.append
    assert not folder.batches.wait()
    assert waits == [30.0] * 2
    # Three looks, and one more for the names of the results.
    assert asked.count("retrieve_openai") == 4 * len(server.batches) == 12


def test_a_provider_that_is_down(
    folder: Folder, server: BatchServer, waits: list[float]
) -> None:
    """The wait doubles up to ten minutes while no batch can be asked for, and the batches are collected afterwards."""

    def fail(moment: str) -> None:
        if 0 < len(waits) < 8:
            raise ConnectionError

    server.moment = fail
    assert not folder.batches.wait()
    assert waits == [30, 60, 120, 240, 480, 600, 600, 600, 30]
    assert folder.failures == {}


def test_a_provider_that_hangs(
    folder: Folder, server: BatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch whose provider does not reply in time does not keep the others from being collected."""
    server.polls = 0
    for batch in server.batches.values():
        batch.polls = 0
    monkeypatch.setattr(collection, "_LOOK_LIMIT", 0.5)
    hanging: list[str] = []

    def hang(moment: str) -> None:
        if moment == "retrieve_openai" and not hanging:
            hanging.append(moment)
            time.sleep(3)

    server.moment = hang
    with pytest.raises(InputError, match=r"batch_\d of corp/openai: no reply within"):
        folder.batches.collect()
    states = [state.state for state in folder.batches.states()]
    assert states.count("collected") == 2
    folder.batches.collect()
    assert not folder.batches.are_open
    assert set(server.paid.values()) == {1}


def test_a_batch_that_is_not_recognized_yet(
    tmp_path: Path, server: BatchServer, waits: list[float]
) -> None:
    """A batch whose identifier was lost, and that Anthropic shows only when it has ended, is waited for like the others."""
    folder = Folder(tmp_path, ENTRY + register("anthropic", server))
    server.polls = 6

    def lose(moment: str) -> None:
        if moment == "create_anthropic+":
            raise ConnectionError

    server.moment = lose
    with pytest.raises(InputError, match="it is not known whether"):
        folder.submit()
    folder.batches.collect()
    assert [state.state for state in folder.batches.states()] == ["unknown"]
    assert not folder.batches.wait()
    assert waits
    assert folder.failures == {}
    assert set(server.paid.values()) == {1}
