"""`helm-longctx run --batch` and `helm-longctx batch`, in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from helm_longctx.data.root import DataRoot
from helm_longctx.models.baselines import lexical
from helm_longctx.run_settings import MAX_COST, MIRROR
from helm_longctx.runner.batches import collection
from tests.chaos.batches import write_deployment
from tests.judging.grades import grade
from tests.runner.making import means
from tests.support import scripted
from tests.support.batches import direct_prompts
from tests.support.commands import Command
from tests.support.servers.batches import BatchServer, serve_batches

ENTRY = (
    "helmet_recall:task=json_kv,length=4k,num_samples=6,style=chat,model=chaos/model"
)
COMMON = ["--suite", "s", "--local-path", "."]
RUN = ["run", *COMMON, "-m", 100]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_POLL", 0)
    monkeypatch.chdir(tmp_path)


def find_run() -> Path:
    """Return the folder of the only run that was made."""
    (path,) = Path("benchmark_output/runs/s").glob("*/stats.json")
    return path.parent


def test_sending_and_going_on(
    command: Command, caplog: pytest.LogCaptureFixture
) -> None:
    """The same command first sends the batches, then says that they are open, and then makes the run."""
    with serve_batches(lexical.answer) as server:
        write_deployment(Path(), server, "openai")
        server.polls = 3
        send = [*RUN, "--entry", ENTRY, "--batch", "send", "--batch-size", 4]
        assert command(*send) == 0, command.err
        assert "batch batch_0: 4 requests" in caplog.text
        assert command.out.count("in_progress") == 2
        assert "same command again when the batches have ended" in command.out
        assert command("batch", "status", *COMMON) == 0
        assert command.out.count("in_progress") == 2
        assert command("batch", "status", *COMMON, "helmet_recall:x") == 2
        assert "suite s has no run helmet_recall:x" in command.err
        for batch in server.batches.values():
            batch.polls = 0
        assert command(*send) == 0, command.err
        assert find_run()
        assert direct_prompts(server) == []
        assert command("batch", "status", *COMMON) == 0
        assert command.out.count("collected") == 2


@pytest.mark.parametrize(
    ("entry", "answer"),
    [
        (
            ENTRY.replace("style", "method=map_reduce,part=1000,style"),
            scripted.answer,
        ),
        (
            "helmet_longqa:task=narrativeqa,length=8k,num_samples=4,judge=chaos/model,"
            "model=chaos/model",
            grade,
        ),
    ],
    ids=["method", "judge"],
)
def test_waiting(
    entry: str,
    answer: Callable[[str], str],
    command: Command,
    mirror: DataRoot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One command sends what follows from the answers in a second batch, and then makes the run."""
    monkeypatch.setenv(MIRROR, str(mirror.path))
    with serve_batches(answer) as server:
        write_deployment(Path(), server, "openai")
        server.polls = 1
        assert command(*RUN, "--entry", entry, "--batch", "wait") == 0, command.err
        assert len(server.batches) == 2
        assert direct_prompts(server) == []
        assert set(server.paid.values()) == {1}
    assert find_run()


@pytest.mark.parametrize(
    ("option", "name"),
    [
        (["--max-cost", 3], "max_cost"),
        (["--stop-when", "score=50"], "stop_when"),
        (["--watch", "x"], "watch"),
    ],
)
def test_what_looks_at_single_answers(
    option: list[object], name: str, command: Command
) -> None:
    """A limit in dollars, a question that ends a run, and a watched folder are refused in one line."""
    assert command(*RUN, "--entry", ENTRY, "--batch", "wait", *option) == 2
    assert f"--batch is given together with {name}" in command.err
    assert command.err.count("\n") == 1


def test_a_limit_in_the_environment(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit in dollars is refused wherever it is given."""
    monkeypatch.setenv(MAX_COST, "3")
    with serve_batches(lexical.answer) as server:
        write_deployment(Path(), server, "openai")
        assert command(*RUN, "--entry", ENTRY, "--batch", "send") == 2
    assert f"{MAX_COST}=3 cannot limit batches" in command.err


def test_a_batch_that_cannot_be_collected(command: Command) -> None:
    """The other batches are collected. The status is not 0 until the batch is given up."""
    with serve_batches(lexical.answer) as server:
        write_deployment(Path(), server, "openai")
        send = [*RUN, "--entry", ENTRY, "--batch", "send", "--batch-size", 4]
        assert command(*send) == 0, command.err
        _spoil_first_batch(server)
        assert command(*send) == 2
        assert "batch_0" in command.err
        assert command.err.rstrip().endswith(
            "helm-longctx batch cancel --suite s --forget"
        )
        assert command("batch", "status", *COMMON) == 0
        states = command.out
        assert (states.count("completed"), states.count("collected")) == (1, 1)
        server.gone = {"batch_0", "list_openai"}
        for name in ("status", "cancel"):
            assert command("batch", name, *COMMON) == 2, name
            assert "404" in command.err
        assert command("batch", "cancel", *COMMON, "--forget") == 0, command.err
        assert "4 unreachable" in command.out
        assert command("batch", "status", *COMMON) == 0


def _spoil_first_batch(server: BatchServer) -> None:
    server.spoil = lambda name, lines: b"<html>" if name.endswith("batch_0") else lines


def test_cancelling(command: Command) -> None:
    """`cancel` collects the answers that exist. The run without batches then asks for the others."""
    with serve_batches(lexical.answer) as server:
        write_deployment(Path(), server, "openai")
        server.polls = 5
        assert command(*RUN, "--entry", ENTRY, "--batch", "send") == 0, command.err
        assert command("batch", "cancel", *COMMON) == 0, command.err
        assert "collected" in command.out
        assert command(*RUN, "--entry", ENTRY) == 0, command.err
        assert means(find_run())
        assert direct_prompts(server)
