from __future__ import annotations

import pytest

from helm_longctx.running.sending import WAIT
from tests.running import making


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test clients are known to HELM, and nothing was asked yet."""
    making.register()
    monkeypatch.setattr(making.PlainClient, "asked", [])
    monkeypatch.setattr(making.CachedClient, "asked", [])
    monkeypatch.setenv(WAIT, "0.01")
