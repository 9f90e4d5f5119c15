"""Tests of our API clients in the real `helm-run`, against a server that behaves as the providers do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from helm_longctx.models.baselines import lexical
from helm_longctx.runs.lookup import find_records
from tests.e2e.commands import helm_run
from tests.judging.deployments import write_judges
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import Model

ENTRY = "helmet_recall:task=json_kv,length=8k,num_samples=4,model=corp/"
MODELS = {
    "gpt": Model(
        refuses=("max_tokens", "top_p"),
        only_default=("temperature",),
        reasoning="Let me see. ",
        hides=True,
    ),
    "claude": Model(
        refuses=("temperature", "thinking.type.enabled"), reasoning="Let me see. "
    ),
    "short": Model(reasoning="Let me see. " * 50),
}
CLIENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt": ("OpenAIClient", {}),
    "claude": ("AnthropicClient", {"thinking_tokens": 1024}),
    "short": ("OpenAIClient", {"stream": True}),
    "retired": ("OpenAIClient", {}),
}


def test_models_of_today(tmp_path: Path) -> None:
    """Models that refuse parameters or reason are evaluated, and a retired model ends its run with one line."""
    with serve(
        lexical.answer,
        faults.share(0.2, [Fault.RATE_LIMIT, Fault.BUSY, Fault.OVERLOADED]),
        MODELS,
    ) as server:
        write_deployments(tmp_path, server)
        options = (
            "--local-path",
            str(tmp_path),
            "--runner-class-name",
            "helm_longctx.runner.LongContextRunner",
        )
        entries = [f"{ENTRY}{name}" for name in CLIENTS]
        made = helm_run(tmp_path, *entries, *options, HELM_LONGCTX_WAIT="0.01")
    assert made.returncode == 1
    (line,) = (
        line for line in made.stderr.splitlines() if "1 of 4 runs were not made" in line
    )
    assert "model=corp_retired: their errors are in the log" in line
    (reason,) = (
        line for line in made.stdout.splitlines() if "the model cannot be asked" in line
    )
    assert "unknown_model: status 404: The model `retired` does not exist" in reason
    calls = [call for call in server.calls if call.fault in (None, Fault.DECLINED)]
    by_model = {
        name: [call.fault for call in calls if call.body["model"] == name]
        for name in CLIENTS
    }
    assert by_model == {
        "gpt": [Fault.DECLINED] * 2 + [None] * 4,
        "claude": [Fault.DECLINED] * 2 + [None] * 4,
        "short": [None] * 4,
        "retired": [Fault.DECLINED],
    }
    results = {name: finished(tmp_path, name) for name in ("gpt", "claude", "short")}
    assert results["gpt"]["sent"] == {"model": "gpt", "max_completion_tokens": 100}
    assert results["claude"]["sent"]["thinking"]["type"] == "adaptive"
    assert (
        results["claude"]["usage"]["reasoning_tokens"]
        == results["gpt"]["usage"]["reasoning_tokens"]
        == 3
    )
    assert (results["short"]["reason"], results["short"]["usage"]["output_tokens"]) == (
        "length",
        100,
    )


def finished(folder: Path, model: str) -> Any:
    """Return what the run's files say about an answer in addition to its text."""
    (path,) = (folder / "benchmark_output/runs/s").glob(f"*model=corp_{model}*")
    (record,) = find_records(path, "json_kv-1")
    result = record.to_state()["result"]
    return {**result["completions"][0]["finish_reason"], **result["facts"]}


def write_deployments(folder: Path, server: Server) -> None:
    write_judges(folder, {f"corp/{name}": "" for name in CLIENTS})
    path = folder / "model_deployments.yaml"
    content = yaml.safe_load(path.read_text())
    for row in content["model_deployments"]:
        client, arguments = CLIENTS[row["name"].removeprefix("corp/")]
        address = server.openai if client == "OpenAIClient" else server.address
        row["client_spec"] = {
            "class_name": f"helm_longctx.models.apis.{client}",
            "args": {"base_url": address, **arguments},
        }
    path.write_text(yaml.safe_dump(content))
