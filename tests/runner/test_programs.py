"""Tests of methods whose program sends any number of requests, with a real server and models that follow a script."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.errors import InputError
from helm_longctx.results.statistics.intervals import mean_interval
from helm_longctx.run_settings import MAX_COST, MIRROR, PRICES
from helm_longctx.runner import LongContextRunner, programs
from helm_longctx.runner.estimate import Rate, estimate_runs
from helm_longctx.runs.journal import NAME
from helm_longctx.runs.scores import read_steps
from helm_longctx.tasks.methods import registry
from helm_longctx.tasks.methods.memory import ChunkMemory
from helm_longctx.tasks.methods.method import Method, Question
from helm_longctx.tasks.token_estimate import estimate_tokens
from tests.benchmarks.longmemeval.fabricate import build_longmemeval, make_rows
from tests.runner import making
from tests.runner.kills import kill
from tests.runner.scripted_runs import (
    BASE,
    METHODS,
    MODEL,
    SAMPLES,
    answers,
    make,
    scores,
    serving,
)
from tests.support import scripted
from tests.support.servers.faults import Fault


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let failed requests be sent again after a millisecond."""
    monkeypatch.setenv("HELM_LONGCTX_WAIT", "0.001")


@pytest.mark.parametrize("method", METHODS)
def test_each_method_finds_the_answers(method: str, tmp_path: Path) -> None:
    """Each method reads the whole context, keeps its steps with their tokens, and its answer is scored."""
    with serving() as server:
        run = make(tmp_path, METHODS[method])
    assert set(scores(run).values()) == {1.0}
    steps = dict(read_steps(run))
    assert len(steps) == SAMPLES
    sent = sum(
        not step["shared"]
        for question_steps in steps.values()
        for step in question_steps
    )
    assert sent == len(server.calls) >= SAMPLES
    means = {name[0]: value for name, value in making.means(run).items()}
    assert means["requests"] == sum(map(len, steps.values())) / SAMPLES
    step = next(iter(steps.values()))[0]
    assert {"label", "prompt", "text", "seconds", "usage"} <= step.keys()
    assert not (run / NAME).exists()
    # No request has the whole context, except where a method lets it fit.
    longest = max(len(call.prompt) for call in server.calls)
    assert longest < 16_000


def test_a_summary_is_sent_once_for_all_questions(tmp_path: Path) -> None:
    """Summaries have no question, so the questions about one context share them, and the first one pays."""
    with serving() as server:
        run = make(tmp_path, METHODS["compact"])
    prompts = Counter(call.prompt for call in server.calls)
    assert set(prompts.values()) == {1}
    assert any(step["shared"] for _, steps in read_steps(run) for step in steps) == (
        len(prompts) < sum(len(steps) for _, steps in read_steps(run))
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_was_stopped_sends_nothing_twice(
    method: str, tmp_path: Path
) -> None:
    """After failures in the middle, the same command sends only what has no answer, and the answers are the same."""
    with serving() as server:
        expected = answers(make(tmp_path / "whole", METHODS[method]))
        total = len(server.calls)
        server.forget()
        server.plan = lambda prompt, before: (
            Fault.UNAUTHORIZED if len(server.calls) >= total // 2 else None
        )
        with pytest.raises(InputError, match="answers are kept"):
            make(tmp_path / "half", METHODS[method])
        answered = [call.prompt for call in server.calls if not call.fault]
        server.forget()
        server.plan = lambda prompt, before: None
        assert answers(make(tmp_path / "half", METHODS[method])) == expected
        again = [call.prompt for call in server.calls]
    assert not set(answered) & set(again)
    assert len(answered) + len(again) == total


@pytest.mark.parametrize("name", ["compact", "agent"])
def test_a_killed_run_sends_nothing_twice(name: str, tmp_path: Path) -> None:
    """A run that SIGKILL ends twice at random requests has the same answers, and asks again only what was in flight."""
    outcome = kill(tmp_path, name, 2, random.Random(name))
    assert outcome.equal
    assert outcome.sent == outcome.requests
    assert outcome.answered == 0


def test_an_estimate_counts_the_requests(tmp_path: Path) -> None:
    """An estimate has as many requests as a run, where the model does not decide on their number."""
    runner = making.make_runner(tmp_path)
    assert isinstance(runner, LongContextRunner)
    with serving(
        lambda prompt: scripted.answer(prompt, keep=lambda key: False)
    ) as server:
        for method in (
            "compact,turn=1000,threshold=3000,kept=20",
            "refine,part=1000,notes=20",
        ):
            estimate = estimate_runs(
                runner, [making.spec_of(BASE + method + MODEL)], {}, Rate()
            )[0]
            make(tmp_path / method, method)
            assert estimate.requests == len(server.calls), method
            sent = sum(estimate_tokens(call.prompt) for call in server.calls)
            assert estimate.prompt_tokens.total == pytest.approx(sent, rel=0.2)
            server.forget()


@pytest.mark.parametrize("method", ["refine", "map_reduce"])
def test_a_limit_in_dollars_holds_to_one_request(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run ends before a request that could exceed the limit, and a higher limit goes on from there."""
    (tmp_path / "prices.yaml").write_text(
        json.dumps({"corp/scripted": {"input": 1000, "output": 0}})
    )
    monkeypatch.setenv(PRICES, str(tmp_path / "prices.yaml"))
    with serving() as server:
        steps = [
            step["dollars"]
            for _, steps in read_steps(make(tmp_path / "free", METHODS[method]))
            for step in steps
        ]
        limit = round(sum(steps) / 2, 2)
        server.forget()
        monkeypatch.setenv(MAX_COST, str(limit))
        with pytest.raises(
            InputError,
            match=r"the next request can cost \$.* and HELM_LONGCTX_MAX_COST=[\d.]+ allows",
        ):
            make(tmp_path, METHODS[method])
        first = len(server.calls)
        assert 1 < first < len(steps)
        monkeypatch.delenv(MAX_COST)
        run = make(tmp_path, METHODS[method])
        assert len({call.prompt for call in server.calls}) == len(server.calls)
    assert sorted(
        step["dollars"] for _, steps in read_steps(run) for step in steps
    ) == sorted(steps)
    assert sum(sorted(steps)[:first]) <= limit


def _loop(question: Question) -> str:
    number = 0
    while True:
        question.ask(f"Again {number}.")
        number += 1


def _compute(question: Question) -> str:
    while True:
        pass


def _fork(question: Question) -> str:
    question.ask("First.")
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
    os.waitpid(pid, 0)
    return question.ask("Second.")


def _raise(question: Question) -> str:
    raise ValueError("no such key")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (
            _loop,
            "method=bad asks for more than max_requests=7 requests; it was stopped, and the question has no answer",
        ),
        (
            _compute,
            "method=bad computed for 0.2 seconds without a request; it was stopped",
        ),
        (_fork, "method=bad started a process with fork; it was stopped"),
        (_raise, "method=bad: ValueError: no such key; it was stopped"),
        (
            lambda question: None,
            "method=bad returned a value of type NoneType instead of a text",
        ),
    ],
)
def test_a_bad_program_is_stopped(
    program: Any, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that loops, computes for ever, forks or fails costs only its own question, which counts as failed."""
    ids: list[str] = []

    def answer(question: Question) -> str:
        ids.append(question.id)
        return (
            program(question)
            if question.id == ids[0]
            else question.answer(question.context)
        )  # type: ignore[no-any-return]

    monkeypatch.setitem(registry.METHODS, "bad", Method("bad", "Fails.", answer=answer))  # type: ignore[arg-type]
    monkeypatch.setattr(programs, "_MOST_SECONDS", 0.2)
    with serving():
        run = make(tmp_path, "bad,max_requests=7")
    states = making.read(run, "scenario_state")["request_states"]
    errors = [state["result"].get("error") for state in states]
    assert sum(error is None for error in errors) == SAMPLES - 1
    assert next(filter(None, errors)).startswith(reason)
    kinds = [state["result"].get("facts", {}).get("failure") for state in states]
    assert kinds.count("bad_request") == 1
    assert len(scores(run)) == SAMPLES - 1


class Oldest(ChunkMemory):
    """A memory that keeps only the last chunks."""

    capacity = 4


def test_a_memory_is_fed_once_and_forgets_the_oldest(tmp_path: Path) -> None:
    """A memory that keeps the last chunks knows only facts from the end of the context."""
    with serving():
        run = make(tmp_path, f"memory,turn=1000,system={__name__}.Oldest")
    rows = making.read(run, "per_instance_stats")
    by_depth = {}
    for row in rows:
        values = {stat["name"]["name"]: stat["mean"] for stat in row["stats"]}
        by_depth[values["depth"]] = values["longctx_score"]
    assert by_depth[min(by_depth)] == 0.0
    assert by_depth[max(by_depth)] == 1.0


class Diary:
    """A memory that needs no model, and says what it was fed."""

    fed: list[list[tuple[str, str]]] = []  # noqa: RUF012  # the test reads what all of them were fed

    def reset(self) -> None:
        """Forget earlier contexts: what follows is in a list of its own."""
        self.fed.append([])

    def feed(self, text: str, metadata: Mapping[str, Any]) -> None:
        """Keep a part with its date, as it was given."""
        self.fed[-1].append((metadata["date"], text))

    def answer(self, question: str) -> str:
        """Return the number of sessions that were fed since the last reset, whatever the question is."""
        return f"{len(self.fed[-1])} sessions"


def test_a_memory_is_fed_sessions_with_their_dates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On LongMemEval, a part is a session, in the order of dates; together they are the whole history."""
    monkeypatch.setenv(MIRROR, str(build_longmemeval(tmp_path / "mirror")))
    monkeypatch.setattr(Diary, "fed", [])
    with serving() as server:
        entry = f"longmemeval:task=oracle,method=memory,turn=100000,system={__name__}.Diary{MODEL}"
        run = making.make_run(tmp_path, entry, cache=False)
    assert not server.calls
    rows = {row["question_id"]: row for row in make_rows("oracle")}
    states = making.read(run, "scenario_state")["request_states"]
    assert len(states) == len(rows) == len(Diary.fed)
    for state in states:
        row = rows[state["instance"]["id"]]
        prompt = state["instance"]["input"]["text"]
        (parts,) = (
            parts
            for parts in Diary.fed
            if len(parts) == len(row["haystack_dates"])
            and parts[0][1] in prompt
            and parts[-1][1] in prompt
        )
        assert [date for date, _ in parts] == sorted(row["haystack_dates"])
        assert all(f"Session Date: {date}\n" in text for date, text in parts)
        assert state["result"]["completions"][0]["text"] == f"{len(parts)} sessions"


@pytest.mark.parametrize("system", ["nowhere.Memory", "json.JSONDecoder", "x"])
def test_a_memory_that_is_none(system: str, tmp_path: Path) -> None:
    """A system that cannot be used ends the run with a line, before anything is sent."""
    with serving() as server, pytest.raises(InputError, match="method=memory: system="):
        make(tmp_path, f"memory,system={system}")
    assert not server.calls


def test_requests_of_parts_are_in_flight_together(tmp_path: Path) -> None:
    """The parts of a question are asked at the same time, as many as the run allows."""
    flying = 0
    most = 0
    lock = threading.Lock()

    def slow(prompt: str) -> str:
        nonlocal flying, most
        with lock:
            flying, most = flying + 1, max(most, flying + 1)
        time.sleep(0.03)
        with lock:
            flying -= 1
        return scripted.answer(prompt)

    with serving(slow):
        make(tmp_path, "map_reduce,part=500")
    assert most == 2  # the parallelism of `making`


def test_refusals(tmp_path: Path) -> None:
    """What a method cannot do is refused before anything is sent."""
    for entry, reason in [
        ("compact,retry_cut=4x", "method=compact and retry_cut exclude each other"),
        (
            "plain,threshold=5",
            "threshold=5 is an argument of method=compact; give both",
        ),
        ("refine,max_requests=0", "max_requests="),
    ]:
        with pytest.raises(InputError, match=reason):
            making.spec_of(BASE + entry + MODEL)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_known_loss_is_measured(share: float) -> None:
    """The interval of the score on compacted facts has the share that the summarizer keeps."""
    losses = []
    for number in range(60):
        question, value = scripted.make_question(
            60, number, 0.1, "compact", turn=500, threshold=1000, kept=5000
        )
        losses.append(
            float(
                scripted.ask(question, "compact", scripted.lose(share, number))[0]
                == value
            )
        )
        assert question.notes["compactions"] > 0
        assert question.notes["cuts"][0] > 0.1
    interval = mean_interval(losses)
    assert interval.low <= 1 - share <= interval.high


@pytest.mark.parametrize(
    ("threshold", "compactions"), [(10**6, 0), (3000, 1), (1500, 3)]
)
def test_a_lower_threshold_compacts_more_often(
    threshold: int, compactions: int
) -> None:
    """A threshold above the context sends the plain prompt alone; below it, there are more and more summaries."""
    question, value = scripted.make_question(
        80, 1, 0.5, "compact", turn=500, threshold=threshold, kept=100
    )
    assert scripted.ask(question, "compact")[0] == value
    assert question.notes["compactions"] >= compactions
    assert (question.notes["compactions"] == 0) == (compactions == 0)
