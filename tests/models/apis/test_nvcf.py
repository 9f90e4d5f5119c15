"""Functions of NVIDIA's cloud, which answer later, behind our client for OpenAI's protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from helm.common.cache import BlackHoleCacheConfig

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.models.apis import OpenAIClient, nvcf
from helm_longctx.models.endpoints.probe import probe
from helm_longctx.models.results import failure_of
from tests.models.apis.making import REQUEST
from tests.support.servers import hostile
from tests.support.servers.faults import Fault
from tests.support.servers.hostile import WHOLE, Handler, attack
from tests.support.servers.llm import serve
from tests.support.servers.nvcf import FUNCTION, Cloud, serve_function


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setattr(nvcf, "_PAUSE", 0.01)
    monkeypatch.setenv("NVCF_TEST_KEY", "nvapi-test")
    with (
        serve(lambda prompt: f"{prompt} Yes.") as backend,
        serve_function(backend) as running,
    ):
        yield running


def make(cloud: Cloud, **arguments: object) -> OpenAIClient:
    settings = {"api_key_env": "NVCF_TEST_KEY", **arguments}
    return OpenAIClient(
        BlackHoleCacheConfig(), base_url=cloud.function, nvcf=True, **settings
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("form", ["chat", "completions"])
def test_answer(form: str, stream: bool, cloud: Cloud) -> None:
    """The body is sent once to the address of the function. The key is sent with every poll for the answer."""
    result = make(cloud, form=form, stream=stream).make_request(REQUEST)
    assert result.success, result.error
    assert result.completions[0].text == "Ist das gut? 好 Yes."
    assert cloud.seen == {("POST", 202): 1, ("GET", 202): 1, ("GET", 200): 1}
    assert cloud.keys == {"Bearer nvapi-test"}


def test_errors_of_the_function(cloud: Cloud) -> None:
    """An error in the reply to a poll is the same failure as an error in the first reply."""
    cloud.backend.plan = lambda prompt, asked: Fault.TOO_LONG
    result = make(cloud).make_request(REQUEST)
    assert not result.success
    assert failure_of(result) is Failure.TOO_LONG


def test_time_limit(cloud: Cloud) -> None:
    cloud.never = True
    result = make(cloud, timeout=0.05).make_request(REQUEST)
    assert not result.success
    assert failure_of(result) is Failure.TEMPORARY


def test_polls_that_are_redirected() -> None:
    """The key does not follow a poll to another server."""

    def act(handler: Handler) -> None:
        is_question = handler.command == "POST"
        hostile.send(b"", 202, **{"NVCF-REQID": "1"})(
            handler
        ) if is_question else hostile.redirect(to.address)(handler)

    with attack(hostile.send(WHOLE["chat"])) as to, attack(act) as server:
        address = f"{server.address}{FUNCTION}"
        result = OpenAIClient(
            BlackHoleCacheConfig(), base_url=address, nvcf=True, api_key="nvapi"
        ).make_request(REQUEST)
    assert failure_of(result) is Failure.UNREACHABLE
    assert f"{server.address} redirects to {to.address}" in str(result.error)
    assert [seen.partition(" ")[0] for seen in server.seen] == ["POST", "GET"]
    assert to.seen == []


def test_probe(cloud: Cloud) -> None:
    """A cloud function has no list of models, but `models add` finds out which requests it answers."""
    server = probe(
        cloud.function,
        name="my/m",
        model="m",
        kind="chat",
        api_key_env="NVCF_TEST_KEY",
        nvcf=True,
    )
    assert server.routes == ("chat",)
    assert server.client_spec()["args"]["nvcf"] is True
    assert (
        OpenAIClient(BlackHoleCacheConfig(), **server.client_spec()["args"])
        .make_request(REQUEST)
        .success
    )


@pytest.mark.parametrize("address", [None, "http://localhost:8000/v1"])
def test_address_without_a_function(address: str | None) -> None:
    with pytest.raises(InputError, match=r"base_url=.*pexec/functions/ID"):
        OpenAIClient(BlackHoleCacheConfig(), base_url=address, nvcf=True)
