"""Tests of runs that ask again for cut answers (`retry_cut=4x`), in this process."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment
from helm.common.request import Request, RequestResult
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.errors import InputError
from helm_longctx.helm.truncation import CHAT_BUFFER
from helm_longctx.models.baselines import lexical
from helm_longctx.models.results import add_facts
from helm_longctx.run_settings import MIRROR
from helm_longctx.runner.estimate import Rate, estimate_runs
from helm_longctx.runner.follow_up import join_answers, split_answers
from helm_longctx.runner.machines.shards import OneShard
from helm_longctx.runner.resuming import COUNTED, earlier_name
from helm_longctx.runner.runner import LongContextRunner, runner_arguments
from helm_longctx.runs.journal import NAME, Shard
from helm_longctx.tasks.answer import Usage
from helm_longctx.tasks.token_estimate import estimate_tokens
from tests.benchmarks.longbench_v2.fabricate import ROWS, build_longbench_v2
from tests.runner import making

BUDGET = 100
BASE = "helmet_recall:task=json_kv,length=8k,num_samples=6,model=longctx/lexical,model_deployment=test/wordy"
AGAIN = BASE.replace("model=", "retry_cut=4x,model=", 1)
REASONING = "longbench_v2:mode=cot,model=longctx/lexical,model_deployment=test/wordy"


class WordyClient(making.PlainClient):
    """Needs more than the budget for every second question, and says so in the finish reason."""

    asked: ClassVar[list[tuple[str, int]]] = []  # type: ignore[assignment]
    needs: ClassVar[dict[str, int]] = {}
    busy: ClassVar[set[str]] = set()

    def make_request(self, request: Request) -> RequestResult:
        """Return the answer, or nothing if the limit is too low; or fail."""
        self.asked.append((request.prompt, request.max_tokens))
        if request.prompt in self.busy:
            return RequestResult(
                False, [], [], False, error="content_filter: no", error_flags=None
            )
        needed = self.needs.setdefault(
            request.prompt, (10, 2 * BUDGET)[len(self.needs) % 2]
        )
        is_cut = needed > request.max_tokens
        result = making.answered(
            "" if is_cut else lexical.answer(request.prompt), cached=False
        )
        reason = {"reason": "length" if is_cut else "stop"}
        result = replace(
            result, completions=[replace(result.completions[0], finish_reason=reason)]
        )
        return add_facts(
            result,
            usage=Usage(
                input_tokens=1000, output_tokens=min(needed, request.max_tokens)
            ),
        )


@pytest.fixture(autouse=True)
def deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM_LONGCTX_WAIT", "0.001")
    making.register_client(WordyClient)
    for kept in (WordyClient.asked, WordyClient.needs, WordyClient.busy):
        kept.clear()


def states(run: Path) -> list[dict[str, Any]]:
    return making.read(run, "scenario_state")["request_states"]


def test_a_run_with_a_larger_budget_asks_only_for_cut_answers(tmp_path: Path) -> None:
    """Requests whose answers were cut are sent with the larger budget; nothing else is sent, and no result changes."""
    base = making.make_run(tmp_path, BASE, cache=False)
    first = states(base)
    WordyClient.asked.clear()
    again = making.make_run(tmp_path, AGAIN, cache=False)
    assert [tokens for _, tokens in WordyClient.asked] == [4 * BUDGET] * 3
    pairs = list(zip(first, states(again), strict=True))
    kept = [
        (before, after)
        for before, after in pairs
        if before["request"] == after["request"]
    ]
    assert len(kept) == 3
    assert all(json.dumps(before) == json.dumps(after) for before, after in kept)
    means = {name[0]: value for name, value in making.means(again).items()}
    assert (means["longctx_score"], means["output_truncated"]) == (1.0, 0.0)
    assert states(base) == first


def test_a_run_without_an_earlier_run_sends_nothing(tmp_path: Path) -> None:
    """A run that asks again for cut answers is refused if the earlier run is not there."""
    with pytest.raises(
        InputError,
        match=r"num_samples=6,model=\S+, which is not finished in .*; make that run",
    ):
        making.make_run(tmp_path, AGAIN, cache=False)
    assert WordyClient.asked == []


def test_an_earlier_run_of_fewer_questions_is_refused(tmp_path: Path) -> None:
    """A run for which the earlier run lacks results is refused, with the number of those that are missing."""
    making.make_run(tmp_path, BASE, cache=False, at_most=2)
    WordyClient.asked.clear()
    with pytest.raises(InputError, match="has no result for 4 of 6 requests"):
        making.make_run(tmp_path, AGAIN, cache=False)
    assert WordyClient.asked == []


def test_a_failed_request_is_not_sent_again_with_a_larger_budget(
    tmp_path: Path,
) -> None:
    """A failure of the earlier run is a failure of the second one, which is made again when the earlier run is."""
    making.make_run(tmp_path, BASE, cache=False)
    prompt = next(iter(WordyClient.needs))
    for path in (tmp_path / "benchmark_output").glob("runs/s/*"):
        for file in path.iterdir():
            file.unlink()
    WordyClient.busy.add(prompt)
    base = making.make_run(tmp_path, BASE, cache=False)
    again = making.make_run(tmp_path, AGAIN, cache=False)
    assert sum(not state["result"]["success"] for state in states(again)) == 1
    assert {name[0]: value for name, value in making.means(again).items()}[
        "request_refused"
    ] == pytest.approx(1 / 6)
    assert (base / NAME).exists()
    WordyClient.busy.clear()
    making.make_run(tmp_path, BASE, cache=False, skip_completed_runs=True)
    WordyClient.asked.clear()
    making.make_run(tmp_path, AGAIN, cache=False, skip_completed_runs=True)
    assert all(state["result"]["success"] for state in states(again))
    assert WordyClient.asked == []
    making.make_run(tmp_path, AGAIN, cache=False, skip_completed_runs=True)
    assert WordyClient.asked == []


@pytest.mark.parametrize("room", [BUDGET, 2 * BUDGET])
def test_the_budget_ends_at_the_window(room: int, tmp_path: Path) -> None:
    """The larger budget is at most the room that the prompt leaves in the window; without more room nothing is sent."""
    making.make_run(tmp_path, BASE, cache=False)
    cut = [prompt for prompt, needed in WordyClient.needs.items() if needed > BUDGET]
    used = {
        prompt: int(COUNTED * estimate_tokens(prompt)) + CHAT_BUFFER for prompt in cut
    }
    window = max(used.values()) + room
    WordyClient.asked.clear()
    spec = ClientSpec(f"{WordyClient.__module__}.WordyClient")
    with making.deployed(
        ModelDeployment(
            "test/wordy", spec, model_name="longctx/lexical", max_sequence_length=window
        )
    ):
        making.make_run(tmp_path, AGAIN, cache=False)
    expected = {
        prompt: window - tokens
        for prompt, tokens in used.items()
        if window - tokens > BUDGET
    }
    assert dict(WordyClient.asked) == expected
    assert (len(expected) < len(cut)) == (room == BUDGET)


def test_an_estimate_has_only_the_cut_answers(tmp_path: Path) -> None:
    """An estimate of a run that asks again has the requests that it will send, with their larger budgets."""
    making.make_run(tmp_path, BASE, cache=False)
    runner = making.make_runner(tmp_path)
    assert isinstance(runner, LongContextRunner)
    estimate = estimate_runs(runner, [making.spec_of(AGAIN)], {}, Rate())[0]
    assert (estimate.requests, estimate.output_tokens.most) == (3, 3 * 4 * BUDGET)


def test_shards_ask_only_for_cut_answers(tmp_path: Path) -> None:
    """Shards of a run that asks again send each cut request once, and the merged results are those of one machine."""
    making.make_run(tmp_path, BASE, cache=False)
    WordyClient.asked.clear()
    spec = making.spec_of(AGAIN)
    for number in (2, 1):
        arguments = runner_arguments(
            tmp_path / "benchmark_output", "s", tmp_path, 2, has_cache=False
        )
        LongContextRunner(**arguments, strategy=OneShard(Shard(number, 2))).run_all(
            [spec]
        )
    sent = sorted(WordyClient.asked)
    assert len(sent) == 3
    merged = making.make_run(tmp_path, AGAIN, cache=False)
    assert sorted(WordyClient.asked) == sent
    results = [state["result"] for state in states(merged)]
    shutil.rmtree(merged)
    assert [
        state["result"]
        for state in states(making.make_run(tmp_path, AGAIN, cache=False))
    ] == results


def test_helms_own_runner_refuses_a_larger_budget(tmp_path: Path) -> None:
    """HELM's own runner, which cannot read the answers of another run, ends with one line."""
    from helm.benchmark.runner import Runner, RunnerError

    with pytest.raises((InputError, RunnerError)):
        making.make_run(tmp_path, AGAIN, Runner, exit_on_error=True)
    assert WordyClient.asked == []


def test_only_the_cut_one_of_two_requests_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a question with two requests, the first is not sent again if only the second answer was cut."""
    build_longbench_v2(tmp_path / "data")
    monkeypatch.setenv(MIRROR, str(tmp_path / "data"))
    monkeypatch.setattr(
        WordyClient,
        "needs",
        _Needs(lambda prompt: 10 if prompt.endswith("step by step:") else 300),
    )
    base = making.make_run(tmp_path, REASONING, cache=False)
    assert len(WordyClient.asked) == 2 * ROWS
    WordyClient.asked.clear()
    again = making.make_run(
        tmp_path, REASONING.replace("cot,", "cot,retry_cut=4x,"), cache=False
    )
    assert len(WordyClient.asked) == ROWS
    assert not any(prompt.endswith("step by step:") for prompt, _ in WordyClient.asked)
    for before, after in zip(states(base), states(again), strict=True):
        assert after["result"]["completions"][1] == before["result"]["completions"][1]
        assert after["result"]["completions"][0]["finish_reason"]["reason"] == "stop"


class _Needs(dict[str, int]):
    """Says of each prompt how many tokens its answer needs."""

    def __init__(self, rule: Any):
        super().__init__()
        self._rule = rule

    def setdefault(self, prompt: str, default: int = 0) -> int:
        return int(self._rule(prompt))


@given(st.integers(0, 50), st.booleans(), st.booleans())
def test_joined_answers_can_be_split(
    tokens: int, knows_first: bool, knows_last: bool
) -> None:
    """Two answers that were joined and split give the same result when they are joined again."""

    def answer(text: str, knows: bool) -> RequestResult:
        result = making.answered(text, cached=False)
        return (
            add_facts(
                result, usage=Usage(input_tokens=100 + tokens, output_tokens=tokens)
            )
            if knows
            else result
        )

    joined = join_answers(answer("first", knows_first), answer("last", knows_last))
    assert join_answers(*split_answers(joined)) == joined


@pytest.mark.parametrize(
    ("name", "earlier"),
    [
        ("aa_lcr:retry_cut=4x", "aa_lcr"),
        ("aa_lcr:retry_cut=4x,model=a_b", "aa_lcr:model=a_b"),
        (
            "ruler:task=vt,length=8k,retry_cut=16x,model=a_b",
            "ruler:task=vt,length=8k,model=a_b",
        ),
    ],
)
def test_the_name_of_the_earlier_run(name: str, earlier: str) -> None:
    """The name of the earlier run is the same without the argument."""
    assert earlier_name(name) == earlier
