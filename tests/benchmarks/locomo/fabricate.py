"""Fabricates LoCoMo's file, answers and judges' replies, the same on every machine."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.locomo.tasks import CATEGORIES, SOURCE, read_mem0
from tests.support.fabricate_words import words

_WORDS = (
    "the dog and a cat",
    "running runs ran",
    "7 May 2023",
    "May 7th, 2023",
    "hiking, painting, yoga",
    "y" * 30,
    "Über-straße",
    "a\u0301n the",
    "_the_ an_d",
    "don't; won't",
    "文章 the 文",
    "caresses ponies",
    "relational conditional",
    "",
    ", ,",
    ";x",
)
"""Pieces of answers: equal stems, punctuation, articles beside letters of other scripts."""


def build_locomo(root: Path) -> Path:
    """Write the file of conversations."""
    path = root / SOURCE.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(make_conversations(), indent=1), encoding="utf-8")
    return root


def make_conversations() -> list[dict[str, Any]]:
    """Return three conversations with questions of all kinds. One has more dates than sessions, as the original has."""
    rng = random.Random("conversations")
    return [_make_conversation(rng, number) for number in range(3)]


def _make_conversation(rng: random.Random, number: int) -> dict[str, Any]:
    conversation: dict[str, Any] = {"speaker_a": "Ann", "speaker_b": "Bob {x}"}
    sessions = 2 + number * 5
    for session in range(1, sessions + 1 + number):
        conversation[f"session_{session}_date_time"] = f"1:0{session % 10} pm on 8 May"
        if session <= sessions:
            conversation[f"session_{session}"] = _make_turns(rng, session, number)
    return {
        "qa": _make_questions(rng),
        "conversation": conversation,
        "sample_id": f"conv-{number}",
    }


def _make_turns(rng: random.Random, session: int, number: int) -> list[dict[str, Any]]:
    turns = []
    for turn in range(1, 2 + rng.randint(1, 4)):
        speaker = ("Ann", "Bob {x}")[(turn + number) % 2]
        row: dict[str, Any] = {"speaker": speaker, "dia_id": f"D{session}:{turn}"}
        row["text"] = words(rng, 5)
        if rng.random() < 0.3:
            row["blip_caption"] = f"a photo {words(rng, 2)}"
        turns.append(row)
    return turns


def _make_questions(rng: random.Random) -> list[dict[str, Any]]:
    questions = []
    for category in (*CATEGORIES, *CATEGORIES, 5, 5, 5):
        question: dict[str, Any] = {"question": f"What? {words(rng, 4)}"}
        name = "adversarial_answer" if category == 5 else "answer"
        question[name] = rng.choice([words(rng, 2), 2022, "one, two; three"])
        question["evidence"] = rng.choice([["D1:1"], ["D1:1", "D2:1"], []])
        question["category"] = category
        if category == 5:
            # The official code formats these questions, and fails for other braces.
            question["question"] = question["question"].replace("{x}", "x")
        questions.append(question)
    return questions


def make_answers(count: int) -> list[dict[str, Any]]:
    """Return records of answers to questions of all kinds."""
    rng = random.Random("answers")
    records = []
    for number in range(count):
        category = 1 + number % 5
        records.append(
            {
                "number": category,
                "category": CATEGORIES[category],
                "references": [_make_text(rng) or "x"],
                "options": rng.sample(["Not mentioned in the conversation", "Yes"], 2),
                "prediction": _make_choice(rng) if category == 5 else _make_text(rng),
            }
        )
    return records


def _make_text(rng: random.Random) -> str:
    joint = rng.choice([" ", ", ", "; ", ",", "\n"])
    return joint.join(rng.choices(_WORDS, k=rng.randint(0, 4)))


def _make_choice(rng: random.Random) -> str:
    plain = (
        "a",
        "B",
        "(a)",
        "(B)",
        " (b) ",
        "abc",
        "c",
        "",
        "(a) Yes",
        "NOT MENTIONED.",
    )
    return rng.choice(
        [*plain, "No information available", "It is not  mentioned", "Yes"]
    )


REPLIES = (
    '{"label": "CORRECT"}',
    '{"label": "WRONG"}',
    'Because. ```json\n{"label": "CORRECT"}\n```',
    'It is so. {"label": "WRONG"} ',
)
ODD_REPLIES = (
    *REPLIES[:-1],
    '{"label": "correct"}',
    '{"label": "INCORRECT"}',
    '```\n{"label": "CORRECT", "why": "{}"}\n```',
    '{"label": 1}',
)
"""Replies that Mem0's code can read."""
UNREADABLE = ("", "CORRECT", "{", "[1]", '{"verdict": "CORRECT"}')


def read_reply(reply: Any) -> float | None:
    """Return the verdict in a reply to Mem0's prompt."""
    return read_mem0(reply)


RECORD = {"references": ["7 May"], "category": "temporal", "judge": REPLIES[0]}
