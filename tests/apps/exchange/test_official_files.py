"""Files that the official code wrote (tests/golden_makers/formats.py) become runs with the official scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.apps.exchange.export import scores
from helm_longctx.apps.exchange.importing import Imported, import_files
from helm_longctx.benchmarks.helmet.outputs import parse_name
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.results.boards import category_results, read_suite
from helm_longctx.results.reading import read_results
from helm_longctx.runs.files import (
    STATES,
    find_incomplete_files,
    read_json,
)
from helm_longctx.runs.helm_files import read_states
from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)

OWN_NAMES = {
    "gpt-4-score": "judge_score",
    "gpt-4-f1": "judge_f1",
    "gpt-4-recall": "judge_recall",
    "gpt-4-precision": "judge_precision",
    "gpt-4-fluency": "judge_fluency",
}
LARGEST = {"gpt-4-score": 3}
"""Largest values of averages of the judge's scores; others are 1, and all other averages are percentages."""
LEFT_OUT = {
    "input_len",
    "output_len",
    "rougeLsum",
    "citation_rec",
    "citation_prec",
    "citation_positions",
}
"""Averages that are no scores, and those of a judge whose verdicts are in no file."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a suite with all official files, imported from two folders of outputs."""
    folder = tmp_path_factory.mktemp("official")
    for name, files in GOLDEN.items():
        (folder / name / "Llama-3.1-8B").mkdir(parents=True)
        for file, content in files.items():
            rows = content if isinstance(content, list) else [content]
            (folder / name / "Llama-3.1-8B" / file).write_text(
                "\n".join(json.dumps(row) for row in rows)
            )
    suite = folder / "runs/theirs"
    imported = import_files([folder / "helmet", folder / "lv_eval"], suite, BENCHMARKS)
    assert isinstance(imported, Imported)
    assert imported.scores == {"helmet": 2}
    return suite


def own_scores(suite: Path, model: str) -> dict[str, dict[str, float]]:
    """Return each task's statistics in the runs of a model."""
    statistics: dict[str, dict[str, float]] = {}
    for row in scores(read_suite(suite, BENCHMARKS)):
        if row.model == model:
            statistics.setdefault(row.task, {})[row.metric] = row.score
    return statistics


def averages_of(name: str, content: dict[str, Any]) -> list[tuple[str, str, float]]:
    """Return task, official metric and value of each average in one of HELMET's files."""
    task = parse_name(Path(name)).task.name
    averages = content if name.endswith(".score") else content["averaged_metrics"]
    left_out = LEFT_OUT | ({"str_em", "str_hit"} if "qampari" in task else set())
    return [
        (task, metric, value)
        for metric, value in averages.items()
        if metric not in left_out
    ]


def test_helmets_outputs_have_the_official_scores(suite: Path) -> None:
    """Every average in HELMET's files, also of the judge's scores, is equal to the run's average to the last digits."""
    own = own_scores(suite, "meta-llama/Llama-3.1-8B")
    compared = 0
    for name, content in GOLDEN["helmet"].items():
        for task, metric, official in averages_of(name, content):
            if not (
                name.endswith(".json") and task in ("asqa", "qampari", "asqa_nocite")
            ):  # scored by eval_alce.py
                counted = metric in ("length", "num_preds") and "msmarco" not in task
                largest = (
                    1
                    if counted
                    else LARGEST.get(metric, 1 if metric.startswith("gpt") else 100)
                )
                assert own[task][
                    OWN_NAMES.get(metric, metric)
                ] * largest == pytest.approx(official, abs=1e-9), name
                compared += 1
    assert compared > 150


def test_citations_without_verdicts_are_published_scores(suite: Path) -> None:
    """Averages of citations have no verdicts in the outputs, so they are shown as published scores without instances."""
    published = [
        result
        for result in read_results(suite, [HELMET], keep_answers=False)
        if result.is_published
    ]
    means = {row.task: row.interval.mean for row in published}
    assert means.keys() == {"asqa", "qampari"}
    for name, content in GOLDEN["helmet"].items():
        task = parse_name(Path(name)).task
        if name.endswith(".score") and task.name in means:
            official = sum(content[metric] for metric in task.headline) / len(
                task.headline
            )
            assert means[task.name] == pytest.approx(official / 100)
    assert "longctx_score" not in own_scores(suite, "meta-llama/Llama-3.1-8B")["asqa"]


def test_missing_verdicts_are_counted(suite: Path) -> None:
    """Missing verdicts are counted, and they are in no mean, as in the official average."""
    own = own_scores(suite, "meta-llama/Llama-3.1-8B")
    for name, content in GOLDEN["helmet"].items():
        if "gpt4eval" in name:
            missing = [row.get("gpt-4-scores") is None for row in content["data"]]
            task = parse_name(Path(name)).task.name
            assert own[task]["judge_failed"] == pytest.approx(
                sum(missing) / len(missing)
            )


def test_lv_evals_predictions_have_the_official_scores(suite: Path) -> None:
    """The score of every data set is the official one, rounded as in the official table."""
    own = own_scores(suite, "imported/Llama-3.1-8B")
    official = GOLDEN["lv_eval"]["result.json"]
    assert {
        f"{task}_16k": round(100 * values["longctx_score"], 2)
        for task, values in own.items()
    } == official


def test_runs_are_complete(suite: Path) -> None:
    """Imported runs have all files, the categories' means, the judge if there was one, and the instances' names."""
    runs = [path.parent for path in suite.glob(f"*/{STATES}")]
    assert (
        len(runs)
        == len(own_scores(suite, "meta-llama/Llama-3.1-8B"))
        + len(GOLDEN["lv_eval"])
        - 1
    )
    assert [find_incomplete_files(run) for run in runs] == [[]] * len(runs)
    results = read_results(suite, BENCHMARKS)
    by_category = {
        category_result.entry: category_result
        for category_result in category_results(results, HELMET)
        if "published" not in category_result.model
    }
    assert by_category["helmet_summ"].judges == {"openai/gpt-4o-2024-05-13"}
    assert 0 <= by_category["helmet_summ"].interval.mean <= 1
    (run,) = (run for run in runs if "task=nq," in run.name)
    assert [state["instance"]["id"] for state in read_states(run / STATES)][:2] == [
        "nq-0",
        "nq-1",
    ]
    assert read_json(run / "scenario.json")["tags"] == ["imported"]
