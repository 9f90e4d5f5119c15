"""Tests of a judge and a jury over HTTP: what is sent, what is sent again, and what is paid for."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from helm.benchmark.config_registry import register_configs_from_directory
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.clients.auto_client import AutoClient
from helm.clients.client import Client
from helm.common.cache import BlackHoleCacheConfig
from helm.common.cache_backend_config import SqliteCacheBackendConfig
from helm.common.request import Request, RequestResult

from helm_longctx.benchmarks.any_jsonl import tasks as any_jsonl
from helm_longctx.errors import InputError
from helm_longctx.judging.judge import (
    Judge,
    JudgeRequest,
    JudgeSpending,
    VerdictFields,
    ask_judges,
    find_judges,
    make_judge,
    parse_judges,
)
from helm_longctx.models.apis import OpenAIClient
from helm_longctx.models.apis.prices import find_prices
from helm_longctx.models.results import add_facts, make_text_result
from helm_longctx.run_settings import JUDGE_READINGS, JUDGE_WAIT, PRICES
from helm_longctx.tasks.answer import Usage
from tests.judging.deployments import write_judges
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, asked_again, serve
from tests.support.servers.models import Model


def read(reply: str) -> VerdictFields | None:
    return {"grade": float(reply)} if reply.replace(".", "").isdigit() else None


def read_grade(reply: str) -> VerdictFields | None:
    return any_jsonl.read_grade(reply) or None


def read_object(reply: str) -> VerdictFields | None:
    return json.loads(reply[: reply.index("}") + 1]) if "}" in reply else None


def question(prompt: str) -> JudgeRequest:
    return JudgeRequest(
        prompt, read, max_tokens=2048, temperature=0.1, top_p=0.9, seed=42
    )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Start a server that grades a prompt by its length."""
    monkeypatch.setenv(JUDGE_WAIT, "0.01")
    with serve(lambda prompt: str(len(prompt))) as running:
        yield running


def judges(server: Server, *names: str) -> list[Judge]:
    """Make new judges with the cache of this test."""
    register_configs_from_directory(
        str(write_judges(Path("local"), dict.fromkeys(names, server.openai)))
    )
    Path("cache").mkdir(exist_ok=True)
    return find_judges(
        "+".join(names), AutoClient({}, "cache", SqliteCacheBackendConfig("cache"))
    )


def test_what_is_sent(server: Server) -> None:
    """A judge gets the prompt as one user turn, with the official sampling settings and the seed."""
    (judge,) = judges(server, "tests/sent")
    reply = judge.ask(question("four"))
    assert (reply.text, reply.verdict, reply.error, len(reply.usages)) == (
        "4",
        {"grade": 4.0},
        None,
        1,
    )
    (body,) = server.bodies
    assert body["messages"] == [{"role": "user", "content": "four"}]
    assert {
        name: body[name]
        for name in ("temperature", "top_p", "seed", "max_tokens", "model")
    } == {
        "temperature": 0.1,
        "top_p": 0.9,
        "seed": 42,
        "max_tokens": 2048,
        "model": "gpt-4o-2024-05-13",
    }


def test_replies_are_remembered(server: Server) -> None:
    """A question is paid for once for each judge, unless another answer is requested."""
    first, second = judges(server, "tests/one", "tests/two")
    for judge in (first, second, first, *judges(server, "tests/one")):
        assert judge.ask(question("a")).verdict == {"grade": 1.0}
    assert len(server.calls) == 2
    assert len(first.ask(question("a"), repeat=1).usages) == 1
    assert len(server.calls) == 3


def test_replies_that_cannot_be_read(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unreadable reply is requested again with another seed, three in all, and a later run can request more."""
    server.plan = faults.first(
        Fault.UNREADABLE, Fault.EMPTY, Fault.UNREADABLE, Fault.UNREADABLE
    )
    (judge,) = judges(server, "tests/unreadable")
    reply = judge.ask(question("a"))
    assert (reply.verdict, len(reply.usages)) == (None, 3)
    assert [body["seed"] for body in server.bodies] == [42, 43, 44]
    assert len(judge.ask(question("a")).usages) == 0
    monkeypatch.setenv(JUDGE_READINGS, "5")
    (judge,) = judges(server, "tests/unreadable")
    reply = judge.ask(question("a"))
    assert (reply.verdict, len(reply.usages)) == ({"grade": 1.0}, 2)


@pytest.mark.parametrize(
    ("reply", "parse", "verdict"),
    [
        ("Right.\nGRADE: 1", read_grade, None),
        ("Right.\nGRADE: 8.", read_grade, None),
        ("Right.\n**GRADE: 8**", read_grade, {"judge_score": 0.8}),
        ('{"grade": 1}', read_object, {"grade": 1}),
        ('{"grade": 1}, because', read_object, {"grade": 1}),
        (
            "Yes, the resp",
            lambda text: {"label": "yes" in text.lower()},
            {"label": True},
        ),
    ],
)
def test_a_reply_that_is_cut_within_its_verdict(
    reply: str,
    parse: Callable[[str], VerdictFields | None],
    verdict: VerdictFields | None,
) -> None:
    """If more text could have changed a verdict at the token limit, it is none, and no scorer gets the text."""
    # The server cuts a text in the middle.
    with serve(
        lambda prompt: reply.ljust(2 * len(reply), "0"), faults.always(Fault.SHORT)
    ) as server:
        (judge,) = judges(server, "tests/cut")
        answered = judge.ask(
            JudgeRequest(
                "a", parse, max_tokens=64, temperature=0.0, top_p=1.0, seed=None
            )
        )
    error = (
        None
        if verdict
        else "the reply ended at the token limit, perhaps within its verdict"
    )
    assert (answered.verdict, answered.text, answered.error) == (
        verdict,
        reply if verdict else None,
        error,
    )
    assert len(answered.usages) == (1 if verdict else 3)


@pytest.mark.parametrize(
    "fault",
    [Fault.RATE_LIMIT, Fault.SERVER_ERROR, Fault.DROPPED, Fault.MALFORMED, Fault.PAGE],
)
def test_calls_that_fail_are_made_again(server: Server, fault: Fault) -> None:
    """A call that fails is repeated until its reply arrives, and the reply is then stored."""
    server.plan = faults.first(fault, fault)
    (judge,) = judges(server, "tests/failing")
    assert judge.ask(question("abc")).verdict == {"grade": 3.0}
    assert len(judge.ask(question("abc")).usages) == 0
    assert not asked_again(server.calls)


def test_a_judge_that_is_down(server: Server) -> None:
    """A judge that is down gives no verdict, and the error says why without the prompt."""
    server.plan = faults.always(Fault.SERVER_ERROR)
    (judge,) = judges(server, "tests/down")
    reply = judge.ask(question("a secret prompt"))
    assert reply.verdict is None
    assert reply.text is None
    assert reply.error
    assert "500" in reply.error
    assert "secret" not in reply.error


def test_a_reader_that_raises(server: Server) -> None:
    """If the code that reads a verdict raises, there is no verdict, and the reply is paid for."""

    def fail(reply: str) -> VerdictFields | None:
        raise KeyError(reply)

    (judge,) = judges(server, "judge/a")
    reply = judge.ask(replace(question("how good?"), parse=fail, readings=1))
    assert (reply.verdict, reply.text) == (None, "9")
    assert [usage.input_tokens for usage in reply.usages] == [2]


class NoCompletions(Client):
    """A client of another package that returns what HELM's type forbids."""

    def make_request(self, request: Request) -> RequestResult:
        """Return a success without a list of completions."""
        return RequestResult(True, [], None, cached=False)  # type: ignore[arg-type]


def test_a_client_with_another_form(server: Server) -> None:
    """A reply that no code expects has no verdict, and its error shows nothing of the prompt."""
    reply = Judge("judge/a", "judge/a", NoCompletions()).ask(question("a secret"))
    assert (reply.verdict, reply.text) == (None, None)
    assert reply.error
    assert reply.error.startswith("the call failed: malformed: TypeError")
    assert "secret" not in reply.error


class OtherUsage(Client):
    """A client of another package that counts tokens in a form of its own."""

    def make_request(self, request: Request) -> RequestResult:
        """Return a grade whose tokens are a text."""
        result = make_text_result("5", time.time(), 0.1)
        return add_facts(result, usage="a secret number")


def test_a_reply_that_cannot_be_read(server: Server) -> None:
    """An error in reading a reply costs its verdict alone, and is named by its type."""
    reply = Judge("judge/a", "judge/a", OtherUsage()).ask(question("a secret"))
    assert (reply.verdict, reply.text) == (None, None)
    assert reply.error == "the reply cannot be used: AttributeError"


def test_a_jury(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """Every judge of a jury gets every question, one judge's missing verdict costs only itself, and failures have reasons."""
    with serve(lambda prompt: "no idea" if "b" in prompt else "7") as other:
        register_configs_from_directory(
            str(
                write_judges(
                    Path("local"),
                    {"tests/good": server.openai, "tests/bad": other.openai},
                )
            )
        )
        Path("cache").mkdir()
        jury = find_judges(
            "tests/good+tests/bad",
            AutoClient({}, "cache", SqliteCacheBackendConfig("cache")),
        )
        with caplog.at_level(logging.INFO):
            judged = ask_judges(
                jury,
                [{"x": question("a"), "y": question("bb")}, {}, {"x": question("ccc")}],
            )
    verdicts = [
        {
            name: {k: r.verdict for k, r in replies.items()}
            for name, replies in item.items()
        }
        for item in judged
    ]
    assert verdicts == [
        {
            "tests/good": {"x": {"grade": 1.0}, "y": {"grade": 2.0}},
            "tests/bad": {"x": {"grade": 7.0}, "y": None},
        },
        {"tests/good": {}, "tests/bad": {}},
        {"tests/good": {"x": {"grade": 3.0}}, "tests/bad": {"x": {"grade": 7.0}}},
    ]
    assert (
        "judge tests/bad gave no verdict on 1 question: the reply has no verdict"
        in caplog.text
    )
    assert "judges: 8 calls" in caplog.text


@pytest.mark.parametrize(
    "judge", ["nobody/knows", "tests/good+", "tests/known+tests/known", ""]
)
def test_judges_that_cannot_be(server: Server, judge: str) -> None:
    """A text that names no judges is refused with the text."""
    judges(server, "tests/known")
    with pytest.raises(InputError, match="judge="):
        parse_judges(judge)


def test_what_it_costs(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost counts about four characters a token at the user's or genai-prices' prices, and cached replies are free."""
    Path("prices.yaml").write_text("tests/cost: {input: 5, output: 15}")
    monkeypatch.setenv(PRICES, "prices.yaml")
    (judge,) = judges(server, "tests/cost")
    spending = JudgeSpending(
        {"tests/cost": find_prices("tests/cost"), "tests/unknown": None}
    )
    for _ in range(2):
        spending.add("tests/cost", judge.ask(question("a" * 400_000)))
    assert str(spending) == "1 calls, 100,000 tokens in, 1 out, about $0.50"
    spending.add("tests/unknown", judge.ask(question("b")))
    assert "no known price" in str(spending)


def test_the_providers_count_is_paid(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider's token counts of every reply, reasoning included, are paid."""
    server.plan = faults.first(Fault.UNREADABLE)
    server.models = {"m": Model(reasoning="Hm. " * 100)}
    client = {
        "class_name": "helm_longctx.models.apis.OpenAIClient",
        "args": {"base_url": server.openai, "model": "m"},
    }
    register_model_deployment(
        ModelDeployment("tests/counts", ClientSpec(**client), model_name="tests/counts")
    )
    judge = make_judge(
        "tests/counts", OpenAIClient(BlackHoleCacheConfig(), **client["args"])
    )
    reply = judge.ask(question("abcd" * 3))
    assert len(reply.usages) == 2
    assert reply.usages[1] == Usage(
        input_tokens=3, output_tokens=101, reasoning_tokens=100
    )


def test_locks_hold_no_prompts(server: Server) -> None:
    """A judge's locks hold short digests instead of prompts."""
    (judge,) = judges(server, "tests/locks")
    judge.ask(question("a" * 10_000))
    assert max(map(len, judge._locks)) == 64
