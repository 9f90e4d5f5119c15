"""Tests of runs with methods: both styles, shards, larger budgets, estimates, and HELM's own runner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.runner import Runner
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.models.results import add_facts
from helm_longctx.runner import LongContextRunner
from helm_longctx.runner.estimate import Rate, estimate_runs
from helm_longctx.runner.follow_up import follow_up
from helm_longctx.runner.machines.shards import OneShard
from helm_longctx.runner.runner import runner_arguments
from helm_longctx.runs.journal import Shard
from helm_longctx.tasks.answer import Usage
from helm_longctx.tasks.methods.prompts import FACT_TOKENS, FACTS
from helm_longctx.tasks.sample import Sample
from tests.runner import making
from tests.support.shards import read_all, run_path

BASE = "helmet_recall:task=json_kv,length=8k,num_samples=4,model=longctx/lexical,model_deployment=test/facts"
SAMPLES = 4


def with_method(method: str, entry: str = BASE) -> str:
    return entry.replace("model=", f"method={method},model=", 1)


class FactsClient(making.PlainClient):
    """Writes a fact, and answers with the prompt's length; needs more than its budget for every second fact."""

    asked: ClassVar[list[Request]] = []  # type: ignore[assignment]
    first: ClassVar[list[str]] = []

    def make_request(self, request: Request) -> RequestResult:
        """Return the answer, which is cut if the limit is too low."""
        self.asked.append(request)
        asks_for_facts = FACTS in request.prompt
        if asks_for_facts and request.prompt not in self.first:
            self.first.append(request.prompt)
        is_cut = (
            asks_for_facts
            and self.first.index(request.prompt) % 2 == 0
            and request.max_tokens <= FACT_TOKENS
        )
        result = making.answered(
            "<fact>" if asks_for_facts else str(len(request.prompt)), cached=False
        )
        reason = {"reason": "length" if is_cut else "stop"}
        result = replace(
            result, completions=[replace(result.completions[0], finish_reason=reason)]
        )
        return add_facts(result, usage=Usage(input_tokens=100, output_tokens=10))


@pytest.fixture(autouse=True)
def deployment() -> None:
    """Register the model, which was asked nothing."""
    making.register_client(FactsClient)
    FactsClient.asked.clear()
    FactsClient.first.clear()


def arguments(folder: Path) -> dict[str, object]:
    return runner_arguments(folder / "out", "s", folder, 2, has_cache=False)


@pytest.mark.parametrize("style", ["chat", "completion"])
def test_both_requests_have_the_style(style: str, tmp_path: Path) -> None:
    """As a completion, the first request ends with the request for facts, and the second with the answer prefix."""
    entry = with_method(
        "retrieve_reason", BASE.replace("num_samples=4", f"num_samples=4,style={style}")
    )
    making.make_run(tmp_path, entry, cache=False)
    second = [request for request in FactsClient.asked if FACTS not in request.prompt]
    assert len(FactsClient.asked) == 2 * len(second) == 2 * SAMPLES
    assert all(
        request.prompt.endswith(FACTS)
        for request in FactsClient.asked
        if request not in second
    )
    assert {request.max_tokens for request in second} == {100}
    assert all(request.prompt.startswith("<fact>\n") for request in second)
    assert {request.prompt.endswith("Corresponding value:") for request in second} == {
        style == "completion"
    }


def test_shards_make_the_same_run(tmp_path: Path) -> None:
    """The merged results of shards equal those of one machine, and no request is sent twice."""
    spec = making.spec_of(with_method("retrieve_reason"))
    LongContextRunner(**arguments(tmp_path / "one")).run_all([spec])
    FactsClient.asked.clear()
    for number in (2, 1):
        LongContextRunner(
            **arguments(tmp_path / "two"), strategy=OneShard(Shard(number, 2))
        ).run_all([spec])
    assert len(FactsClient.asked) == 2 * SAMPLES
    LongContextRunner(**arguments(tmp_path / "two")).run_all([spec])
    assert len(FactsClient.asked) == 2 * SAMPLES
    assert read_all(run_path(tmp_path / "two", spec)) == read_all(
        run_path(tmp_path / "one", spec)
    )


def make(folder: Path, *entries: str) -> list[RunSpec]:
    """Make runs one after the other."""
    specs = [making.spec_of(entry) for entry in entries]
    LongContextRunner(**arguments(folder)).run_all(specs)
    return specs


def test_cut_facts_are_asked_for_again(tmp_path: Path) -> None:
    """With `retry_cut`, the run of the same method without it is the earlier one, and only what was cut is sent again."""
    entry = with_method("retrieve_reason")
    make(tmp_path, entry)
    FactsClient.asked.clear()
    (spec,) = make(tmp_path, entry.replace("model=", "retry_cut=4x,model=", 1))
    assert "method=retrieve_reason" in spec.name
    larger = 4 * FACT_TOKENS
    # The budget of the second request is raised by as many tokens as that of the first.
    second = larger - FACT_TOKENS + 100
    assert sorted(request.max_tokens for request in FactsClient.asked) == [
        second,
        second,
        larger,
        larger,
    ]


def test_an_estimate_has_what_is_sent(tmp_path: Path) -> None:
    """An estimate has the requests of the method: less of the context, or both requests with their budgets."""
    runner = making.make_runner(tmp_path)
    assert isinstance(runner, LongContextRunner)
    plain, short, both = (
        estimate_runs(runner, [making.spec_of(entry)], {}, Rate())[0]
        for entry in (
            BASE,
            with_method("retrieve,chunks=1,chunk_size=400"),
            with_method("retrieve_reason"),
        )
    )
    assert plain.requests == short.requests == both.requests / 2 == SAMPLES
    assert (
        10 * short.prompt_tokens.total
        < plain.prompt_tokens.total
        < both.prompt_tokens.total
    )
    assert both.output_tokens.most == SAMPLES * (FACT_TOKENS + 100)
    # The methods are part of what is asked, so a batch or a comparison of plans tells the requests apart.
    assert len({run.requests_digest for run in (plain, short, both)}) == 3


def test_helm_s_own_runner(tmp_path: Path) -> None:
    """HELM's own runner makes runs of methods with one request, and refuses the others before anything is sent."""
    run = making.make_run(tmp_path, with_method("retrieve"), runner=Runner)
    assert len(FactsClient.asked) == SAMPLES
    assert (run / "stats.json").is_file()
    with pytest.raises(
        InputError, match=r"needs two requests for each question.*LongContextRunner"
    ):
        making.make_run(
            tmp_path, with_method("retrieve_reason"), runner=Runner, exit_on_error=True
        )
    assert len(FactsClient.asked) == SAMPLES


def test_the_system_message_stays() -> None:
    """The second request of a conversation has the system message of the first one."""
    system = {"role": "system", "content": "You are a doctor."}
    request = Request(
        messages=[system, {"role": "user", "content": "Text"}], max_tokens=1024
    )
    sample = Sample(
        "hub",
        1024,
        1024,
        style="chat",
        follow_up={"parts": ["Facts: ", "!"], "max_tokens": 128},
    )
    second = follow_up(request, sample, making.answered("a", cached=False))
    assert second
    assert second.messages == [system, {"role": "user", "content": "Facts: a!"}]
