"""Reads Ada-LEval's files: one JSON array for each task and length.

Source: open-compass/Ada-LEval at 2154258, fetch_data.sh and ada_leval/dataset.py.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from helm_longctx.benchmarks.ada_leval import prompts
from helm_longctx.tasks import DataRoot, Example, FileRow, JsonArray, Settings, Task, Types, WebFile
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.task import TEXTS, Shape, are_all, is_whole

ADDRESS = "http://opencompass.openxlab.space/utils/AdaLEval"
"""The address from which the official script downloads. It offers neither checksums nor HTTPS."""

QUESTION_COLUMNS: Types = {"question_id": (int, str), "question": str, "answer": str, "all_answers": list}
ORDER = Shape("a list of whole numbers", are_all(is_whole))

SECTION_COLUMNS: Types = {"book_id": (int, str), "para_offset": (list, str), "answer": (list, str), "prompt": str}


def file_of(name: str, length: int) -> WebFile:
    """Return the file of a task at a length."""
    file = f"{name}_{length_label(length)}.json"
    return WebFile(f"{ADDRESS}/{file}", f"ada_leval/{file}")


def load_questions(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load BestAnswer's first questions in file order."""
    earlier: Counter[str] = Counter()
    for row in _rows(task, settings, root, QUESTION_COLUMNS):
        answers = row["all_answers"]
        TEXTS.check(f"{row}: column 'all_answers'", answers)
        listed = "".join(prompts.ANSWER.format(number=i, answer=text) for i, text in enumerate(answers, 1))
        yield Example(
            id=_unique_name(f"{row['question_id']}_{row['answer']}", earlier),
            fields={"question": row["question"], "context": listed},
            references=[row["answer"]],
            source="official",
            record={"num_choice": len(answers)},
            group=f"question {row['question_id']}",
        )


def load_sections(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load TSort's first prompts in file order."""
    earlier: Counter[str] = Counter()
    for row in _rows(task, settings, root, SECTION_COLUMNS):
        order: Any = row["answer"]
        with suppress(ValueError, RecursionError):
            order = json.loads(order) if isinstance(order, str) else order
        ORDER.check(f"{row}: column 'answer'", order)
        yield Example(
            id=_unique_name("_".join(map(str, (row["book_id"], *row["para_offset"]))), earlier),
            fields={"context": row["prompt"]},
            references=[json.dumps(order)],
            source="official",
            record={"order": order},
            group=f"book {row['book_id']}",
        )


def _rows(task: Task, settings: Settings, root: DataRoot, columns: Types) -> Iterator[FileRow]:
    (path,) = task.paths(settings.level)
    return islice(JsonArray(root / path, columns), task.sample(settings))


def _unique_name(name: str, earlier: Counter[str]) -> str:
    """Return a row's official name, with a number added if earlier rows have the same name."""
    earlier[name] += 1
    return name if earlier[name] == 1 else f"{name}-{earlier[name]}"
