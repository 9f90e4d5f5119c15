"""Reads LV-Eval's files: one JSON-lines file for each data set and length.

Source: infinigence/LVEval at 63e7ae9, README.md (Data Format), utils.py (load_jsonl) and prediction.py (get_pred).
"""

import ast
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from helm_longctx.data.jsonl import JsonLines, Row
from helm_longctx.tasks import TEXTS, DataRoot, Example, Settings, Task

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


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the questions in file order, or only the first `num_samples` if that is given.

    The files have no ids. All five lengths of a data set have the same questions and answers, so an id is a hash of
    these. Several rows can have the same question and answers (all 200 rows of a factrecall file do) and differ only in
    their contexts, which also differ between lengths. From the second such row on, the id ends with a number in file
    order.
    """
    (path,) = task.paths(settings.length)
    name = QuestionNames()
    for row in islice(JsonLines(root / path, COLUMNS), task.sample(settings)):
        TEXTS.check(f"{row}: column 'answers'", row["answers"])
        yield Example(
            id=f"{task.name}-{name(row)}",
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


class QuestionNames:
    """Names the questions of a file, in their order. A question has the same name at every length."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __call__(self, row: Row) -> str:
        """Return the name of the next question: a digest, and a number if the same question came before."""
        identity = json.dumps([row["input"], row["answers"]], ensure_ascii=False)
        # Twelve digits tell the 8,645 rows apart and keep ids readable.
        digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        self._counts[digest] += 1
        return digest if self._counts[digest] == 1 else f"{digest}-{self._counts[digest]}"
