"""Functions of NVIDIA's cloud, which answer later, behind our client for OpenAI's protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from helm.common.cache import BlackHoleCacheConfig

from helm_longctx.apis import OpenAIClient, nvcf
from helm_longctx.endpoints.probe import probe
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of
from tests.apis.making import REQUEST
from tests.servers.faults import Fault
from tests.servers.llm import serve
from tests.servers.nvcf import Cloud, serve_function


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setattr(nvcf, "PAUSE", 0.01)
    monkeypatch.setenv("NVCF_TEST_KEY", "nvapi-test")
    with serve(lambda prompt: f"{prompt} Yes.") as backend, serve_function(backend) as running:
        yield running


def make(cloud: Cloud, **arguments: object) -> OpenAIClient:
    settings = {"api_key_env": "NVCF_TEST_KEY", **arguments}
    return OpenAIClient(BlackHoleCacheConfig(), base_url=cloud.function, nvcf=True, **settings)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("form", ["chat", "completions"])
def test_answer(form: str, stream: bool, cloud: Cloud) -> None:
    """The body goes to the function's one address once, and the key with every question for the answer."""
    result = make(cloud, form=form, stream=stream).make_request(REQUEST)
    assert result.success, result.error
    assert result.completions[0].text == "Ist das gut? 好 Yes."
    assert cloud.seen == {("POST", 202): 1, ("GET", 202): 1, ("GET", 200): 1}
    assert cloud.keys == {"Bearer nvapi-test"}


def test_errors_of_the_function(cloud: Cloud) -> None:
    """An error that comes later is the same failure as one that comes at once."""
    cloud.backend.plan = lambda prompt, asked: Fault.TOO_LONG
    result = make(cloud).make_request(REQUEST)
    assert not result.success
    assert failure_of(result) is Failure.TOO_LONG


def test_time_limit(cloud: Cloud) -> None:
    cloud.never = True
    result = make(cloud, timeout=0.05).make_request(REQUEST)
    assert not result.success
    assert failure_of(result) is Failure.TEMPORARY


def test_probe(cloud: Cloud) -> None:
    """A cloud function has no list of models; what it answers is found all the same."""
    found = probe(cloud.function, name="my/m", model="m", kind="chat", api_key_env="NVCF_TEST_KEY", nvcf=True)
    assert found.routes == ("chat",)
    assert found.client_spec()["args"]["nvcf"] is True
    assert OpenAIClient(BlackHoleCacheConfig(), **found.client_spec()["args"]).make_request(REQUEST).success


@pytest.mark.parametrize("address", [None, "http://localhost:8000/v1"])
def test_address_without_a_function(address: str | None) -> None:
    with pytest.raises(InputError, match=r"base_url=.*pexec/functions/ID"):
        OpenAIClient(BlackHoleCacheConfig(), base_url=address, nvcf=True)
