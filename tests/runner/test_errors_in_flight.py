"""Tests that any error of the loops that ask waits for the answers in flight, which are paid for, and keeps them."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helm.common.request import Request, RequestResult

from helm_longctx.apps.gate.distributions import TEXTS
from helm_longctx.apps.gate.teacher_forcing import TextComparison
from helm_longctx.runner import asking, programs
from helm_longctx.runner.asking import Progress
from helm_longctx.runs.journal import NAME, DurableLines, SealedLines, read_answers
from tests.runner.making import ENTRY, PlainClient, answered, make_run
from tests.runner.scripted_runs import METHODS, make, serving
from tests.support import scripted
from tests.support.broken_models import make_candidates, make_questions
from tests.support.cached_server import CachedServer
from tests.support.commands import Command

BASELINES = ("longctx/lexical", "longctx/null")
"""Deployments without prices."""

_SECONDS = 0.3
"""How long a request is in flight. The loop looks five times as often what is."""

ERRORS = (
    OSError("the disk is gone"),
    MemoryError("no memory"),
    ValueError("a mistake in the loop"),
    KeyboardInterrupt(),
    SystemExit(143),
)


@pytest.fixture(params=ERRORS, ids=lambda error: type(error).__name__)
def failing(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> type[BaseException]:
    """Raise an error in the thread of the loop while two requests are in flight, and return its class."""
    monkeypatch.setattr(asking, "TICK", _SECONDS / 5)
    monkeypatch.setattr(programs, "TICK", _SECONDS / 5)
    show = Progress.show

    def show_or_fail(progress: Progress, in_flight: int, longest: float) -> None:
        if in_flight == 2:
            raise request.param
        show(progress, in_flight, longest)

    monkeypatch.setattr(Progress, "show", show_or_fail)
    return type(request.param)


def find_answers(folder: Path) -> dict[str, RequestResult | None]:
    (journal,) = folder.rglob(NAME)
    return read_answers(journal)


def test_a_run(
    failing: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run keeps each answer whose request was sent."""

    def answer(client: PlainClient, request: Request) -> RequestResult:
        client.asked.append(request.prompt)
        if len(client.asked) > 1:
            time.sleep(_SECONDS)
        return answered("x", cached=False)

    monkeypatch.setattr(PlainClient, "make_request", answer)
    with pytest.raises(BaseException) as raised:  # noqa: PT011 - HELM wraps some
        make_run(tmp_path, ENTRY + "test/plain")
    if not issubclass(failing, Exception):
        assert raised.type is failing
    assert len(PlainClient.asked) < 12
    assert len(find_answers(tmp_path)) == len(PlainClient.asked)


def test_a_run_with_programs(failing: type[BaseException], tmp_path: Path) -> None:
    """A run whose questions are answered by programs keeps each reply whose request was sent."""
    with serving() as server:

        def answer(prompt: str) -> str:
            if len(server.calls) > 1:
                time.sleep(_SECONDS)
            return scripted.answer(prompt)

        server.answer = answer
        with pytest.raises(BaseException) as raised:  # noqa: PT011 - HELM wraps some
            make(tmp_path, METHODS["map_reduce"])
    if not issubclass(failing, Exception):
        assert raised.type is failing
    assert len(find_answers(tmp_path)) == len(server.calls)


def interrupt_once(ask: Callable[..., Any], number: int) -> Callable[..., Any]:
    """Return a function that calls another one, and sends Ctrl-C to this process before so many-th call."""
    main = threading.main_thread().ident
    assert main is not None
    count = 0

    def ask_or_interrupt(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == number:
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.5)
        return ask(*arguments)

    return ask_or_interrupt


def test_a_check_of_a_cache(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C `cache-check` keeps the reply in flight, and the same command asks only the others."""
    options = ("--length", "1k", "--to", "out", "--quiet", "--questions", "4")
    path = Path("out/answers.jsonl")
    server = CachedServer()
    with server.serve() as url:
        check = ("cache-check", "--model-url", url, *options, "--states", "warm")
        append = DurableLines.append
        monkeypatch.setattr(DurableLines, "append", interrupt_once(append, 3))
        with pytest.raises(KeyboardInterrupt):
            command(*check)
        assert len(path.read_text().splitlines()) == 3
        monkeypatch.setattr(DurableLines, "append", append)
        command(*check)
    lines = path.read_text().splitlines()
    assert len(lines) == len(set(lines)) == 12


def test_a_comparison_of_distributions(tmp_path: Path) -> None:
    """After Ctrl-C `gate --logprobs` keeps the question in flight, and goes on with the next one."""
    candidates = make_candidates(7)
    path = tmp_path / "compared.jsonl"
    questions = make_questions(7, 4)

    def compare(number: int) -> TextComparison:
        ask = interrupt_once(candidates["twin"], number)
        comparison = TextComparison((ask, ask), BASELINES, path, 0.05, TEXTS)
        comparison.ask(questions, 1)
        return comparison

    with pytest.raises(KeyboardInterrupt):
        compare(6)
    kept = list(SealedLines(path, "remove it").read())
    assert 0 < len(kept) < len(questions)
    comparison = compare(0)
    assert len(list(SealedLines(path, "remove it").read())) == len(questions)
    assert {point.group for point in comparison.points} == {"0", "1", "2", "3"}
