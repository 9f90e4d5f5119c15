"""Fabricates LongMemEval's files, the same on every machine."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.longmemeval.tasks import (
    FILES,
    KINDS,
    find_source,
    read_label,
)
from tests.support.fabricate_words import words

ODD = (
    "",
    " {question} {}",
    '\n\nquoted "text" \\n\n',
    " \u2028é\r\n",
    "😀 文章。 ",
    "### Session 1:",
)


def build_longmemeval(root: Path) -> Path:
    """Write the three files."""
    for name in FILES:
        path = root / find_source(name).path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(make_rows(name)), encoding="utf-8")
    return root


def make_rows(name: str) -> list[dict[str, Any]]:
    """Return a question of each type, and each again without an answer in the chats."""
    rng = random.Random(f"memory {name}")
    return [
        _make_row(rng, f"q{number}{ending}", kind, 2 + number)
        for ending in ("", "_abs")
        for number, kind in enumerate(KINDS)
    ]


def _make_row(
    rng: random.Random, name: str, kind: str, sessions: int
) -> dict[str, Any]:
    # Some dates are equal, and they are not in order.
    dates = [
        f"2023/0{rng.randint(4, 6)}/1{rng.randint(0, 3)} (Mon) 1{rng.randint(0, 3)}:30"
        for _ in range(sessions)
    ]
    return {
        "question_id": name,
        "question_type": kind,
        "question": f"What? {{0}} {words(rng, 6)}",
        "answer": rng.choice([words(rng, 3), 7, 2.5]),
        "question_date": "2023/07/01 (Sat) 09:00",
        "haystack_dates": dates,
        "haystack_session_ids": [f"s{number}" for number in range(sessions)],
        "haystack_sessions": [_make_session(rng, number) for number in range(sessions)],
        "answer_session_ids": rng.sample(
            [f"s{number}" for number in range(sessions)], k=rng.randint(1, 2)
        ),
    }


def _make_session(rng: random.Random, number: int) -> list[dict[str, Any]]:
    """Return a session. One has no turns, and one only the assistant's."""
    roles = (["user", "assistant"] * 2, ["assistant"], [], ["user"])[number % 4]
    labels: tuple[dict[str, Any], ...] = (
        {},
        {"has_answer": True},
        {"has_answer": False},
    )
    return [
        {"role": role, "content": words(rng, 5) + rng.choice(ODD), **rng.choice(labels)}
        for role in roles
    ]


def make_answers(count: int) -> list[str]:
    """Return answers, some with white space around them or with the fields of a template."""
    rng = random.Random(8)
    return [
        rng.choice(["", " ", "\n"]) + words(rng, 4) + rng.choice(ODD)
        for _ in range(count)
    ]


ODD_REPLIES = (
    *(
        "yes",
        "Yes.",
        "no",
        "No, but yesterday",
        "YES",
        "\n yes \n",
        "maybe",
        "eyes",
        "The answer is: yes",
        "y e s",
        " ",
    ),
    "yеs",
)
"""A judge's replies; the last one has a Cyrillic letter."""

read_reply = read_label
REPLIES = ("yes", "No.", "Yes")
RECORD = {
    "references": ["7"],
    "question_type": KINDS[0],
    "abstention": True,
    "judge": "yes",
}
