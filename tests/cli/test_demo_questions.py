"""Tests of the questions that the demo makes from SQuAD's passages."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.any_jsonl import BENCHMARK
from helm_longctx.cli.demo import COUNT, FILE, write_questions
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.models.baselines import lexical
from helm_longctx.tasks.task import Settings
from helm_longctx.tasks.token_estimate import estimate_tokens

LENGTH = 8192
HARBOURS = [
    f"{first}{last}"
    for first in ("Ald", "Bor", "Cal", "Dun", "Eld")
    for last in ["ham", "ley", "port", "ton", "wick", "worth"]
]


@pytest.fixture(scope="module")
def squad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a file in SQuAD's format with 30 articles of 12 passages, each about a harbour of its own."""
    articles = []
    for topic, harbour in enumerate(HARBOURS):
        paragraphs = [
            {
                "context": f"{harbour} has pier {number}. It was built in {1000 + topic * 12 + number} by Ann.",
                "qas": [
                    {"question": f"When was pier {number} of {harbour} built?", "is_impossible": False,
                     "answers": [{"text": str(1000 + topic * 12 + number)}]},
                    {"question": f"Who built pier {number} of {harbour}?", "is_impossible": False,
                     "answers": [{"text": "Ann"}]},
                    {"question": "Why?", "is_impossible": True, "answers": []},
                ],
            }
            for number in range(12)
        ]  # fmt: skip
        articles.append({"title": harbour, "paragraphs": paragraphs})
    path = tmp_path_factory.mktemp("squad") / "squad.json"
    path.write_text(json.dumps({"data": articles}))
    return path


def rows(squad: Path, kind: str, folder: Path) -> list[dict[str, Any]]:
    """Write the questions of a kind, check that the task of own questions reads them, and return their rows."""
    write_questions(squad, kind, LENGTH, folder)
    settings = Settings(LENGTH, path=str(folder))
    assert (
        len(
            list(
                BENCHMARK.tasks[0].load(
                    BENCHMARK.tasks[0], settings, DataRoot(folder, mirror=True)
                )
            )
        )
        == COUNT
    )
    return [
        json.loads(line)
        for line in (folder / FILE).read_text(encoding="utf-8").splitlines()
    ]


def test_conversations(squad: Path, tmp_path: Path) -> None:
    """The last turn of a conversation asks a second question about a passage of an earlier turn, at each depth in turn."""
    depths = []
    for row in rows(squad, "conversation", tmp_path):
        *earlier, last = row["messages"]
        assert [message["role"] for message in earlier] == ["user", "assistant"] * (
            len(earlier) // 2
        )
        pier = re.search(r"(pier \d+) of (\w+)", last["content"])
        assert pier
        about = f"{pier[2]} has {pier[1]}."
        (needle_position,) = (
            number
            for number, message in enumerate(earlier)
            if message["content"].startswith(about)
        )
        depths.append(round(5 * needle_position / (len(earlier) - 2)))
        assert row["answers"] == ["Ann"]
        assert (
            estimate_tokens(" ".join(message["content"] for message in row["messages"]))
            < LENGTH
        )
    assert Counter(depths) == {0: 4, 1: 4, 2: 3, 3: 3, 4: 3, 5: 3}


def test_demonstrations(squad: Path, tmp_path: Path) -> None:
    """All labels have demonstrations, no demonstration is also a question, and a label is a topic's number."""
    made = rows(squad, "icl", tmp_path)
    (context,) = {row["context"] for row in made}
    shots = re.findall(r"(\w+) has pier (\d+)\nlabel: (\d+)", context)
    topics = {topic: label for topic, _, label in shots}
    assert len(topics) == len(set(topics.values())) == 30
    assert {(topic, label) for topic, _, label in shots} == set(topics.items())
    for row in made:
        asked = re.search(r"(\w+) has pier (\d+)\nlabel:\Z", row["question"])
        assert asked
        assert (asked[1], asked[2]) not in {(topic, pier) for topic, pier, _ in shots}
        assert row["answers"] == [topics[asked[1]]]
    assert estimate_tokens(context) < LENGTH


def test_the_same_questions_every_time(squad: Path, tmp_path: Path) -> None:
    """The demo writes the same questions every time, so that results of two days can be compared."""
    for name in ("one", "two"):
        write_questions(squad, "icl", LENGTH, tmp_path / name)
    assert (tmp_path / "one" / FILE).read_bytes() == (
        tmp_path / "two" / FILE
    ).read_bytes()


def test_the_lexical_baseline_answers_both(squad: Path, tmp_path: Path) -> None:
    """The lexical baseline answers the ICL questions with a label and the conversations with a span of an earlier turn."""
    task = BENCHMARK.tasks[0]
    for kind in ("icl", "conversation"):
        write_questions(squad, kind, LENGTH, tmp_path / kind)
        settings = Settings(LENGTH, path=str(tmp_path / kind))
        right = 0
        for example in task.load(task, settings, DataRoot(tmp_path, mirror=True)):
            prompt = task.prompt(example)
            answer = (
                lexical.answer_conversation(prompt.messages)
                if example.messages
                else lexical.answer(prompt.user_turn)
            )
            right += example.references[0] in answer.split()
        assert right > COUNT / 2, kind


def test_another_file(tmp_path: Path) -> None:
    """A file that is not SQuAD's ends in an error of one line."""
    (tmp_path / "squad.json").write_text("[]")
    with pytest.raises(
        InputError, match=r"squad.json is not SQuAD's file \(TypeError\)"
    ):
        write_questions(tmp_path / "squad.json", "icl", LENGTH, tmp_path)
