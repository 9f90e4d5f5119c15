"""Judges in batches: `helm-run` and `rejudge` then ask no judge, and the verdicts are those of the direct way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.models.apis.availability import PROMPT
from helm_longctx.run_settings import JUDGE_WAIT, MIRROR
from helm_longctx.runner.batches.submission import (
    PROBE,
    BatchPlan,
    JudgesAsBatches,
    make_batch_runner,
)
from tests.judging.grades import grade
from tests.runner.making import make_run, means, spec_of
from tests.support.batches import Folder, register, stated
from tests.support.servers import faults
from tests.support.servers.batches import BatchServer
from tests.support.servers.faults import Fault

ENTRY = (
    "helmet_longqa:task=narrativeqa,length=8k,num_samples=4,judge=corp/openai+corp/anthropic,"
    "model=longctx/lexical,model_deployment=corp/openai"
)
"""Four answers, each for two judges. One of them is also the model, which answers in the words of a judge."""


class JudgedFolder(Folder):
    """A folder of runs with judges."""

    def ask(self) -> None:
        """Submit the questions to judges about the answers."""
        strategy = JudgesAsBatches(BatchPlan(), self._folder)
        make_batch_runner(
            strategy, self._folder / "benchmark_output", "s", self._folder
        ).run_all([self.spec])

    def make(self) -> Path:
        """Make the run with `helm-run` and the request cache."""
        return make_run(self._folder, self._entry)


@pytest.fixture
def folder(
    tmp_path: Path,
    server: BatchServer,
    mirror: DataRoot,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[JudgedFolder]:
    """A folder with a run that a jury judges."""
    monkeypatch.setenv(MIRROR, str(mirror.path))
    monkeypatch.setenv(JUDGE_WAIT, "0.01")
    monkeypatch.setenv("CORP_API_KEY", "sk-of-the-judge")  # the model has none
    server.answer = grade
    for protocol in ("openai", "anthropic"):
        register(protocol, server)
    return JudgedFolder(tmp_path, ENTRY)


def direct(server: BatchServer) -> int:
    """Return the number of requests that were sent directly, without the tiny requests."""
    return sum(call.prompt not in (PROBE, PROMPT) for call in server.calls)


def sizes(server: BatchServer) -> list[int]:
    """Return the numbers of requests of all batches."""
    return [batch.total for batch in server.batches.values()]


def test_the_same_as_the_direct_way(
    folder: JudgedFolder, server: BatchServer, tmp_path: Path
) -> None:
    """The results are the same although a connection is lost, a line is missing, a reply has no verdict, and collecting fails."""
    folder.ask()
    assert not server.batches
    folder.submit()
    folder.batches.collect()
    numbers: dict[str, int] = {}
    asked: Counter[str] = Counter()

    def answer(prompt: str) -> str:
        asked[prompt] += 1
        return (
            "I cannot say."
            if asked[prompt] == 1 and numbers.get(prompt) == 0
            else grade(prompt)
        )

    def fate(prompt: str, before: int) -> str | None:
        return (
            "missing"
            if numbers.setdefault(prompt, len(numbers)) == 1 and before == 0
            else None
        )

    lost = {"create_openai+", "content", "results+"}

    def lose(moment: str) -> None:
        if moment in lost:
            lost.remove(moment)
            raise ConnectionError

    server.answer = answer
    server.fate = fate
    server.moment = lose
    with pytest.raises(InputError, match="it is not known whether a batch was created"):
        folder.ask()
    folder.ask()
    assert sizes(server) == [4, 4, 4]
    with pytest.raises(
        InputError,
        match="8 requests of this run are in batches that were not collected",
    ):
        folder.make()
    with pytest.raises(InputError, match=r"cannot be read: .*; .* cannot be read: "):
        folder.batches.collect()
    assert not lost
    # A line was missing.
    assert folder.batches.wait() is True
    folder.ask()
    assert sizes(server)[3:] == [2]
    folder.batches.collect()
    folder.ask()
    assert len(server.batches) == 4
    assert direct(server) == 0
    run = folder.make()
    assert direct(server) == 0
    reference = make_run(tmp_path / "direct", ENTRY)
    assert direct(server) > 0
    assert stated(run) == stated(reference)
    assert means(run) == means(reference)


def test_a_complete_run(
    folder: JudgedFolder, server: BatchServer, tmp_path: Path
) -> None:
    """A complete run is left alone. `rejudge` asks for verdicts that it lacks."""
    server.plan = faults.always(
        Fault.SERVER_ERROR, lambda prompt: "correctness" in prompt
    )
    with pytest.raises(InputError, match="no judge gave a verdict"):
        folder.make()
    server.plan = faults.none
    folder.ask()
    assert not server.batches


@pytest.mark.parametrize(
    "entry",
    [
        ENTRY.replace("corp/anthropic", "longctx/lexical"),
        "helmet_cite:length=8k,judge=longctx/lexical,model=longctx/lexical",
    ],
)
def test_judges_without_batches(
    folder: JudgedFolder,
    server: BatchServer,
    entry: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Judges without batches are left to the run, which asks them directly."""
    caplog.set_level("INFO", "helm_longctx.runner.batches")
    folder.spec = spec_of(entry)
    folder.ask()
    assert "its judge has no batches and is asked directly" in caplog.text
    assert not server.batches
