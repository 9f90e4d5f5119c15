"""Reads LV-Eval's files: one JSON-lines file for each data set and length.

Source: infinigence/LVEval at 63e7ae9, README.md (Data Format), utils.py (load_jsonl) and prediction.py (get_pred).
"""

import ast
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from helm_longctx.data.jsonl import JsonLines, Row
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks import TEXTS, DataRoot, Example, Settings, Task
from helm_longctx.tasks.sampling import number_name, take_sample

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


@take_sample
def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the questions in file order.

    The files have no ids. All five lengths of a data set have the same questions and answers, so an id is a hash of
    these. Several rows can have the same question and answers (all 200 rows of a factrecall file do) and differ only in
    their contexts, which also differ between lengths. From the second such row on, the id ends with a number in file
    order.
    """
    (path,) = task.paths(settings.length)
    earlier: Counter[str] = Counter()
    for row in JsonLines(root / path, COLUMNS):
        TEXTS.check(f"{row}: column 'answers'", row["answers"])
        yield Example(
            id=f"{task.name}-{name_question(row, earlier)}",
            fields={"context": row["context"], "input": row["input"]},
            references=row["answers"],
            source="official",
            record={
                "question": row["input"],
                "language": row["language"],
                "answer_keywords": row.get("answer_keywords") or "",
                "confusing_facts": confusing_facts(row.get("confusing_facts")),
                "size": row["length"],
            },
        )


def confusing_facts(value: list[Any] | str | None) -> list[str]:
    """Return the facts as a list without blank ones. Some files have the list as a string in Python notation."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):  # it is a text that starts with a bracket
            value = ast.literal_eval(value.strip())
    facts = value if isinstance(value, list) else [value]
    return [str(fact) for fact in facts if fact and str(fact).strip()]


def name_question(row: Row, earlier: Counter[str]) -> str:
    """Return a digest of a question, which is the same at every length, and a number if the question came before."""
    # Twelve digits tell the 8,645 rows apart and keep ids readable.
    return number_name(digest(json.dumps([row["input"], row["answers"]], ensure_ascii=False))[:12], earlier)
