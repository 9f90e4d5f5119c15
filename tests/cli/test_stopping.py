"""Tests of Ctrl-C and SIGTERM: each command that asks keeps the answers in flight, and sends nothing else."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any

import pytest

from helm_longctx.apps.compaction.samples import WRITERS, make_session
from helm_longctx.benchmarks.helmet.rubrics import checks
from helm_longctx.data.root import DataRoot
from helm_longctx.models.apis.availability import PROMPT
from helm_longctx.models.baselines import lexical
from helm_longctx.run_settings import MIRROR
from helm_longctx.runs.journal import NAME
from tests.judging.characters import Characters
from tests.judging.deployments import write_judges
from tests.support.agents import AgentServer
from tests.support.cached_server import CachedServer
from tests.support.commands import Command
from tests.support.fabricate_books import build_rubrics
from tests.support.programs import start
from tests.support.servers.llm import asked_again, serve

_LATE = 1.2
"""Seconds after the signal at which the answers in flight come. A command ends after three seconds."""

_ERRORS = Path("errors.txt")


class Hold:
    """Holds the answers of a server from a number on, until they are released."""

    def __init__(self, first: int):
        self._first = first
        self._count = 0
        self._lock = Lock()
        self.is_reached = Event()
        self.is_over = Event()

    def wrap(self, answer: Callable[[str], str]) -> Callable[[str], str]:
        """Return a function that answers as another one does, after the wait."""
        return partial(self._answer, answer)

    def _answer(self, answer: Callable[[str], str], prompt: str) -> str:
        with self._lock:
            self._count += prompt != PROMPT
            is_held = self._count >= self._first
        if is_held:
            self.is_reached.set()
            self.is_over.wait(60)
        return answer(prompt)


def stop(hold: Hold, number: signal.Signals, *arguments: str) -> str:
    """Run a command, stop it while answers are held, and return the line that it has printed."""
    program = start("helm-longctx", *arguments, folder=Path.cwd(), errors=_ERRORS)
    try:
        deadline = time.monotonic() + 120
        while not hold.is_reached.wait(0.1):
            assert program.poll() is None, _ERRORS.read_text()
            assert time.monotonic() < deadline
        program.send_signal(number)
        deadline = time.monotonic() + 60
        start_of_line = f"helm-longctx: stopped by {number.name}"
        while start_of_line not in _ERRORS.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(_LATE)
        hold.is_over.set()
        assert program.wait(60) == 128 + number
    finally:
        program.kill()
    text = _ERRORS.read_text()
    assert "Traceback" not in text
    (line,) = [line for line in text.splitlines() if line.startswith(start_of_line)]
    return line


def write_questions() -> None:
    """Write eight questions of a user, and a rubric."""
    rows = []
    for number in range(8):
        question = f"Who lives in Rome {number}?"
        row = {"context": "Ada lives in Rome.", "question": question}
        rows.append(json.dumps(row | {"answers": ["Ada"]}) + "\n")
    Path("own").mkdir()
    Path("own/questions.jsonl").write_text("".join(rows))
    Path("own/rubric.txt").write_text("Full marks for the name.\n")


def answer_any(prompt: str) -> str:
    """Answer a question, or the request that finds out what a server offers."""
    return lexical.answer(prompt) or "ready"


def test_run() -> None:
    """`run` keeps all answers whose requests were sent."""
    write_questions()
    hold = Hold(3)
    with serve(hold.wrap(answer_any)) as server:
        entry = "any_jsonl:path=own,length=4k,count_with=longctx/words"
        model = ("--model-url", server.openai, "--model-name", "m")
        options = ("--model-type", "chat", "--entry", entry, "--suite", "s", "-n", "4")
        line = stop(hold, signal.SIGINT, "run", *model, *options)
    (journal,) = Path("benchmark_output/runs/s").rglob(NAME)
    kept = len(journal.read_text().splitlines())
    sent = [call for call in server.calls if call.prompt != PROMPT]
    assert 3 <= len(sent) == kept < 8
    assert "answers are kept in" in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_judge_check(
    number: signal.Signals, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`judge-check` keeps all replies of the judge, and the same command pays for none again."""
    build_rubrics(Path("root"))
    monkeypatch.setenv(MIRROR, "root")
    hold = Hold(4)
    characters = Characters(checks(DataRoot(Path("root"), mirror=True)))
    with serve(hold.wrap(characters.perfect)) as server:
        write_judges(Path("local"), {"tests/right": server.openai})
        options = ("--repeats", "1", "--local-path", "local")
        arguments = ("judge-check", "--judge", "tests/right", *options)
        line = stop(hold, number, *arguments)
        sent = len(server.calls)
        assert command(*arguments) == 0
    assert line.endswith(
        "what was answered is kept in local/cache; run the same command again to continue"
    )
    asked = [call for call in server.calls if call.prompt != PROMPT]
    assert 4 <= sent < len(asked)
    assert asked_again(asked) == []


def test_rejudge(command: Command) -> None:
    """`rejudge` keeps all replies of the judge, and the same command pays for none again."""
    write_questions()
    hold = Hold(3)
    with (
        serve(lambda prompt: "Good.\nGRADE: 8") as first,
        serve(hold.wrap(lambda prompt: "Bad.\nGRADE: 2")) as second,
    ):
        servers = {"my/a": first.openai, "my/b": second.openai}
        write_judges(Path("prod_env"), servers)
        entry = "any_jsonl:path=own,metric=rubric,length=4k,judge=my/a"
        run = ("run", "--model", "longctx/lexical", "--entry", entry, "--suite", "s")
        assert command(*run) == 0, command.err
        arguments = ("rejudge", "--suite", "s", "--judge", "my/b", "--to", "other")
        line = stop(hold, signal.SIGTERM, *arguments)
        sent = len(second.calls)
        assert not list(Path("benchmark_output/runs/other").glob("*judge*"))
        assert command(*arguments) == 0, command.err
    assert "what was answered is kept in prod_env/cache" in line
    asked = [call for call in second.calls if call.prompt != PROMPT]
    assert 3 <= sent < len(asked) + 2
    assert len(asked) == 8
    assert asked_again(asked) == []


def test_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """`compaction` keeps all replies, and its threads send nothing else."""
    messages, raws = make_session(0, turns=16, per_kind=2)
    end, write = next(iter(WRITERS.values()))
    Path(end).write_bytes(write(messages))
    server = AgentServer([])
    server.raws += raws
    hold = Hold(2)
    monkeypatch.setattr(server, "summarize", hold.wrap(server.summarize))
    options = ("--compactor", "compact", "--rounds", "1,2", "--to", "out")
    with server.serve() as url:
        arguments = ("compaction", end, "--model-url", url, *options)
        line = stop(hold, signal.SIGTERM, *arguments)
    sent = len(server.prompts) - server.kinds["greet"]
    kept = len(Path("out/replies.jsonl").read_text().splitlines())
    assert server.kinds["summarize"] >= 2
    assert kept == sent
    assert "what was answered is kept in out;" in line


def test_cache_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """`cache-check` keeps the reply in flight, and asks nothing else."""
    server = CachedServer()
    hold = Hold(3)
    answer = server.answer

    def answer_slowly(body: dict[str, Any]) -> dict[str, Any]:
        prompt = body["messages"][-1]["content"]
        # Short ones find out what the server offers.
        if len(prompt) > 1000:
            hold.wrap(str)(prompt)
        return answer(body)

    monkeypatch.setattr(server, "answer", answer_slowly)
    # The fields of cold requests are given, so that none are looked for.
    cold = ("--states", "cold", "--cold", '{"cache_prompt": false}')
    options = ("--length", "1k", "--to", "out", "--questions", "4", *cold)
    with server.serve() as url:
        arguments = ("cache-check", "--model-url", url, *options)
        line = stop(hold, signal.SIGTERM, *arguments)
    kept = Path("out/answers.jsonl").read_text().splitlines()
    assert len(kept) == hold._count == 3
    assert "what was answered is kept in out/answers.jsonl;" in line
