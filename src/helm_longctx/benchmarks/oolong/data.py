"""Reads OOLONG's questions: of each length a file of JSON lines.

Source: abertsch72/oolong at adbf1cb, src/eval/eval_script_batched.py, src/eval/eval_helpers.py (how answers are read);
the hub data sets oolongbench/oolong-synth and oolongbench/oolong-real.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from helm_longctx.benchmarks.oolong.prompts import SYSTEM
from helm_longctx.data.hub import HubRows
from helm_longctx.errors import InputError, shorten
from helm_longctx.tasks import DataRoot, Example, FileRow, JsonLines, Message, Settings, Task, Types
from helm_longctx.tasks.sampling import number_name, take_sample

SYNTH, SYNTH_COMMIT = "oolongbench/oolong-synth", "f0d59eaf0febf130664cfceb710436c8e3216b2b"
REAL, REAL_COMMIT = "oolongbench/oolong-real", "6bc9ef04866fcf005c9749b70649be69dd37fffb"

QUESTIONS = 50
"""Number of questions on each data set of classified texts at each length, 25 on each of two texts."""

DATASETS = {"test": 8, "validation": 2}
"""Number of data sets of classified texts in each split."""

EPISODE_TOKENS = 64 * 1024
"""The length that stands for one transcript."""

TEXT, LABELLED_TEXT = "context_window_text", "context_window_text_with_labels"
_ENTRY = re.compile(r"^Date: (\w+ \d+, \d+) \|\| User: (\d+) \|\| Instance: .*?(?: \|\| Label: (.*))?$", re.MULTILINE)
_SYNTH_COLUMNS: Types = {"dataset": str, "question": str, "answer": str, "answer_type": str}
_REAL_COLUMNS: Types = {TEXT: str, "question": str, "answer": (str, int)}


class Entry(NamedTuple):
    """A line of a text. The label is empty if the text has no labels."""

    date: str
    user: str
    label: str


def read_entries(text: str) -> Iterator[Entry]:
    """Yield the lines of a text that have a date and a user."""
    return (Entry(*match) for match in _ENTRY.findall(text))


def find_synth_rows(length: int, split: str, column: str) -> HubRows:
    """Return the source of the questions on classified texts of a length."""
    folder = split if column == TEXT else f"{split}_labels"
    return HubRows(
        repo=SYNTH,
        commit=SYNTH_COMMIT,
        files=f"data/{split}-",
        path=f"hub/oolongbench__oolong-synth/{folder}/{length}.jsonl",
        column="context_len",
        value=length,
        columns=("id", "context_window_id", *_SYNTH_COLUMNS, column),
        rows=QUESTIONS * DATASETS[split],
    )


def find_real_rows(length: int) -> HubRows:
    """Return the source of the questions on transcripts of a length."""
    episodes = length // EPISODE_TOKENS
    return HubRows(
        repo=REAL,
        commit=REAL_COMMIT,
        files="dnd/test.jsonl",
        path=f"hub/oolongbench__oolong-real/dnd/{episodes}.jsonl",
        column="episodes",
        value=episodes,
        columns=("id", "context_window_id", *_REAL_COLUMNS),
    )


@take_sample
def load_synth(task: Task, settings: Settings, root: DataRoot, column: str) -> Iterator[Example]:
    """Yield the questions on the texts of a data set, in file order."""
    (path,) = task.paths(settings.length)
    rows = JsonLines(root / path, {**_SYNTH_COLUMNS, column: str})
    seen: Counter[str] = Counter()
    for row in (row for row in rows if row["dataset"] == task.argument):
        answers = read_answers(row)
        fields = {"context": row[column], "question": row["question"]}
        yield Example(
            id=number_name(str(row.get("id")), seen),
            fields=fields,
            references=answers[:1],
            source="hub",
            record={"answer_type": row["answer_type"]},
            messages=_make_messages(settings, **fields),
            group=str(row.get("context_window_id")),
            errata=("several_answers",) if len(answers) > 1 else (),
        )


@take_sample
def load_real(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield the questions on transcripts, in file order."""
    (path,) = task.paths(settings.length)
    seen: Counter[str] = Counter()
    for row in JsonLines(root / path, _REAL_COLUMNS):
        name, group = number_name(str(row.get("id")), seen), str(row.get("context_window_id"))
        fields = {"context": row[TEXT], "question": row["question"]}
        messages = _make_messages(settings, **fields)
        yield Example(name, fields, [str(row["answer"])], "hub", messages=messages, group=group)


def read_answers(row: FileRow) -> list[str]:
    """Return the right answers of a question on classified texts. Only the first one counts in the official code.

    Raises:
        InputError: the answer is neither a list that is not empty nor a date, as Python writes them.
    """
    answer = row["answer"]
    try:
        if "datetime" in answer:
            return [str(datetime.strptime(answer, "[datetime.date(%Y, %m, %d)]"))]
        values: Any = ast.literal_eval(answer)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        values = None
    if not isinstance(values, list) or not values:
        raise InputError(
            f"{row}: column 'answer' must be a list such as ['spam'] or [datetime.date(2023, 1, 5)], found"
            f" {shorten(answer)}"
        )
    return [str(value) for value in values]


def _make_messages(settings: Settings, context: str, question: str) -> tuple[Message, ...]:
    """Return the conversation that the official code sends to APIs; empty under another protocol."""
    if settings.protocol != "api":
        return ()
    # The official code sends two parts. Its library, LiteLLM, joins parts like this for APIs that take one text.
    return ({"role": "system", "content": SYSTEM + context}, {"role": "user", "content": question})
