from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.batches import ENTRY, PROTOCOLS, Folder, register
from tests.support.servers.batches import BatchServer


@pytest.fixture(params=PROTOCOLS)
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, server: BatchServer
) -> Folder:
    """A folder with a run of each protocol."""
    return Folder(tmp_path, ENTRY + register(request.param, server))
