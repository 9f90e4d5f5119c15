"""Tests of the table for memory systems, from the page's configuration to the report, with a local reader and judge."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from helm_longctx.benchmarks.locomo.tasks import JUDGES, SOURCE
from helm_longctx.run_settings import MIRROR
from tests.benchmarks.beam.fabricate import build_beam
from tests.benchmarks.longmemeval.fabricate import build_longmemeval
from tests.guides.steps import read_steps
from tests.support.programs import run
from tests.support.servers.llm import Call, Server, serve

PAGE = Path(__file__).parents[2] / "docs/memory.md"
METHODS = Path(__file__).parents[2] / "docs/methods.md"
QUESTIONS = 16
"""Number of conversations, each with a question."""
SESSIONS = 5
KEPT = 10
"""Number of questions whose evidence the page's memory keeps: it is in one of the last three parts that are fed."""


LAST = "my_memory.Last"


def build_locomo(root: Path) -> None:
    """Write conversations of five sessions. One session tells the colour of a thing, which the question asks for."""
    rows = []
    for number in range(QUESTIONS):
        evidence = 1 + number % SESSIONS
        conversation: dict[str, Any] = {"speaker_a": "Ann", "speaker_b": "Bob"}
        for session in range(1, SESSIONS + 1):
            text = "We talked of the weather. " * 200
            if session == evidence:
                text = f"Thing {number} is colour-{number} now. {text}"
            turns = [
                {"speaker": "Ann", "dia_id": f"D{session}:1", "text": text},
                {"speaker": "Bob", "dia_id": f"D{session}:2", "text": "I see."},
            ]
            conversation[f"session_{session}_date_time"] = f"1:0{session} pm on 8 May"
            conversation[f"session_{session}"] = turns
        question = {
            "question": f"Which colour has thing {number}?",
            "answer": f"colour-{number}",
            "evidence": [f"D{evidence}:1"],
            "category": 4,
        }
        row = {
            "sample_id": f"conv-{number}",
            "conversation": conversation,
            "qa": [question],
        }
        rows.append(row)
    path = root / SOURCE.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows), encoding="utf-8")


def read(prompt: str) -> str:
    """Return the colour of the thing that is asked for, as far as the prompt tells it."""
    things = re.findall(r"Which colour has thing (\d+)\?", prompt)
    if not things or f"Thing {things[-1]} is colour-{things[-1]} " not in prompt:
        return "unknown"
    # Only half of the answers are exact.
    hedge = ", perhaps" if int(things[-1]) % 2 else ""
    return f"colour-{things[-1]}{hedge}"


def judge(prompt: str) -> str:
    """Return a verdict in the form that the prompt requests: a strict prompt accepts no further word."""
    # Mem0's prompt starts with an example.
    gold = re.findall(r"Gold answer: (.*)", prompt)
    given = re.findall(r"Generated answer: (.*)", prompt)
    if gold and given:
        is_strict = "Be strict" in prompt
        is_right = gold[-1] == given[-1] if is_strict else gold[-1] in given[-1]
        return json.dumps({"label": "CORRECT" if is_right else "WRONG"})
    if "yes or no" in prompt:
        right = re.search(r"Correct Answer: (.*)", prompt)
        response = re.search(r"Model Response: (.*)", prompt)
        is_right = bool(right and response and right[1] in response[1])
        return "yes" if is_right else "no"
    return '{"score": 0.0}'


def answer(prompt: str) -> str:
    """Answer as the judge if the prompt is of one, else as the reader."""
    marks = ("CORRECT", "yes or no only", "Item: ", "Same?")
    return judge(prompt) if any(mark in prompt for mark in marks) else read(prompt)


def is_of(call: Call, model: str) -> bool:
    return call.body["model"] == model


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the page's memory system, a mirror of the data, and a key."""
    root = tmp_path / "data"
    build_locomo(root)
    build_longmemeval(root)
    build_beam(root)
    monkeypatch.setenv(MIRROR, str(root))
    monkeypatch.setenv("MY_KEY", "sk-mine-0123456789abcdef")
    for step in read_steps(METHODS):
        if step.path == "my_memory.py":
            (tmp_path / step.path).write_text(step.text)
    return tmp_path


def write_configuration(
    folder: Path, server: Server, tasks: list[str] | None = None
) -> None:
    """Write the page's configuration with the server's address and few questions."""
    (step,) = [step for step in read_steps(PAGE) if step.path == "memory.yaml"]
    content = yaml.safe_load(
        step.text.replace("https://gateway.example", server.address)
    )
    content["arguments"] = {"num_samples": QUESTIONS}
    if tasks:
        del content["lengths"]
        content["tasks"] = tasks
    (folder / "memory.yaml").write_text(yaml.safe_dump(content))


def give(folder: Path, *command: str) -> str:
    """Give a command that must succeed, and return what it prints."""
    done = run("helm-longctx", *command, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def find_scores(folder: Path) -> dict[tuple[str, str], float]:
    """Return the scores of the command's file, by task and system."""
    (table,) = json.loads((folder / "table.json").read_text())
    scores = {}
    for row in table["scores"]:
        scores[row["task"], row["system"]] = row["score"]
    return scores


def test_one_table_for_memory_systems(folder: Path) -> None:
    """The page's configuration gives one table with both baselines, all prompts of judges, and paired differences."""
    with serve(answer) as server:
        write_configuration(folder, server)
        give(folder, "run", "memory.yaml")
    printed = give(folder, "memory", "--suite", "memory", "--json", "table.json")
    assert "Memory systems, read by my/reader" in printed
    assert "The same answers by the judge's prompt" in printed
    scores = find_scores(folder)
    assert scores["qa", "no context"] == 0.0
    assert scores["judged_mem0", "full context"] == 1.0
    assert scores["judged_mem0", LAST] == KEPT / QUESTIONS
    assert scores["judged_strict", "full context"] == 0.5
    assert {"s", "text_questions"} <= {task for task, _ in scores}
    (table,) = json.loads((folder / "table.json").read_text())
    differences = {}
    for row in table["differences"]:
        key = (row["task"], row["system"], row["baseline"])
        differences[key] = (row["difference"], row["verdict"])
    lost = KEPT / QUESTIONS - 1
    assert differences["judged_mem0", LAST, "full context"] == (lost, "tie")
    gain = KEPT / QUESTIONS
    assert differences["judged_mem0", LAST, "no context"] == (gain, "better")
    assert differences["judged_mem0", "retrieve", "full context"] == (0.0, "tie")
    give(folder, "report", "--suite", "memory")
    page = folder / "benchmark_output/reports/memory/memory.html"
    assert "What do memory systems keep?" in page.read_text()


def test_a_suite_without_memory_systems(folder: Path) -> None:
    """Without a method, or with an unknown model, the command says in one line what is lacking."""
    for model in ("longctx/lexical", "longctx/null"):
        entry = ["--entry", "locomo:num_samples=2", "--model", model]
        give(folder, "run", "--suite", "plain", *entry)
    done = run("helm-longctx", "memory", "--suite", "plain", folder=folder)
    assert done.returncode == 2
    assert "run the same entries with method=memory" in done.stderr
    command = ("memory", "--suite", "plain", "--system", "my/system")
    done = run("helm-longctx", *command, folder=folder)
    assert done.returncode == 2
    assert "system='my/system' is invalid" in done.stderr
    # Answers from elsewhere are a column of every reader.
    printed = give(folder, *command[:-1], "longctx/lexical")
    assert "Memory systems, read by longctx/null" in printed
    assert "Without runs of no context" in printed


def test_locomos_judges(folder: Path) -> None:
    """Every prompt of LoCoMo's judges is sent to a judge's server, its reply is read, and the model is asked once."""
    with serve(answer) as server:
        write_configuration(folder, server, [f"locomo_{name}" for name in JUDGES])
        give(folder, "run", "memory.yaml")
        asked = [call for call in server.calls if is_of(call, "reader")]
        questions = [call for call in asked if "Which colour" in call.prompt]
        assert len(questions) == QUESTIONS
        judged = [call for call in server.calls if is_of(call, "judge")]
        verdicts = [call for call in judged if "Which colour" in call.prompt]
        assert len(verdicts) == QUESTIONS * len(JUDGES)
    for name in JUDGES:
        (path,) = folder.glob(f"benchmark_output/runs/memory/locomo_{name}:*")
        statistics = json.loads((path / "stats.json").read_text())
        means = {
            row["name"]["name"]: row["mean"] for row in statistics if "mean" in row
        }
        expected = 0.5 if name == "strict" else 1.0
        assert means["judge_score"] == expected, name
        assert means["judge_failed"] == 0
