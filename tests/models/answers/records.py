"""The answers of a real model as scored records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.models.answers.entries import COMPARED, CONTAINED

ANSWERS = Path(__file__).with_name("answers.json")


def read_records() -> dict[str, list[dict[str, Any]]]:
    """Return the scored records of each entry.

    The answers to nonsense are rarely right. So where references are texts, each answer has a second record, in which a
    part of the answer is the reference.
    """
    answers = json.loads(ANSWERS.read_text(encoding="utf-8"))
    return {
        entry: [
            *rows,
            *(
                _second(row, entry)
                for row in rows
                if entry.startswith((*COMPARED, *CONTAINED))
            ),
        ]
        for entry, rows in answers.items()
    }


def _second(record: dict[str, Any], entry: str) -> dict[str, Any]:
    """Return a record of the same answer, whose reference is its middle, or the answer without its second quarter."""
    text = record["prediction"].strip() or "nothing"
    size = len(text) // 4
    part = (
        text[size : 3 * size]
        if entry.startswith(CONTAINED)
        else text[:size] + text[2 * size :]
    )
    fields: dict[str, Any] = {"references": [part]}
    if isinstance(record.get("answer"), list):
        fields["answer"] = [part]
    elif "answer" in record:
        fields["answer"] = part
    if "random_string_to_prepend" in record:
        fields["random_string_to_prepend"] = record["prediction"][:5]
        fields["answer"] = record["prediction"][:5] + part
    if record.get("answer_keywords"):
        fields["answer_keywords"] = text[:size]
    return {**record, **fields}
