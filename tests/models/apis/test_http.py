"""Both HTTP libraries get the same limits, whichever of them the installed packages of the providers use."""

from __future__ import annotations

import anthropic
import openai
import pytest

from helm_longctx.environment import MAX_REPLY
from helm_longctx.failures import FailureError
from helm_longctx.models.apis.guard import connection_library, guard, http_library
from tests.support.servers import hostile
from tests.support.servers.hostile import WHOLE, attack


@pytest.mark.parametrize("package", [openai, anthropic])
def test_library_of_a_package(package: object) -> None:
    """The library found is the one whose client the package subclasses; asynchronous clients and other classes have none."""
    ours = package.DefaultHttpxClient  # type: ignore[attr-defined]
    library = http_library(ours)
    assert library is not None
    assert issubclass(ours, library.Client)
    assert connection_library(library).__name__ == library.__name__.replace("httpx", "httpcore")
    assert http_library(package.DefaultAsyncHttpxClient) is None  # type: ignore[attr-defined]
    assert http_library(dict) is None


@pytest.mark.parametrize("name", ["httpx", "httpx2"])
def test_both_libraries_are_guarded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client refuses redirects to other servers, large replies, and replies that take too long."""
    library = pytest.importorskip(name)
    monkeypatch.setenv(
        MAX_REPLY, "1"
    )  # a larger one could take longer to decode than the request may
    with guard(library.Client(timeout=0.5, follow_redirects=True)) as client:
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
        with attack(hostile.drip(WHOLE["chat"], 0.1)) as server, pytest.raises(library.ReadTimeout):
            client.post(server.address)
