"""Batches over real loopback servers: the answers are those of the direct way, and nothing is paid for twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)

from helm_longctx.batching import collection, services, submission
from helm_longctx.batching.collection import Batches
from helm_longctx.batching.submission import BatchRunner, Plan
from helm_longctx.errors import InputError
from helm_longctx.models import lexical
from helm_longctx.runs.journal import NAME as JOURNAL
from helm_longctx.runs.ledger import Ledger
from tests.running.making import make_run, means, read, spec_of
from tests.servers import faults
from tests.servers.batches import BatchServer, serve_batches
from tests.servers.faults import Fault
from tests.servers.llm import serve
from tests.servers.models import Model

ENTRY = "helmet_recall:length=4k,num_samples=3,style=chat,model=longctx/lexical,model_deployment="
"""Twelve requests."""

PROTOCOLS = ["openai", "anthropic"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    """A server with batches; nobody waits."""
    monkeypatch.setattr(submission, "SETTLE", 0)
    monkeypatch.setattr(collection, "POLL", 0)
    monkeypatch.setattr(services, "RETRIES", 0)
    with serve_batches(lexical.answer) as running:
        # What a prompt cache has depends on what was asked before.
        running.cache = SimpleNamespace(read=lambda prefixes: 0, write=lambda prefixes: None)
        yield running


def register(protocol: str, server: Any, **arguments: Any) -> str:
    """A deployment of ours; its name."""
    name = f"corp/{protocol}"
    client = {"openai": "OpenAIClient", "anthropic": "AnthropicClient"}[protocol]
    address = server.openai if protocol == "openai" else server.address
    spec = ClientSpec(f"helm_longctx.apis.{client}", {"base_url": address, **arguments})
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.pop(name, None)
    register_model_deployment(ModelDeployment(name=name, client_spec=spec, model_name="longctx/lexical"))
    return name


class Folder:
    """Runs of one entry in a folder.

    Attributes:
        run: the run's folder.
    """

    def __init__(self, folder: Path, entry: str):
        self._folder, self._entry = folder, entry
        self.spec = spec_of(entry)
        self.run = folder / "benchmark_output/runs/s" / self.spec.name

    def submit(self, **plan: Any) -> None:
        """Submit it."""
        BatchRunner(Plan(**plan), self._folder / "benchmark_output", "s", self._folder).run_all([self.spec])

    @property
    def batches(self) -> Batches:
        """Its batches."""
        return Batches(self._folder, [self.run])

    def make(self) -> Path:
        """`helm-run`, without its cache."""
        return make_run(self._folder, self._entry, cache=False)

    @property
    def failures(self) -> dict[str, int]:
        """Of all batches."""
        with Ledger(self.run) as ledger:
            return {kind: n for part in ledger.parts for kind, n in (part.failures or {}).items()}


@pytest.fixture(params=PROTOCOLS)
def folder(request: pytest.FixtureRequest, tmp_path: Path, server: BatchServer) -> Folder:
    """A run of each protocol."""
    return Folder(tmp_path, ENTRY + register(request.param, server))


def direct(folder: Folder, server: BatchServer) -> list[str]:
    """Prompts that were sent directly, but for the tiny ones."""
    return [call.prompt for call in server.calls if call.prompt != submission.PROBE]


def stated(run: Path) -> list[Any]:
    """What a run's states have, without the time that requests took."""
    states = read(run, "scenario_state")["request_states"]
    for state in states:
        for name in ("request_time", "request_datetime", "cached"):
            state["result"].pop(name, None)
    return states


def test_the_same_as_the_direct_way(folder: Folder, server: BatchServer, tmp_path: Path) -> None:
    """Split, out of order and after some polls; then `helm-run` sends nothing, and its results are the same."""
    server.polls = 2
    folder.submit(batch_size=5)
    assert [batch.total for batch in server.batches.values()] == [5, 5, 2]
    with pytest.raises(InputError, match="12 requests of this run are in batches that were not collected"):
        folder.make()
    folder.batches.collect()
    assert {state.state for state in folder.batches.states()} <= {"in_progress", "ended", "completed"}
    assert not folder.batches.wait()
    assert [state.state for state in folder.batches.states()] == ["collected"] * 3
    run = folder.make()
    assert direct(folder, server) == []
    assert set(server.paid.values()) == {1}
    assert server.paid.total() == 12
    assert not (run / JOURNAL).exists()
    folder.submit()
    assert len(server.batches) == 3
    reference = make_run(tmp_path / "direct", folder._entry, cache=False)
    assert len(direct(folder, server)) == 12
    assert stated(run) == stated(reference)
    assert means(run) == means(reference)


def some(server: BatchServer, part: int) -> Callable[[str], bool]:
    """A part of all prompts, which stays the same."""
    chosen: dict[str, bool] = {}
    return lambda prompt: chosen.setdefault(prompt, len(chosen) % part == 0)


def test_what_gets_no_answer(folder: Folder, server: BatchServer) -> None:
    """It is counted by kind, and submitted again; what has an answer is not."""
    kinds = [Fault.TOO_LONG, Fault.FLAGGED, Fault.SERVER_ERROR, Fault.REFUSED]
    fates = ["expired", "missing"]
    found = {submission.PROBE: 99}
    number = lambda prompt: found.setdefault(prompt, len(found) - 1)  # noqa: E731
    server.fate = lambda prompt, before: dict(enumerate(fates)).get(number(prompt)) if before == 0 else None
    server.plan = lambda prompt, before: dict(enumerate(kinds, 2)).get(number(prompt)) if before == 0 else None
    folder.submit()
    folder.batches.collect()
    assert folder.failures == {"temporary": 3, "too_long": 1, "refused": 2}
    (state,) = folder.batches.states()
    assert (state.state, state.done) == ("collected", 6)
    server.plan = faults.none
    folder.submit()
    assert [batch.total for batch in server.batches.values()] == [12, 6]
    assert not folder.batches.wait()
    folder.make()
    assert direct(folder, server) == []
    # A refusal is an answer to the provider, which costs money.
    assert sorted(server.paid.values()) == [1] * 11 + [2]


def test_waiting_sends_again(folder: Folder, server: BatchServer) -> None:
    """As long as some requests fail temporarily and others are answered; a request that always expires ends it."""
    chosen = some(server, 3)
    server.fate = lambda prompt, before: "expired" if chosen(prompt) and before < 2 else None
    rounds = 0
    while True:
        folder.submit()
        rounds += 1
        if not folder.batches.wait():
            break
    assert rounds == 2
    with Ledger(folder.run) as ledger:
        assert [part.failures for part in ledger.parts] == [{"temporary": 4}, {"temporary": 4}]


def test_a_full_queue(tmp_path: Path, server: BatchServer) -> None:
    """Batches that OpenAI refuses for its limit of enqueued tokens are sent when others have ended."""
    server.most_open, server.polls = 1, 1
    folder = Folder(tmp_path, ENTRY + register("openai", server))
    folder.submit(batch_size=6)
    assert folder.batches.wait()
    assert folder.failures == {"temporary": 6}
    folder.submit(batch_size=6)
    assert not folder.batches.wait()
    folder.make()
    assert direct(folder, server) == []


def test_cancelling(folder: Folder, server: BatchServer) -> None:
    """What was answered until then is collected, and `helm-run` asks for the rest."""
    server.polls = 5
    folder.submit()
    assert folder.batches.cancel() == 1
    assert folder.batches.cancel() == 0
    folder.batches.collect()
    folder.make()
    assert len(direct(folder, server)) == 6
    assert server.paid.total() == 6


@pytest.mark.parametrize("step", ["create+", "create", "upload"])
def test_a_lost_connection(folder: Folder, server: BatchServer, step: str) -> None:
    """Whether the batch was created is found out; no request is paid for twice."""
    protocol = folder._entry.rpartition("/")[2]
    if (step, protocol) == ("upload", "anthropic"):
        pytest.skip("Anthropic takes no files")
    name = step.replace("create", f"create_{protocol}")
    lost = []

    def lose(moment: str) -> None:
        if moment == name and not lost:
            lost.append(moment)
            raise ConnectionError

    server.moment, server.polls = lose, 1
    with pytest.raises(InputError, match="no batch can be created" if step == "upload" else "it is not known whether"):
        folder.submit()
    (part,) = Ledger(folder.run).parts
    assert part.is_open == (step != "upload")
    folder.submit()
    assert not folder.batches.wait()
    folder.submit()
    assert not folder.batches.wait()
    assert set(server.paid.values()) == {1}
    folder.make()
    assert direct(folder, server) == []


def test_another_runs_batch_of_the_same_size(tmp_path: Path, server: BatchServer) -> None:
    """Anthropic has no metadata: a batch is known by its results, and until then nothing is sent again."""
    deployment = register("anthropic", server)
    folder, other = Folder(tmp_path, ENTRY + deployment), Folder(tmp_path / "b", ENTRY.replace("4k", "5k") + deployment)
    server.polls = 3

    def lose(moment: str) -> None:
        if moment == "create_anthropic":
            raise ConnectionError

    server.moment = lose
    with pytest.raises(InputError, match="it is not known whether"):
        folder.submit()
    server.moment = lambda moment: None
    other.submit()
    folder.submit()
    assert len(server.batches) == 1
    assert [state.state for state in folder.batches.states()] == ["unknown"]
    assert not other.batches.wait()
    folder.submit()
    assert len(server.batches) == 2
    assert not folder.batches.wait()
    assert set(server.paid.values()) == {1}


def test_files_for_vllm(tmp_path: Path, server: BatchServer) -> None:
    """The user runs them; half a result file, and one with failures."""
    folder = Folder(tmp_path, ENTRY + register("openai", server, model="llama"))
    folder.submit(as_files=True)
    assert server.calls == []
    (path,) = (folder.run / "batches").iterdir()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {(row["method"], row["url"], row["body"]["model"]) for row in rows} == {
        ("POST", "/v1/chat/completions", "llama")
    }
    batch = server.create([(row["custom_id"], row["url"], row["body"]) for row in rows], "", {})
    lines = []
    for name, row in server.results(batch):
        response = {"status_code": 200, "request_id": "1", "body": row["body"]}
        lines.append({"id": "vllm-1", "custom_id": name, "response": response, "error": None})
    lines[0] |= {"response": {"status_code": 400, "request_id": "1", "body": None}, "error": "context length exceeded"}
    text = "".join(json.dumps(line) + "\n" for line in lines)
    results = path.with_suffix(".results.jsonl")
    results.write_text(text[: len(text) // 2])
    folder.batches.collect()
    (state,) = folder.batches.states()
    assert (state.state, state.part.is_open) == ("written", True)
    assert 0 < state.done < 12
    results.write_text(text)
    folder.batches.collect()
    assert folder.failures == {"too_long": 1}
    folder.make()
    assert len(direct(folder, server)) == 1


@pytest.mark.parametrize(
    ("fault", "message"), [(Fault.UNAUTHORIZED, "the model cannot be asked: bad_key"), (Fault.FLAGGED, None)]
)
def test_a_tiny_request_first(folder: Folder, server: BatchServer, fault: Fault, message: str | None) -> None:
    """A wrong key ends it before a batch is made, and leaves no file; a prompt that is refused says nothing of others."""
    server.plan = faults.always(fault, lambda prompt: prompt == submission.PROBE)
    if message:
        with pytest.raises(InputError, match=message):
            folder.submit()
        assert not folder.run.exists()
    else:
        folder.submit()
    assert len(server.batches) == (message is None)


def test_clients_without_batches(tmp_path: Path, server: BatchServer) -> None:
    """One line names the deployment and what has batches."""
    with pytest.raises(InputError, match="longctx/null has no batches; allowed: deployments with the clients OpenAI"):
        Folder(tmp_path, "helmet_recall:length=4k,num_samples=3,model=longctx/null").submit()
    folder = Folder(tmp_path, ENTRY + register("anthropic", server))
    with pytest.raises(InputError, match="has no batches; allowed: deployments with the clients OpenAIClient of"):
        folder.submit(as_files=True)
    folder = Folder(tmp_path, ENTRY + register("openai", server, form="completions"))
    with pytest.raises(InputError, match="answers no requests to /v1/completions; set form: chat"):
        folder.submit(as_files=True)
    assert server.calls == []


def test_a_server_without_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line; nothing waits anywhere, so `helm-run` may go on."""
    monkeypatch.setattr(services, "RETRIES", 0)
    with serve(lexical.answer) as server:
        folder = Folder(tmp_path, ENTRY + register("openai", server))
        with pytest.raises(InputError, match="no batch can be created"):
            folder.submit()
        folder.make()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_parameters_that_the_model_refuses(tmp_path: Path, server: BatchServer, protocol: str) -> None:
    """The tiny request learns them, and the run records what was sent."""
    server.models = {"lexical": Model(refuses=("temperature",))}
    folder = Folder(tmp_path, ENTRY + register(protocol, server, model="lexical"))
    folder.submit()
    assert not folder.batches.wait()
    (state, *_) = stated(folder.make())
    assert direct(folder, server) == []
    assert "temperature" not in json.dumps(state["result"])
    assert "max_tokens" in json.dumps(state["result"])
