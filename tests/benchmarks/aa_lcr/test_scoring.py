"""Scores and their mean by the judge of AA-LCR."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.scenario_state import ScenarioState

from helm_longctx.benchmarks.aa_lcr import BENCHMARK
from helm_longctx.benchmarks.aa_lcr.tasks import JUDGEMENT, JUDGEMENT_1_1
from helm_longctx.helm.metric import LongContextMetric
from tests.benchmarks.aa_lcr.fabricate import replies
from tests.support.states import state

TASK = BENCHMARK.task("questions")
GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


def test_mean() -> None:
    """A run's score is the mean over questions of the mean over repeats; replies without a verdict are left out."""
    states = [
        replace(
            state(number, "x", task=TASK.name, record={"judge": reply}),
            train_trial_index=trial,
        )
        for trial, repeat in enumerate(replies())
        for number, reply in enumerate(repeat)
    ]
    spec = AdapterSpec(method="longctx", num_trials=len(replies()))
    stats = (
        LongContextMetric(BENCHMARK.name)
        .evaluate(ScenarioState(spec, states), None, "", 1)
        .aggregated_stats
    )
    (mean,) = [
        stat.mean
        for stat in stats
        if stat.name.name == "longctx_score" and not stat.name.perturbation
    ]
    assert mean == pytest.approx(GOLDEN["mean"], abs=1e-15)


def test_scores() -> None:
    """A record's score is its judge's verdict, and a record without a verdict has no score."""
    assert TASK.score({"prediction": "x", "references": ["y"], "judge": "CORRECT"}) == {
        "judge_score": 1
    }
    assert TASK.score(
        {"prediction": "x", "references": ["y"], "judge": "INCORRECT"}
    ) == {"judge_score": 0}
    assert (
        TASK.score({"prediction": "x", "references": ["y"], "judge": ["CORRECT"]}) == {}
    )
    assert TASK.score({"prediction": "x", "references": ["y"]}) == {}


def test_budgets_of_the_judges() -> None:
    """Each version's judge has its own budget, and is asked once."""
    budgets = [
        (template.max_tokens, template.readings)
        for template in (JUDGEMENT, JUDGEMENT_1_1)
    ]
    assert budgets == [(1024, 1), (16384, 1)]
