"""A run of `helm-run` sends the official requests to a judge, and scores its replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.models.apis.availability import PROMPT
from tests.benchmarks.hellobench.fabricate import (
    build_hellobench,
    make_reply,
    make_rows,
)
from tests.e2e.commands import run
from tests.judging.deployments import write_judges
from tests.support.leaderboards import stats
from tests.support.servers.llm import serve

ENTRY = "hellobench:task=chat,judge=tests/judge"


def judge(prompt: str) -> str:
    """Give the second text no verdict, and the others half of each item."""
    if prompt == PROMPT:
        return "yes"
    second = make_rows("chat")[1]["instruction"]
    return (
        "Well done."
        if second in prompt
        else f"```json\n{make_reply(0.5, 0.5, 0.5)}\n```"
    )


def test_a_run(tmp_path: Path) -> None:
    """The judge gets the system message and the lexical baseline's text. A missing verdict is asked for three times,
    counted, and left out of the mean."""
    root = build_hellobench(tmp_path / "data")
    with serve(judge) as judging:
        models = write_judges(tmp_path / "models", {"tests/judge": judging.openai})
        line = [
            "--run-entries",
            f"{ENTRY},model=longctx/lexical",
            "--suite",
            "s",
            "-m",
            "9",
            "--local-path",
            str(models),
        ]
        made = run("helm-run", *line, folder=tmp_path, HELM_LONGCTX_DATA=str(root))
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr
    values = {
        name: value
        for (name, task), value in stats(
            tmp_path, f"{ENTRY},model=longctx_lexical".replace("/", "_")
        ).items()
        if task
    }
    assert values["longctx_score"] == pytest.approx(0.5)
    assert values["rescaled_score"] == pytest.approx(-1.0)
    assert values["judge_failed"] == pytest.approx(1 / 6)
    assert values["judge_score_strict"] == pytest.approx(5 / 12)
    asked = [body for body in judging.bodies if PROMPT not in str(body["messages"])]
    assert len(asked) == 5 + 3
    assert sorted({body["seed"] for body in asked}) == [42, 43, 44]
    assert {(body["temperature"], body["max_tokens"]) for body in asked} == {
        (0.8, 4096)
    }
    assert {
        tuple(message["role"] for message in body["messages"]) for body in asked
    } == {("system", "user")}
