"""Tests of LV-Eval from `helm-run` to its table, with fabricated data."""

from __future__ import annotations

import csv
import json
import signal
import time
from pathlib import Path

import pytest

from helm_longctx.benchmarks.lv_eval.tasks import LV_EVAL
from helm_longctx.results.leaderboard.tables import MOST_PUBLISHED
from helm_longctx.tasks.metric_names import MEASURED
from tests.benchmarks.lv_eval.fabricate import build_lv_eval
from tests.e2e.commands import helm_run
from tests.support.leaderboards import stats, table
from tests.support.programs import run, start

ENTRIES = [
    f"lv_eval:length={length},model=longctx/lexical" for length in ("16k", "32k")
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lv_eval(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """Run and summarize two lengths, and return the folder."""
    folder = tmp_path_factory.mktemp("lv_eval")
    made = helm_run(folder, *ENTRIES, HELM_LONGCTX_DATA=str(data))
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr
    reference = run(
        "helm-longctx", "reference", "lv_eval", "--suite", "s", folder=folder
    )
    assert reference.stdout.startswith("51 published results"), reference.stderr
    summarized = run("helm-longctx", "summarize", "--suite", "s", folder=folder)
    assert summarized.returncode == 0, summarized.stderr
    return folder


def test_scores(suite: Path) -> None:
    """Every data set has its headline, its parts and its own column, and the score is their mean."""
    statistics = stats(suite, "lv_eval:length=16k,model=longctx_lexical")
    for task in LV_EVAL.tasks:
        assert (
            statistics["longctx_score", task.name]
            == statistics[task.headline[0], task.name]
        )
        assert statistics["num_instances", task.name] == 6
    assert ("keyword_recall", "cmrc_mixup") in statistics
    mean = sum(statistics["longctx_score", task.name] for task in LV_EVAL.tasks) / 11
    assert table(suite, "lv_eval", "Score")["Lexical baseline"][
        "Overall 16k"
    ] == pytest.approx(mean)
    assert (
        "LooGLE SD 32k"
        in table(suite, "lv_eval_loogle_SD_mixup", "Score")["Lexical baseline"]
    )


def test_published_results_stand_beside(suite: Path) -> None:
    """The table has the best published models with their mark, and their means equal the printed ones."""
    whole = table(suite, "lv_eval", "Score")
    assert sum(name.startswith("published/") for name in whole) == MOST_PUBLISHED
    row = whole["published/ChatGLM3-6B-32k"]
    printed = [30.70, 26.62, 17.62, 11.56, 7.17]
    for length, percent in zip(
        ("16k", "32k", "64k", "128k", "256k"), printed, strict=True
    ):
        assert row[f"Overall {length}"] == pytest.approx(percent / 100, abs=0.00006)
    one = table(suite, "lv_eval_loogle_SD_mixup", "Score")["published/ChatGLM3-6B-32k"]
    assert one["LooGLE SD 16k"] == pytest.approx(0.4182)
    folder = suite / "benchmark_output/runs/s/published_lv_eval"
    for name in ("instances", "display_predictions", "display_requests"):
        assert (
            json.loads((folder / f"{name}.json").read_text()) == []
        )  # without them its page would wait for ever
    assert (
        "not run here"
        in json.loads((folder / "scenario.json").read_text())["description"]
    )
    missing = run(
        "helm-longctx",
        "reference",
        "lv_eval",
        "--suite",
        "s",
        "--model",
        "nobody*",
        folder=suite,
    )
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    assert "model='nobody*'; choose from " in missing.stderr


def test_export(suite: Path) -> None:
    """`export` writes scores and answers as CSV with whole Chinese text, and a picture of the curves."""
    made = run(
        "helm-longctx", "export", "--suite", "s", "--plot", "scores.svg", folder=suite
    )
    assert made.returncode == 0, made.stderr
    scores, answers = (
        rows(suite / f"export/{name}.csv") for name in ("scores", "answers")
    )
    own = {
        (r["metric"], r["task"] or None): float(r["score"])
        for r in scores
        if r["run"] == "lv_eval:length=16k,model=longctx_lexical"
    }
    assert own == stats(suite, "lv_eval:length=16k,model=longctx_lexical")
    printed = {
        "16k": 0.3070,
        "32k": 0.2662,
        "64k": 0.1762,
        "128k": 0.1156,
        "256k": 0.0717,
    }
    table = rows(suite / "export/averages.csv")
    means = {
        (r["task"], r["length"]): r
        for r in table
        if r["model"] == "published/ChatGLM3-6B-32k"
    }
    assert {
        length: pytest.approx(float(means["average", length]["score"]), abs=0.00006)
        for length in printed
    } == printed
    assert means["loogle_SD_mixup", "average"]["score"].startswith("0.2229")
    assert means["loogle_SD_mixup", "average"]["of"] == "5"
    state = json.loads(
        (
            suite
            / "benchmark_output/runs/s/lv_eval:length=16k,model=longctx_lexical/scenario_state.json"
        ).read_text()
    )
    told = [
        row
        for row in answers
        if row["run"] == "lv_eval:length=16k,model=longctx_lexical"
    ]
    assert [(row["instance"], row["answer"]) for row in told] == [(s["instance"]["id"], s["result"]["completions"][0]["text"]) for s in state["request_states"]]  # fmt: skip
    assert any(
        "\u4e00" <= character <= "\u9fff"
        for row in told
        for character in row["question"]
    )
    assert (suite / "export/answers.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    picture = (suite / "export/scores.svg").read_text()
    assert "longctx/lexical" in picture
    assert "published/ChatGLM3-6B-32k" in picture


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_a_question_has_one_id(suite: Path) -> None:
    """The same questions have the same ids at both lengths, and Chinese text is whole."""
    by_length = []
    for length in ("16k", "32k"):
        path = (
            suite
            / f"benchmark_output/runs/s/lv_eval:length={length},model=longctx_lexical/scenario_state.json"
        )
        states = json.loads(path.read_text(encoding="utf-8"))["request_states"]
        by_length.append(
            {
                s["instance"]["id"]: s["instance"]["extra_data"]["question"]
                for s in states
            }
        )
    assert by_length[0] == by_length[1]
    assert any(
        "\u4e00" <= character <= "\u9fff"
        for question in by_length[0].values()
        for character in question
    )


def test_a_killed_run_gives_the_same_results(
    suite: Path, data: Path, tmp_path: Path
) -> None:
    """Runs that were killed three times and started again have the same scores as undisturbed runs."""
    options = ["--run-entries", *ENTRIES, "--suite", "s", "-m", "1000"]
    for files in (0, 2, 5):  # five files make a run complete
        process = start(
            "helm-run", *options, folder=tmp_path, HELM_LONGCTX_DATA=str(data)
        )
        while (
            not (tmp_path / "benchmark_output").exists()
            or len(list(tmp_path.glob("benchmark_output/runs/s/*/*.json"))) < files
        ):
            time.sleep(0.005)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert helm_run(tmp_path, *ENTRIES, HELM_LONGCTX_DATA=str(data)).returncode == 0
    for entry in ENTRIES:
        name = entry.replace("/", "_")
        one, other = (stats(folder, name) for folder in (suite, tmp_path))
        measured = {key: value for key, value in one.items() if key[0] not in MEASURED}
        assert measured == {
            key: value for key, value in other.items() if key[0] not in MEASURED
        }
