"""Tests the way from a run with a jury to its agreement with people, with the commands that a user types."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from helm_longctx.data.root import DataRoot
from tests.judging.deployments import write_judges
from tests.support.programs import run
from tests.support.servers.llm import serve

ENTRY = "helmet_longqa:task=narrativeqa,length=8k,num_samples=12,judge=tests/a+tests/b,model=longctx/lexical"


def grader(salt: str) -> Callable[[str], str]:
    """Return a judge that grades the correctness by the prompt's digest."""
    return lambda prompt: json.dumps(
        {
            "fluency": 1,
            "correctness": hashlib.sha256(f"{salt}{prompt}".encode()).digest()[0] % 4,
        }
    )


def label(answers: Path, run_folder: Path, labelled: Path) -> int:
    """Write answers with a column of labels that are the verdicts of the judge `tests/a`, and return their number."""
    states = json.loads((run_folder / "scenario_state.json").read_text())[
        "request_states"
    ]
    said = {
        s["instance"]["id"]: s["annotations"]["jury"]["verdicts"]["tests/a"]["answer"]
        for s in states
    }
    with answers.open(encoding="utf-8-sig", newline="") as file:
        rows = [
            {**row, "correctness": said[row["instance"]]["correctness"]}
            for row in csv.DictReader(file)
        ]
    with labelled.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return len(rows)


def test_exported_answers_with_a_column_are_labels(
    tmp_path: Path, mirror: DataRoot
) -> None:
    """A person whose labels equal one judge's verdicts agrees with that judge, and with the other judge as that judge does."""
    with serve(grader("a")) as one, serve(grader("b")) as other:
        write_judges(
            tmp_path / "local", {"tests/a": one.openai, "tests/b": other.openai}
        )
        arguments = (
            "--run-entries",
            ENTRY,
            "--suite",
            "s",
            "-m",
            99,
            "--local-path",
            "local",
        )
        made = run(
            "helm-run", *arguments, folder=tmp_path, HELM_LONGCTX_DATA=str(mirror.path)
        )
        assert made.returncode == 0, made.stdout[-3000:] + made.stderr
    suite = tmp_path / "benchmark_output/runs/s"
    assert (
        run(
            "helm-longctx", "export", "--suite", "s", "--plot", "", folder=tmp_path
        ).returncode
        == 0
    )
    count = label(
        tmp_path / "export/answers.csv",
        next(suite.glob("helmet_longqa*")),
        tmp_path / "labelled.csv",
    )
    options = (
        "--judged",
        suite,
        "--labels",
        "labelled.csv",
        "--json",
        "agreement.json",
    )
    compared = run("helm-longctx", "judge-agreement", *options, folder=tmp_path)
    assert compared.returncode == 0, compared.stderr
    assert "human / tests/a" in compared.stdout
    agreement = json.loads((tmp_path / "agreement.json").read_text())
    assert agreement["unknown_labels"] == 0
    by_raters = {
        row["raters"]: row
        for row in agreement["agreement"]
        if row["of"] == "correctness"
    }
    assert set(by_raters) == {"human / tests/a", "human / tests/b", "tests/a / tests/b"}
    assert by_raters["human / tests/a"]["weighted_kappa"]["value"] == 1.0
    assert (
        by_raters["human / tests/b"]["alpha"] == by_raters["tests/a / tests/b"]["alpha"]
    )
    assert {row["n"] for row in by_raters.values()} == {count} == {12}
