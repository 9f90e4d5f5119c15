"""Fabricate LooGLE's files, odd outputs and replies of its judge, which are the same on every machine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.loogle.tasks import CLOZE, ROWS, SUMMARY, read_verdict
from helm_longctx.tasks import MetricValues
from tests.support.fabricate_words import words, write

TEXTS = 16
QUESTIONS = 5
RECORD = {
    "prediction": "{'<mask-0>': 'Ada Lovelace'}",
    "references": ['{"<mask-0>": "Ada"}'],
}
REPLIES = (
    "True",
    "False",
    "true",
    "True.",
    "",
    "87",
    "-3",
    "101",
    "8 7",
    "1_0",
    " 42 ",
)
NAMES = ("Ada", "Ada Lovelace", "Ben", "文", "St. Ives Bay")
CLOZES = (
    *(
        "{right}",
        "  {right}",
        "{right}\n",
        "\n{right}",
        "Answer: {right}",
        "",
        "{}",
        "[]",
        "None",
        "null",
        "{",
        "1 +",
    ),
    *(
        "{'<mask-0>': 'Ada'}",
        "{'<mask-0>': 'Lovelace Ada', '<mask-1>': ''}",
        '{"<mask-0>": "Ben", "<mask-9>": "x"}',
    ),
    *(
        "{[1]: 2}",
        "{'<mask-0>': 'Ada Lovelace', '<mask-1>': 'Bay of St. Ives'}",
        "('<mask-0>', 'Ada')",
        "{1: 'Ada'}",
    ),
)


def build_loogle(root: Path) -> Path:
    """Write the files of all tasks."""
    for name in ROWS:
        write(root / f"loogle/{name}.json", rows(name))
    return root


def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a task's file."""
    rng = random.Random(name)
    return [_row(rng, name, number) for number in range(TEXTS)]


def _row(rng: random.Random, name: str, number: int) -> dict[str, Any]:
    pairs: Any = [
        {"Q": words(rng, 6) + "?", "A": _answer(rng, name), "S": [words(rng, 4)]}
        for _ in range(QUESTIONS)
    ]
    text = {"input": f"{words(rng, 80)}\n{{}}", "title": f"text {number}"}
    if name == SUMMARY:
        return {
            **text,
            "qa_pairs": "none",
            "output": ". ".join(words(rng, 9) for _ in range(4)),
        }
    return {**text, "qa_pairs": str(pairs), "output": "None"}


def _answer(rng: random.Random, name: str) -> Any:
    if name == CLOZE:
        return {
            f"<mask-{number}>": rng.choice(NAMES) for number in range(rng.randint(1, 3))
        }
    return words(rng, rng.randint(1, 12)) + rng.choice(("", ".", "\nx. y", ". "))


def records() -> Iterator[tuple[str, str, Any, str]]:
    """Yield tasks, questions, answers and odd outputs."""
    rng = random.Random(3)
    for name in ROWS:
        for _ in range(TEXTS if name == CLOZE else 2 * QUESTIONS):
            answer = _answer(rng, name)
            for output in _clozes(answer) if name == CLOZE else _texts(rng, answer):
                yield name, words(rng, 3), answer, output


def _clozes(answer: Any) -> Iterator[str]:
    for text in CLOZES:
        yield text.replace("{right}", str(answer))


def _texts(rng: random.Random, answer: str) -> Iterator[str]:
    parts = answer.split()
    rng.shuffle(parts)
    yield from (
        "",
        answer,
        f"{answer} {answer}",
        answer.upper(),
        " ".join(parts),
        "no",
        f"\n{answer}\n. x.  . ",
        "None",
    )
    yield f"{words(rng, 5)}. {' '.join(parts[:4])}\n{words(rng, 5)}"
    yield from (
        f"{' '.join(parts)}. {answer}",
        words(rng, 30),
        f"It is {answer}",
        "..a",
        f"{answer}.{answer}",
    )


def judged() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield tasks, questions, answers, outputs, and replies of a judge about them."""
    rng = random.Random(4)
    for name in ROWS:
        if name != CLOZE:
            for number in range(60):
                answer = _answer(rng, name)
                yield (
                    name,
                    words(rng, 3),
                    answer,
                    words(rng, 5),
                    REPLIES[number % len(REPLIES)],
                )


def read_reply(reply: Any) -> MetricValues:
    """Return the judge's verdict in a reply."""
    return read_verdict(reply)
