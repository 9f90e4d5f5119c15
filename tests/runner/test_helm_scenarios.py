"""Tests that runs of HELM's own long-context scenarios by our runner have the files of HELM's runner."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import tiktoken
from helm.benchmark.annotation.annotator import AnnotatorSpec
from helm.benchmark.augmentations.data_augmenter import DataAugmenterSpec
from helm.benchmark.augmentations.perturbation import PerturbationSpec
from helm.benchmark.runner import Runner
from helm.benchmark.scenarios import infinite_bench_en_mc_scenario
from helm.common.request import ErrorFlags, Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.runner.batches.submission import PROBE
from helm_longctx.runner.estimate import Rate, estimate_runs
from helm_longctx.runner.machines.shards import OneShard
from helm_longctx.runner.runner import LongContextRunner, runner_arguments
from helm_longctx.runner.spool import is_long_context
from helm_longctx.runner.verification import find_faults
from helm_longctx.runs.files import FILES, STATES, STATS
from helm_longctx.runs.journal import NAME as JOURNAL
from helm_longctx.runs.journal import Shard
from helm_longctx.runs.prompts import request_text
from helm_longctx.tasks.token_estimate import estimate_tokens
from tests.runner import making
from tests.runner.making import (
    PlainClient,
    change,
    make_run,
    make_runner,
    means,
    read,
    spec_of,
)
from tests.support import punkt
from tests.support.batches import Folder, register, stated
from tests.support.scenarios import TOWNS, question, write_ruler
from tests.support.servers.batches import BatchServer

WORDS = "max_num_words=2000,model=longctx/lexical,model_deployment=test/whole"
SQUAD = f"ruler_squad:{WORDS}"
CHOICE = f"infinite_bench_en_mc:{WORDS}"
CHAT = f"openai_mrcr:needles=2,{WORDS}"
ENTRIES = {"generation": SQUAD, "choice": CHOICE, "chat": CHAT}
AT_MOST = 5


class WholeClient(PlainClient):
    """A `PlainClient` that also reads conversations."""

    def make_request(self, request: Request) -> RequestResult:
        """Answer like the base class, for `test/whole`."""
        return super().make_request(
            replace(request, prompt=request_text(request), messages=None)
        )


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write what the scenarios read, and register the client."""
    making.register_client(WholeClient)
    write_ruler(tmp_path)
    context = " ".join(TOWNS[:100])
    options = ["Name7", "B"]
    rows = [
        {"id": n, "context": context, "input": question(n), "answer": options[:1]}
        for n in range(8)
    ]
    choices = importlib.import_module("datasets").Dataset.from_list(
        [{**row, "options": options} for row in rows]
    )
    monkeypatch.setattr(
        infinite_bench_en_mc_scenario, "load_dataset", lambda *_, **__: choices
    )
    pending = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": town * 5}
        for n, town in enumerate(TOWNS[:21])
    ]
    asked = [
        json.dumps([*pending[:20], {"role": "user", "content": question(n)}])
        for n in range(8)
    ]
    chats = [
        {"prompt": text, "answer": "abcDrops.", "random_string_to_prepend": "abc"}
        for text in asked
    ]
    monkeypatch.setattr("datasets.load_dataset", lambda *_, **__: chats)
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: None)
    with punkt.installed(tmp_path / "nltk"):
        yield


def files(run: Path) -> dict[str, bytes]:
    """Return all files of a run except the lock."""
    return {
        path.name: path.read_bytes()
        for path in run.iterdir()
        if path.is_file() and path.name != ".lock"
    }


def make_by_helm(folder: Path, entry: str) -> dict[str, bytes]:
    """Return the files of a run by HELM's runner, which are then removed."""
    run = make_run(folder, entry, Runner, cache=False, at_most=AT_MOST)
    contents = files(run)
    PlainClient.asked.clear()
    for path in run.iterdir():
        path.unlink()
    return contents


def make(folder: Path, entry: str) -> Path:
    """Make the run with our runner."""
    return make_run(folder, entry, cache=False, at_most=AT_MOST)


def scores(run: Path) -> dict[tuple[str, ...], float]:
    """Return the statistics without the times, which answers of batches lack."""
    return {
        name: mean
        for name, mean in means(run).items()
        if not re.search("runtime|batch_size", name[0])
    }


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_files_are_those_of_helms_runner(entry: str, tmp_path: Path) -> None:
    """The files equal those of HELM's runner byte by byte, for each of HELM's adapters that these scenarios use."""
    expected = make_by_helm(tmp_path, entry)
    run = make(tmp_path, entry)
    assert set(expected) == set(FILES)
    assert files(run) == expected
    assert len(PlainClient.asked) == AT_MOST
    assert list(find_faults(run)) == []
    change(
        run / STATS,
        lambda stats: next(
            stat for stat in stats if stat["name"]["name"] == "inference_runtime"
        ).update(mean=9),
    )
    assert [fault.partition(":")[0] for fault in find_faults(run)] == [STATS]


def test_prompts_are_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Prompts are not logged, although HELM's adapters log one and HELM's runner shows it."""
    caplog.set_level("INFO", "helm")
    make_by_helm(tmp_path, CHOICE)
    assert "Read the passage" in caplog.text
    caplog.clear()
    make(tmp_path, CHOICE)
    assert "5 requests" in caplog.text
    assert "Read the passage" not in caplog.text


@pytest.mark.parametrize("entry", [CHOICE, CHAT], ids=["choice", "chat"])
def test_shards(entry: str, tmp_path: Path) -> None:
    """Each request is sent by one shard, and the run then sends none and has the files of HELM's runner."""
    expected = make_by_helm(tmp_path, entry)
    spec = spec_of(entry, AT_MOST)
    sent = []
    arguments = runner_arguments(
        tmp_path / "benchmark_output", "s", tmp_path, 2, has_cache=False
    )
    for number in (1, 2):
        LongContextRunner(**arguments, strategy=OneShard(Shard(number, 2))).run_all(
            [spec]
        )
        sent.append(len(PlainClient.asked))
    assert sent == [sent[0], AT_MOST]
    assert 0 < sent[0] < AT_MOST
    run = make(tmp_path, entry)
    assert len(PlainClient.asked) == AT_MOST
    assert files(run) == expected
    assert not (run / "shards").exists()


def test_failed_requests_leave_no_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with failed requests writes no results, keeps its answers, and sends only the failed requests again."""
    expected = make_by_helm(tmp_path, CHOICE)
    monkeypatch.setattr(
        PlainClient, "fails", staticmethod(lambda prompt: question(3) in prompt)
    )
    with pytest.raises(
        InputError,
        match=r"1 of 5 requests failed, and HELM's metrics need all answers; 4 answers are",
    ):
        make(tmp_path, CHOICE)
    assert len(PlainClient.asked) == AT_MOST
    run = tmp_path / "benchmark_output/runs/s" / spec_of(CHOICE).name
    assert set(files(run)) == {JOURNAL}
    monkeypatch.setattr(PlainClient, "fails", staticmethod(lambda prompt: False))
    assert files(make(tmp_path, CHOICE)) == expected
    assert len(PlainClient.asked) == AT_MOST + 1


def test_refused_requests_are_empty_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused requests are empty answers, as in HELM's runner."""
    answer = WholeClient.make_request

    def refuse(self: WholeClient, request: Request) -> RequestResult:
        if question(3) not in request.prompt:
            return answer(self, request)
        flags = ErrorFlags(is_retriable=False, is_fatal=False)
        return RequestResult(
            False, [], [], False, error="content_policy_violation", error_flags=flags
        )

    monkeypatch.setattr(WholeClient, "make_request", refuse)
    expected = make_by_helm(tmp_path, CHOICE)
    contents = files(make(tmp_path, CHOICE))
    assert {name for name in FILES if contents[name] != expected[name]} == {STATES}
    (state,) = [
        state
        for state in json.loads(contents[STATES])["request_states"]
        if not state["result"]["success"]
    ]
    assert state["result"]["facts"]["failure"] == "refused"
    assert [completion["text"] for completion in state["result"]["completions"]] == [""]
    assert JOURNAL in contents


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_an_estimate_is_the_run(entry: str, tmp_path: Path) -> None:
    runner = make_runner(tmp_path)
    assert isinstance(runner, LongContextRunner)
    estimate = estimate_runs(runner, [spec_of(entry, AT_MOST)], {}, Rate())[0]
    assert PlainClient.asked == []
    run = make(tmp_path, entry)
    assert estimate.requests == len(PlainClient.asked) == AT_MOST
    requests = [
        state["request"] for state in read(run, "scenario_state")["request_states"]
    ]
    texts = [
        "\n".join(turn["content"] for turn in request.get("messages", []))
        or request["prompt"]
        for request in requests
    ]
    assert estimate.prompt_tokens.total == sum(map(estimate_tokens, texts))
    assert estimate.output_tokens.most == sum(
        request["max_tokens"] for request in requests
    )
    size = sum(map(len, files(run).values()))
    assert estimate.disk_bytes == pytest.approx(size, rel=0.25)


@pytest.mark.parametrize("entry", [CHOICE, CHAT], ids=["choice", "chat"])
def test_batches(entry: str, tmp_path: Path, server: BatchServer) -> None:
    """A run with answers of batches equals a run that was asked directly, and sends nothing."""
    folder = Folder(tmp_path, entry.replace("test/whole", register("openai", server)))
    expected = folder.make()
    before = len(server.calls)
    reference = (stated(expected), scores(expected))
    for path in expected.iterdir():
        path.unlink()
    folder.submit()
    assert not folder.batches.wait()
    run = folder.make()
    assert [call for call in server.calls[before:] if call.prompt != PROBE] == []
    assert (stated(run), scores(run)) == reference
    assert len(reference[0]) == 8


def test_errors_of_helms_code_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any error of HELM's scenario, here without a network, ends in one line."""

    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("no network")

    monkeypatch.setattr(infinite_bench_en_mc_scenario, "load_dataset", fail)
    message = "InfiniteBenchEnMCScenario cannot make the requests: ConnectionError: no network"
    with pytest.raises(InputError, match=message):
        make(tmp_path, CHOICE)
    with pytest.raises(InputError, match=message):
        estimate_runs(make_runner(tmp_path), [spec_of(CHOICE)], {}, Rate())[0]


def test_other_runs_stay_with_helms_code() -> None:
    """HELM's code makes runs of its other scenarios, and of these scenarios with perturbations and other flags."""
    spec = spec_of(SQUAD)
    perturbed = DataAugmenterSpec(perturbation_specs=[PerturbationSpec("x.Y", {})])
    assert is_long_context(spec)
    assert not is_long_context(replace(spec, data_augmenter_spec=perturbed))
    assert not is_long_context(replace(spec, annotators=[AnnotatorSpec("x.Y", {})]))
    assert not is_long_context(replace(spec, name=f"boolq:{spec.name}"))
    assert not is_long_context(replace(spec, name="unknown"))
