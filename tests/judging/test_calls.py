"""Tests of a judge with HELM's real clients and a server that fails: what is asked again, and what never."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helm.clients.anthropic_client import AnthropicMessagesClient
from helm.clients.openai_client import OpenAIClient
from helm.common.cache import SqliteCacheConfig

from helm_longctx.helm.patches import apply_patches, apply_seed_patch
from helm_longctx.judging.judge import (
    _TRIES,
    Judge,
    JudgeReply,
    JudgeRequest,
    ask_judges,
)
from helm_longctx.models.apis.sending import limit_time
from helm_longctx.run_settings import JUDGE_TIMEOUT, JUDGE_WAIT, settings_in_use
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, asked_again, serve

VERDICT = {"score": 3}
KEPT = {
    Fault.REFUSED,
    Fault.FILTERED,
    Fault.EMPTY,
    Fault.SHORT,
    Fault.UNREADABLE,
    Fault.STRANGE,
}
"""After these HELM's cache holds a reply that nobody can use."""


def read(text: str) -> dict[str, Any] | None:
    try:
        return json.loads(text)
    except ValueError:
        return None


def question(prompt: str = "How good is it?") -> JudgeRequest:
    return JudgeRequest(
        prompt, read, max_tokens=100, temperature=0.1, top_p=0.9, seed=42
    )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv(JUDGE_WAIT, "0.001")
    monkeypatch.setenv(JUDGE_TIMEOUT, "60")
    with serve(lambda prompt: json.dumps(VERDICT)) as running:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.address)
        yield running


@pytest.fixture
def fault(
    request: pytest.FixtureRequest, server: Server, monkeypatch: pytest.MonkeyPatch
) -> Fault:
    """Return a fault. A timeout is short, and nothing else may depend on the machine's speed."""
    if request.param is Fault.TIMEOUT:
        monkeypatch.setenv(JUDGE_TIMEOUT, "1")
    chosen_fault: Fault = request.param
    return chosen_fault


def judge(kind: str, server: Server, folder: Path) -> Judge:
    """Make a judge as a run does, with a new client and the cache of earlier runs."""
    apply_patches()
    apply_seed_patch()
    cache = SqliteCacheConfig(str(folder / "cache.sqlite"))
    if kind == "openai":
        client: Any = OpenAIClient(
            cache, api_key="sk", base_url=server.openai, max_retries=0
        )
    else:
        client = AnthropicMessagesClient(
            cache, api_key="sk", stream=kind == "anthropic stream"
        )
        # Its own retries wait half a second; a deployment cannot say otherwise.
        client.client = client.client.with_options(max_retries=0)
    return Judge(
        f"{kind}/j", "j/j", limit_time(client, settings_in_use().judge.timeout)
    )


def without_faults(reply: JudgeReply) -> None:
    assert (reply.verdict, reply.error) == (VERDICT, None)
    assert reply.text == json.dumps(VERDICT)


@pytest.mark.parametrize("kind", ["openai", "anthropic", "anthropic stream"])
@pytest.mark.parametrize("fault", faults.PASSING, indirect=True)
def test_one_fault(kind: str, fault: Fault, server: Server, tmp_path: Path) -> None:
    """After one fault there is a verdict, which is requested once, and a later run sends nothing."""
    server.plan = faults.first(fault)
    without_faults(judge(kind, server, tmp_path).ask(question()))
    assert [call.fault for call in server.calls] == [fault, None]
    later = judge(kind, server, tmp_path).ask(question())
    without_faults(later)
    assert len(later.usages) == 0
    assert asked_again(server.calls) == []


@pytest.mark.parametrize("fault", faults.PASSING, indirect=True)
def test_nothing_but_faults(fault: Fault, server: Server, tmp_path: Path) -> None:
    """With nothing but faults there is no verdict but a reason, after three or six requests."""
    server.plan = faults.always(fault)
    reply = judge("openai", server, tmp_path).ask(question())
    assert reply.verdict is None
    assert reply.error
    assert "How good" not in reply.error
    assert len(server.calls) == (3 if fault in KEPT else _TRIES)
    seeds = [body["seed"] for body in server.bodies]
    assert seeds == ([42, 43, 44] if fault in KEPT else [42] * _TRIES)
    texts = {
        Fault.UNREADABLE: "It reads well {on the whole.",
        Fault.SHORT: json.dumps(VERDICT)[:6],
    }
    assert reply.text == texts.get(fault)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("instead", [5, True, ["a", "list"], {"an": "object"}])
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_no_text_where_a_text_should_be(
    kind: str, instead: Any, server: Server, tmp_path: Path
) -> None:
    """A reply without a text is requested again, although HELM's cache keeps it, and counting its cost does not fail."""
    said = [instead, json.dumps(VERDICT)]
    server.answer = lambda prompt: said[min(len(server.calls), 2) - 1]
    asked = judge(kind, server, tmp_path)
    (verdicts,) = ask_judges([asked], [{"answer": question()}])
    without_faults(verdicts[asked.name]["answer"])
    assert [body.get("seed", 42) for body in server.bodies] in ([42, 43], [42, 42])
    server.answer = lambda prompt: instead
    (verdicts,) = ask_judges([asked], [{"answer": question("Another?")}])
    assert verdicts[asked.name]["answer"].verdict is None
    assert len(server.calls) == 2 + 3


def test_whatever_is_raised(server: Server, tmp_path: Path) -> None:
    """Whatever a parser raises, the judge has no verdict, and the error contains no prompt."""

    def read_badly(reply: str) -> None:
        raise RuntimeError(reply)

    reply = judge("openai", server, tmp_path).ask(replace(question(), parse=read_badly))
    assert (reply.verdict, reply.error) == (None, "the reply has no verdict")


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_verdict_in_a_reply_that_is_cut(
    kind: str, server: Server, tmp_path: Path
) -> None:
    """A verdict in a reply that was cut off counts, as in the official scripts."""
    server.plan = faults.always(Fault.SHORT)
    server.answer = lambda prompt: 2 * json.dumps(VERDICT)
    without_faults(judge(kind, server, tmp_path).ask(question()))
    assert len(server.calls) == 1


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_refused_key(kind: str, server: Server, tmp_path: Path) -> None:
    """A request with a refused key is not repeated."""
    server.plan = faults.always(Fault.UNAUTHORIZED)
    reply = judge(kind, server, tmp_path).ask(question())
    assert "401" in str(reply.error)
    assert len(server.calls) == 1


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_many_faults(kind: str, server: Server, tmp_path: Path) -> None:
    """If three of ten calls are lost, in threads and with equal questions, every verdict is requested once and kept."""
    kinds = [fault for fault in faults.PASSING if fault not in {*KEPT, Fault.TIMEOUT}]
    server.plan = faults.share(0.3, kinds, seed=3)
    asked = [question(f"How good is {number % 20}?") for number in range(40)]
    asking = judge(kind, server, tmp_path)
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(asking.ask, asked))
    assert [reply.verdict for reply in replies] == [VERDICT] * 40
    assert sum(len(reply.usages) for reply in replies) == 20
    assert server.failed().total() > 5
    assert asked_again(server.calls) == []


def test_repeats_are_other_questions(server: Server, tmp_path: Path) -> None:
    """Each repeat of a question sends one request."""
    asking = judge("openai", server, tmp_path)
    assert [len(asking.ask(question(), repeat).usages) for repeat in (0, 1, 0, 1)] == [
        1,
        1,
        0,
        0,
    ]


def test_a_deployments_own_timeout_stays(server: Server, tmp_path: Path) -> None:
    """A deployment's own timeout is kept, and other deployments get ours."""
    cache = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    own = OpenAIClient(cache, api_key="sk", base_url=server.openai, timeout=7)
    assert limit_time(own, 60).client.timeout == 7
    timeout = limit_time(
        AnthropicMessagesClient(cache, api_key="sk"), 60
    ).client.timeout
    assert [timeout.read, timeout.connect] == [60, 5]
