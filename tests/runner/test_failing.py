"""Tests of requests that fail or hang: what is repeated, what is logged, and when a run ends and can go on."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, current_thread
from threading import enumerate as enumerate_threads

import pytest
from helm.common.hierarchical_logger import hexception
from helm.common.optional_dependencies import OptionalDependencyNotInstalled
from helm.common.request import Request, RequestResult

from helm_longctx import interruptions
from helm_longctx.environment import EXTRAS
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.models.apis import calls
from helm_longctx.models.apis.calls import WorkerPool
from helm_longctx.run_settings import TIMEOUT, RunSettings
from helm_longctx.runner import asking
from helm_longctx.runner.asking import GIVE_UP, CircuitBreaker
from helm_longctx.runs.journal import NAME, read_answers
from helm_longctx.tasks.answer import Answer
from tests.runner.making import ENTRY, PlainClient, make_run

PLAIN = ENTRY + "test/plain"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Return HELM's log."""
    caplog.set_level("INFO")
    return caplog


def fail(
    monkeypatch: pytest.MonkeyPatch,
    error: str,
    where: Callable[[str], bool] = lambda prompt: True,
) -> None:
    """Let the client's requests fail with an error."""
    answer = PlainClient.make_request

    def make_request(self: PlainClient, request: Request) -> RequestResult:
        if not where(request.prompt):
            return answer(self, request)
        self.asked.append(request.prompt)
        try:
            raise ValueError(error)
        except ValueError as raised:
            hexception(raised)  # as HELM's clients do
        return RequestResult(False, [], [], False, error=error)

    monkeypatch.setattr(PlainClient, "make_request", make_request)


def test_temporary_failures_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A temporary failure is tried again, and a request that was answered at last has not failed."""
    fail(
        monkeypatch,
        "Error code: 503",
        lambda prompt: PlainClient.asked.count(prompt) < RunSettings.tries - 1,
    )
    run = make_run(tmp_path, PLAIN)
    assert len(PlainClient.asked) == 12 * RunSettings.tries
    assert not (run / NAME).exists()


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        ("Error code: 400 - bad parameter", GIVE_UP),
        ("Error code: 400 - maximum context length is 4096 tokens", GIVE_UP),
        ("Error code: 401 - wrong", 1),
        ("Error code: 404 - the model m does not exist", 1),
        ("[Errno 111] Connection refused", 1),
        ("No module named 'openai'", 1),
        ("Error code: 429 - insufficient_quota", 1),
    ],
)
def test_other_failures_are_not(
    error: str, asked: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure of every request ends the run at the first one, and other failures after ten in a row."""
    fail(monkeypatch, error)
    with pytest.raises(
        InputError,
        match="there are no answers yet; run the same command again to continue",
    ):
        make_run(tmp_path, PLAIN)
    assert asked <= len(PlainClient.asked) <= asked + (asked > 1)
    assert len(PlainClient.asked) == len(set(PlainClient.asked))


def test_failures_in_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stops answering ends the run, and the same command sends only the missing requests."""
    with monkeypatch.context() as patch:
        fail(patch, "Error code: 500", lambda prompt: len(set(PlainClient.asked)) >= 2)
        with pytest.raises(
            InputError,
            match=r"10 requests failed, the last ones in a row: temporary.*[12] answers are",
        ):
            make_run(tmp_path, PLAIN)
    PlainClient.asked.clear()
    run = make_run(tmp_path, PLAIN)
    assert 10 <= len(PlainClient.asked) <= 11
    assert not (run / NAME).exists()


def test_failures_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal of a run that failed holds its answers alone, so that no failure can be taken for an answer."""
    with monkeypatch.context() as patch:
        fail(patch, "Error code: 500", lambda prompt: len(set(PlainClient.asked)) >= 2)
        with pytest.raises(InputError, match="10 requests failed"):
            make_run(tmp_path, PLAIN)
    (path,) = tmp_path.rglob(NAME)
    kept = read_answers(path).values()
    assert 1 <= len(kept) <= 2
    assert all(result and result.success for result in kept)


def test_a_server_that_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a server has answered, a refused connection is tried again."""
    last: list[str] = []

    def first_time(prompt: str) -> bool:
        last.append(prompt)
        return len(set(last)) > 1 and last.count(prompt) == 1

    fail(monkeypatch, "[Errno 111] Connection refused", first_time)
    assert not (make_run(tmp_path, PLAIN) / NAME).exists()


def test_each_kind_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    """Each kind of failure is logged once and counted at the end, and failures due to prompts do not end a run."""
    make_run(tmp_path / "all", PLAIN)
    answered = PlainClient.asked[0]
    fail(
        monkeypatch,
        "Error code: 400 - maximum context length is 4096 tokens",
        lambda prompt: prompt != answered,
    )
    run = make_run(tmp_path, PLAIN)
    warnings = [
        record.getMessage()
        for record in log.records
        if record.levelno >= logging.WARNING
    ]
    told = [line for line in warnings if "too_long" in line]
    assert len(told) == 2
    assert told[1].strip() == "failed: 11 too_long"
    assert "Traceback" not in log.text
    assert (run / NAME).exists()


def test_a_server_that_never_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    """The log says what is in flight and for how long, and after the time of two requests the run ends."""
    monkeypatch.setenv(TIMEOUT, "0.4")
    monkeypatch.setattr(asking, "_LOG_EVERY", 0.1)
    monkeypatch.setattr(interruptions, "SETTLE", 0.1)
    monkeypatch.setattr(asking, "TICK", 0.05)
    never = Event()
    monkeypatch.setattr(PlainClient, "make_request", lambda self, request: never.wait())
    start = time.monotonic()
    with pytest.raises(
        InputError, match=r"no answer within 0.4 seconds \(HELM_LONGCTX_TIMEOUT"
    ):
        make_run(tmp_path, PLAIN)
    assert time.monotonic() - start < 30
    assert (
        "0 of 12 requests, 0 failed, 0 input tokens per second, none answered yet; 1 in flight, the oldest"
        in log.text
    )
    never.set()


def test_a_call_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it, but it goes on: an answer that comes late is kept."""
    monkeypatch.setattr(calls, "TICK", 0.01)
    late = Event()
    done = Event()

    def call(item: str) -> None:
        late.wait(60)
        done.set()

    running = WorkerPool(call, limit=0.05)
    running.start(7, "a")
    given_up: list[tuple[int, object]] = []
    while running:
        given_up += running.wait()
    assert given_up == [(7, None)]
    late.set()
    assert done.wait(60)


def test_threads_make_one_call_after_the_other() -> None:
    """As many threads as calls in flight make one call after the other, and they end when the calls are closed."""
    names: list[str] = []
    running = WorkerPool(lambda item: names.append(current_thread().name), limit=None)
    for number in range(20):
        running.start(number, number)
        if len(running) == 2:
            assert [given for given, _ in running.wait()]
    running.settle(60)
    assert len(names) == 20
    assert len(set(names)) <= 2
    running.close()
    for thread in enumerate_threads():
        if thread.name in names:
            thread.join(60)
            assert not thread.is_alive()


def missing_answer(kind: Failure) -> Answer:
    """Return an answer that is missing."""
    return Answer(failure=kind, error="no")


def test_what_a_prompt_brings_about_is_not_the_servers_fault() -> None:
    """Refusals count as failures in a row only until a request was answered."""
    breaker = CircuitBreaker(100, has_answers=True)
    for _ in range(50):
        breaker.add("a", missing_answer(Failure.REFUSED))
    for _ in range(GIVE_UP - 1):
        breaker.add("a", missing_answer(Failure.TEMPORARY))
    with pytest.raises(InputError, match="60 requests failed"):
        breaker.add("a", missing_answer(Failure.TEMPORARY))


ADVICE = (
    f"{' and '.join(EXTRAS['code'])}; install with: pip install 'helm-longctx[code]'"
)
"""The end of the longest error about a missing extra."""


@pytest.mark.parametrize("is_ours", [True, False])
def test_an_error_is_not_cut_before_its_advice(
    is_ours: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error about a missing package is not shortened before its advice, in our clients and in HELM's."""

    def make_request(self: PlainClient, request: Request) -> RequestResult:
        if is_ours:
            raise InputError(f"the model needs {ADVICE}")
        raise OptionalDependencyNotInstalled(
            f"the model needs {ADVICE}"
        ) from ModuleNotFoundError("no module")

    monkeypatch.setattr(PlainClient, "make_request", make_request)
    with pytest.raises(InputError) as caught:
        make_run(tmp_path, PLAIN)
    assert ADVICE in str(caught.value)
