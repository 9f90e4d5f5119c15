"""Whether a judge exists is asked once, before anything else, and no other judge ever takes its place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment

import helm_longctx.plugin  # noqa: F401  # registers the baselines
from helm_longctx.errors import InputError
from helm_longctx.judging import availability
from helm_longctx.judging.availability import check_judge, find_official_judge
from tests.servers import faults
from tests.servers.faults import Fault
from tests.servers.llm import Server, serve

OPENAI = "helm.clients.openai_client.OpenAIClient"
OFFICIAL, AZURE = "openai/official-2024", "azure/official-2024"
KEY = {"openaiApiKey": "sk-0123456789"}
GONE = faults.always(Fault.GONE)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key but those of the test, and nothing that an earlier test found out."""
    for name in os.environ:
        if name.endswith("_KEY") or "JUDGE" in name:
            monkeypatch.delenv(name)
    monkeypatch.setattr(availability, "_outcomes", {})


@pytest.fixture
def hosts() -> Iterator[tuple[Server, Server]]:
    """The official judge's server, and one of another host that also serves it."""
    with serve(lambda prompt: "yes") as official, serve(lambda prompt: "yes") as other:
        register(OFFICIAL, official)
        register(AZURE, other, api_key="its-own")
        yield official, other


def register(name: str, server: Server, model: str = OFFICIAL, **arguments: Any) -> None:
    spec = ClientSpec(OPENAI, {"base_url": server.openai, "max_retries": 0, **arguments})
    register_model_deployment(ModelDeployment(name, spec, model_name=model))


def test_a_judge_that_answers(hosts: tuple[Server, Server]) -> None:
    """It is taken, and asked once in a process; the other host is not asked for a named one."""
    for _ in range(3):
        check_judge(OFFICIAL, KEY)
        assert find_official_judge(OFFICIAL, KEY) == OFFICIAL
    assert [len(server.calls) for server in hosts] == [1, 1]


def test_a_judge_that_was_withdrawn(hosts: tuple[Server, Server]) -> None:
    """The error names what to give, in one line and without the key."""
    hosts[0].plan = hosts[1].plan = GONE
    for check in (check_judge, find_official_judge):
        with pytest.raises(InputError, match="does not exist or was withdrawn") as error:
            check(OFFICIAL, KEY)
        assert "judge=DEPLOYMENT" in str(error.value)
        assert "judge=none" in str(error.value)
        assert "\n" not in str(error.value)
        assert KEY["openaiApiKey"] not in str(error.value)


def test_a_key_that_is_refused(hosts: tuple[Server, Server]) -> None:
    """It would be refused for every answer."""
    hosts[0].plan = faults.always(Fault.UNAUTHORIZED)
    with pytest.raises(InputError, match="refuses the key") as error:
        check_judge(OFFICIAL, KEY)
    assert KEY["openaiApiKey"] not in str(error.value)


def test_another_host_keeps_it(hosts: tuple[Server, Server]) -> None:
    """It is the same model; a host of another model is never asked."""
    hosts[0].plan = GONE
    with serve(lambda prompt: "yes") as third:
        register("elsewhere/other", third, model="openai/other", api_key="x")
        assert find_official_judge(OFFICIAL, KEY) == AZURE
        assert find_official_judge(OFFICIAL, {}) == AZURE
        assert not third.calls


def test_a_familys_key_stays_with_its_host(hosts: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch) -> None:
    """No other host sees it, unless the user names that host."""
    monkeypatch.setenv("GPT_JUDGE_API_KEY", "sk-of-the-family")
    official, model = "openai/gpt-official", "openai/gpt-official"
    register(official, hosts[0], model)
    register("elsewhere/gpt-official", hosts[1], model)
    hosts[0].plan = GONE
    with pytest.raises(InputError, match="does not exist or was withdrawn"):
        find_official_judge(official, {})
    assert not hosts[1].calls
    check_judge("elsewhere/gpt-official", {})
    assert [call.key for call in hosts[1].calls] == ["Bearer sk-of-the-family"]


@pytest.mark.parametrize("fault", [Fault.RATE_LIMIT, Fault.SERVER_ERROR, Fault.DROPPED, Fault.FLAGGED, Fault.EMPTY])
def test_what_may_pass_ends_no_run(hosts: tuple[Server, Server], fault: Fault) -> None:
    """Also a refused request: the judge exists. With several hosts, one that answers is taken."""
    hosts[0].plan = hosts[1].plan = faults.always(fault)
    check_judge(OFFICIAL, KEY)
    assert find_official_judge(OFFICIAL, KEY) == OFFICIAL


def test_without_a_network() -> None:
    """Replies may be cached, so the run begins."""
    with serve(lambda prompt: "yes") as server:
        register(OFFICIAL, server)
        register(AZURE, server)
    check_judge(OFFICIAL, KEY)
    assert find_official_judge(OFFICIAL, KEY) == OFFICIAL


def test_without_a_key(hosts: tuple[Server, Server]) -> None:
    """A named judge is refused; without one, answers are not judged."""
    register(AZURE, hosts[1])
    with pytest.raises(InputError, match="needs a key"):
        check_judge(OFFICIAL, {})
    assert find_official_judge(OFFICIAL, {}) is None
    assert not hosts[0].calls + hosts[1].calls


def test_local_models_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their weights would be loaded for it."""
    monkeypatch.setattr(availability, "judge_client", None)
    check_judge("longctx/lexical", {})
    client = ClientSpec("helm.clients.huggingface_client.HuggingFaceClient", {})
    register_model_deployment(ModelDeployment("local/judge", client, model_name="local/judge"))
    check_judge("local/judge", {})
