"""Fabricate CL-bench's rows, odd answers and replies of its judge, which are the same on every machine."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.cl_bench.tasks import (
    CATEGORIES,
    DELIMITER,
    LIFE,
    TASKS,
    read_grade,
)
from helm_longctx.tasks import MetricValues
from tests.support.fabricate_words import words, write

ROWS = {TASKS.path: 520, LIFE.paths[0]: 520}
RECORD = {
    "prediction": "The rule applies.",
    "rubrics": ["names the rule"],
    "category": "Rule System Application",
}
REPLIES = (
    *('{"Overall Score": 1}', '{"Overall Score": 0}', '```json\n{"Overall Score": 1}\n```', '``` {"Overall Score": 0}```'),
    *('{"Overall Score": 1.0}', '{"Overall Score": "1"}', '{"Overall Score": 0.5}', '{"Overall Score": true}'),
    *('{"overall score": 1}', '["Overall Score"]', '"text"', "", "  ", "{", '{"Overall Score": null}', '{"Overall Score": NaN}'),
    *('Score: {"Overall Score": 1}', '```json```{"Overall Score": 1}', '{"Overall Score": 1}```', '{"Overall Score": 1} x'),
    *('{"Overall Score": 0, "Overall Score": 1}', '{"List of Requirement Satisfaction Status": ["yes"], "Overall Score": 1}'),
    *('```json\n```\n{"Overall Score": 1}', '{"Overall Score": [1]}', '{"Overall Score": -1}', '{"Overall Score": 10e-1}'),
)  # fmt: skip


def build_cl_bench(root: Path) -> Path:
    """Write the rows of CL-bench and of CL-bench Life under `root`, and return it."""
    for path in ROWS:
        write(root / path, rows(path))
    return root


def rows(path: str) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    rng = random.Random(path)
    return [_row(rng, path == TASKS.path, number) for number in range(ROWS[path])]


def _row(rng: random.Random, has_context_id: bool, number: int) -> dict[str, Any]:
    messages = [
        {
            "role": "user",
            "content": f"{words(rng, 20)}{rng.choice((' ', DELIMITER))}{words(rng, 5)}",
        }
    ]
    for _ in range(rng.randrange(3)):
        messages += [
            {"role": "assistant", "content": words(rng, 5)},
            {"role": "user", "content": words(rng, 4)},
        ]
    if has_context_id:
        messages.insert(0, {"role": "system", "content": words(rng, 6)})
    texts: list[Any] = [
        rng.choice((words(rng, 4), f" {words(rng, 3)}\n", "", "{x}"))
        for _ in range(rng.randrange(5))
    ]
    about = {"task_id": f"task-{number}", "context_category": rng.choice([*CATEGORIES])}
    return {
        "messages": messages,
        "rubrics": [{"rubric_criteria": text} for text in texts]
        if number % 7 == 0
        else texts,
        "metadata": {
            **about,
            **({"context_id": f"context-{number // 4}"} if has_context_id else {}),
        },
    }


def answers() -> Iterator[tuple[str, str]]:
    """Yield odd answers without end, each with a reply of the judge."""
    rng = random.Random(5)
    number = 0
    while True:
        odd = (
            "",
            " \n",
            "{rubrics}",
            f" {words(rng, 3)}\n",
            json.dumps({"a": words(rng, 2)}),
            words(rng, 9),
        )
        yield odd[number % len(odd)], REPLIES[number % len(REPLIES)]
        number += 1


def read_reply(reply: Any) -> MetricValues:
    """Return the judge's grade in a reply."""
    return read_grade(reply)
