"""A quick call of `evaluate`, and a function that answers its questions right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import helm_longctx as lc
from helm_longctx.evaluation.result import EvaluationResult
from tests.support.questions import write_questions

TASK = "helmet_recall:task=json_kv"

SHORT_ROWS = [
    {
        "context": f"The key of the {name} is {key}.",
        "question": f"What is the key of the {name}?",
        "answers": [key],
    }
    for name, key in (("door", "37"), ("school", "74"), ("town", "111"))
]


def look_up(prompt: lc.Prompt) -> str:
    """Return the value of the last key of a prompt of `TASK`."""
    key = prompt.question.rpartition("Key: ")[2].partition("\n")[0].strip(' "')
    match = re.search(rf'"{key}": "([^"]+)"', prompt.context)
    return match[1] if match else ""


def call(
    model: Any, tasks: Any = TASK, lengths: Any = "8k", **changes: Any
) -> EvaluationResult:
    """Evaluate a model on few questions."""
    return lc.evaluate(
        model, tasks, lengths, **{"num_samples": 4, "quiet": True, **changes}
    )


def call_with_short_texts(
    model: Any, arguments: dict[str, Any] | None = None, **changes: Any
) -> EvaluationResult:
    """Evaluate a model on three questions of a sentence each, which a small model reads in milliseconds.

    Args:
        arguments: the task's arguments besides those of the questions.
    """
    folder = Path("questions").resolve()
    if not folder.exists():
        folder.mkdir()
        write_questions(folder, *SHORT_ROWS)
    return call(
        model,
        "any_jsonl",
        "4k",
        arguments={
            "path": str(folder),
            "metric": "contains",
            "count_with": "longctx/words",
            "num_output_tokens": 20,
            **(arguments or {}),
        },
        **{"num_samples": 3, **changes},
    )
