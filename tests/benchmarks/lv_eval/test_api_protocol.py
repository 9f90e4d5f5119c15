"""`protocol=api` sends over real HTTP what the official code for APIs sends (LVEval at 63e7ae9, prediction_gpt.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.benchmark.runner import Runner

from helm_longctx.errors import InputError
from helm_longctx.run_settings import MIRROR
from helm_longctx.runner import LongContextRunner
from helm_longctx.runs.lookup import full_prompt
from tests.benchmarks.lv_eval.fabricate import build_lv_eval
from tests.runner.making import make_run, means, read
from tests.support.servers.llm import Server, serve

ENTRY = "lv_eval:dataset=cmrc_mixup,length=16k,num_samples=2"
SYSTEM = {"role": "system", "content": "You are a helpful assistant."}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lv_eval(tmp_path_factory.mktemp("data"))


@pytest.fixture
def server(data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serve chats as HELM's deployment `test/api-chat`, with fabricated data."""
    monkeypatch.setenv(MIRROR, str(data))
    with serve(lambda prompt: "An answer.") as running:
        deploy("test/api-chat", "VLLMChatClient", running)
        yield running


def deploy(name: str, client: str, server: Server) -> None:
    arguments = {"base_url": server.openai}
    spec = ClientSpec(f"helm.clients.vllm_client.{client}", arguments)
    register_model_deployment(
        ModelDeployment(name, spec, "longctx/lexical", "simple/tokenizer1")
    )


@pytest.mark.parametrize("runner", [LongContextRunner, Runner])
def test_a_request_is_the_official_one(
    server: Server, runner: type[Runner], tmp_path: Path
) -> None:
    """A request has a system message, the prompt, OpenAI's default temperature and room for any answer; the run keeps
    the prompt."""
    entry = f"{ENTRY},protocol=api,model=longctx/lexical,model_deployment=test/api-chat"
    run = make_run(tmp_path, entry, runner)
    states = read(run, "scenario_state")["request_states"]
    prompts = [
        json.loads(full_prompt(run, state["instance"]["id"])) for state in states
    ]
    assert sorted(body["messages"][1]["content"] for body in server.bodies) == sorted(
        p[1]["content"] for p in prompts
    )
    for body in server.bodies:
        assert [
            body["messages"][0],
            body["messages"][1]["role"],
            len(body["messages"]),
        ] == [
            SYSTEM,
            "user",
            2,
        ]
        assert (body["temperature"], body["max_tokens"]) == (1.0, 400)
    assert {name[0] for name in means(run)} >= {"longctx_score", "f1_gated"}
    assert [state["request"]["messages"][0] for state in states] == [SYSTEM] * 2


def test_the_default_is_that_of_local_models(server: Server, tmp_path: Path) -> None:
    """By default a request is one greedy turn with the data set's budget."""
    make_run(tmp_path, f"{ENTRY},model=longctx/lexical,model_deployment=test/api-chat")
    assert len(server.bodies) == 2
    for body in server.bodies:
        assert [turn["role"] for turn in body["messages"]] == ["user"]
        assert (body["temperature"], body["max_tokens"]) == (0.0, 64)


@pytest.mark.parametrize("client", ["VLLMChatClient"])
def test_where_no_system_message_is_sent_it_is_refused(
    server: Server, client: str, tmp_path: Path
) -> None:
    """A prompt with a system message is refused in completion form."""
    deploy(f"test/api-{client}", client, server)
    entry = f"{ENTRY},style=completion,protocol=api,model=longctx/lexical,model_deployment=test/api-{client}"
    with pytest.raises(
        InputError, match="the prompt is a conversation, which deployment"
    ):
        make_run(tmp_path, entry)
    assert not server.calls
