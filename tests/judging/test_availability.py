"""Tests that a judge's existence is checked once before anything else, and that no other judge replaces it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)

import helm_longctx.plugin  # noqa: F401  # registers the baselines
from helm_longctx.errors import InputError
from helm_longctx.judging.keys import client as keys
from helm_longctx.judging.keys.client import check_judge, find_official_judge
from helm_longctx.run_settings import JUDGE_TIMEOUT
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, serve

OPENAI = "helm.clients.openai_client.OpenAIClient"
OFFICIAL = "openai/official-2024"
AZURE = "azure/official-2024"
KEY = {"openaiApiKey": "sk-0123456789"}
GONE = faults.always(Fault.GONE)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set only the keys of the test."""
    for name in os.environ:
        if name.endswith("_KEY") or "JUDGE" in name:
            monkeypatch.delenv(name)


@pytest.fixture
def hosts() -> Iterator[tuple[Server, Server]]:
    """Serve the official judge from its own host and from another host."""
    with serve(lambda prompt: "yes") as official, serve(lambda prompt: "yes") as other:
        register(OFFICIAL, official)
        register(AZURE, other, api_key="its-own")
        yield official, other


def register(
    name: str, server: Server, model: str = OFFICIAL, **arguments: Any
) -> None:
    spec = ClientSpec(
        OPENAI, {"base_url": server.openai, "max_retries": 0, **arguments}
    )
    register_model_deployment(ModelDeployment(name, spec, model_name=model))


def test_a_judge_that_answers(hosts: tuple[Server, Server]) -> None:
    """A judge that answers is used and asked once in a process, and the other host is not asked for a named judge."""
    for _ in range(3):
        check_judge(OFFICIAL, KEY)
        assert find_official_judge(OFFICIAL, KEY) == OFFICIAL
    assert [len(server.calls) for server in hosts] == [1, 1]


def test_a_judge_that_was_withdrawn(hosts: tuple[Server, Server]) -> None:
    """For a withdrawn judge, the error says in one line what to give, without the key."""
    hosts[0].plan = hosts[1].plan = GONE
    for check in (check_judge, find_official_judge):
        with pytest.raises(
            InputError, match="does not exist or was withdrawn"
        ) as error:
            check(OFFICIAL, KEY)
        assert "judge=DEPLOYMENT" in str(error.value)
        assert "judge=none" in str(error.value)
        assert "\n" not in str(error.value)
        assert KEY["openaiApiKey"] not in str(error.value)


def test_a_key_that_is_refused(hosts: tuple[Server, Server]) -> None:
    """A refused key is an error, because every answer would meet it."""
    hosts[0].plan = faults.always(Fault.UNAUTHORIZED)
    with pytest.raises(InputError, match="refuses the key") as error:
        check_judge(OFFICIAL, KEY)
    assert KEY["openaiApiKey"] not in str(error.value)


def test_another_host_keeps_it(hosts: tuple[Server, Server]) -> None:
    """If the official host has withdrawn the judge, another host of the same model is used, and other models never."""
    hosts[0].plan = GONE
    with serve(lambda prompt: "yes") as third:
        register("elsewhere/other", third, model="openai/other", api_key="x")
        assert find_official_judge(OFFICIAL, KEY) == AZURE
        assert find_official_judge(OFFICIAL, {}) == AZURE
        assert not third.calls


def test_a_familys_key_stays_with_its_host(
    hosts: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of a family is sent only to the official host, or to a host that the user names."""
    monkeypatch.setenv("GPT_JUDGE_API_KEY", "sk-of-the-family")
    official = "openai/gpt-official"
    model = "openai/gpt-official"
    register(official, hosts[0], model)
    register("elsewhere/gpt-official", hosts[1], model)
    hosts[0].plan = GONE
    with pytest.raises(InputError, match="does not exist or was withdrawn"):
        find_official_judge(official, {})
    assert not hosts[1].calls
    check_judge("elsewhere/gpt-official", {})
    assert [call.key for call in hosts[1].calls] == ["Bearer sk-of-the-family"]


@pytest.mark.parametrize(
    "fault",
    [Fault.RATE_LIMIT, Fault.SERVER_ERROR, Fault.DROPPED, Fault.FLAGGED, Fault.EMPTY],
)
def test_what_may_pass_ends_no_run(hosts: tuple[Server, Server], fault: Fault) -> None:
    """A failure that can pass, or a refused request, does not end the run, and of several hosts one that answers is used."""
    hosts[0].plan = hosts[1].plan = faults.always(fault)
    check_judge(OFFICIAL, KEY)
    assert find_official_judge(OFFICIAL, KEY) == OFFICIAL


def test_a_judge_that_is_slower_than_calls_may_be(
    hosts: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question has the limit of a call, so another host is found although the first one would answer later."""
    monkeypatch.setenv(JUDGE_TIMEOUT, "0.5")
    hosts[0].delay = 5.0
    assert find_official_judge(OFFICIAL, KEY) == AZURE


def test_without_a_network() -> None:
    """Without a network the run starts, because replies can be in the cache."""
    with serve(lambda prompt: "yes") as server:
        register(OFFICIAL, server)
        register(AZURE, server)
    check_judge(OFFICIAL, KEY)
    assert find_official_judge(OFFICIAL, KEY) == OFFICIAL


def test_without_a_key(hosts: tuple[Server, Server]) -> None:
    """A named judge without a key is refused; with `auto`, answers are then not judged."""
    register(AZURE, hosts[1])
    with pytest.raises(InputError, match="needs a key"):
        check_judge(OFFICIAL, {})
    assert find_official_judge(OFFICIAL, {}) is None
    assert not hosts[0].calls + hosts[1].calls


def test_local_models_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Local models are not asked, because their weights would be loaded."""
    monkeypatch.setattr(keys, "judge_client", None)
    check_judge("longctx/lexical", {})
    client = ClientSpec("helm.clients.huggingface_client.HuggingFaceClient", {})
    register_model_deployment(
        ModelDeployment("local/judge", client, model_name="local/judge")
    )
    check_judge("local/judge", {})


def test_a_missing_extra_ends_the_run_first(
    hosts: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a key for the official judge but without the extra, the error names the extra before anything is sent."""
    monkeypatch.setitem(sys.modules, "authlib", None)
    install = re.escape(
        "needs authlib; install with: pip install 'helm-longctx[judges]'"
    )
    with pytest.raises(InputError, match=rf"^judge=auto \({OFFICIAL}\) {install}$"):
        find_official_judge(OFFICIAL, KEY)
    assert not hosts[0].calls
    assert not hosts[1].calls


@pytest.mark.usefixtures("hosts")
def test_a_missing_package_is_no_missing_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If the package of the judge's client is missing, the warning says what to install, and not that a key is missing."""
    official = "openai/other-2024"
    register_model_deployment(
        ModelDeployment(official, ClientSpec(OPENAI, {}), model_name=official)
    )
    for name in [
        name
        for name in sys.modules
        if name.split(".")[0] == "openai" or name == OPENAI.rpartition(".")[0]
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openai", None)
    assert find_official_judge(official, KEY) is None
    assert (
        "its client needs openai; install with: pip install 'helm-longctx[openai]'; give judge="
        in caplog.text
    )
    assert "no key" not in caplog.text
