"""Judges in batches: `helm-run` and `rejudge` then ask no judge, and the verdicts are those of the direct way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.locks import LOCK
from helm_longctx.models.apis.availability import PROMPT
from helm_longctx.run_settings import JUDGE_WAIT, MIRROR
from helm_longctx.runner.batches.submission import (
    PROBE,
    BatchPlan,
    JudgesAsBatches,
    make_batch_runner,
)
from helm_longctx.runner.rejudge import Rejudger
from helm_longctx.runs.journal import NAME as JOURNAL
from helm_longctx.runs.ledger import NAME as LEDGER
from tests.judging.grades import grade
from tests.runner.making import make_run, means, spec_of
from tests.support.batches import Folder, register, stated
from tests.support.questions import ROW, write_questions
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


def files(run: Path) -> dict[str, bytes]:
    """Return the content of a run's files."""
    return {
        path.name: path.read_bytes()
        for path in run.iterdir()
        if path.name not in (LEDGER, LOCK)
    }


def test_the_same_as_the_direct_way(
    folder: JudgedFolder, server: BatchServer, tmp_path: Path
) -> None:
    """The results are the same although a connection is lost, a line is missing, a reply has no verdict, and collecting fails."""
    with pytest.raises(InputError, match="there are no answers to judge"):
        folder.ask()
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
    """Missing verdicts are recovered without a call. Until then, the run's files do not change."""
    server.plan = faults.always(
        Fault.SERVER_ERROR, lambda prompt: "correctness" in prompt
    )
    with pytest.raises(InputError, match="no judge gave a verdict"):
        folder.make()
    (run,) = (
        path.parent for path in tmp_path.glob("benchmark_output/runs/s/*/stats.json")
    )
    before = files(run)
    sent = direct(server)
    server.plan = faults.none
    rejudger = Rejudger(tmp_path / "benchmark_output", "s", tmp_path)
    folder.ask()
    with pytest.raises(
        InputError,
        match="8 requests of this run are in batches that were not collected",
    ):
        rejudger.rejudge(run, folder.spec)
    assert not folder.batches.wait()
    assert files(run) == before
    result = rejudger.rejudge(run, folder.spec)
    assert (result.recovered, result.missing) == (8, 0)
    assert direct(server) == sent
    assert not (run / JOURNAL).exists()


def test_changed_files(
    folder: JudgedFolder, server: BatchServer, tmp_path: Path
) -> None:
    """The answers of a run are not judged after the user has changed its questions."""
    questions = write_questions(tmp_path, ROW)
    (questions / "rubric.txt").write_text("It is brief.", encoding="utf-8")
    model = "model=longctx/lexical,model_deployment=corp/openai"
    entry = f"any_jsonl:path={questions},metric=rubric,length=8k,count_with=longctx/words,judge=corp/openai,{model}"
    with pytest.raises(InputError, match="no judge gave a verdict"):
        make_run(tmp_path, entry)
    folder.spec = spec_of(entry)
    folder.ask()
    write_questions(tmp_path, {**ROW, "question": "Who received it?"})
    folder.spec = spec_of(entry)
    with pytest.raises(InputError, match="there are no answers to judge"):
        folder.ask()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            ENTRY.replace("corp/anthropic", "longctx/lexical"),
            "longctx/lexical has no batches; use a deployment",
        ),
        (
            "helmet_cite:length=8k,judge=longctx/lexical,model=longctx/lexical",
            "judge=longctx/lexical cannot be asked in batches",
        ),
    ],
)
def test_judges_without_batches(
    folder: JudgedFolder, server: BatchServer, entry: str, message: str
) -> None:
    """One line of error comes before anything is sent to a batch."""
    folder.spec = spec_of(entry)
    with pytest.raises(InputError, match=message) as error:
        folder.ask()
    assert "\n" not in str(error.value)
    assert not server.batches
