from __future__ import annotations

from pathlib import Path

import pytest
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    get_model_deployment,
)
from helm.benchmark.model_metadata_registry import (
    FULL_FUNCTIONALITY_TEXT_MODEL_TAG,
    TEXT_MODEL_TAG,
    get_model_metadata,
)
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import BlackHoleCacheBackendConfig
from helm.common.request import Request

from helm_longctx.models import registration
from helm_longctx.models.baselines.clients import LexicalClient, NullClient
from helm_longctx.models.registration import WORDS, register
from helm_longctx.tasks.prompt import CONTEXT, NO_TEMPLATE
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Baseline, Task

BASELINES = {
    f"{benchmark.name} {task.name}": (task, task.baseline)
    for benchmark in BENCHMARKS
    for task in benchmark.tasks
    if task.template is not NO_TEMPLATE
    and task.baseline
    and isinstance(task.baseline.kind, str)
}
"""Of the tasks that are recognised by their templates."""
JSON_KV, JSON_KV_BASELINE = BASELINES["helmet json_kv"]
PROMPT = JSON_KV.template.render(
    {CONTEXT: '{\n "fox": "one two"\n}', "question": "fox", "demos": ""}
).user_turn


def test_result_shape() -> None:
    """A result has one completion without tokens, is not from a cache, and has the time that it took."""
    result = LexicalClient().make_request(Request(prompt=PROMPT))
    assert result.success
    assert not result.cached
    assert [(c.text, c.logprob, c.tokens) for c in result.completions] == [
        ("two", 0, [])
    ]
    assert result.embedding == []
    assert result.request_time is not None
    assert 0 <= result.request_time < 1
    assert result.request_datetime


def test_stops_at_the_first_stop_sequence() -> None:
    """An answer ends before the first stop sequence in it."""
    result = NullClient().make_request(
        Request(prompt=PROMPT, stop_sequences=["x", "000-", "0-"])
    )
    assert result.completions[0].text == "00000"


@pytest.mark.parametrize(("task", "baseline"), BASELINES.values(), ids=BASELINES)
def test_null_answers_the_task_s_constant(task: Task, baseline: Baseline) -> None:
    """The null model gives the task's constant whatever the content is, and nothing for another text."""
    fields = {
        name: "" if name.startswith(("demo", "example")) else "q"
        for name in task.template.names
    }
    fields |= {CONTEXT: "text", "type_needle_v": "number"}
    prompt = task.template.render(fields)
    constant = baseline.constant
    assert NullClient().answer(Request(prompt=prompt.user_turn)) == constant
    assert NullClient().answer(Request(prompt=prompt.text("completion"))) == constant
    assert NullClient().answer(Request(prompt="Who are you?")) == ""


@pytest.mark.parametrize("name", ["longctx/lexical", "longctx/null"])
def test_registered_as_open_text_model_without_limits(name: str) -> None:
    """HELM has each baseline as an open text model that never cuts a prompt."""
    register()
    metadata = get_model_metadata(name)
    deployment = get_model_deployment(name)
    assert metadata.access == "open"
    assert metadata.release_date
    assert metadata.tags == [TEXT_MODEL_TAG, FULL_FUNCTIONALITY_TEXT_MODEL_TAG]
    assert (deployment.tokenizer_name, deployment.max_sequence_length) == (WORDS, None)


@pytest.mark.parametrize(
    ("name", "text"),
    [("longctx/lexical", "two"), ("longctx/null", JSON_KV_BASELINE.constant)],
)
def test_helm_s_auto_client_makes_the_client(
    name: str, text: str, tmp_path: Path
) -> None:
    """HELM makes the client by its class path and gets its answer without a key."""
    register()
    client = AutoClient({}, str(tmp_path), BlackHoleCacheBackendConfig())
    result = client.make_request(
        Request(model=name, model_deployment=name, prompt=PROMPT)
    )
    assert result.completions[0].text == text


def test_ready_deployments_come_after_their_models_and_leave_the_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ready deployments come after their models, and the user's deployments stay the last ones."""
    order: list[str] = []
    own = ModelDeployment(
        "my/luna", ClientSpec("my.Client"), model_name="openai/gpt-6-luna"
    )
    models = registration.models
    deployments = registration.deployments
    tokenizers = registration.tokenizers
    monkeypatch.setattr(deployments, "ALL_MODEL_DEPLOYMENTS", [own])
    monkeypatch.setattr(models, "MODEL_NAME_TO_MODEL_METADATA", {})
    monkeypatch.setattr(tokenizers, "TOKENIZER_NAME_TO_CONFIG", {})
    for module, kind in (
        (models, "model_metadata"),
        (deployments, "model_deployment"),
        (tokenizers, "tokenizer_config"),
    ):
        monkeypatch.setattr(
            module,
            f"register_{kind}",
            lambda row, kind=kind: order.append(f"{kind} {row.name}"),
        )
    registration.register_ready()
    assert "model_deployment openai/gpt-6-luna" not in order
    assert order.index("model_metadata openai/gpt-6.1-sol") < order.index(
        "model_deployment openai/gpt-6.1-sol"
    )
    assert "tokenizer_config vllm/llama-3.1-8b-instruct" in order
