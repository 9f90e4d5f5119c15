"""Tests of `certify` against local servers that speak OpenAI's protocol over HTTP."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from helm_longctx.benchmarks.tool_calls.prompts import FORM
from helm_longctx.results.effective_context import effective_context_schema
from helm_longctx.tasks.token_estimate import estimate_tokens
from tests.support.commands import Command
from tests.support.endpoints import (
    Messages,
    See,
    SimulatedModel,
    cutting,
    forgetful,
    honest,
    serve,
)
from tests.support.tool_calls import solve_prompt

OPTIONS = (
    "--model-name",
    "simulated",
    "--claim",
    "2k",
    "--shortest",
    "1k",
    "--to",
    "out",
    "--quiet",
)

SURE = ("--seed", "5", "--error", "0.5", "-m", "30")
"""Options with which few questions are enough."""

FEW = ("--seed", "5", "--error", "0.5", "-m", "12")
"""Options for a single kind of questions, which each text asks 13 times."""


@pytest.fixture
def few_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask only one of the five kinds of questions, or two with tool calls, which takes a fifth of the time."""
    kinds = tmp_path / "kinds.yaml"
    kinds.write_text(
        "always: {recall: 'fresh_text:task=recall'}\n"
        "by_choice: {tool_calls: 'tool_calls:task=constraint'}\n"
    )
    monkeypatch.setattr("helm_longctx.apps.certify.command._KINDS", kinds)


def certificate() -> dict[str, Any]:
    """Return the certificate that the command wrote."""
    return json.loads(Path("out/certificate.json").read_text())


def check_effective_context(record: dict[str, Any]) -> None:
    """The file for other programs is valid by its schema, and says what the certificate says."""
    content = json.loads(Path("out/effective-context.json").read_text())
    jsonschema.validate(content, json.loads(effective_context_schema()))
    assert content["model"] == "endpoint/simulated"
    assert content["certificate"]["holds"] is record["holds"]
    assert content["certificate"]["effective_tokens"] == record["effective"]
    measured = {task["task"]: task["lengths"] for task in content["tasks"]}
    assert set(measured) == {f"certify/{kind['name']}" for kind in record["kinds"]}
    assert measured["certify/recall"][0]["length"] == 1024


def test_an_honest_server(command: Command) -> None:
    """An honest server has its certificate. At a limit on the cost it is open, the same command with a higher limit
    continues, and pays for no answer twice; once more it sends nothing, and the certificate is the same."""
    Path("prices.yaml").write_text("endpoint/simulated: {input: 10, output: 10}\n")
    with serve(SimulatedModel(honest, skill=1.0)) as (url, asked):
        options = (
            "certify",
            "--model-url",
            url,
            *OPTIONS,
            *SURE,
            "--prices",
            "prices.yaml",
        )
        assert command(*options, "--max-cost", "1") == 0, command.err
        limited = certificate()
        assert "It is open whether endpoint/simulated uses 2k: " in command.out
        assert "HELM_LONGCTX_MAX_COST=1 allows" in limited["stop"]
        assert 0 < limited["spent_by_this_command"] <= 1
        assert command(*options, "--max-cost", "50") == 0
        first = certificate()
        sent = len(asked)
        assert command(*options, "--max-cost", "50") == 0
        assert len(asked) == sent
    assert (
        "endpoint/simulated uses 2k: the mean score of recall, paraphrase, graph,"
        in command.out
    )
    assert first["holds"] is True
    assert first["dollars"] == pytest.approx(
        limited["spent_by_this_command"] + first["spent_by_this_command"]
    )
    # Each command asks the server for a probe, which is no question, and without texts some questions are equal.
    assert sent - 2 <= first["requests"] <= sent + 10
    with_text = [prompt for prompt in asked if len(prompt) > 1500]
    assert len(with_text) == len(set(with_text))
    assert first["sha256"] == certificate()["sha256"]
    check_effective_context(first)
    assert first["models"] == {"simulated": first["requests"]}
    assert [kind["baselines"]["null"] for kind in first["kinds"][:4]] == [0, 0, 0, 0]
    # Only with the texts of the shortest length the baselines answer, too.
    for block in first["answers"]:
        has_floors = {"floors" in reply for reply in block["replies"]}
        assert has_floors == {block["has_text"] and block["length"] == 1024}
    assert (
        first["entries"][0]
        == "fresh_text:task=recall,length=1024,seed=204,num_samples=10,context=none"
    )
    assert (
        first["entries"][5]
        == "fresh_text:task=recall,length=1024,seed=5,texts=13,num_samples=13"
    )
    page = Path("out/index.html").read_text()
    assert "Is 2k real?" in page
    assert not re.search(r"<script|<link|src=", page)


@pytest.mark.usefixtures("few_kinds")
def test_a_server_that_cuts(command: Command) -> None:
    """A server that cuts prompts without an error is found out by its own count and by the codes at the start."""
    with serve(SimulatedModel(cutting(1100), skill=1.0)) as (url, _):
        assert (
            command("certify", "--model-url", url, *OPTIONS, "--seed", "5", "-m", "15")
            == 0
        )
    result = certificate()
    assert {finding["name"] for finding in result["findings"]} == {"cuts", "end_only"}
    assert result["holds"] is False
    assert (
        "The server cuts prompts without an error: of prompts of 2k it counts only 1,100 tokens."
        in command.out
    )
    assert "Only the end of the text is used" in Path("out/index.html").read_text()


@pytest.mark.usefixtures("few_kinds")
def test_a_server_that_refuses(command: Command) -> None:
    """A length that the server refuses is named, and costs nothing."""
    with serve(SimulatedModel(honest, skill=1.0, window=1500)) as (url, asked):
        assert command("certify", "--model-url", url, *OPTIONS, *FEW) == 0
    assert "The server refuses prompts of 2k." in command.out
    assert "The largest accepted length is 1k." in command.out
    assert "it refuses prompts of this length; the effective length is 1k." in " ".join(
        command.out.split()
    )
    assert certificate()["requests"] > len(asked) - 1


class ToolCaller(SimulatedModel):
    """A model that also makes the right calls of tools."""

    def answer(self, messages: Messages) -> tuple[str, int]:
        """Return the answer, and the tokens of the prompt that the server counts."""
        text = messages[-1]["content"]
        if FORM not in text:
            return super().answer(messages)
        view = self.see(text, estimate_tokens(text))
        return "NO_CALL" if view.is_lost else solve_prompt(text), view.counted


@pytest.mark.usefixtures("few_kinds")
@pytest.mark.parametrize(
    ("see", "holds", "line"),
    [
        (honest, True, "uses 4k: the mean score of recall and tool_calls"),
        (forgetful(2900), False, "does not use 4k"),
    ],
)
def test_tool_calls_are_a_kind_by_choice(
    command: Command, see: See, holds: bool, line: str
) -> None:
    """`--tool-calls` measures calls of tools beside the other kinds, with a server that makes them and one that forgets."""
    lengths = ("--claim", "4k", "--shortest", "2k")
    named = ("--model-name", "simulated", "--to", "out", "--quiet")
    sure = ("--seed", "5", "--error", "0.5", "-m", "12")
    with serve(ToolCaller(see, skill=1.0)) as (url, asked):
        options = ("certify", "--model-url", url, *named, *lengths, *sure)
        assert command(*options, "--tool-calls") == 0, command.err
    record = certificate()
    assert record["holds"] is holds
    assert line in " ".join(command.out.split())
    kind = record["kinds"][1]
    assert kind["name"] == "tool_calls"
    assert kind["baselines"] == {"null": 0, "lexical": 0}
    assert any(FORM in prompt for prompt in asked)
    assert "tool_calls:task=constraint,length=2048" in " ".join(record["entries"])


def test_kinds_of_a_certificate(command: Command) -> None:
    """Tool calls are a sixth kind, which is asked only with its option."""
    with serve(SimulatedModel()) as (url, asked):
        options = ("certify", "--model-url", url, "--model-name", "simulated")
        for kinds, more in ((5, ()), (6, ("--tool-calls",))):
            assert command(*options, "--claim", "8k", "--dry-run", *more) == 0
            row = re.search(r"no text\D+(\d+)", command.out)
            assert row
            assert int(row[1]) == 10 * kinds
        assert asked == []


def test_a_dry_run_sends_nothing(command: Command) -> None:
    """`--dry-run` prints the largest plan with its price, sends nothing and writes no certificate."""
    Path("dry.yaml").write_text("endpoint/simulated: {input: 1, output: 1}\n")
    with serve(SimulatedModel()) as (url, asked):
        assert (
            command(
                "certify",
                "--model-url",
                url,
                *OPTIONS,
                "--prices",
                "dry.yaml",
                "--dry-run",
            )
            == 0
        )
    assert asked == []
    assert not Path("out").exists()
    # 12 questions of each kind in 13 texts at 1k, and 57 at 2k with their budgets.
    row = next(line for line in command.out.splitlines() if "2k" in line)
    assert [cell.strip() for cell in row.split("│")[1:-1]][2:] == [
        "57",
        "$0.03",
        "$0.13",
    ]
    # 57 questions decide about a loss of 20 points, and a smaller loss needs more.
    row = next(
        line for line in command.out.splitlines() if line.strip(" │").startswith("50 ")
    )
    *cells, last = row.split("│")[2:-1]
    counts = [int(cell.split(",")[0]) for cell in cells]
    assert counts == sorted(counts, reverse=True)
    # A kind with a score of 50 cannot lose 30 points and still be measured.
    assert last.strip() == "–"
    assert 50 <= counts[2] <= 62 < counts[0]
    assert "at most; --max-cost stops earlier. Nothing was sent." in command.out
    # With as many questions as a score of 50 needs, or more, none are said to be missing.
    needed = counts[2]
    with serve(SimulatedModel()) as (url, _):
        for most in (needed - 1, needed, needed + 9):
            assert (
                command(
                    "certify",
                    "--model-url",
                    url,
                    *OPTIONS,
                    "-m",
                    str(most),
                    "--dry-run",
                )
                == 0
            )
            warning = f"-m {most} is too few for a model with a score of 50: give -m {needed}."
            assert (
                (warning in command.out)
                == ("too few" in command.out)
                == (most < needed)
            )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--claim", "2z"), "certify: --claim: length='2z' is invalid"),
        (
            ("--claim", "1k"),
            "--claim='1k' is invalid; give at least twice the shortest length, 1k",
        ),
        (
            ("--model", "longctx/null"),
            "is invalid; give one model, by --model or --model-url",
        ),
        (("--max-cost", "3"), "--max-cost=3 needs the prices of endpoint/simulated"),
        (("--max-cost", "0"), "--max-cost=0.0 is invalid; give a number above 0"),
    ],
)
def test_mistakes(command: Command, options: tuple[str, ...], message: str) -> None:
    """A mistake is one line, before anything is sent."""
    with serve(SimulatedModel()) as (url, asked):
        assert command("certify", "--model-url", url, *OPTIONS, *options) == 2
    assert message in command.err
    assert command.err.count("\n") == 1
    assert asked == []


@pytest.mark.parametrize(
    ("design", "message"),
    [
        (
            '{"model": "endpoint/simulated", "claim": 4096, "seed": 1}',
            "this folder has a certificate with other options; give another one",
        ),
        ('{"claim": 4096, "seed": 1}', "design.json in this folder cannot be read"),
        ('{"model": ', "design.json in this folder cannot be read"),
        ("[]", "design.json in this folder cannot be read"),
    ],
)
def test_a_folder_with_another_certificate(
    command: Command, design: str, message: str
) -> None:
    """A folder that has the answers to other questions, or a damaged file, is refused: certificates are never mixed."""
    Path("out").mkdir()
    Path("out/design.json").write_text(design)
    with serve(SimulatedModel()) as (url, _):
        assert command("certify", "--model-url", url, *OPTIONS) == 2
    assert message in command.err


def test_the_usual_folder_of_a_certificate(command: Command) -> None:
    """Without `--to`, the folder stands among the outputs, with the names of the model and the claimed length."""
    folder = Path("benchmark_output/certificates/endpoint_simulated-2k")
    folder.mkdir(parents=True)
    (folder / "design.json").write_text("[]")
    options = ("--model-name", "simulated", "--claim", "2k", "--shortest", "1k")
    with serve(SimulatedModel()) as (url, _):
        assert command("certify", "--model-url", url, *options) == 2
    assert "design.json in this folder cannot be read" in command.err


@pytest.mark.usefixtures("few_kinds")
def test_a_folder_with_another_models_certificate(command: Command) -> None:
    """The certificate of one model is not replaced by the certificate of another one with the same options."""
    with serve(SimulatedModel()) as (url, _):
        assert command("certify", "--model-url", url, *OPTIONS, *FEW) == 0
        before = Path("out/certificate.json").read_bytes()
        assert (
            command(
                "certify", "--model-url", url, *OPTIONS, *FEW, "--model-name", "other"
            )
            == 2
        )
    assert "this folder has the certificate of endpoint/" in command.err
    assert Path("out/certificate.json").read_bytes() == before
