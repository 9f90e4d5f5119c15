"""LV-Eval's files: one JSON-lines file for each data set and length.

Source: infinigence/LVEval at 63e7ae9, README.md (Data Format), utils.py (load_jsonl) and prediction.py (get_pred).
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helm_longctx.errors import InputError
from helm_longctx.sources.jsonl import JsonLines, Row

_TEXT_OR_NOTHING = (str, type(None))
COLUMNS: Mapping[str, type | tuple[type, ...]] = {
    "input": str,
    "context": str,
    "answers": list,
    "length": int,
    "language": str,
    "answer_keywords": _TEXT_OR_NOTHING,
    "confusing_facts": (list, *_TEXT_OR_NOTHING),
}


@dataclass(frozen=True)
class QuestionRow:
    """One row.

    Args:
        id: the same for the same question at every length, see `rows`.
        fields: the template's places, `context` and `input`.
        references: accepted answers, of which the metrics read the first.
        size: the file's `length`: words in English, characters in Chinese.
        record: what the scorers need besides the references.
    """

    id: str
    fields: Mapping[str, str]
    references: list[str]
    size: int
    record: Mapping[str, Any]


def rows(path: Path) -> Iterator[QuestionRow]:
    """The file's rows in order, one in memory at a time.

    The files have no identifiers. The five lengths of a data set hold the same questions and answers, so the id is
    made of these: a hash, and a number from the second row with the same ones on. Such rows (all 200 of a factrecall
    file) can be told apart by their contexts alone, which differ between lengths: they are numbered in file order.

    Raises:
        InputError: there is no such file, or a row lacks a column.
    """
    seen: Counter[str] = Counter()
    for number, row in enumerate(JsonLines(path, COLUMNS), 1):
        if not all(isinstance(answer, str) for answer in row["answers"]):
            raise InputError(f"{path}: row {number}: column 'answers' must hold texts alone")
        digest = _digest(row)
        seen[digest] += 1
        yield QuestionRow(
            id=digest if seen[digest] == 1 else f"{digest}-{seen[digest]}",
            fields={"context": row["context"], "input": row["input"]},
            references=row["answers"],
            size=row["length"],
            record={
                "question": row["input"],
                "language": row["language"],
                "answer_keywords": row.get("answer_keywords") or "",
                "confusing_facts": confusing_facts(row.get("confusing_facts")),
            },
        )


def confusing_facts(value: list[Any] | str | None) -> list[str]:
    """The facts one by one. A list may also stand in the file as its Python notation; blank facts are dropped."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):  # a text that begins with a bracket
            value = ast.literal_eval(value.strip())
    facts = value if isinstance(value, list) else [value]
    return [str(fact) for fact in facts if fact and str(fact).strip()]


def _digest(row: Row) -> str:
    identity = json.dumps([row["input"], row["answers"]], ensure_ascii=False)
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:12]
