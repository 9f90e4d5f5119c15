"""Tests of the methods in which the model decides how it reads: `recursive` and `agent`, with scripted models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.run_settings import SANDBOX
from helm_longctx.runs.scores import read_steps
from helm_longctx.tasks import interpreter
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import Settings
from tests.runner import making
from tests.runner.scripted_runs import MODEL, scores, serving
from tests.support import scripted
from tests.support.deployments import register_server
from tests.support.sandboxes import require_sandbox
from tests.support.servers.tools import Turn, serve_tools

RECALL = "helmet_recall:task=json_kv,length=8k,num_samples=3,style=chat,method="


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs may be run; the test is left out where they cannot be."""
    require_sandbox(monkeypatch)


def test_recursive_solves_a_task(sandbox: None, tmp_path: Path) -> None:
    """A model that writes code and asks itself about parts gets every answer right; the steps show both."""
    with serving(scripted.coder):
        run = making.make_run(tmp_path, RECALL + "recursive" + MODEL, cache=False)
    assert set(scores(run).values()) == {1.0}
    for _, steps in read_steps(run):
        assert [step["label"] for step in steps] == [
            "root turn 1",
            "root turn 2",
            "sub-call",
            "sub-call",
        ]


@pytest.mark.parametrize(
    ("reply", "labels"),
    [
        (
            "I do not write code.",
            ["root turn 1", "root turn 2", "root turn 3", "root answer"],
        ),
        ("```repl\nwhile True: llm_query('x')\n```", None),
        (
            "```repl\nimport os\nwhile True: os.fork()\n```",
            ["root turn 1", "root turn 2", "root turn 3", "root answer"],
        ),
        (
            "```repl\nwhile True: pass\n```",
            ["root turn 1", "root turn 2", "root turn 3", "root answer"],
        ),
        (
            "```repl\nx = [0]\nwhile True: x += x\n```",
            ["root turn 1", "root turn 2", "root turn 3", "root answer"],
        ),
        (
            "```repl\nimport os; os.write(1, b'x' * 100)\n```",
            ["root turn 1", "root turn 2", "root turn 3", "root answer"],
        ),
        (
            "```repl\nrlm_query_batched('a', 'b', 'c')\n```",
            ["root turn 1", "root turn 2", "root turn 3", "root answer"],
        ),
    ],
)
def test_recursive_ends_whatever_is_written(
    reply: str,
    labels: list[str] | None,
    sandbox: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Turns, calls and time are limited, and each question gets an answer that is scored."""
    monkeypatch.setattr(interpreter, "_MOST_SECONDS", 1.0)
    with serving(lambda prompt: reply):
        run = making.make_run(
            tmp_path,
            RECALL.replace("=3", "=1") + "recursive,turns=3,calls=5" + MODEL,
            cache=False,
        )
    assert len(scores(run)) == 1
    for _, steps in read_steps(run):
        step_labels = [step["label"] for step in steps]
        assert step_labels == labels or (
            labels is None and step_labels.count("sub-call") == 5
        )


def test_recursive_starts_further_interpreters(sandbox: None, tmp_path: Path) -> None:
    """With `depth=2`, code can start a model with an interpreter of its own for a part."""

    def model(prompt: str) -> str:
        if "Do what the context says." in prompt:
            return '```repl\nanswer["content"] = context.upper(); answer["ready"] = True\n```'
        return '```repl\nanswer["content"] = rlm_query("deep"); answer["ready"] = True\n```'

    with serving(model):
        run = making.make_run(
            tmp_path, RECALL + "recursive,depth=2" + MODEL, cache=False
        )
    states = making.read(run, "scenario_state")["request_states"]
    assert {state["result"]["completions"][0]["text"] for state in states} == {"DEEP"}
    assert {step["label"] for _, steps in read_steps(run) for step in steps} == {
        "root turn 1",
        "sub-model turn 1",
    }


def test_recursive_has_to_be_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the setting no code of a model is run, and nothing is sent."""
    monkeypatch.delenv(SANDBOX, raising=False)
    with (
        serving() as server,
        pytest.raises(
            InputError, match=f"method=recursive runs code .* set {SANDBOX}=bubblewrap"
        ),
    ):
        making.make_run(tmp_path, RECALL + "recursive" + MODEL, cache=False)
    assert not server.calls


def register(name: str, client: str, address: str) -> None:
    if client == "OpenAIClient":
        register_server(name, address)
        return
    register_server(name, address)
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.pop(name)
    spec = ClientSpec(
        f"helm_longctx.models.apis.{client}", {"base_url": address, "api_key": "none"}
    )
    register_model_deployment(
        ModelDeployment(name=name, client_spec=spec, model_name=name)
    )


@pytest.mark.parametrize(
    ("client", "streams_only"),
    [("OpenAIClient", False), ("OpenAIClient", True), ("AnthropicClient", False)],
)
def test_agent_reads_by_native_tool_calls(
    client: str, streams_only: bool, tmp_path: Path
) -> None:
    """In both protocols, and in streams, the model gets tools, its calls are carried out, and the last text is the answer."""
    with serve_tools(scripted.reader, streams_only) as (address, bodies):
        register("corp/scripted", client, address)
        run = making.make_run(tmp_path, RECALL + "agent" + MODEL, cache=True)
        assert set(scores(run).values()) == {1.0}
        sent = len(bodies)
        answered = [
            body for body in bodies if body.get("stream", False) == streams_only
        ]
        assert len(answered) == 3 * 4
        making.make_run(tmp_path, RECALL + "agent" + MODEL, cache=True)
        assert len(bodies) == sent  # the request cache has them
    steps = [step for _, steps in read_steps(run) for step in steps]
    assert [call["name"] for step in steps[:4] for call in step["calls"]] == [
        "find_next",
        "open",
        "read_all",
    ]


def test_agent_is_asked_for_an_answer_at_the_end(tmp_path: Path) -> None:
    """After the turns, the model is asked to answer, and what it then writes is the answer."""

    def endless(task: str, results: Sequence[str]) -> Turn:
        last = results[-1] if results else ""
        return (
            Turn("The end.")
            if "Do not use tools any more" in last
            else Turn(tool="open", arguments={"position": "x"})
        )

    with serve_tools(endless) as (address, bodies):
        register("corp/scripted", "OpenAIClient", address)
        run = making.make_run(tmp_path, RECALL + "agent,turns=3" + MODEL, cache=False)
    states = making.read(run, "scenario_state")["request_states"]
    assert {state["result"]["completions"][0]["text"] for state in states} == {
        "The end."
    }
    assert len(bodies) == 3 * 4
    assert "The arguments are wrong" in bodies[1]["messages"][2]["content"]


def test_agent_needs_tools(tmp_path: Path) -> None:
    """A client without native tool calls is refused before anything is sent."""
    making.register()
    entry = RECALL + "agent,model=longctx/lexical,model_deployment=test/plain"
    with pytest.raises(
        InputError,
        match="method=agent needs native tool calls, which the client of test/plain",
    ):
        making.make_run(tmp_path, entry, cache=False)
    assert making.PlainClient.asked == []


@pytest.mark.parametrize("client", ["OpenAIClient", "AnthropicClient"])
def test_native_tools_are_definitions_and_their_calls_are_scored(
    client: str, tmp_path: Path
) -> None:
    """The tools of a task go with the request and not in its text, and the native call of the reply is scored."""
    benchmark = find_benchmark("tool_calls")
    task = benchmark.task("definition")
    drawn = Settings(4096, num_samples=3)
    examples = [*task.load(task, drawn, DataRoot.find("."))]

    def model(prompt: str, results: Sequence[str]) -> Turn:
        (example,) = (
            example for example in examples if example.fields["question"] in prompt
        )
        call = json.loads(example.references[0])
        return Turn(tool=call["name"], arguments=call["arguments"])

    entry = "tool_calls:task=definition,length=4k,num_samples=3,method=native_tools"
    with serve_tools(model) as (address, bodies):
        register("corp/scripted", client, address)
        run = making.make_run(tmp_path, entry + MODEL, cache=False)
    assert set(scores(run).values()) == {1.0}
    assert len(bodies) == 3
    for body in bodies:
        assert len(body["tools"]) == len(examples[0].record["tools"])
        assert "additionalProperties" not in str(body["messages"])
