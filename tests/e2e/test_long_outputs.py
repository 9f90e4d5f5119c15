"""Tests of long texts that judges grade, from `helm-run` with a real server to the statistics."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from helm_longctx.models.apis.availability import PROMPT
from tests.benchmarks.longbench_write import fabricate as write
from tests.benchmarks.longgenbench import fabricate as gen
from tests.judging.deployments import write_judges
from tests.support.leaderboards import stats
from tests.support.official import read_golden
from tests.support.programs import run
from tests.support.servers.llm import serve

WRITE = "longbench_write:judge=tests/judge"
GEN = "longgenbench:length=16k,judge=tests/judge"
LENGTH = 16384
WRITE_GOLDEN = read_golden(write.__file__)
GEN_GOLDEN = read_golden(gen.__file__)


class Judge:
    """A judge whose replies are the fabricated ones. It gives no verdict on one text of LongBench-Write."""

    def __init__(self) -> None:
        self._asked: Counter[int] = Counter()

    def __call__(self, prompt: str) -> str:
        """Return the reply to a prompt."""
        if prompt == PROMPT:
            return "yes"
        if prompt.startswith("Context: "):
            return gen.reply_to(prompt)
        number = int(prompt.partition("<request>\n")[2].partition(":")[0])
        self._asked[number] += 1
        judge_replies = write.replies()[number]
        return judge_replies[min(self._asked[number], len(judge_replies)) - 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    root = tmp_path_factory.mktemp("data")
    write.build_longbench_write(root)
    gen.build_longgenbench(root)
    answers = {
        row["prompt"]: text
        for row, text in zip(write.rows("requests"), write.responses(), strict=True)
    }
    texts = gen.outputs(LENGTH, restart=False)
    answers |= {
        row["prompt"]: text for row, text in zip(gen.rows(LENGTH), texts, strict=True)
    }
    with serve(lambda prompt: answers[prompt]) as model, serve(Judge()) as judging:
        write_judges(
            folder / "models",
            {"tests/model": model.openai, "tests/judge": judging.openai},
        )
        entries = [f"{entry},model=tests/model" for entry in (WRITE, GEN)]
        line = [
            "--run-entries",
            *entries,
            "--suite",
            "s",
            "-m",
            "1000",
            "--local-path",
            str(folder / "models"),
        ]
        runner = ["--runner-class-name", "helm_longctx.runner.LongContextRunner"]
        made = run(
            "helm-run", *line, *runner, folder=folder, HELM_LONGCTX_DATA=str(root)
        )
        assert made.returncode == 0, made.stdout[-3000:] + made.stderr
        bodies = [
            body for body in judging.bodies if PROMPT not in str(body["messages"])
        ]
        (folder / "asked.json").write_text(
            json.dumps({"model": model.bodies, "judge": bodies})
        )
    return folder


def stats_of(folder: Path, entry: str) -> dict[str, float]:
    """Return the statistics of a run's only task."""
    statistics = stats(folder, f"{entry},model=tests_model".replace("/", "_"))
    return {name: value for (name, task), value in statistics.items() if task}


def test_longbench_write(folder: Path) -> None:
    """LongBench-Write's scores equal those of the official code, and a missing verdict is requested five times and counted."""
    statistics = stats_of(folder, WRITE)
    total = WRITE_GOLDEN["total"]
    lengths = WRITE_GOLDEN["length_scores"]
    assert statistics["length_score"] == pytest.approx(
        sum(lengths) / len(lengths) / 100
    )
    assert statistics["judge_score"] == pytest.approx(total["total"] / 100)
    assert statistics["judge_reading_experience"] == pytest.approx(
        total["Reading Experience"] / 100
    )
    assert statistics["longctx_score"] == pytest.approx(
        (statistics["length_score"] + statistics["judge_score"]) / 2
    )
    assert statistics["judge_failed"] == 0.1
    assert statistics["judge_score_strict"] == pytest.approx(
        0.9 * statistics["judge_score"]
    )
    asked = json.loads((folder / "asked.json").read_text())
    calls = [body for body in asked["judge"] if body["temperature"] == 0.5]
    assert len(calls) == sum(map(len, write.replies()))
    assert {body["max_tokens"] for body in calls} == {1024}


def test_longgenbench(folder: Path) -> None:
    """LongGenBench's scores equal those of the official code, although a chat has no stop sequence."""
    statistics = stats_of(folder, GEN)
    _, made, _, made_share, stic_1, stic_2, words, completion = GEN_GOLDEN[str(LENGTH)][
        "local"
    ]["static"]
    assert (
        statistics["judge_stic_2"]
        == statistics["longctx_score"]
        == pytest.approx(stic_2)
    )
    assert statistics["judge_stic_2"] / statistics["checks_made"] == pytest.approx(
        stic_1
    )
    assert statistics["checks_made"] == pytest.approx(made_share)
    assert statistics["completion_rate"] == pytest.approx(completion / 100)
    assert statistics["output_words"] == pytest.approx(words)
    assert statistics["judge_failed"] == 0
    asked = json.loads((folder / "asked.json").read_text())
    # Equal prompts are asked once.
    calls = {
        str(body["messages"]) for body in asked["judge"] if body["temperature"] == 0.95
    }
    assert 0 < len(calls) <= made
    assert {body["max_tokens"] for body in asked["model"]} == {32768, 16000}
