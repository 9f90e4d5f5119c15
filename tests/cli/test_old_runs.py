"""Tests that runs of an earlier version (`tests/runs/make_old_run.py`) can be shown, summarized, exported and judged."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from pathlib import Path

import pytest

from helm_longctx.data.root import ENVIRONMENT
from tests.judging.deployments import write_judges
from tests.judging.grades import grade
from tests.support.commands import Command
from tests.support.fabricate_books import build_rubrics
from tests.support.servers.llm import serve

OLD_RUN = Path(__file__).parent.parent / "runs/old_run.zip"


@pytest.fixture
def old_run() -> Path:
    """Return the run's folder in the suite `s`."""
    name = "helmet_longqa:task=narrativeqa,length=8k,num_samples=2,judge=tests_plain,model=longctx_lexical"
    run = Path("benchmark_output/runs/s") / name
    shutil.unpack_archive(OLD_RUN, run)
    return run


def scores(run: Path) -> dict[str, float]:
    rows = json.loads((run / "stats.json").read_text())
    return {
        row["name"]["name"]: row["mean"]
        for row in rows
        if row["name"]["name"] in ("longctx_score", "judge_score")
    }


def test_show(command: Command, old_run: Path) -> None:
    """`show` prints the prompt of an old run byte for byte."""
    (instance, digest), *_ = json.loads((old_run / "prompts.json").read_text())["instances"].items()
    assert command("show", old_run, instance) == 0
    assert hashlib.sha256(command.out.encode()).hexdigest() == digest


def test_summarize_and_export(command: Command, old_run: Path) -> None:
    """`summarize` and `export` give the score of an old run, with empty columns for the versions."""
    assert command("summarize", "--suite", "s") == 0
    score = scores(old_run)["longctx_score"]
    assert f" {100 * score:.1f}" in command.out
    assert len(json.loads((old_run / "display_predictions.json").read_text())) == 2
    assert command("export", "--suite", "s", "--plot", "") == 0
    rows = list(csv.DictReader(Path("export/scores.csv").read_text("utf-8-sig").splitlines()))
    assert [float(row["score"]) for row in rows if row["metric"] == "longctx_score"] == [score]
    assert {(row["package"], row["comparability"]) for row in rows} == {("", "")}
    answers = list(csv.DictReader(Path("export/answers.csv").read_text("utf-8-sig").splitlines()))
    assert [row["repeat"] for row in answers] == ["1", "1"]
    assert all(row["question"] and row["score"] for row in answers)


@pytest.mark.parametrize(
    "judge", [[], ["--judge", "tests/other", "--to", "t"]], ids=["own", "other"]
)
def test_rejudge(
    judge: list[str], command: Command, old_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`rejudge` uses the metric and judge of the installed package, whatever classes the old run spec names."""
    build_rubrics(Path("root"))
    monkeypatch.setenv(ENVIRONMENT, "root")
    before = scores(old_run)
    with serve(grade) as server:
        write_judges(Path("local"), {"tests/plain": server.openai, "tests/other": server.openai})
        assert command("rejudge", "--suite", "s", *judge, "--local-path", "local") == 0, command.err
        assert server.calls
    target = Path(command.out.splitlines()[-1])
    assert scores(target) == before
    spec = json.loads((target / "run_spec.json").read_text())
    classes = [spec["scenario_spec"], *spec["metric_specs"][:1], *spec["annotators"]]
    assert [each["class_name"] for each in classes] == [
        "helm_longctx.helm.scenario.LongContextScenario",
        "helm_longctx.helm.metric.LongContextMetric",
        "helm_longctx.benchmarks.helmet.judge.RubricAnnotator",
    ]


def test_a_run_that_cannot_be_judged_again(command: Command, old_run: Path) -> None:
    """`rejudge` ends in one line if the benchmark or an argument of the run no longer exists."""
    path = old_run / "run_spec.json"
    for old, new, message in (
        ("helmet_longqa", "gone_qa", "gone_qa"),
        ("8192", "77", "length=77 is invalid"),
    ):
        text = path.read_text()
        path.write_text(
            text.replace(f'"entry": "{old}"', f'"entry": "{new}"').replace(
                f'"length": {old}', f'"length": {new}'
            )
        )
        assert command("rejudge", "--suite", "s") == 2
        assert message in command.err.splitlines()[-1]
        path.write_text(text)
