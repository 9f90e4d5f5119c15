"""Fabricate LongBench-Write's files, texts and a judge's replies, which are the same on every machine."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.longbench_write.tasks import (
    FILES,
    GRADES,
    RUBRIC,
    read_grades,
)
from tests.support.fabricate_words import words, write

LENGTHS = (1, 100, 499, 500, 1999, 2000, 3999, 4000, 20000, 30000)
TEMPLATE = "Grade é the {x}.\n<request>\n$INST$\n</request>\n<response>\n$RESPONSE$\n</response>\nGrade as JSON."
DIMENSIONS = list(GRADES.values())


def build_longbench_write(root: Path) -> Path:
    """Write all files, which have characters that a template could misread."""
    for name, file in FILES.items():
        write(root / file.path, rows(name))
    (root / RUBRIC.path).write_text(TEMPLATE, encoding="utf-8")
    return root


def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a task's file."""
    rng = random.Random(name)
    ends = ("", "\n", " $RESPONSE$", " $INST$ {}", "的文章。\n\n")
    return [
        {
            "prompt": f"{number}: {words(rng, 9)} {length}字{ends[number % 5]}",
            "type": "科普",
            "length": length,
        }
        for number, length in enumerate(LENGTHS)
    ]


def responses() -> list[str]:
    """Return a text for each row; some texts have the required length."""
    rng = random.Random(7)
    texts = []
    for number, length in enumerate(LENGTHS):
        count = round(length * (1, 0.3, 0.34, 0.9, 1.1, 2, 3.9, 4.1, 1, 0.5)[number])
        texts.append(
            " ".join(
                rng.choices(
                    (
                        "word",
                        "It's",
                        "文",
                        "文章 is",
                        "字word",
                        "x1",
                        "e-mail",
                        "é",
                        "A.",
                    ),
                    k=count,
                )
            )
        )
    return texts


def grades(**changes: Any) -> dict[str, Any]:
    """Return a judge's grades, which are 4 except for the changes; a change to `...` leaves a dimension out."""
    reply = {"Analysis": "Fine.", **dict.fromkeys(DIMENSIONS, 4)} | {
        name.replace("_", " "): v for name, v in changes.items()
    }
    return {name: value for name, value in reply.items() if value is not ...}


def odd_replies() -> list[str]:
    """Return replies that the official code reads, asks for again, or ends at."""
    plain = json.dumps(grades())
    return [
        plain, f"```json\n{plain}\n```", f"Well:\n```json\n{json.dumps(grades(), indent=1)}\n```\nDone. ```json\n{{}}\n```",
        f"```json {plain} ```", f"```\n{plain}\n```", f"Grades: {plain}", plain + "\n", plain.replace("Fine.", "Fi\nne."),
        plain.replace("Fine.", "Fi\tne."), "", "5", '"text"', "[]", "null", "{}", "Trigger OpenAI's content management policy",
        json.dumps(DIMENSIONS), json.dumps(" ".join(DIMENSIONS)), "[" * 5000, "```json\n```json\n{}\n```",
        *(json.dumps(grades(**change)) for change in (
            {"Relevance": ...}, {"Reading_Experience": ...}, {"Clarity": "3"}, {"Clarity": " 2.5 "}, {"Clarity": "3/5"},
            {"Clarity": 3.5}, {"Clarity": True}, {"Clarity": None}, {"Clarity": [4]}, {"Clarity": 0}, {"Clarity": 9},
            {"Clarity": -1}, {"Analysis": ...}, {"Accuracy": 1e9},
        )),
    ]  # fmt: skip


def replies() -> list[list[str]]:
    """Return for each row the judge's replies up to the first readable one; the last row has no readable reply."""
    rng = random.Random(9)
    all_replies = []
    for number in range(len(LENGTHS)):
        good = json.dumps(
            grades(**{name.replace(" ", "_"): rng.randint(1, 5) for name in DIMENSIONS})
        )
        all_replies.append(
            ["no"] * (number % 3) + [[good, f"```json\n{good}\n```"][number % 2]]
        )
    return [*all_replies[:-1], ["no"] * 5]


read_reply = read_grades
REPLIES = (json.dumps(grades()), f"```json\n{json.dumps(grades())}\n```")
RECORD = {"length": 500, "judge": json.dumps(grades())}
