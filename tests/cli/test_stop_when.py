"""Tests of `run --stop-when` with a real local server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.models.baselines import lexical
from tests.support.commands import Command
from tests.support.servers.llm import serve

OPTIONS = [
    "--entry",
    "helmet_recall:task=json_kv,length=4k,num_samples=60,style=chat",
    "--suite",
    "s",
    "--model-name",
    "m",
]


def limit_of(run: str) -> int:
    (path,) = Path("benchmark_output/runs/s").glob(f"{run}*/run_spec.json")
    return int(json.loads(path.read_text())["adapter_spec"]["max_eval_instances"])


def compare(command: Command, file: str) -> int:
    """Compare both baselines of the suite `t`, and write a file of JSON."""
    return command(
        "compare",
        "longctx/null",
        "longctx/lexical",
        "--suite",
        "t",
        "--json",
        file,
    )


def test_a_run_stops_and_is_completed_later(command: Command) -> None:
    """The run ends after the first round. The complete run sends only the other requests."""
    with serve(lexical.answer) as server:
        options = [*OPTIONS, "--model-url", f"{server.address}/v1"]
        assert command("run", *options, "--stop-when", "score=40") == 0
        assert "helmet_recall: m is above 40 %: " in command.out.replace(
            "endpoint/", ""
        )
        assert " after 32 instances" in command.out
        assert limit_of("helmet_recall") == 32
        prompts = {call.prompt for call in server.calls if len(call.prompt) > 1000}
        assert len(prompts) == 32
        assert command("run", *options) == 0
        asked = [call.prompt for call in server.calls if len(call.prompt) > 1000]
        assert len(asked) == len(set(asked)) == 60


def test_two_models_are_compared(command: Command) -> None:
    """Two baselines are told apart, and the line names the better one."""
    entry = "helmet_recall:task=json_kv,length=4k,num_samples=60"
    models = ["--model", "longctx/null", "--model", "longctx/lexical"]
    assert (
        command(
            "run", "--entry", entry, *models, "--suite", "t", "--stop-when", "better"
        )
        == 0
    )
    assert "helmet_recall: longctx/lexical is better than longctx/null: " in command.out
    files = list(Path("benchmark_output/runs/t").glob("*/looks.json"))
    assert [json.loads(path.read_text()) for path in files] == [[32], [32]]
    assert compare(command, "found.json") == 0
    pairing = json.loads(Path("found.json").read_text())["pairings"][0]
    assert pairing["better"] == "longctx/lexical"
    for path in files:
        path.unlink()
    assert compare(command, "fixed.json") == 0
    fixed = json.loads(Path("fixed.json").read_text())["pairings"][0]
    # The first of several looks has a quarter of the error.
    assert pairing["comparison"]["p_value"] == pytest.approx(
        4 * fixed["comparison"]["p_value"]
    )


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            "best",
            "--stop-when='best' is invalid; give better, score=POINTS or width=POINTS",
        ),
        ("better", "stop_when=better compares two models, but helmet_recall"),
    ],
)
def test_mistakes(command: Command, rule: str, told: str) -> None:
    """A rule that does not exist, or that needs another number of models, ends before anything is sent."""
    entry = "helmet_recall:task=json_kv,length=4k"
    assert (
        command(
            "run",
            "--entry",
            entry,
            "--model",
            "longctx/null",
            "--suite",
            "u",
            "--stop-when",
            rule,
        )
        == 2
    )
    assert told in command.err
    assert not Path("benchmark_output/runs/u").exists()
