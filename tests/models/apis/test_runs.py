"""Runs of our runner with a deployment of our client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.benchmark.model_metadata_registry import (
    INSTRUCTION_FOLLOWING_MODEL_TAG,
    MODEL_NAME_TO_MODEL_METADATA,
    ModelMetadata,
    register_model_metadata,
)
from typer.testing import CliRunner

from helm_longctx.cli.main import app
from helm_longctx.errors import InputError
from helm_longctx.helm.style import deployment_style, sends_messages, takes_both_styles
from helm_longctx.models.baselines import lexical
from tests.runner.making import make_run, read
from tests.support.leaderboards import display
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import Model

ENTRY = "helmet_recall:task=json_kv,length=8k,num_samples=3"
REASONING = Model(
    refuses=("max_tokens",),
    only_default=("temperature",),
    reasoning="Let me see.",
    cuts=False,
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("HELM_LONGCTX_WAIT", "0.01")
    with serve(lexical.answer, models={"m": REASONING}) as running:
        yield running


def deploy(
    name: str,
    client: str = "OpenAIClient",
    tags: tuple[str, ...] = (),
    **arguments: Any,
) -> str:
    """Register a deployment, and a model of the same name."""
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.pop(name, None)
    MODEL_NAME_TO_MODEL_METADATA.pop(name, None)
    register_model_metadata(
        ModelMetadata(name, "a", "a", "", "open", date(2026, 1, 1), list(tags))
    )
    spec = ClientSpec(f"helm_longctx.models.apis.{client}", arguments)
    register_model_deployment(
        ModelDeployment(name=name, client_spec=spec, model_name=name)
    )
    return name


def entry(name: str, more: str = "") -> str:
    return f"{ENTRY}{more},model={name},model_deployment={name}"


def test_a_run(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A run records what was sent and counted, shows the reasoning, and repeats a failed request once."""
    caplog.set_level("INFO")
    server.plan = faults.first(Fault.SERVER_ERROR)
    name = deploy("corp/reasoner", base_url=server.openai, model="m")
    run = make_run(tmp_path, entry(name))
    assert server.failed() == {Fault.DECLINED: 2, Fault.SERVER_ERROR: 3}
    assert len(server.calls) == 2 + 3 + 3
    assert (
        "'max_tokens' is sent as 'max_completion_tokens', because the server refuses it"
        in caplog.text
    )
    assert "'temperature' is not sent" in caplog.text
    arguments = ["show", str(run), "json_kv-1", "--sent"]
    facts = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert facts["sent"] == {"model": "m", "max_completion_tokens": 100}
    assert facts["reason"] == "stop"
    assert facts["usage"]["reasoning_tokens"] == 3
    assert facts["usage"]["input_tokens"] > 1000
    _, predictions, _ = display(run)
    assert [prediction["thinking_text"] for prediction in predictions] == [
        "Let me see."
    ] * 3
    (tmp_path / "benchmark_output/runs/s").rename(tmp_path / "benchmark_output/runs/t")
    again = make_run(tmp_path, entry(name))
    assert len(server.calls) == 8
    assert [row["request"] for row in states(again)] == [
        row["request"] for row in states(run.parent.parent / "t" / run.name)
    ]


def states(run: Path) -> Any:
    return read(run, "scenario_state")["request_states"]


def test_one_deployment_for_both_forms(server: Server, tmp_path: Path) -> None:
    """Recall is a completion, or a chat with `style=chat`. Each of them is sent to its path."""
    server.models = {"m": Model()}
    name = deploy(
        "corp/both",
        tags=(INSTRUCTION_FOLLOWING_MODEL_TAG,),
        base_url=server.openai,
        model="m",
        form="both",
    )
    for more in ("", ",style=chat"):
        make_run(tmp_path, entry(name, more))
    assert [call.path for call in server.calls] == ["/v1/completions"] * 3 + [
        "/v1/chat/completions"
    ] * 3
    assert all("logprobs" not in body for body in server.bodies)


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (
            {},
            "the model cannot be asked: unknown_model: status 404: The model `m` does not exist",
        ),
        ({"m": replace(REASONING, context=100)}, "too_long: .*maximum context"),
    ],
)
def test_a_run_that_cannot_be_made(
    models: Any, said: str, server: Server, tmp_path: Path
) -> None:
    """A model that does not exist ends the run at its first reply. Prompts that are all too long also end it."""
    server.models = models
    name = deploy("corp/gone", base_url=server.openai, model="m")
    with pytest.raises(InputError, match=said):
        make_run(tmp_path, entry(name))
    assert len({call.question for call in server.calls}) == (1 if not models else 3)


@pytest.mark.parametrize(
    ("client", "arguments", "tags", "form", "both", "messages"),
    [
        ("OpenAIClient", {}, (), "chat", False, True),
        ("OpenAIClient", {"form": "completions"}, (), "completion", False, False),
        ("OpenAIClient", {"form": "both"}, (), "completion", True, False),
        (
            "OpenAIClient",
            {"form": "both"},
            (INSTRUCTION_FOLLOWING_MODEL_TAG,),
            None,
            True,
            True,
        ),
        ("AnthropicClient", {}, (), "chat", False, True),
    ],
)
def test_clients_declare_their_forms(
    client: str,
    arguments: dict[str, Any],
    tags: tuple[str, ...],
    form: str | None,
    both: bool,
    messages: bool,
) -> None:
    """The form comes from the client's class and not from a list of names."""
    name = deploy("corp/declared", client, tags, **arguments)
    assert deployment_style(name) == form
    assert takes_both_styles(name) == both
    assert sends_messages(name) == messages
