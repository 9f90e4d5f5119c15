"""Prompts, the judge's prompts, verdicts and their mean equal the official code's on the same data (golden_makers/aa_lcr.py)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.scenario_state import ScenarioState

from helm_longctx.benchmarks.aa_lcr import BENCHMARK
from helm_longctx.benchmarks.aa_lcr.tasks import (
    JUDGEMENT,
    JUDGEMENT_1_1,
    judge_prompt,
    read_verdict,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.helm.metric import LongContextMetric
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.aa_lcr.fabricate import ROWS, build_aa_lcr, candidates, replies
from tests.support.official import digest
from tests.support.states import state

TASK = BENCHMARK.task("questions")
GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    root = tmp_path_factory.mktemp("aa_lcr")
    build_aa_lcr(root)
    return list(TASK.load(TASK, Settings(None), DataRoot(root, mirror=True)))


def test_prompts(examples: list[Example]) -> None:
    """Every prompt and the order are the official ones."""
    assert [example.id for example in examples] == [
        f"aa_lcr-{number}" for number in range(ROWS)
    ]
    assert (
        digest(TASK.prompt(example).user_turn for example in examples)
        == GOLDEN["prompts"]
    )


def test_judge_prompts(examples: list[Example]) -> None:
    """The judge gets the same prompts as in the official code."""
    asked = [
        judge_prompt(
            {
                **example.fields,
                "references": example.references,
                "prediction": candidate,
            }
        )
        for example, candidate in zip(examples, candidates(), strict=True)
    ]
    assert digest(asked) == GOLDEN["judge_prompts"]


def test_verdicts() -> None:
    """Replies are read as the official code reads them, and only two texts are verdicts."""
    assert [
        [read_verdict(reply).get("judge_score") for reply in repeat]
        for repeat in replies()
    ] == GOLDEN["verdicts"]
    assert {verdict for repeat in GOLDEN["verdicts"] for verdict in repeat} == {
        0,
        1,
        None,
    }


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
    budgets = [(each.max_tokens, each.readings) for each in (JUDGEMENT, JUDGEMENT_1_1)]
    assert budgets == [(1024, 1), (16384, 1)]
