"""Batches over real loopback servers: the answers are those of the direct way, and nothing is paid for twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from helm_longctx.errors import InputError
from helm_longctx.models.apis import batches
from helm_longctx.models.baselines import lexical
from helm_longctx.runner.batches import submission
from helm_longctx.runs.journal import NAME as JOURNAL
from helm_longctx.runs.ledger import Ledger
from helm_longctx.tasks.methods.prompts import FACTS
from tests.runner.making import make_run, means
from tests.support import scripted
from tests.support.batches import ENTRY, PROTOCOLS, Folder, direct, register, stated
from tests.support.servers import faults
from tests.support.servers.batches import Batch, BatchServer, _BatchHandler
from tests.support.servers.faults import Fault
from tests.support.servers.llm import serve
from tests.support.servers.models import Model
from tests.support.servers.protocols import Body


def test_the_same_as_the_direct_way(
    folder: Folder, server: BatchServer, tmp_path: Path
) -> None:
    """Batches are split and answered out of order after some polls. Then `helm-run` sends nothing and has the same results."""
    server.polls = 2
    folder.submit(batch_size=5)
    assert [batch.total for batch in server.batches.values()] == [5, 5, 2]
    with pytest.raises(
        InputError,
        match="12 requests of this run are in batches that were not collected",
    ):
        folder.make()
    folder.batches.collect()
    assert {state.state for state in folder.batches.states()} <= {
        "in_progress",
        "ended",
        "completed",
    }
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
    """Return a function that says whether a prompt is in a part of all prompts, which stays the same."""
    chosen: dict[str, bool] = {}
    return lambda prompt: chosen.setdefault(prompt, len(chosen) % part == 0)


def test_a_larger_budget(folder: Folder, server: BatchServer) -> None:
    """Batches of a run that asks again for cut answers have only these requests, with the larger budget."""
    is_short = some(server, 3)
    server.plan = lambda prompt, before: Fault.SHORT if is_short(prompt) else None
    before = folder.make()
    server.plan = faults.none
    server.forget()
    again = Folder(
        folder._folder, folder._entry.replace("style=chat,", "style=chat,retry_cut=4x,")
    )
    again.submit()
    again.batches.collect()
    run = again.make()
    assert direct(again, server) == []
    assert [batch.total for batch in server.batches.values()] == [4]
    pairs = list(zip(stated(before), stated(run), strict=True))
    changed = [
        (one["request"]["max_tokens"], other["request"]["max_tokens"])
        for one, other in pairs
        if one != other
    ]
    assert len(changed) == 4
    assert all(budget == 4 * small for small, budget in changed)
    assert {name[0]: value for name, value in means(run).items()}[
        "output_truncated"
    ] == 0


def test_what_gets_no_answer(folder: Folder, server: BatchServer) -> None:
    """Requests without an answer are counted by kind and submitted again. Requests with an answer are not."""
    kinds = [Fault.TOO_LONG, Fault.FLAGGED, Fault.SERVER_ERROR, Fault.REFUSED]
    fates = ["expired", "missing"]
    counts = {submission.PROBE: 99}
    number = lambda prompt: counts.setdefault(prompt, len(counts) - 1)  # noqa: E731
    server.fate = lambda prompt, before: (
        dict(enumerate(fates)).get(number(prompt)) if before == 0 else None
    )
    server.plan = lambda prompt, before: (
        dict(enumerate(kinds, 2)).get(number(prompt)) if before == 0 else None
    )
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
    """Waiting sends requests again while others are answered. It ends if the only request left expires each time."""
    chosen = some(server, 3)
    server.fate = lambda prompt, before: (
        "expired" if chosen(prompt) and before < 2 else None
    )
    rounds = 0
    while True:
        folder.submit()
        rounds += 1
        if not folder.batches.wait():
            break
    assert rounds == 2
    with Ledger(folder.run) as ledger:
        assert [part.failures for part in ledger.parts] == [
            {"temporary": 4},
            {"temporary": 4},
        ]


def test_a_full_queue(tmp_path: Path, server: BatchServer) -> None:
    """Batches that OpenAI refuses for its limit of enqueued tokens are sent when others have ended."""
    server.most_open = 1
    server.polls = 1
    folder = Folder(tmp_path, ENTRY + register("openai", server))
    folder.submit(batch_size=6)
    assert folder.batches.wait()
    assert folder.failures == {"temporary": 6}
    folder.submit(batch_size=6)
    assert not folder.batches.wait()
    folder.make()
    assert direct(folder, server) == []


def test_cancelling(folder: Folder, server: BatchServer) -> None:
    """After `cancel`, the answers that exist are collected, and `helm-run` asks for the others."""
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
    """If the connection is lost, `submit` finds out whether the batch exists, and no request is paid for twice."""
    protocol = folder._entry.rpartition("/")[2]
    if (step, protocol) == ("upload", "anthropic"):
        pytest.skip("Anthropic takes no files")
    name = step.replace("create", f"create_{protocol}")
    lost = []

    def lose(moment: str) -> None:
        if moment == name and not lost:
            lost.append(moment)
            raise ConnectionError

    server.moment = lose
    server.polls = 1
    with pytest.raises(
        InputError,
        match="no batch can be created"
        if step == "upload"
        else "it is not known whether",
    ):
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


def test_a_reply_without_the_batchs_identifier(
    folder: Folder, server: BatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the reply does not say which batch was created, it is looked for, and no request is paid for twice."""
    protocol = folder._entry.rpartition("/")[2]
    describe = getattr(_BatchHandler, f"_{protocol}")

    def describe_without(handler: _BatchHandler, batch: Batch) -> Body:
        body: Body = describe(handler, batch)
        del body["id"]
        return body

    with monkeypatch.context() as patch:
        patch.setattr(_BatchHandler, f"_{protocol}", describe_without)
        with pytest.raises(InputError, match="it is not known whether"):
            folder.submit()
    folder.submit()
    folder.batches.collect()
    assert not folder.batches.are_open
    assert set(server.paid.values()) == {1}


def test_another_runs_batch_of_the_same_size(
    tmp_path: Path, server: BatchServer
) -> None:
    """Anthropic's batches have no metadata. A batch is recognized by its results, and until then nothing is sent again."""
    deployment = register("anthropic", server)
    folder = Folder(tmp_path, ENTRY + deployment)
    other = Folder(tmp_path / "b", ENTRY.replace("4k", "5k") + deployment)
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
    """The user runs the files with vLLM. A result file can be incomplete, or have failures."""
    folder = Folder(tmp_path, ENTRY + register("openai", server, model="llama"))
    folder.submit(as_files=True)
    assert server.calls == []
    (path,) = (folder.run / "batches").iterdir()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {(row["method"], row["url"], row["body"]["model"]) for row in rows} == {
        ("POST", "/v1/chat/completions", "llama")
    }
    batch = server.create(
        [(row["custom_id"], row["url"], row["body"]) for row in rows], "", {}
    )
    lines = []
    for name, row in server.results(batch):
        response = {"status_code": 200, "request_id": "1", "body": row["body"]}
        lines.append(
            {"id": "vllm-1", "custom_id": name, "response": response, "error": None}
        )
    lines[0] |= {
        "response": {"status_code": 400, "request_id": "1", "body": None},
        "error": "context length exceeded",
    }
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
    ("fault", "message"),
    [(Fault.UNAUTHORIZED, "the model cannot be asked: bad_key"), (Fault.FLAGGED, None)],
)
def test_a_tiny_request_first(
    folder: Folder, server: BatchServer, fault: Fault, message: str | None
) -> None:
    """A wrong key ends `submit` before there is a batch or a file. One prompt that is refused does not end it."""
    server.plan = faults.always(fault, lambda prompt: prompt == submission.PROBE)
    if message:
        with pytest.raises(InputError, match=message):
            folder.submit()
        assert not folder.run.exists()
    else:
        folder.submit()
    assert len(server.batches) == (message is None)


def test_clients_without_batches(tmp_path: Path, server: BatchServer) -> None:
    """One line of error names the deployment and the clients that have batches."""
    with pytest.raises(
        InputError,
        match="longctx/null has no batches; use a deployment with AnthropicClient or OpenAI",
    ):
        Folder(
            tmp_path, "helmet_recall:length=4k,num_samples=3,model=longctx/null"
        ).submit()
    folder = Folder(tmp_path, ENTRY + register("anthropic", server))
    with pytest.raises(
        InputError, match="has no batches; use a deployment with OpenAIClient of"
    ):
        folder.submit(as_files=True)
    folder = Folder(tmp_path, ENTRY + register("openai", server, form="completions"))
    with pytest.raises(
        InputError, match="answers no requests to /v1/completions; set form: chat"
    ):
        folder.submit(as_files=True)
    assert server.calls == []


def test_a_server_without_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line of error says so. There is no open batch, so `helm-run` is allowed."""
    monkeypatch.setattr(batches, "_RETRIES", 0)
    with serve(lexical.answer) as server:
        folder = Folder(tmp_path, ENTRY + register("openai", server))
        with pytest.raises(InputError, match="no batch can be created"):
            folder.submit()
        folder.make()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_parameters_that_the_model_refuses(
    tmp_path: Path, server: BatchServer, protocol: str
) -> None:
    """The tiny request finds the parameters that the model refuses. The run records what was sent."""
    server.models = {"lexical": Model(refuses=("temperature",))}
    folder = Folder(tmp_path, ENTRY + register(protocol, server, model="lexical"))
    folder.submit()
    assert not folder.batches.wait()
    (state, *_) = stated(folder.make())
    assert direct(folder, server) == []
    assert "temperature" not in json.dumps(state["result"])
    assert "max_tokens" in json.dumps(state["result"])


def test_two_requests(folder: Folder, server: BatchServer) -> None:
    """Of questions with two requests, the first ones are in the batch, and the run sends the second ones itself."""
    entry = folder._entry.replace(
        "helmet_recall:", "helmet_recall:task=json_kv,"
    ).replace("style", "method=retrieve_reason,style")
    both = Folder(folder._folder, entry)
    both.submit()
    both.batches.collect()
    assert [batch.total for batch in server.batches.values()] == [3]
    run = both.make()
    assert len(direct(both, server)) == 3
    assert not any(FACTS in prompt for prompt in direct(both, server))
    assert [len(state["result"]["completions"]) for state in stated(run)] == [2, 2, 2]


def test_programs_in_waves(folder: Folder, server: BatchServer) -> None:
    """Of methods with many requests, each batch has those that wait for no other, until none is left to send directly."""
    entry = folder._entry.replace("helmet_recall:", "helmet_recall:task=json_kv,")
    waves = Folder(
        folder._folder, entry.replace("style", "method=map_reduce,part=1000,style")
    )
    server.answer = scripted.answer
    for number in (1, 2, 3):
        waves.submit()
        waves.batches.collect()
        assert len(server.batches) == min(number, 2)
    run = waves.make()
    assert direct(waves, server) == []
    assert set(server.paid.values()) == {1}
    assert all(state["result"]["success"] for state in stated(run))
    assert {name[0]: value for name, value in means(run).items()}["longctx_score"] == 1
