"""Tests that any error of the loops that ask waits for the answers in flight, which are paid for, and keeps them."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from helm.common.request import Request, RequestResult

from helm_longctx.apps.certify import command as certify_command
from helm_longctx.apps.compaction.samples import WRITERS, make_session
from helm_longctx.apps.gate.distributions import TEXTS
from helm_longctx.apps.gate.teacher_forcing import TextComparison
from helm_longctx.helm_api import AutoClient
from helm_longctx.judging.judge import JudgeReply, JudgeRequest, ask_judges, find_judges
from helm_longctx.models.apis.availability import PROMPT
from helm_longctx.models.apis.calls import WorkerPool, call_all
from helm_longctx.models.apis.sending import Retries, Sender
from helm_longctx.run_settings import JUDGE_PARALLEL
from helm_longctx.runner import asking, programs
from helm_longctx.runner.asking import Progress
from helm_longctx.runner.cache import digest_cache
from helm_longctx.runs.journal import (
    NAME,
    DurableLines,
    Journal,
    SealedLines,
    read_answers,
)
from helm_longctx.runs.ledger import Ledger
from helm_longctx.tasks.judgement import ANSWER
from tests.runner.making import ENTRY, PlainClient, answered, make_run
from tests.runner.scripted_runs import METHODS, make, serving
from tests.support import scripted
from tests.support.agents import AgentServer
from tests.support.batches import ENTRY as BATCHED
from tests.support.batches import Folder as BatchFolder
from tests.support.batches import register as register_batches
from tests.support.broken_models import make_candidates, make_questions
from tests.support.cached_server import CachedServer
from tests.support.commands import Command
from tests.support.deployments import register_server
from tests.support.endpoints import SimulatedModel, View, honest
from tests.support.endpoints import serve as serve_model
from tests.support.servers.batches import BatchServer
from tests.support.servers.llm import Server, serve

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


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Handle Ctrl-C in this process as `evaluate` does. Our commands would end the process."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    yield
    signal.signal(signal.SIGINT, before)


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


def test_a_check_of_a_cache(
    command: Command, monkeypatch: pytest.MonkeyPatch, interrupts: None
) -> None:
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


def test_a_comparison_of_distributions(tmp_path: Path, interrupts: None) -> None:
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


class MainThreadError:
    """An error that the loop of a pool of calls raises once in the main thread, while at least two calls are in flight.

    Attributes:
        is_due: whether it may be raised.
        is_raised: whether it was raised.
    """

    def __init__(self, error: BaseException):
        self._error = error
        self.is_due: Callable[[], bool] = lambda: True
        self.is_raised = False

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the loop raise the error."""
        wait = WorkerPool.wait

        def wait_or_fail(pool: Any, seconds: float | None = None) -> Any:
            is_main = threading.current_thread() is threading.main_thread()
            if is_main and len(pool) >= 2 and not self.is_raised and self.is_due():
                self.is_raised = True
                raise self._error
            # The loop looks often, so that it sees the moment at which the error is due.
            yield from wait(pool, seconds if self.is_raised else 0.02)

        monkeypatch.setattr(WorkerPool, "wait", wait_or_fail)

    def hold(self, most: float = 30) -> None:
        """Keep a call in flight until the error is raised, but at most so many seconds, and a moment longer."""
        end = time.monotonic() + most
        while not self.is_raised and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.1)


def make_error(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> MainThreadError:
    raised = MainThreadError(error)
    raised.install(monkeypatch)
    return raised


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_calls_that_make_calls(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error calls in flight end, and no other one begins, also none that a call makes in its turn."""
    begun: list[int] = []
    ended: list[int] = []

    def send(number: int) -> None:
        begun.append(number)
        raised.hold()
        ended.append(number)

    def send_all(start: int) -> None:
        call_all(send, range(start, start + 10), parallelism=2)

    raised = make_error(error, monkeypatch)
    raised.is_due = lambda: len(begun) == 4
    with pytest.raises(type(error)):
        call_all(send_all, [0, 10, 20], parallelism=2)
    assert sorted(ended) == sorted(begun) == [0, 1, 10, 11]


def test_an_attempt_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that waits for its next attempt is not sent again after an error of the loop, and ends at once."""
    requests: list[str] = []

    class Failing:
        def make_request(self, request: Request) -> RequestResult:
            requests.append(request.prompt)
            raise ConnectionError

    client: Any = Failing()
    sender = Sender(client, Retries(tries=5, first_wait=60))

    def send(prompt: str) -> None:
        sender(Request(model="a/b", prompt=prompt))

    raised = make_error(KeyboardInterrupt(), monkeypatch)
    raised.is_due = lambda: len(requests) == 2
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        call_all(send, ["a", "b", "c"], parallelism=2)
    assert sorted(requests) == ["a", "b"]
    assert time.monotonic() - start < 5


def count_questions(server: Server) -> Counter[str]:
    """Return how often each question was sent, without the requests that find out what the server offers."""
    questions = Counter[str]()
    for call in server.calls:
        if call.prompt != PROMPT:
            questions[call.question] += 1
    return questions


def test_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges' replies in flight are kept, the next reply of a judge is not requested, and none is requested twice."""
    monkeypatch.setenv(JUDGE_PARALLEL, "2")
    seen: set[str] = set()

    def reply(prompt: str) -> str:
        if prompt in seen:
            return "right"
        seen.add(prompt)
        raised.hold()
        # Then another reply is requested.
        return "I cannot say."

    request = partial(
        JudgeRequest,
        parse=lambda text: {"right": 1} if text == "right" else None,
        max_tokens=9,
        temperature=0.0,
        top_p=1.0,
        seed=None,
    )
    requests = [{ANSWER: request(f"Is {number} right?")} for number in range(4)]
    with serve(reply) as server:
        register_server("corp/judge", server.address)

        def judge() -> list[dict[str, dict[str, JudgeReply]]]:
            Path("cache").mkdir(exist_ok=True)
            client = AutoClient({}, "cache", digest_cache("cache"))
            return ask_judges(find_judges("corp/judge", client), requests)

        raised = make_error(KeyboardInterrupt(), monkeypatch)
        raised.is_due = lambda: len(seen) == 2
        with pytest.raises(KeyboardInterrupt):
            judge()
        assert sorted(count_questions(server).values()) == [1, 1]
        answered = judge()
        assert [replies["corp/judge"][ANSWER].text for replies in answered] == [
            "right"
        ] * 4
        # Each question has a reply without a verdict, and one with a verdict.
        assert sorted(count_questions(server).values()) == [2] * 4


def test_a_comparison_of_compactors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """After an error `compaction` has each reply whose request was sent, and its threads send nothing else."""
    messages, raws = make_session(0, turns=16, per_kind=2)
    end, write = next(iter(WRITERS.values()))
    Path(end).write_bytes(write(messages))
    server = AgentServer([])
    server.raws += raws
    summarize = server.summarize

    def summarize_slowly(prompt: str) -> str:
        raised.hold()
        return summarize(prompt)

    monkeypatch.setattr(server, "summarize", summarize_slowly)
    raised = make_error(OSError("the disk is gone"), monkeypatch)
    raised.is_due = lambda: server.kinds["summarize"] >= 2
    options = ("--compactor", "compact", "--rounds", "1,2", "--quiet", "--to", "out")
    with server.serve() as url:
        assert command("compaction", end, "--model-url", url, *options) == 2
        assert raised.is_raised
        sent = len(server.prompts) - server.kinds["greet"]
        kept = list(SealedLines(Path("out/replies.jsonl"), "remove it").read())
        assert len(kept) == sent
        time.sleep(0.5)
        assert len(server.prompts) - server.kinds["greet"] == sent


def test_a_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """After an error `certify` has each answer whose request was sent."""

    def see_slowly(text: str, tokens: int) -> View:
        # The first request of all and the first of the questions are sent alone.
        if len(asked) > 2:
            raised.hold()
        return honest(text, tokens)

    # One of five kinds of questions is enough.
    Path("kinds.yaml").write_text(
        "always: {recall: 'fresh_text:task=recall'}\n"
        "by_choice: {tool_calls: 'tool_calls:task=constraint'}\n"
    )
    monkeypatch.setattr(certify_command, "_KINDS", Path("kinds.yaml"))
    raised = make_error(MemoryError(), monkeypatch)
    options = ("--claim", "2k", "--shortest", "1k", "--to", "out", "--quiet")
    with serve_model(SimulatedModel(see_slowly, skill=1.0)) as (url, asked):
        with pytest.raises(MemoryError):
            command("certify", "--model-url", url, *options, "--model-name", "s")
        assert raised.is_raised
        # Without the request that finds out what the server offers.
        assert len(find_answers(Path("out"))) == len(asked) - 1


def send_and_collect(folder: BatchFolder) -> None:
    folder.submit()
    folder.batches.collect()


@pytest.mark.parametrize(
    ("error", "store", "name"),
    [
        (OSError("the disk is gone"), Ledger, "set_batch"),
        (MemoryError(), Ledger, "set_batch"),
        (SystemExit(143), Ledger, "set_batch"),
        (ValueError("a mistake"), Journal, "add"),
        (KeyboardInterrupt(), Journal, "add"),
        (OSError("the disk is gone"), Ledger, "set_collected"),
    ],
)
def test_batches(
    error: BaseException,
    store: type[Ledger | Journal],
    name: str,
    server: BatchServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After an error in the middle of sending or collecting batches, no request is paid for twice."""

    def fail(*arguments: Any) -> None:
        raise error

    folder = BatchFolder(Path(), BATCHED + register_batches("openai", server))
    with monkeypatch.context() as patch:
        patch.setattr(store, name, fail)
        with pytest.raises(BaseException) as raised:  # noqa: PT011 - HELM wraps some
            send_and_collect(folder)
    if not isinstance(error, Exception):
        assert raised.type is type(error)
    send_and_collect(folder)
    assert not folder.batches.are_open
    assert set(server.paid.values()) == {1}
    assert len(find_answers(folder.run)) == 12


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("memory,turn=1000", KeyboardInterrupt()),
        ("agent", OSError("the disk is gone")),
    ],
)
def test_programs_in_which_the_model_decides(
    method: str,
    error: BaseException,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A memory and an agent keep each reply, and no request is sent twice."""
    raised = make_error(error, monkeypatch)
    with serving() as server:

        def answer(prompt: str) -> str:
            # The requests of the first question are sent one by one.
            raised.hold(0.1)
            return scripted.answer(prompt)

        server.answer = answer
        with pytest.raises(BaseException):  # noqa: B017, PT011 - HELM wraps some
            make(tmp_path, method)
        assert raised.is_raised
        assert len(find_answers(tmp_path)) == len(server.calls)
        make(tmp_path, method)
        bodies = Counter(json.dumps(call.body) for call in server.calls)
    assert set(bodies.values()) == {1}
