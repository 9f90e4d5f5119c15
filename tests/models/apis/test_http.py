"""Both HTTP libraries get the same limits, whichever of them the installed packages of the providers use."""

from __future__ import annotations

import json
from types import ModuleType

import anthropic
import openai
import pytest

from helm_longctx.failures import FailureError
from helm_longctx.models.apis.transport import Transport, http_library, make_http_client
from helm_longctx.run_settings import MAX_REPLY
from tests.support.servers import hostile
from tests.support.servers.hostile import WHOLE, attack


@pytest.mark.parametrize("package", [openai, anthropic])
def test_library_of_a_package(package: ModuleType) -> None:
    """The library found is the one whose client the package subclasses. Other packages have none."""
    library = http_library(package)
    assert issubclass(package.DefaultHttpxClient, library.Client)
    assert http_library(json) is None


@pytest.mark.parametrize("name", ["httpx", "httpx2"])
def test_both_libraries_are_guarded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client refuses redirects to other servers, large replies, and replies that take too long."""
    library = pytest.importorskip(name)
    monkeypatch.setenv(
        MAX_REPLY, "1"
    )  # a larger one could take longer to decode than the request may
    with make_http_client(library, Transport(library)) as client:
        client.timeout = 0.5
        with (
            attack(hostile.redirect("http://localhost:1/")) as server,
            pytest.raises(FailureError, match="redirects"),
        ):
            client.post(server.address)
        with (
            attack(hostile.bomb(1 << 23, {})) as server,
            pytest.raises(FailureError, match="larger than 1 MiB"),
        ):
            client.post(server.address)
        # No pause of the server is as long as the timeout, so only the time of the whole reply can end the request.
        with (
            attack(hostile.drip(WHOLE["chat"], 0.1)) as server,
            pytest.raises(library.ReadTimeout),
        ):
            client.post(server.address)
