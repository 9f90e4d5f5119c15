"""Tests of questions with two requests, of which the second contains the answer to the first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from helm.benchmark.runner import Runner
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.models.results import add_facts, usage_of
from helm_longctx.run_settings import MAX_COST, MIRROR, PRICES
from helm_longctx.runner.estimate import Rate, estimate_runs
from helm_longctx.runner.follow_up import (
    join_answers,
    most_follow_up_tokens,
    split_answers,
)
from helm_longctx.runner.resuming import find_answer, find_first_answer
from helm_longctx.runner.runner import LongContextRunner
from helm_longctx.runs.journal import NAME
from helm_longctx.tasks.answer import Usage
from helm_longctx.tasks.sample import Sample
from tests.benchmarks.longbench_v2.fabricate import ROWS, build_longbench_v2, rows
from tests.runner import making

ENTRY = "longbench_v2:mode=cot,model=longctx/lexical,model_deployment=test/reasoning"
ASKS_TO_REASON = "step by step:"
RIGHT = {
    row["question"].strip(): row["answer"]
    for row in rows(1)
    if "$" not in row["question"]
}


class ReasoningClient(making.PlainClient):
    """Reasons, and gives the right letter to a prompt that contains the reasoning."""

    usage = Usage(input_tokens=100, output_tokens=10)

    def make_request(self, request: Request) -> RequestResult:
        """Return reasoning, or an answer that depends on it."""
        self.asked.append(request.prompt)
        if self.fails(request.prompt):
            return RequestResult(
                False, [], [], False, error="temporary: busy", error_flags=None
            )
        letter = next(
            (
                answer
                for question, answer in RIGHT.items()
                if question in request.prompt
            ),
            "A",
        )
        if request.prompt.endswith(ASKS_TO_REASON):
            assert request.max_tokens == 1024
            text = f"<think>no</think> because {letter}\n"
        else:
            assert request.max_tokens == 128
            assert f"step by step: because {letter}\n\nBased on" in request.prompt
            text = f"The correct answer is ({letter})"
        return add_facts(making.answered(text, cached=False), usage=self.usage)


@pytest.fixture(autouse=True)
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write fabricated questions, and register a model with prices."""
    build_longbench_v2(tmp_path / "data")
    monkeypatch.setenv(MIRROR, str(tmp_path / "data"))
    monkeypatch.setenv("HELM_LONGCTX_WAIT", "0.001")
    prices = tmp_path / "prices.yaml"
    prices.write_text(json.dumps({"test/reasoning": {"input": 100, "output": 1000}}))
    monkeypatch.setenv(PRICES, str(prices))
    making.register_client(ReasoningClient)
    making.PlainClient.asked.clear()
    yield
    ReasoningClient.fails = staticmethod(lambda prompt: False)


def test_both_answers_are_kept(tmp_path: Path) -> None:
    """The second answer is scored, the first is stored with it, and the tokens of both count."""
    run = making.make_run(tmp_path, ENTRY, cache=False)
    assert len(making.PlainClient.asked) == 2 * ROWS
    states = making.read(run, "scenario_state")["request_states"]
    for state in states:
        last, first = state["result"]["completions"]
        assert last["text"].startswith("The correct answer is (")
        assert "because" in first["text"]
        assert state["result"]["request_time"] == 3.0
    statistics = {name[0]: value for name, value in making.means(run).items()}
    known = [row["_id"] for row in rows(1) if row["question"].strip() in RIGHT]
    assert len(known) >= 3
    assert statistics["longctx_score"] >= len(known) / ROWS
    assert statistics["cost"] == pytest.approx(2 * (100 * 100 + 10 * 1000) / 1e6)


def test_a_first_answer_is_not_asked_for_again(tmp_path: Path) -> None:
    """If second requests fail, the same command sends only second requests."""
    ReasoningClient.fails = staticmethod(
        lambda prompt: not prompt.endswith(ASKS_TO_REASON)
    )
    with pytest.raises(InputError, match=r"in a row: .*busy.*answers are kept"):
        making.make_run(tmp_path, ENTRY, cache=False)
    first = [
        prompt for prompt in making.PlainClient.asked if prompt.endswith(ASKS_TO_REASON)
    ]
    ReasoningClient.fails = staticmethod(lambda prompt: False)
    making.PlainClient.asked.clear()
    run = making.make_run(tmp_path, ENTRY, cache=False)
    again = [
        prompt for prompt in making.PlainClient.asked if prompt.endswith(ASKS_TO_REASON)
    ]
    assert not set(first) & set(again)
    assert len(first) + len(again) == ROWS
    assert not (run / NAME).exists()


def test_a_kept_answer_is_the_answer_to_both_requests(tmp_path: Path) -> None:
    """A question with only its first answer has no answer yet, although its first request need not be sent."""
    ReasoningClient.fails = staticmethod(
        lambda prompt: not prompt.endswith(ASKS_TO_REASON)
    )
    with pytest.raises(InputError, match="answers are kept"):
        making.make_run(tmp_path, ENTRY, cache=False)
    runner = making.make_runner(tmp_path)
    assert isinstance(runner, LongContextRunner)
    with runner.prepare(making.spec_of(ENTRY)) as run:
        assert any(find_first_answer(request, run.journal) for request in run.requests)
        assert [find_answer(request, run.journal) for request in run.requests] == [
            None
        ] * ROWS
        ReasoningClient.fails = staticmethod(lambda prompt: False)
        run.ask()
        answers = [find_answer(request, run.journal) for request in run.requests]
        assert all(result and len(result.completions) == 2 for result in answers)
        kept = replace(run.requests[0], first=split_answers(answers[0])[0])
        other = replace(kept, request=replace(kept.request, max_tokens=2048))
        assert find_first_answer(other, run.journal) == other.first


def test_an_estimate_has_both_requests(tmp_path: Path) -> None:
    """An estimate has as many requests and as much output as a run can send."""
    runner = making.make_runner(tmp_path)
    assert isinstance(runner, LongContextRunner)
    estimate = estimate_runs(runner, [making.spec_of(ENTRY)], {}, Rate())[0]
    assert estimate.requests == 2 * ROWS
    assert estimate.output_tokens.most == ROWS * (1024 + 128)
    assert estimate.output_tokens.typical == ROWS * (512 + 128)


def test_an_answer_that_is_shown_twice_counts_twice() -> None:
    """A first answer that occurs twice in the second prompt counts twice in its tokens."""

    def tokens(*parts: str) -> int:
        sample = Sample(
            "hub", 1024, 1024, follow_up={"parts": parts, "max_tokens": 128}
        )
        return most_follow_up_tokens(Request(max_tokens=1024), sample).input_tokens

    assert tokens("some", " words", " here") == tokens("some words", " here") + 1024


def test_the_limit_on_costs_has_both_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that has room only for the reasoning stops the run before anything is sent."""
    monkeypatch.setenv(MAX_COST, "1.3")
    with pytest.raises(InputError, match=r"the next request can cost"):
        making.make_run(tmp_path, ENTRY, cache=False)
    assert making.PlainClient.asked == []


def test_helm_s_own_runner_is_refused(tmp_path: Path) -> None:
    """HELM's own runner refuses such questions, because it would score the reasoning."""
    with pytest.raises(
        InputError, match=r"needs two requests for each question.*LongContextRunner"
    ):
        making.make_run(tmp_path, ENTRY, runner=Runner, exit_on_error=True)
    assert making.PlainClient.asked == []


def test_a_failure_is_not_joined() -> None:
    """A second request without an answer is the outcome of both, and unknown tokens stay unknown."""
    first = making.answered("a", cached=True)
    failed = RequestResult(False, [], [], False, error="temporary: busy")
    assert join_answers(first, failed) is failed
    joined = join_answers(first, making.answered("b", cached=False))
    assert [completion.text for completion in joined.completions] == ["b", "a"]
    assert not joined.cached
    assert usage_of(joined) is None
