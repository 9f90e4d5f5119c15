"""Fabricate BEAM's rows, stand-ins of its files with texts of our own, odd answers, and a judge that hashes requests."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import orjson

from helm_longctx.benchmarks.beam.tasks import (
    ABILITIES,
    CHATS,
    EVALUATION,
    LONGEST,
    METHODS,
    PROMPTS,
    find_source,
    find_truncated,
    read_item,
)
from tests.support.fabricate_words import words, write

JUDGE = "Item: <rubric_item>\nAnswer: <llm_response>\nQuestion: <question>"
QUESTION = "\n  Be brief.\n  Q: "
SYSTEM = "Same?"
SAME = ["One: ", "\n Two: ", "\n"]
FILES = {
    PROMPTS.path: f"other_prompt = 'x'\nunified_llm_judge_base_prompt = {JUDGE!r}\n",
    EVALUATION.path: "def llm_equivalence(a, b, llm):\n"
    f"    one = {{'role': 'system', 'content': {SYSTEM!r}}}\n"
    "    two = {'role': 'user', 'content': f'''One: {a}\n Two: {b}\n'''}\n    return llm([one, two])\n",
    METHODS.path: "def probing_question_evaluation(query, messages):\n"
    "    for each in messages:\n        x = {'role': each['role'], 'content': each['content']}\n"
    "    y = {'role': 'user', 'content': f'''\n  Be brief.\n  Q: {query}'''}\n",
}
REPLIES = (
    *(
        '{"score": 1.0, "reason": "r"}',
        '{"score": 0.5}',
        '{"score": 0}',
        '```json\n{"score": 1}\n```',
        '{"score": 1.0}',
    ),
    *(
        ' {"score": 0.0, "reason": "{x}"}\n',
        'It is so: {"score": 0.5} indeed',
        '```\n{"score": 1}\n```',
        '{"score": true}',
    ),
)
ODD = (
    '{"score": "1"}',
    '{"score": "0.5"}',
    '{"score": null}',
    "[1]",
    "none",
    '{"score": [1]}',
    '{"reason": "r"}',
    '"score"',
)


def build_beam(root: Path) -> Path:
    """Write the rows of all lengths, and the stand-ins of the official files."""
    for length in CHATS:
        write(root / find_source(length).paths[0], rows(length))
        for chat, file in find_truncated(length).items():
            number = int(chat) - 1
            whole = rows(length)[number] if number < len(rows(length)) else None
            write_truncated(root / file.path, whole, length == LONGEST)
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def write_truncated(path: Path, row: dict[str, Any] | None, is_long: bool) -> None:
    """Write a truncated chat in the form of the official repository: the first batch of the first plan."""
    plans = (
        [plan["chat"] for plan in row["plans"]]
        if row and is_long
        else [(row or {}).get("chat")]
    )
    batches = [
        [{"batch_number": 1, "turns": [plan[0]], "time_anchor": None}]
        for plan in plans
        if plan
    ]
    content = [{f"plan-{number}": plan} for number, plan in enumerate(batches, 1)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        orjson.dumps(
            content if is_long else [batch for plan in batches for batch in plan]
        )
    )


def rows(length: int) -> list[dict[str, Any]]:
    """Return the rows of a length."""
    rng = random.Random(length)
    return [
        _row(rng, number, length == LONGEST)
        for number in range(10 if length == LONGEST else 15)
    ]


def _row(rng: random.Random, number: int, is_long: bool) -> dict[str, Any]:
    chat = (
        {"plans": [{"chat": _chat(rng)} for _ in range(3)]}
        if is_long
        else {"chat": _chat(rng)}
    )
    asked = {
        ability: [_question(rng, ability), _question(rng, ability)]
        for ability in ABILITIES
    }
    return {
        "conversation_id": str(number + 1),
        "probing_questions": repr(asked),
        **chat,
    }


def _chat(rng: random.Random) -> list[list[dict[str, Any]]]:
    return [_batch(rng) for _ in range(rng.randint(1, 3))]


def _batch(rng: random.Random) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for number in range(rng.randint(1, 3)):
        kind = {
            "question_type": rng.choice(("main_question", "followup_question")),
            "time_anchor": f"March-{number}-2024",
        }
        messages += [
            {
                "role": "user",
                "id": 2 * number,
                "content": f"{words(rng, 6)} ->-> 1,{number}",
                **kind,
            },
            {"role": "assistant", "id": 2 * number + 1, "content": words(rng, 9)},
        ]
    return messages


def _question(rng: random.Random, ability: str) -> dict[str, Any]:
    rubric = [words(rng, 2) for _ in range(rng.randint(1, 5))]
    return {
        "question": words(rng, 6),
        "answer": words(rng, 3),
        "difficulty": "easy",
        "rubric": [*rubric, *rubric[:1]][:5],
    }


def make_answer(number: int, rubric: list[str]) -> str:
    """Return an answer: events in any order, with other and empty lines, or something odd."""
    rng = random.Random(number)
    events = rng.sample(rubric, rng.randint(0, len(rubric)))
    lines = rng.choices([*events, words(rng, 2), ""], k=rng.randint(1, 5))
    return rng.choice(
        (
            "\n".join(lines),
            "\n".join(events),
            "",
            "<rubric_item>",
            f" {words(rng, 3)}\n",
        )
    )


def reply(prompt: str) -> str:
    """Return the judge's reply about an item, or about two events: the same texts are the same, and a few others."""
    number = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4], "big")
    if prompt.startswith(SAME[0]):
        one, two = prompt.removeprefix(SAME[0]).removesuffix(SAME[2]).split(SAME[1])
        return (
            ("YES", "yes.", "**Yes**")[number % 3]
            if one == two or number % 7 == 0
            else ("NO", "no", "")[number % 3]
        )
    return (*REPLIES * 12, *ODD)[number % (len(REPLIES) * 12 + len(ODD))]


RECORD = {"prediction": "a\nb", "rubric": ["a", "b"], "ability": "event_ordering"}


def read_reply(text: Any) -> Any:
    """Return the score in a reply about an item by name."""
    item = read_item(text)
    return {} if item is None else {"score": float(item)}
