"""A hub with a release that cuts, refuses and lies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest

from helm_longctx.sources import download
from tests.sources.release_server import ReleaseHub, serve
from tests.sources.releases import (
    ARCHIVE,
    SECRET,
    SETTING,
)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for a network to recover."""
    monkeypatch.setattr(download, "WAIT", 0.001)
    monkeypatch.setattr(download, "ATTEMPTS", 4)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ReleaseHub]:
    """A hub with the release, and huggingface_hub pointed at it."""
    monkeypatch.setenv("HF_TOKEN", SECRET)
    monkeypatch.delenv(SETTING, raising=False)
    with serve(ReleaseHub({"org/release": {"README.md": b"", "data.tar.gz": ARCHIVE}})) as running:
        constants = huggingface_hub.constants
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", running.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True, raising=False)
        yield running
