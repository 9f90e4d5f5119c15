"""Tests of the real `nemo-evaluator run_eval`, from its configuration to its results. `bench/runs/eval_factory.py` has more runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from core_evals.helm_longctx.medical import MEDICAL
from helm_longctx.models.baselines import lexical
from tests.core_evals.evaluating import KEY, evaluate, scores_of, shown_scores
from tests.core_evals.medical_rows import (
    COUNT,
    EXPECTED,
    write_encoding,
    write_licensed,
    write_rows,
    write_stand_ins,
)
from tests.support.servers.llm import serve
from tests.support.servers.nvcf import serve_function

pytest.importorskip("nemo_evaluator")


def test_a_task_of_ours_through_a_cloud_function(tmp_path: Path) -> None:
    """The results have the scores that HELM's pages show, with standard errors, and the key is in no file."""
    extra = {"length": "8k", "arguments": {"num_samples": 3}}
    with (
        serve(
            lambda prompt: lexical.answer(prompt)[: len(prompt) % 9] or "none"
        ) as server,
        serve_function(server) as cloud,
    ):
        target = {
            "url": cloud.function,
            "type": "chat",
            "adapter_config": {"use_nvcf": True},
        }
        results = evaluate(tmp_path, "helmet_recall", target, extra)
    assert cloud.keys == {f"Bearer {KEY}"}
    assert {call.path for call in server.calls[-12:]} == {"/v1/chat/completions"}
    shown = shown_scores(tmp_path, "helmet_8k")
    whole = scores_of(results, "groups", "helmet_recall_8k")["longctx_score"]
    assert 0 < whole["value"] < 1
    assert whole["stats"]["stderr"] > 0
    assert f"{100 * whole['value']:.1f}" in shown.values()
    assert len(results["results"]["tasks"]) == 4
    out = tmp_path / "out"
    names = {path.name for path in out.iterdir()}
    assert {
        "responses",
        "cache",
        "instances.jsonl",
        "results.jsonl",
        "model_configs",
        "evaluation_config.yaml",
    } <= names
    assert {path.name for path in (out / "model_configs").iterdir()} >= {
        "run.yaml",
        "model_deployments.yaml",
    }
    assert not any(
        KEY.encode() in path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    )


@pytest.mark.parametrize(
    "task",
    # Each task takes ten seconds.
    [
        task
        if task in ("medcalc_bench", "ehrshot")
        else pytest.param(task, marks=pytest.mark.long)
        for task in EXPECTED
    ],
)
def test_medical_tasks(task: str, tmp_path: Path) -> None:
    """HELM's medical tasks that need no judge have the scores of fabricated rows, also on HELM's pages."""
    for module in MEDICAL[task].needs:
        reason = "the extra medhelm of crfm-helm is not installed"
        pytest.importorskip(module, reason=reason)
    extra = {}
    if MEDICAL[task].data:
        extra = write_licensed(task, tmp_path / "licensed")
    else:
        write_rows(task, tmp_path, tmp_path / "out")
    write_encoding(tmp_path / "modules")
    expected = EXPECTED[task]
    with serve(lambda prompt: expected.answer) as server:
        target = {"url": f"{server.openai}chat/completions", "type": "chat"}
        path = str(tmp_path / "modules")
        results = evaluate(tmp_path, task, target, extra, PYTHONPATH=path)
        prompts = [call.prompt for call in server.calls]
    assert not any("LATER" in prompt for prompt in prompts)
    scores = scores_of(results, "tasks", task)[expected.statistic]
    assert scores["value"] == expected.value
    assert scores["stats"]["count"] == COUNT
    if (
        task != "ehr_sql"
    ):  # HELM names no main metric of this scenario, and makes no table for it
        shown = {
            text.rstrip("0").rstrip(".")
            for text in shown_scores(tmp_path, task).values()
        }
        assert f"{expected.value:g}" in shown


VERDICTS = json.dumps(
    {
        name: {"score": 4, "explanation": "fine"}
        for name in ("accuracy", "completeness", "clarity")
    }
)
JUDGED = sorted({task.entry for task in MEDICAL.values() if task.is_judged})


@pytest.mark.long
@pytest.mark.parametrize("task", JUDGED)
def test_judged_medical_tasks(task: str, tmp_path: Path) -> None:
    """HELM's judged medical tasks have the judges' scores and the statistics of summaries that need no GPU.

    It needs the packages of `.ci/judged-tasks.txt`. What HELM gets from GitHub has stand-ins.
    """
    for module in ("bert_score", "gin", "summ_eval", "openpyxl"):
        reason = "make test-long installs the packages of .ci/judged-tasks.txt"
        pytest.importorskip(module, reason=reason)
    licensed = {}
    if MEDICAL[task].data:
        licensed = write_licensed(task, tmp_path / "licensed")
    else:
        write_rows(task, tmp_path, tmp_path / "out")
    write_stand_ins(tmp_path / "modules")
    with (
        serve(lambda prompt: "The pulse is normal.") as server,
        serve(lambda prompt: VERDICTS) as judge,
    ):
        extra = {
            "judge": [{"name": "nvidia/gpt4o-judge", "url": judge.openai}],
            "gpt_judge_api_key": "JUDGE_KEY",
            **({"subset": "icliniq"} if task == "med_dialog" else {}),
            **licensed,
        }
        target = {"url": f"{server.openai}chat/completions", "type": "chat"}
        variables = {
            "JUDGE_KEY": KEY,
            "PYTHONPATH": os.pathsep.join([str(tmp_path / "modules")]),
        }
        results = evaluate(tmp_path, task, target, extra, **variables)
        assert (
            sum(
                "pulse" in call.prompt.lower() or "mg" in call.prompt
                for call in judge.calls
            )
            >= COUNT
        )
    names = results["results"]["tasks"]
    (name,) = [name for name in names if name.startswith(task)]
    scores = scores_of(results, "tasks", name)
    assert scores[f"{task}_accuracy"]["value"] == 4
    assert scores[f"{task}_accuracy"]["stats"]["count"] == COUNT
    assert 0 <= scores["summarization_coverage"]["value"] <= 1
