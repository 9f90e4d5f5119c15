"""A hub with a release that interrupts, refuses and gives wrong data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from helm_longctx.data import download
from tests.data.hub_server import point_at
from tests.data.release_server import ReleaseHub, serve
from tests.data.releases import ARCHIVE, SETTING


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten waits, so that no test waits for a network to recover."""
    monkeypatch.setattr(download, "WAIT", 0.001)
    monkeypatch.setattr(download, "_ATTEMPTS", 4)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ReleaseHub]:
    """Start a hub with the release, and point huggingface_hub at it."""
    monkeypatch.delenv(SETTING, raising=False)
    with serve(
        ReleaseHub({"org/release": {"README.md": b"", "data.tar.gz": ARCHIVE}})
    ) as running:
        point_at(monkeypatch, running.url, tmp_path)
        yield running
