"""Fabricates HelloBench's files, answers and a judge's replies, the same on every machine."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.hellobench.tasks import FILES, WEIGHTS, score_reply
from helm_longctx.tasks.task import MetricValues
from tests.support.fabricate_words import words, write

CATEGORIES = {
    "Science": [20.5, 29.5, 50],
    "news": [10, 15.25, 74.75],
    "blogs": [60, 39.875, 0.125],
}
"""The weights of each category."""
SCORES = (0, 0.25, 0.5, 0.75, 1)


def build_hellobench(root: Path) -> Path:
    """Write all files, which have characters that a template could misread."""
    for name, file in FILES.items():
        write(root / file.path, make_rows(name))
    weights = ",\n".join(
        f"    {category!r}: {own}" for category, own in CATEGORIES.items()
    )
    (root / WEIGHTS.path).write_text(f"REGRESSION_DICT = {{\n{weights}\n}}\n")
    return root


def make_rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a task's file, two of each category."""
    rng = random.Random(f"hello {name}")
    rows = []
    for number, category in enumerate([*CATEGORIES, *CATEGORIES]):
        text = f"Write about this: {{x}} {words(rng, 9)} é\n[Story]: {words(rng, 12)}\n[Requirements]:\n1. Be long.\n"
        checklists = [
            f'Is "it" {words(rng, 4)}? {{0}} 文' for _ in CATEGORIES[category]
        ]
        rows.append(
            {
                "id": f"{name}_{number:03}",
                "category": category,
                "instruction": text,
                "checklists": checklists,
            }
        )
    return rows


def make_answers() -> list[str]:
    """Return an answer to each instruction of a task, the last one longer than the judge gets."""
    rng = random.Random(4)
    odd = (
        "",
        "Dr. Ba can't go. He's \"out\"...\n\n- a\n- b",
        "{instruction} {response} 文章。好",
    )
    return [words(rng, 40) + text for text in odd] + [
        "It is. ",
        "It isn't. ",
        "it " * 16_010,
    ]


def make_reply(*scores: object) -> str:
    """Return a judge's reply in the official form."""
    return json.dumps(
        [
            {"checklist_id": n, "reason": "It is fine.", "evaluation_score": score}
            for n, score in enumerate(scores)
        ]
    )


def odd_replies() -> list[str]:
    """Return replies on three items that the official code reads, asks for again, leaves out, or ends at."""
    plain = make_reply(1, 0.5, 0.25)
    items = json.loads(plain)
    bare = [{"evaluation_score": 0.5}] * 3
    return [
        plain, f"```json\n{plain}\n```", f"```python\n{plain}\n```", f"```\n{plain}```", f"Here: {plain}", f"{plain} x",
        plain.replace("fine", "fi\nne"), plain.replace("fine", "fi\\ne"), plain.replace("fine", 'f\\"i'), plain.replace("fine", "f\ti"),
        plain.replace(", {", ",\n {"), plain.replace('"', "'"), json.dumps(items[::-1]), json.dumps(items[:2]), json.dumps([*items, items[0]]),
        json.dumps([items[0]] * 3), make_reply("1", "0.5", " 0.25 "), make_reply(1, 1, 1), make_reply(0, 0, 0), make_reply(0.1, 0.3, 0.7),
        make_reply(True, False, 1), make_reply(1, 1, 2), make_reply(1, 1, -0.25), make_reply(1, 1, "high"), make_reply(1, 1, None),
        make_reply(1, 1, [1]), make_reply(1, 1, 1.0000001), plain.replace("0.25", "NaN"), plain.replace("0.25", "Infinity"),
        plain.replace("0.25", "1e999"), plain.replace("0.25", "9" * 400), plain.replace("0.25", '"0_1"'), json.dumps(bare),
        json.dumps([{**item, "checklist_id": "one"} for item in items]), json.dumps([{"checklist_id": 1}] * 3), "[1, 1, 1]", "[[], [], []]",
        json.dumps(dict.fromkeys("abc", 1)), '"abc"', "3", "null", "", "[]", "{}", "I cannot judge this.", "[" * 5000,
    ]  # fmt: skip


def read_reply(reply: str) -> MetricValues:
    """Return the score of a reply, without the official scale, which begins at -3."""
    return {
        name: value
        for name, value in score_reply(CATEGORIES["Science"], reply).items()
        if name == "judge_score"
    }


REPLIES = tuple(odd_replies()[:4])
RECORD = {
    "checklists": ["a?", "b?", "c?"],
    "weights": CATEGORIES["Science"],
    "judge": odd_replies()[0],
}
