"""Tests that reasoning is scored on no road: each family's marks give the score of the answer alone."""

from __future__ import annotations

import csv
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.runner import Runner
from helm.common.cache import BlackHoleCacheConfig
from helm.common.request import GeneratedOutput, RequestResult, Thinking

import helm_longctx as lc
from helm_longctx.models.apis import OpenAIClient
from helm_longctx.models.results import answer_of, failure_of
from helm_longctx.results.boards import read_suite
from helm_longctx.results.cells import bounds
from helm_longctx.runner import LongContextRunner
from helm_longctx.runner.score_log import find_reasons
from helm_longctx.tasks.registry import BENCHMARKS
from tests.models.apis.making import REQUEST
from tests.runner.making import make_run, means, read
from tests.support.batches import Folder, register
from tests.support.commands import Command
from tests.support.judges import deploy
from tests.support.reasoning import REASONING, outputs
from tests.support.servers import hostile
from tests.support.servers.batches import serve_batches
from tests.support.servers.hostile import attack
from tests.support.servers.llm import serve

RIGHT = "AB12 CD34"
OUTPUTS = [RIGHT, *outputs(RIGHT).values()]
"""The right answer alone, and in the marks of each family."""


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """A folder with a question for each output."""
    rows = [
        {
            "context": f"Row {number} of the list.",
            "question": "Which?",
            "answers": [RIGHT],
        }
        for number in range(len(OUTPUTS))
    ]
    (tmp_path / "questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    return tmp_path


def answer(prompt: str) -> str:
    """Return the output that belongs to the question of a prompt."""
    match = re.search(r"Row (\d+) of the list", prompt)
    return OUTPUTS[int(match[1])] if match else "ready"


def entry(folder: Path, deployment: str) -> str:
    task = (
        f"any_jsonl:path={folder},metric=exact_match,length=8k,count_with=longctx/words"
    )
    return f"{task},model=longctx/lexical,model_deployment={deployment}"


def wrong(run: Path) -> list[str]:
    """Return the outputs whose score is not that of the answer alone."""
    scores = {
        row["instance_id"]: stat["mean"]
        for row in read(run, "per_instance_stats")
        for stat in row["stats"]
        if stat["name"]["name"] == "longctx_score"
    }
    states = read(run, "scenario_state")["request_states"]
    assert len(states) == len(OUTPUTS)
    return [
        state["result"]["completions"][0]["text"]
        for state in states
        if scores.get(state["instance"]["id"]) != 1.0
    ]


@pytest.mark.parametrize("runner", [LongContextRunner, Runner])
@pytest.mark.parametrize("stream", [False, True])
def test_runs(runner: type[Runner], stream: bool, questions: Path) -> None:
    """Our runner and HELM's own, with answers in one piece and in streams, score the answers alone."""
    with serve(answer) as server:
        name = deploy(
            "hostile/r",
            "OpenAIClient",
            base_url=server.openai,
            model="m",
            stream=stream,
        )
        run = make_run(questions, entry(questions, name), runner, cache=False)
    assert wrong(run) == []
    shares = {name: value for (name, *_), value in means(run).items()}
    assert shares["output_truncated"] == 0
    assert shares["reasoning_suspected"] == 0


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_batches(protocol: str, questions: Path) -> None:
    """Answers of batches are scored alone."""
    with serve_batches(answer) as server:
        folder = Folder(questions, entry(questions, register(protocol, server)))
        folder.submit()
        folder.batches.collect()
        folder.batches.wait()
        run = folder.make()
    assert wrong(run) == []


def test_functions(questions: Path) -> None:
    """`evaluate` scores the answers of a function alone."""
    lc.evaluate(
        lambda prompt: answer(prompt.text),
        f"any_jsonl:path={questions},metric=exact_match",
        "8k",
        arguments={"count_with": "longctx/words"},
        quiet=True,
        output_path=questions / "out",
        local_path=questions / "env",
    )
    (run,) = (questions / "out/runs").glob("*/any_jsonl*")
    assert wrong(run) == []


def test_imports(questions: Path, command: Command) -> None:
    """Imported answers are scored alone."""
    # A prefix that was scored before the answer comes before the reasoning, too.
    record = json.dumps({"answer_prefix": "Answer:", "references": [RIGHT]})
    with (questions / "answers.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "answer", "record"])
        table.writerows(
            [number, output, record] for number, output in enumerate(OUTPUTS)
        )
    name = "helmet_rag:task=nq,length=8k"
    options = [
        "--entry",
        name,
        "--model",
        "my/model",
        "--suite",
        "s",
        "-o",
        questions / "out",
    ]
    assert command("import", questions / "answers.csv", *options) == 0, command.err
    (run,) = (questions / "out/runs/s").iterdir()
    texts = [
        state["result"]["completions"][0]["text"]
        for state in read(run, "scenario_state")["request_states"]
    ]
    assert texts == [f"Answer:{RIGHT}", *OUTPUTS[1:]]
    f1 = [
        stat["mean"]
        for row in read(run, "per_instance_stats")
        for stat in row["stats"]
        if stat["name"]["name"] == "f1"
    ]
    assert f1 == [1.0] * len(OUTPUTS)


def test_score(questions: Path, command: Command) -> None:
    """`score` scores the answers alone, and with `--raw` the predictions as they are."""
    records = [{"prediction": output, "references": [RIGHT]} for output in OUTPUTS]
    records += [
        {"prediction": f"<think>{REASONING}", "references": [RIGHT]},
        {"prediction": f"<ponder>{REASONING}</ponder>{RIGHT}", "references": [RIGHT]},
    ]
    path = questions / "records.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    command("score", "helmet_rag:task=nq,length=8k", "--records", path)
    scores = [row["f1"] for row in command.rows]
    assert scores[:-2] == [1.0] * len(OUTPUTS)
    assert scores[-2] == 0
    assert "the reasoning of 1 predictions has no end" in command.err
    assert "1 predictions may contain reasoning" in command.err
    command("score", "helmet_rag:task=nq,length=8k", "--records", path, "--raw")
    assert command.rows[0]["f1"] == 1.0
    assert all(row["f1"] < 1 for row in command.rows[1:])
    assert not command.err


@pytest.mark.parametrize("reasoning", [None, "", REASONING])
def test_score_after_a_field(
    reasoning: str | None, tmp_path: Path, command: Command
) -> None:
    """White space before an answer is a server's only after reasoning in a field of its own, in `score` as in a run."""
    record = {
        "prediction": "\n\nAbC123xyza poem",
        "references": ["AbC123xyza poem"],
        "answer": "AbC123xyza poem",
        "random_string_to_prepend": "AbC123xyz",
        "reasoning": reasoning,
    }
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(record) + "\n")
    command("score", "mrcr:needles=2,length=8k", "--records", path)
    assert command.rows[0]["longctx_score"] == (1.0 if reasoning else 0.0)
    command("score", "mrcr:needles=2,length=8k", "--records", path, "--raw")
    assert command.rows[0]["longctx_score"] == 0
    path.write_text(json.dumps({**record, "reasoning": 7}) + "\n")
    assert command("score", "mrcr:needles=2,length=8k", "--records", path) == 2
    assert "records.jsonl:1: reasoning must be a string, found 7" in command.err


def message_run(
    folder: Path, rows: int, message: dict[str, Any], **settings: Any
) -> Path:
    """Make a run of a question for which a server sends a message, which ends with `stop`."""
    row = {"context": "The list.", "question": "Which?", "answers": [RIGHT]}
    (folder / "questions.jsonl").write_text("".join([json.dumps(row) + "\n"] * rows))
    whole = {
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }
    with attack(hostile.send(whole)) as server:
        address = f"{server.address}/v1/"
        name = deploy(
            "hostile/m", "OpenAIClient", base_url=address, model="m", **settings
        )
        return make_run(folder, entry(folder, name), cache=False)


MISTRAL = [
    {
        "type": "thinking",
        "thinking": [{"type": "text", "text": REASONING}],
        "closed": True,
    },
    {"type": "text", "text": RIGHT},
]
DATABRICKS = [
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": REASONING}]},
    {"type": "text", "text": RIGHT},
]
BLOCKS = [
    {"type": "thinking", "thinking": REASONING, "signature": "s"},
    {"type": "text", "text": "\n\nAB12"},
    {"type": "text", "text": " CD34"},
]
MESSAGES: dict[str, dict[str, Any]] = {
    "Mistral's parts": {"content": MISTRAL},
    "Databricks' parts": {"content": DATABRICKS},
    "Anthropic's parts": {"content": BLOCKS},
    "one part": {"content": [{"type": "text", "text": RIGHT}]},
    "reasoning_content": {"content": f"\n\n{RIGHT}\n", "reasoning_content": REASONING},
    "reasoning": {"content": f"\n\n{RIGHT}", "reasoning": REASONING},
    "a list of details": {
        "content": f"\n{RIGHT}",
        "reasoning_details": [{"type": "reasoning.text", "text": REASONING}],
    },
}


@pytest.mark.parametrize("name", MESSAGES)
def test_fields_and_parts(name: str, tmp_path: Path) -> None:
    """Text parts are the answer, and reasoning in parts and in fields is none. White space after it is not scored."""
    run = message_run(tmp_path, 1, {"role": "assistant", **MESSAGES[name]})
    (state,) = read(run, "scenario_state")["request_states"]
    completion = state["result"]["completions"][0]
    assert completion["text"].strip() == RIGHT
    assert (completion.get("thinking") or {}).get("text") == (
        REASONING if name != "one part" else None
    )
    assert {
        value for (name, *_), value in means(run).items() if name == "longctx_score"
    } == {1.0}


def test_white_space_after_a_field() -> None:
    """White space that a server's parser has left is not scored; a plain answer keeps its own."""
    for thinking, expected in (
        (Thinking(REASONING), "xyz poem"),
        (None, "\n\nxyz poem\n"),
    ):
        output = GeneratedOutput(
            "\n\nxyz poem\n", 0, [], {"reason": "stop"}, thinking=thinking
        )
        assert answer_of(RequestResult(True, [], [output], False)).text == expected


@pytest.mark.parametrize("kind", ["pieces", "lists"])
def test_parts_in_streams(kind: str) -> None:
    """A stream sends parts in pieces, one after the other or several in a list."""
    pieces: list[Any] = [
        [{"type": "thinking", "thinking": [{"type": "text", "text": "Look "}]}],
        [{"type": "thinking", "thinking": [{"type": "text", "text": "for it."}]}],
        [{"type": "text", "text": "AB12"}],
        " CD34" if kind == "pieces" else [{"type": "text", "text": " CD34"}],
    ]
    with attack(hostile.stream(hostile.events("chat", pieces))) as server:
        address = f"{server.address}/v1/"
        client = OpenAIClient(
            BlackHoleCacheConfig(), base_url=address, model="m", stream=True
        )
        result = client.make_request(REQUEST)
    assert failure_of(result) is None, result.error
    first = result.completions[0]
    assert (first.text, first.thinking) == (RIGHT, Thinking("Look for it."))


def test_answers_in_the_reasoning_field(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Answers that a wrong parser puts into the reasoning field are counted, logged and marked."""
    caplog.set_level(logging.INFO, "helm")
    run = message_run(tmp_path, 3, {"content": None, "reasoning_content": RIGHT})
    shares = {name: value for (name, *_), value in means(run).items()}
    assert shares["answer_in_reasoning"] == 1.0
    assert "3 of 3 answers have all their text in the reasoning field" in caplog.text
    assert "3 of 3 answers have all their text in the reasoning field" in find_reasons(
        run
    )


OPEN = [
    {"content": f"<think>\n{RIGHT} maybe, or another"},
    {"content": f"[THINK]{RIGHT} maybe"},
    {"content": f"analysisThe answer {RIGHT} maybe"},
    {"content": f"<|channel|>analysis<|message|>{RIGHT} maybe"},
]


@pytest.mark.parametrize("message", OPEN, ids=lambda message: message["content"][:9])
def test_open_reasoning_is_cut(message: dict[str, Any], tmp_path: Path) -> None:
    """Reasoning that never ends counts as cut although the server says `stop`, and the score has bounds."""
    run = message_run(tmp_path, 2, message)
    shares = {name: value for (name, *_), value in means(run).items()}
    assert shares["output_truncated"] == shares["thinking_unfinished"] == 1.0
    assert shares["answer_empty"] == 0.0
    suite = read_suite(tmp_path / "benchmark_output/runs/s", BENCHMARKS)
    (result,) = [result for result in suite.results if result.task]
    limits = bounds(result)
    assert limits is not None
    assert (limits.wrong, limits.best, limits.share) == (0.0, 1.0, 1.0)


def test_unknown_marks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Answers with unknown marks have a mark on the score, and a line in the log."""
    caplog.set_level(logging.INFO, "helm")
    run = message_run(tmp_path, 2, {"content": f"<ponder>{REASONING}</ponder>{RIGHT}"})
    assert "2 of 2 answers may contain reasoning" in caplog.text
    assert "2 of 2 answers may contain reasoning" in find_reasons(run)
