"""Tests of the loop that sends a run's requests."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from tests.runner import making
from tests.runner.making import PlainClient, make_run
from tests.support.questions import ROW, write_questions

ENTRY = "any_jsonl:path={},metric=contains,length=4k,count_with=longctx/words,model=longctx/lexical,model_deployment=test/plain"


def test_equal_requests_are_sent_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that equals one in flight waits for its answer, and each question has the answer."""

    def is_slow(prompt: str) -> bool:
        time.sleep(0.1)
        return False

    monkeypatch.setattr(PlainClient, "fails", staticmethod(is_slow))
    other = {**ROW, "question": "Who made the pump?"}
    last = {**ROW, "question": "Who paid for the pump?"}
    questions = write_questions(tmp_path / "own", ROW, other, other, other, last)
    run = make_run(tmp_path, ENTRY.format(questions))
    assert set(Counter(PlainClient.asked).values()) == {1}
    assert len(PlainClient.asked) == 3
    states = making.read(run, "scenario_state")["request_states"]
    answers = [state["result"]["completions"][0]["text"] for state in states]
    assert len(answers) == 5
    assert answers[1] == answers[2] == answers[3]


def test_an_equal_request_is_sent_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that waited for an equal one is sent itself if that one has failed."""
    failures: list[str] = []

    def fails_once(prompt: str) -> bool:
        time.sleep(0.1)
        if "made the pump" in prompt and not failures:
            failures.append(prompt)
            return True
        return False

    monkeypatch.setattr(PlainClient, "fails", staticmethod(fails_once))
    other = {**ROW, "question": "Who made the pump?"}
    questions = write_questions(tmp_path / "own", ROW, other, other)
    run = make_run(tmp_path, ENTRY.format(questions))
    assert sorted(Counter(PlainClient.asked).values()) == [1, 2]
    states = making.read(run, "scenario_state")["request_states"]
    assert [state["result"]["success"] for state in states] == [True, False, True]
