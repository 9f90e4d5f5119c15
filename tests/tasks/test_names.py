"""Tests of the names of runs and of statistics: what is made is read back."""

from __future__ import annotations

import pytest

from helm_longctx.apps.report.build import _FORMATS
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.metric_names import (
    CONDITIONS,
    LIKELIHOODS,
    depth_score,
    is_log_probability,
    pass_at,
    window_logprob,
)
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.request_settings import RequestSettings, Sampling
from helm_longctx.tasks.run_names import RunName, add_argument, read_run_name
from helm_longctx.tasks.statistic_names import StatisticName, kappa_of, read_statistic
from helm_longctx.tasks.stored_entry import check_arguments, scenario_arguments


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("judge_score", StatisticName("judge_score")),
        (
            "judge_score:openai/gpt-4o",
            StatisticName("judge_score", judge="openai/gpt-4o"),
        ),
        ("judge_f1:vllm/judge:7b", StatisticName("judge_f1", judge="vllm/judge:7b")),
        (kappa_of("a/b", "c"), StatisticName("jury_kappa", pair=("a/b", "c"))),
        (depth_score(40), StatisticName("longctx_score", depth=40)),
        (pass_at(8), StatisticName("pass", repeats=8)),
        (window_logprob(512), StatisticName("token_logprob", window=512)),
        ("f1", StatisticName("f1")),
    ],
)
def test_facts_in_names_of_statistics(text: str, name: StatisticName) -> None:
    """The name of a statistic is made of its facts, and read back as the same facts."""
    assert str(name) == text
    assert read_statistic(text) == name


def test_every_statistic_of_a_run_has_a_unit() -> None:
    """The report can write the number of every condition, and all log-probabilities are in nats."""
    assert {condition.unit for condition in CONDITIONS.values()} == _FORMATS.keys()
    assert {likelihood.unit for likelihood in LIKELIHOODS.values()} == {"nats"}


def test_log_probabilities_are_told_by_their_metric() -> None:
    """Log-probabilities of windows are log-probabilities, and scores are not."""
    assert is_log_probability(window_logprob(1024))
    assert is_log_probability("answer_logprob_gain")
    assert not is_log_probability("longctx_score")


@pytest.mark.parametrize(
    "text",
    [
        "aa_lcr",
        "aa_lcr:model=a_b",
        "ruler:task=vt,length=8k,retry_cut=16x,model=a_b,num_trials=2",
    ],
)
def test_names_of_runs_are_read_and_made(text: str) -> None:
    """A run's name has the same text after it was read."""
    assert str(read_run_name(text)) == text


def test_arguments_of_run_names() -> None:
    """An argument can be left out, be added after ours, and be added at the end."""
    name = read_run_name("ruler:task=vt,judge=a,model=a_b")
    plain = name.without("judge")
    assert plain == RunName("ruler", (("task", "vt"), ("model", "a_b")))
    again = plain.with_argument("judge", "c", ours=("task", "judge"))
    assert str(again) == "ruler:task=vt,judge=c,model=a_b"
    assert str(name.before_model()) == "ruler:task=vt,judge=a"
    assert add_argument("aa_lcr", "model", "x") == "aa_lcr:model=x"
    assert add_argument("aa_lcr:repeats=2", "model", "x") == "aa_lcr:repeats=2,model=x"


def test_an_entry_is_read_back_from_a_scenario() -> None:
    """What an entry says of its requests is in the scenario's arguments, which are the same after they were read."""
    text = "helmet_recall:length=8k,style=chat,truncation=error,top_p=0.95"
    arguments = scenario_arguments(parse_entry(BENCHMARKS, text))
    entry = check_arguments(arguments.pop("entry"), {**arguments, "temperature": 0.6})
    assert entry.settings.request == RequestSettings(
        style="chat", truncation="error", sampling=Sampling(temperature=0.6, top_p=0.95)
    )
    assert scenario_arguments(entry) == {
        "entry": "helmet_recall",
        **arguments,
        "temperature": 0.6,
    }
