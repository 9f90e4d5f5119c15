"""Tests of the metric: scores, depths, and failed requests."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.augmentations.perturbation_description import (
    PerturbationDescription,
)
from helm.benchmark.metrics.metric import Metric
from helm.common.request import GeneratedOutput
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.helm.metric import LongContextMetric
from helm_longctx.models.results import add_facts
from helm_longctx.tasks.answer import Usage
from tests.support.states import state


def means(*states: RequestState) -> dict[tuple[str, str | None], float]:
    scenario_state = ScenarioState(
        AdapterSpec(method="longctx", num_train_trials=1), list(states)
    )
    result = LongContextMetric("helmet").evaluate(scenario_state, None, "", 1)
    assert len(result.per_instance_stats) == len(states)
    return {
        (s.name.name, s.name.sub_split): s.mean
        for s in result.aggregated_stats
        if not s.name.perturbation
    }


def test_means_and_conditions() -> None:
    """Scores are means over instances, and the conditions of the run are statistics, too."""
    got = means(
        state(0, " v1", depth=0.0),
        state(1, " v2", depth=0.29, drawn_from=9),
        state(2, "v1", depth=1.0, input_tokens=8),
    )
    assert (
        got["longctx_score", "json_kv"]
        == got["substring_exact_match", "json_kv"]
        == pytest.approx(2 / 3)
    )
    assert got["json_kv_score", "json_kv"] == pytest.approx(2 / 3)
    assert [
        got.get((f"longctx_score_at_depth_{d}", "json_kv")) for d in (0, 20, 40, 100)
    ] == [
        1,
        0,
        None,
        1,
    ]
    assert (
        got["prompt_cut", "json_kv"]
        == got["subsampled", "json_kv"]
        == pytest.approx(1 / 3)
    )
    assert got["request_failed", "json_kv"] == got["generated_data", "json_kv"] == 0
    assert got["input_tokens", "json_kv"] == 8
    assert got["request_seconds", "json_kv"] == 1


def test_speed_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Speeds are those of prompt and output apart if the time of the first token is known, and of all output if not."""
    one, other, plain = (state(number, "v1") for number in range(3))
    assert one.result
    assert other.result
    monkeypatch.setattr("helm_longctx.helm.metric.find_prices", lambda deployment: None)
    usage = Usage(input_tokens=1000, cached_tokens=200, output_tokens=31)
    measured = add_facts(
        one.result, usage=usage, first_token_seconds=0.4, peak_memory=2.5
    )
    got = means(replace(one, result=replace(measured, request_time=1.0)), plain)
    assert got["first_token_seconds", "json_kv"] == 0.4
    assert got["prefill_tokens_per_second", "json_kv"] == pytest.approx(800 / 0.4)
    assert got["decode_tokens_per_second", "json_kv"] == pytest.approx(30 / 0.6)
    assert (got["cached_share", "json_kv"], got["peak_memory", "json_kv"]) == (0.2, 2.5)
    got = means(
        replace(
            other,
            result=replace(add_facts(other.result, usage=usage), request_time=2.0),
        )
    )
    assert got["decode_tokens_per_second", "json_kv"] == 15.5
    assert ("prefill_tokens_per_second", "json_kv") not in got


def test_failed_requests_are_counted_and_not_scored() -> None:
    """A request without an answer is not a zero: `request_failed` counts it, and the mean is over the others."""
    got = means(state(0, "v1"), state(1, "", success=False), state(2, None))
    assert got["longctx_score", "json_kv"] == 1
    assert got["request_failed", "json_kv"] == pytest.approx(2 / 3)


def test_refused_and_too_long_requests_are_counted_apart() -> None:
    """Refused and too long requests, also those that a client reports as successes, are counted once and not scored."""
    flagged, filtered, too_long, broken = (state(number, "") for number in range(4))
    policy = {
        "reason": "The prompt violates OpenAI's content policy. See https://labs.openai.com"
    }
    flagged.result.completions = [GeneratedOutput("", 0, [], finish_reason=policy)]
    for failed, error in (
        (filtered, "Content blocked by OpenAI filter"),
        (too_long, "context_length_exceeded"),
        (broken, "no"),
    ):
        failed.result.success, failed.result.error = False, error
    got = means(flagged, filtered, too_long, broken, state(4, "v1"))
    assert got["longctx_score", "json_kv"] == 1
    assert [
        got[f"request_{kind}", "json_kv"] for kind in ("refused", "too_long", "failed")
    ] == [
        0.4,
        0.2,
        0.2,
    ]


def test_an_answer_without_a_text_is_a_failure() -> None:
    """An answer without a text, which some clients return, is a failure."""
    broken = state(0, "")
    broken.result.completions = [GeneratedOutput(None, 0, [])]
    got = means(broken, state(1, "v1"))
    assert got["longctx_score", "json_kv"] == 1
    assert got["request_failed", "json_kv"] == 0.5


def test_answers_from_the_cache() -> None:
    """`request_cached` is the share of answers from the cache."""
    cached = state(0, "v1")
    cached.result.cached = True
    assert (
        means(cached, state(1, "v1"), state(2, None))["request_cached", "json_kv"]
        == 0.5
    )


def test_an_empty_answer_is_the_models_fault() -> None:
    """An empty output of a request that succeeded scores 0."""
    got = means(state(0, ""))
    assert got["longctx_score", "json_kv"] == 0
    assert got["request_failed", "json_kv"] == 0


def test_the_prefix_is_scored_with_a_completion_only() -> None:
    """A prefix counts as a part of the output after a completion, and not after a chat."""
    extra = {"answer_prefix": "it is v1 that"}
    for style, score in (("completion", 1.0), ("chat", 0.0)):
        got = means(state(0, "no", task="ruler_niah_mk_2", **{**extra, "style": style}))
        assert got["longctx_score", "ruler_niah_mk_2"] == score


def test_tasks_of_a_run_are_kept_apart() -> None:
    """Each sub-split has its own statistics, and its score under the task's own name."""
    got = means(state(0, "v1"), state(1, "x", task="ruler_niah_mk_2"))
    assert got["json_kv_score", "json_kv"] == 1
    assert got["ruler_niah_mk_2_score", "ruler_niah_mk_2"] == 0
    assert ("json_kv_score", "ruler_niah_mk_2") not in got


def repeats(number: int, *texts: str) -> list[RequestState]:
    """Return the states of a question that is asked several times. They share their instance."""
    asked = [
        replace(state(number, text), train_trial_index=trial)
        for trial, text in enumerate(texts)
    ]
    return [replace(request, instance=asked[0].instance) for request in asked]


def test_repeats_are_averaged_and_pass_at_k_counts_successes() -> None:
    """The score is the mean over repeats, and pass@k is the share of questions with a success among their repeats."""
    states = [*repeats(0, "v1", "x", "x"), *repeats(1, "no", "no", "no")]
    spec = AdapterSpec(method="longctx", num_trials=3)
    result = LongContextMetric("helmet").evaluate(
        ScenarioState(spec, states), None, "", 1
    )
    got = {
        s.name.name: s
        for s in result.aggregated_stats
        if s.name.sub_split and not s.name.perturbation
    }
    assert got["longctx_score"].mean == pytest.approx(1 / 6)
    assert got["longctx_score"].count == 3
    assert got["pass_at_3"].mean == 1 / 2
    assert sorted({row.train_trial_index for row in result.per_instance_stats}) == [
        0,
        1,
        2,
    ]


def test_a_single_time_has_no_pass_at_k() -> None:
    """A question that is asked once has no pass@k."""
    assert not [name for name, _ in means(state(0, "v1")) if name.startswith("pass_at")]


def test_answers_without_a_value_leave_the_mean_over_questions() -> None:
    """Answers without a verdict are left out, and each question counts once in the mean over several repeats."""
    replies = {0: ("CORRECT", "INCORRECT"), 1: ("CORRECT", "perhaps"), 2: ("no", "no")}
    states = [
        replace(
            state(
                number, "x", task="questions", record={"judge": replies[number][trial]}
            ),
            train_trial_index=trial,
        )
        for trial in (0, 1)
        for number in replies
    ]
    spec = AdapterSpec(method="longctx", num_trials=2)
    result = LongContextMetric("aa_lcr").evaluate(
        ScenarioState(spec, states), None, "", 1
    )
    means = {
        s.name.name: s.mean for s in result.aggregated_stats if not s.name.perturbation
    }
    assert (
        means["judge_score"]
        == means["longctx_score"]
        == means["questions_score"]
        == 0.75
    )  # not (1 + 0) / 2
    assert means["pass_at_2"] == 1


def test_a_task_without_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task without a score has only its official metrics."""
    metric = LongContextMetric("helmet")
    unscored = replace(
        metric.benchmark.task("json_kv"), headline=(), unscored="nobody knows"
    )
    monkeypatch.setattr(
        type(metric.benchmark), "task", lambda benchmark, name: unscored
    )
    states = ScenarioState(
        AdapterSpec(method="longctx", num_train_trials=1), [state(0, "v1")]
    )
    means = {
        stat.name.name: stat.mean
        for stat in metric.evaluate(states, None, "", 1).aggregated_stats
    }
    assert means["substring_exact_match"] == 1
    assert not {"longctx_score", "json_kv_score"} & means.keys()


TEXTS = st.sampled_from(["v1", "v2", "", "it is v1", None])


@given(
    st.lists(
        st.tuples(TEXTS, TEXTS, st.sampled_from([None, 0.0, 0.4, 1.0]), st.booleans()),
        min_size=1,
        max_size=6,
    )
)
def test_a_run_without_perturbations_has_the_statistics_of_helms_code(
    questions: list[tuple[str | None, str | None, float | None, bool]],
) -> None:
    """Statistics of a run, their order, and the rows of instances equal what HELM's `Metric.evaluate` returns."""
    metric = LongContextMetric("helmet")
    states = []
    for number, (*texts, depth, is_ruler) in enumerate(questions):
        asked = [
            state(
                number, text, "ruler_niah_mk_2" if is_ruler else "json_kv", depth=depth
            )
            for text in texts
        ]
        states += [
            replace(asked_state, instance=asked[0].instance, train_trial_index=i)
            for i, asked_state in enumerate(asked)
        ]
    spec = AdapterSpec(method="longctx", num_trials=2, num_train_trials=2)
    ours = metric._evaluate_trials(ScenarioState(spec, states))
    helms = Metric.evaluate(metric, ScenarioState(spec, states), None, "", 1)
    assert ours.aggregated_stats == helms.aggregated_stats
    # Ours are made when they are read, each time anew.
    for _ in range(2):
        assert [*ours.per_instance_stats] == helms.per_instance_stats
    assert len(ours.per_instance_stats) == len(helms.per_instance_stats)


def test_memory_of_the_statistics_of_answers() -> None:
    """HELM's objects for the statistics of answers are made when they are read, so a run holds only the values."""
    number = 500
    metric = LongContextMetric("helmet")
    states = ScenarioState(
        AdapterSpec(method="longctx"),
        [state(identifier, "v1") for identifier in range(number)],
    )
    metric.evaluate(states, None, "", 1)  # imports and caches
    tracemalloc.start()
    rows = metric.evaluate(states, None, "", 1).per_instance_stats
    held, _ = tracemalloc.get_traced_memory()
    made = [*rows]
    whole, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(made) == len(rows) == number
    assert held < (whole - held) / 3


def test_perturbed_instances_are_evaluated_by_helms_code() -> None:
    """HELM compares each perturbed instance with its original, and reports the worst score."""
    original = state(0, "v1")
    perturbed = state(0, "x")
    changed = replace(
        perturbed.instance,
        perturbation=PerturbationDescription("typos", robustness=True),
    )
    states = [original, replace(perturbed, instance=changed)]
    result = LongContextMetric("helmet").evaluate(
        ScenarioState(AdapterSpec(method="longctx"), states), None, "", 1
    )
    worst = {
        stat.name.perturbation.name: stat.mean
        for stat in result.aggregated_stats
        if stat.name.name == "longctx_score"
        and stat.name.perturbation
        and stat.name.perturbation.computed_on == "worst"
    }
    assert worst == {"robustness": 0, "fairness": 1, "typos": 0}
