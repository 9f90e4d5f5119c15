"""Tests of measurements by protocols, and of the sentence that compares them with published numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from helm_longctx.apps.reproduction.reproduction import (
    Measurement,
    find_rows,
    judge_agreement,
    measure,
    published_interval,
)
from helm_longctx.benchmarks.helmet import BENCHMARK as HELMET
from helm_longctx.benchmarks.mrcr import BENCHMARK as MRCR
from helm_longctx.results.boards import category_results, mean_of_results
from helm_longctx.results.comparability import Caveat
from helm_longctx.results.reading import Result, Run, Statistic, interval_of
from helm_longctx.results.statistics.intervals import (
    Interval,
    mean_interval,
    mean_of_means,
    weigh_lengths,
)
from helm_longctx.runs.scores import Score
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.publications import Protocol, PublicationSource, Reported
from helm_longctx.tasks.task import MAIN_METRIC
from tests.support.scores import make_score
from tests.support.simulations import PROTOCOLS, find_verdicts, power_of_verdicts

SOURCE = PublicationSource("A page", "https://example.org", "2026-01-01")
PROTOCOL = Protocol(
    "p",
    "P",
    "P",
    "",
    "about",
    ("mrcr:needles=8,length=8k",),
    "mean over questions",
    samples=100,
)
ROW = Reported("GPT-5.5", 81.5, "xhigh", "H", SOURCE)
OWN = Measurement(
    "gpt-5.5", "openai/gpt-5.5", Interval(0.82, 0.75, 0.88, 100), 0.0, 0.82, ()
)

# Bins and areas as contextarena.ai printed them.
ARENA = {
    "gemini-2.5-pro-preview-03-25": (
        (98.7, 94.3, 89.0, 88.9, 84.1, 81.1, 72.7, 60.1),
        88.5,
        73.7,
    ),
    "gemini-2.5-flash-preview": (
        (91.7, 84.9, 77.1, 76.2, 78.1, 69.9, 59.1, 53.5),
        78.3,
        63.2,
    ),
    "gpt-4.1": ((87.6, 68.0, 70.4, 57.5, 55.5, 57.1, 55.6, 42.1), 61.6, 53.2),
    "gpt-4.1-mini": ((73.4, 57.2, 58.2, 42.6, 47.2, 45.1, 47.7, 32.5), 49.4, 43.6),
    "gemini-flash-1.5": ((58.6, 59.3, 54.9, 61.6, 52.0, 44.8, 45.8, 34.9), 57.4, 44.6),
    "gemini-2.0-flash-001": (
        (65.6, 59.9, 59.6, 49.6, 60.1, 37.2, 29.9, 13.3),
        56.0,
        32.1,
    ),
}


@pytest.mark.parametrize("model", ARENA)
def test_context_arenas_area(model: str) -> None:
    """The area over lengths gives both of Context Arena's columns from its bins, to the printed digit."""
    bins, short, long = ARENA[model]
    scores = {8192 << power: value for power, value in enumerate(bins)}
    assert round(area(scores), 1) == pytest.approx(long, abs=0.1)
    until_128k = {length: score for length, score in scores.items() if length <= 131072}
    assert round(area(until_128k), 1) == pytest.approx(short, abs=0.1)


def area(scores: Mapping[int, float]) -> float:
    weights = weigh_lengths(scores)
    return sum(weights[length] * score for length, score in scores.items())


@given(st.dictionaries(st.integers(1, 10**6), st.floats(0, 1), min_size=2, max_size=9))
def test_an_area_is_a_weighted_mean(scores: dict[int, float]) -> None:
    """The area lies between the lowest and the highest score."""
    assert min(scores.values()) - 1e-9 <= area(scores) <= max(scores.values()) + 1e-9


@pytest.mark.parametrize(
    ("own", "row", "protocol", "effort", "kind", "told"),
    [
        (OWN, ROW, PROTOCOL, "xhigh", "agrees", "Agrees with the published 81.5 of GPT-5.5 (xhigh): the difference is +0.5 points; one of 17.7 points is found in 80 % of cases."),
        (replace(OWN, interval=Interval(0.4, 0.3, 0.5, 100)), ROW, PROTOCOL, "xhigh", "differs", "Differs from the published 81.5 of GPT-5.5 (xhigh): the difference is -41.5 points;"),
        (OWN, ROW, PROTOCOL, None, "not comparable", "the published effort is xhigh, and yours is not known"),
        (OWN, ROW, PROTOCOL, "low", "not comparable", "the published effort is xhigh, and yours is low"),
        (OWN, replace(ROW, effort=""), PROTOCOL, "xhigh", "not comparable", "the page does not say the reasoning effort"),
        (OWN, replace(ROW, effort="none"), PROTOCOL, None, "agrees", "Agrees with the published 81.5 of GPT-5.5:"),
        (OWN, ROW, replace(PROTOCOL, not_stated=("the lengths",)), "xhigh", "not comparable", "the page does not say the lengths"),
        (replace(OWN, reasons=("judged by x", "cut prompts: 3 %")), ROW, PROTOCOL, "xhigh", "not comparable", "judged by x; cut prompts: 3 %."),
        (OWN, ROW, replace(PROTOCOL, samples=None), "xhigh", "agrees", "+0.5 points; the page does not say of how many questions, and at best one of"),
        (replace(OWN, interval=Interval(0.7, 0.6, 0.8, 100)), ROW, replace(PROTOCOL, samples=None), "xhigh", "cannot tell", "Cannot tell whether the model differs from the published 81.5 of GPT-5.5 (xhigh): the difference is -11.5 points;"),
        (replace(OWN, interval=Interval(0.4, 0.3, 0.5, 100)), ROW, replace(PROTOCOL, samples=None, asks_all=True), "xhigh", "differs", "-41.5"),
        (replace(OWN, interval=Interval(0.7, 0.5, 0.85, 4)), ROW, replace(PROTOCOL, samples=4), "xhigh", "cannot tell", "the questions are too few to contradict, because none is found in 80 % of cases"),
        (replace(OWN, interval=mean_interval([1] * 40 + [0] * 10)), ROW, replace(PROTOCOL, samples=50), "xhigh", "agrees", "one of 28.6 points"),
        (replace(OWN, interval=mean_interval([1] * 28 + [0] * 7)), ROW, replace(PROTOCOL, samples=35), "xhigh", "cannot tell", "too few to contradict, because one of 3"),
        (replace(OWN, interval=mean_interval([1] * 4)), ROW, replace(PROTOCOL, samples=None), "xhigh", "cannot tell", "the page does not say of how many questions, and at best the questions are too few"),
    ],
)  # fmt: skip
def test_sentences(
    own: Measurement,
    row: Reported,
    protocol: Protocol,
    effort: str | None,
    kind: str,
    told: str,
) -> None:
    """The sentence says that a number agrees or differs, or why it is not comparable."""
    verdict = judge_agreement(own, row, protocol, effort)
    assert verdict.kind == kind
    assert told in verdict.text


@pytest.mark.parametrize(
    ("own", "kind"),
    [
        (mean_interval([0.0] * 4), "differs"),
        (mean_of_means([mean_interval([0.0])] * 4), "differs"),
        # Four questions about one text can all be wrong by the same accident.
        (mean_interval([0.0] * 4, ["text"] * 4), "cannot tell"),
        (mean_interval([0.0] * 2), "cannot tell"),
    ],
)
def test_no_right_answer_never_agrees(own: Interval, kind: str) -> None:
    """No right answer to four questions differs from 91 published, as the exact test says, and fewer cannot tell."""
    row = replace(ROW, value=91.0)
    protocol = replace(PROTOCOL, samples=400)
    assert binomtest(0, 4, 0.91).pvalue < 0.001
    assert (
        judge_agreement(replace(OWN, interval=own), row, protocol, "xhigh").kind == kind
    )


def test_cut_answers_that_could_decide() -> None:
    """If the verdict would be another one with all cut answers right, the number is not comparable."""
    low = replace(OWN, interval=Interval(0.4, 0.3, 0.5, 100), cut=0.4, best=0.8)
    verdict = judge_agreement(low, ROW, PROTOCOL, "xhigh")
    assert verdict.kind == "not comparable"
    assert (
        "40 % of the answers were cut, and with a larger output budget the number could be up to 80.0"
        in verdict.text
    )
    few = judge_agreement(replace(low, cut=0.05, best=0.45), ROW, PROTOCOL, "xhigh")
    assert few.kind == "differs"


def test_a_published_number_within_the_bounds_is_not_agreement() -> None:
    """A number that agrees only because answers were cut, or although they were, is not said to agree."""
    near = replace(OWN, interval=Interval(0.8, 0.74, 0.86, 100), cut=0.03, best=0.83)
    assert judge_agreement(near, ROW, PROTOCOL, "xhigh").kind == "not comparable"
    above = replace(OWN, cut=0.03, best=0.85)
    assert judge_agreement(above, ROW, PROTOCOL, "xhigh").kind == "agrees"


@pytest.mark.parametrize(
    ("model", "is_found"),
    [
        ("openai/gpt-5.5", True),
        ("GPT 5.5", True),
        ("openai/gpt-5.5-2026-04-23", True),
        ("gpt-5", False),
        ("gpt-5.5-mini", False),
        ("gpt-55", False),
    ],
)
def test_models_of_the_same_name(model: str, is_found: bool) -> None:
    """A published model is found whatever the organization and the date, and no other model is taken for it."""
    assert find_rows([ROW], model) == ([ROW] if is_found else [])


def test_published_intervals() -> None:
    """A published number has Wilson's interval of its sample, and none if the sample is not known."""
    known = published_interval(ROW, PROTOCOL)
    assert (round(known.low, 3), round(known.high, 3), known.n) == (0.728, 0.879, 100)
    assert math.isnan(published_interval(ROW, replace(PROTOCOL, samples=None)).low)


def test_a_number_of_all_questions_has_as_many_as_a_whole_run() -> None:
    """If a protocol asks all questions of its data, an own number without reasons against it says how many they are."""
    every = replace(PROTOCOL, samples=None, asks_all=True)
    assert published_interval(ROW, every, [OWN]) == published_interval(ROW, PROTOCOL)
    part = replace(OWN, reasons=("20 of 100 questions",))
    assert math.isnan(published_interval(ROW, every, [part]).low)
    assert math.isnan(
        published_interval(ROW, replace(every, asks_all=False), [OWN]).low
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_model_is_not_called_different_from_itself(protocol: str) -> None:
    """A model differs from its own published number in about 5 % of rounds, and in none if its sample is not known."""
    for chance in (0.5, 0.95):
        verdicts = find_verdicts(
            PROTOCOLS[protocol], chance, 200, np.random.default_rng(3)
        )
        assert verdicts.taken_for_exact > 0.1
        assert verdicts.known <= 0.09
        assert (verdicts.unknown, verdicts.cannot_tell) == (0, verdicts.taken_for_exact)


@pytest.mark.parametrize(
    ("protocol", "chance"),
    [("Qwen's RULER (13 of 20)", 0.95), ("a bin of MRCR (100)", 0.8)],
)
def test_the_difference_that_a_verdict_names_is_found(
    protocol: str, chance: float
) -> None:
    """The difference that a verdict names is found in about 80 % of rounds."""
    assert (
        0.73
        <= power_of_verdicts(
            PROTOCOLS[protocol], chance, 200, np.random.default_rng(1)
        ).share
        <= 0.92
    )


def own_result(
    n: int, model: str = "m", folder: str = "", **departures: object
) -> Result:
    """Return a result of a run of the protocol's entry with n questions, of which each second one is right."""
    rows = [
        make_score(
            float(i % 2),
            f"q{i}",
            run=folder,
            entry="mrcr",
            task="8needle",
            length=8192,
            group=f"g{i}",
        )
        for i in range(n)
    ]
    spec = {
        "name": folder,
        "adapter_spec": {
            "model": model,
            "model_deployment": model,
            "num_trials": 1,
            **departures,
        },
        "scenario_spec": {"args": {"needles": 8}},
    }
    interval = interval_of(rows)
    return Result(
        "mrcr", "mrcr", "8needle", ShownModel(model), 8192, "full", interval, answers=tuple(rows),
        run=Run(Path(folder), spec, (MRCR.task("8needle"),), ""), statistics={MAIN_METRIC: Statistic(interval)},
    )  # fmt: skip


def test_the_run_with_the_most_questions_counts() -> None:
    """Of a task's runs the one without departures counts, whatever its size, and then the largest; all its questions are enough."""
    small = own_result(20)
    whole = own_result(100)
    other = own_result(150, num_trials=5)
    for results in ((small, whole, other), (other, whole, small)):
        (reproduction,) = measure(PROTOCOL, MRCR, results)
        assert (reproduction.interval.n, reproduction.reasons) == (100, ())
    (few,) = measure(PROTOCOL, MRCR, [own_result(99)])
    assert few.reasons == ("99 of 100 questions",)
    (departed,) = measure(PROTOCOL, MRCR, [other])
    assert departed.reasons == ("each question was asked 5 times instead of 1",)
    (unknown,) = measure(replace(PROTOCOL, samples=None), MRCR, [small])
    assert unknown.reasons == ()
    assert measure(PROTOCOL, MRCR, [replace(whole, length=16384)]) == []


def test_a_number_with_failures_compares_with_nothing() -> None:
    """A number of which requests failed agrees with no published one, and differs from none, because failures may decide."""
    failed = Caveat("request_failed", "8needle", "0.02")
    (own,) = measure(PROTOCOL, MRCR, [replace(own_result(100), caveats=(failed,))])
    assert own.reasons == ("failed requests: 2 %",)
    for published in (50.0, 90.0):
        row = replace(ROW, value=published)
        verdict = judge_agreement(own, row, PROTOCOL, "xhigh")
        assert verdict.kind == "not comparable"


def test_the_same_questions_have_one_interval() -> None:
    """The mean over entries of one task each has the interval that the entry of all tasks has."""
    tasks = HELMET.entries["helmet_recall"].tasks
    entries = tuple(f"helmet_recall:task={task.name},length=8k" for task in tasks)
    protocol = replace(
        PROTOCOL, entries=entries, aggregation="mean over entries", samples=12
    )
    results = []
    for task in tasks:
        right = task.name in ("json_kv", "ruler_niah_mk_2")
        rows = [
            replace_answer(
                own_result(1).answers[0], task.name, f"q{number}", right and not number
            )
            for number in range(3)
        ]
        interval = interval_of(rows)
        args = {"task": task.argument, "length": 8192}
        spec = {
            "name": task.name,
            "adapter_spec": {"model": "m", "num_trials": 1},
            "scenario_spec": {"args": args},
        }
        results.append(
            Result(
                benchmark="helmet",
                entry="helmet_recall",
                task=task.name,
                model=ShownModel("m"),
                length=8192,
                context="full",
                interval=interval,
                answers=tuple(rows),
                run=Run(path=Path(task.name), spec=spec, tasks=(task,), judge=""),
                statistics={MAIN_METRIC: Statistic(interval)},
            )
        )
    (reproduction,) = measure(protocol, HELMET, results)
    (category,) = category_results(results, HELMET)
    assert category.interval.n == 12
    assert (reproduction.interval.low, reproduction.interval.high) == pytest.approx(
        (category.interval.low, category.interval.high)
    )
    # Two entries, of one task and of the others, give other weights, and no interval of intervals.
    parts = [category_results(part, HELMET)[0] for part in (results[:1], results[1:])]
    nested = replace(category, parts=tuple(parts))
    uneven = mean_of_results(nested.weighted_tasks)
    assert uneven.mean == pytest.approx((1 / 3 + 1 / 9) / 2)
    by_intervals = mean_of_means([part.interval for part in parts])
    assert (round(100 * by_intervals.low, 1), round(100 * by_intervals.high, 1)) == (
        0.0,
        92.5,
    )
    assert uneven.high - uneven.low < 0.8 * (by_intervals.high - by_intervals.low)


def replace_answer(answer: Score, task: str, instance: str, is_right: bool) -> Score:
    return answer._replace(
        task=task, instance=instance, score=float(is_right), group=f"{task}: {instance}"
    )
