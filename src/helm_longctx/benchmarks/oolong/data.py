"""Reads OOLONG's questions, a file of JSON lines for each length, and makes the questions of OOLONG-Pairs.

Source: abertsch72/oolong at adbf1cb, src/eval/eval_script_batched.py, src/eval/eval_helpers.py (how answers are read);
the hub data sets oolongbench/oolong-synth and oolongbench/oolong-real. OOLONG-Pairs: twenty questions that ask for all
pairs of users with certain labels, on the texts of `trec_coarse`; arXiv 2512.24601v2, appendix D.1 (questions, lengths)
and section 3.1 (F1 over the answer). The authors have published no code, so the reading of an answer is ours; the
README has what was chosen.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from math import comb
from typing import Any, NamedTuple

from helm_longctx.benchmarks.oolong.prompts import (
    PAIR_CONDITIONS,
    PAIR_QUESTION,
    SYSTEM,
)
from helm_longctx.data.hub import HubRows
from helm_longctx.errors import shorten
from helm_longctx.tasks import (
    DataRoot,
    Example,
    FileRow,
    InputError,
    JsonLines,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Types,
)
from helm_longctx.tasks.sampling import number_name, take_sample

SYNTH = "oolongbench/oolong-synth"
_SYNTH_COMMIT = "f0d59eaf0febf130664cfceb710436c8e3216b2b"
REAL = "oolongbench/oolong-real"
_REAL_COMMIT = "6bc9ef04866fcf005c9749b70649be69dd37fffb"

QUESTIONS = 50
"""Number of questions on each data set of classified texts at each length, 25 on each of two texts."""

_DATASETS = {"test": 8, "validation": 2}
"""Number of data sets of classified texts in each split."""

EPISODE_TOKENS = 64 * 1024
"""The length that stands for one transcript."""

TEXT = "context_window_text"
LABELLED_TEXT = "context_window_text_with_labels"
_ENTRY = re.compile(
    r"^Date: (\w+ \d+, \d+) \|\| User: (\d+) \|\| Instance: .*?(?: \|\| Label: (.*))?$",
    re.MULTILINE,
)
_SYNTH_COLUMNS: Types = {
    "dataset": str,
    "question": str,
    "answer": str,
    "answer_type": str,
}
_REAL_COLUMNS: Types = {
    TEXT: str,
    "question": str,
    "answer": (str, int),
}


class LabelledLine(NamedTuple):
    """A line of a text. The label is empty if the text has no labels."""

    date: str
    user: str
    label: str


def read_entries(text: str) -> Iterator[LabelledLine]:
    """Yield the lines of a text that have a date and a user."""
    return map(LabelledLine._make, _ENTRY.findall(text))


def find_synth_rows(length: int, split: str, column: str) -> HubRows:
    """Return the source of the questions on classified texts of a length."""
    folder = split if column == TEXT else f"{split}_labels"
    return HubRows(
        repo=SYNTH,
        commit=_SYNTH_COMMIT,
        files=f"data/{split}-",
        path=f"hub/oolongbench__oolong-synth/{folder}/{length}.jsonl",
        column="context_len",
        value=length,
        columns=("id", "context_window_id", *_SYNTH_COLUMNS, column),
        rows=QUESTIONS * _DATASETS[split],
    )


def find_real_rows(length: int) -> HubRows:
    """Return the source of the questions on transcripts of a length."""
    episodes = length // EPISODE_TOKENS
    return HubRows(
        repo=REAL,
        commit=_REAL_COMMIT,
        files="dnd/test.jsonl",
        path=f"hub/oolongbench__oolong-real/dnd/{episodes}.jsonl",
        column="episodes",
        value=episodes,
        columns=("id", "context_window_id", *_REAL_COLUMNS),
    )


@take_sample
def load_synth(
    task: Task,
    settings: Settings,
    root: DataRoot,
    column: str,
) -> Iterator[Example]:
    """Yield the questions on the texts of a data set, in file order."""
    rows = JsonLines(task.only_file(settings, root), {**_SYNTH_COLUMNS, column: str})
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
    seen: Counter[str] = Counter()
    for row in JsonLines(task.only_file(settings, root), _REAL_COLUMNS):
        name = number_name(str(row.get("id")), seen)
        group = str(row.get("context_window_id"))
        fields = {"context": row[TEXT], "question": row["question"]}
        messages = _make_messages(settings, **fields)
        yield Example(
            id=name,
            fields=fields,
            references=[str(row["answer"])],
            source="hub",
            messages=messages,
            group=group,
        )


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
            f"{row}: column 'answer' must be a list such as ['spam'] or"
            f" [datetime.date(2023, 1, 5)], found {shorten(answer)}"
        )
    return [str(value) for value in values]


def _make_messages(
    settings: Settings,
    context: str,
    question: str,
) -> tuple[Message, ...]:
    """Return the conversation that the official code sends to APIs; empty under another protocol."""
    if settings.protocol != "api":
        return ()
    # The official code sends two parts. Its library, LiteLLM, joins parts like this for APIs that take one text.
    return (
        {"role": "system", "content": SYSTEM + context},
        {"role": "user", "content": question},
    )


DATASET = "trec_coarse"
LABELS = (
    "description and abstract concept",
    "entity",
    "human being",
    "numeric value",
    "location",
    "abbreviation",
)

_LABEL = rf"(?:an? )?({'|'.join(LABELS)})"
_COUNT = re.compile(
    rf"(exactly )?(one|two)(?: instances?)? with {_LABEL}(?: or {_LABEL})?"
)
_DATES = re.compile(
    rf"all instances that are {_LABEL} for both users must be (after|before) (\w+ \d+, \d+)"
)
_PAIR = re.compile(r"\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.ASCII)

_Users = Mapping[str, Sequence[tuple[str, date]]]
"""The labels and dates of each user's texts."""


@take_sample
def load_pairs(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield the twenty questions on the first text, then those on the second.

    Raises:
        InputError: the texts with and without labels are not the same.
    """
    plain, labelled = task.paths(settings.length)
    rows = zip(
        JsonLines(root / plain, {"dataset": str, TEXT: str}),
        JsonLines(root / labelled, {LABELLED_TEXT: str}),
        strict=True,
    )
    seen: set[str] = set()
    for row, labelled_row in rows:
        window = str(row.get("context_window_id"))
        if row["dataset"] != DATASET or window in seen:
            continue
        seen.add(window)
        users = _read_users(labelled_row[LABELLED_TEXT])
        if window != str(labelled_row.get("context_window_id")) or not users:
            raise InputError(
                f"{row}: the text with labels is another one, or has no lines with a label"
            )
        for number, condition in enumerate(PAIR_CONDITIONS, 1):
            fields = {
                "context": row[TEXT],
                "question": PAIR_QUESTION.format(condition=condition),
            }
            references = []
            for role in _find_roles(condition, users):
                references.append(", ".join(sorted(role, key=int)))
            yield Example(
                id=f"{window}-{number}",
                fields=fields,
                references=references,
                source="hub",
                group=window,
            )


def _read_users(text: str) -> _Users:
    users = defaultdict(list)
    for entry in read_entries(text):
        if entry.label:
            users[entry.user].append(
                (entry.label, datetime.strptime(entry.date, "%b %d, %Y").date())
            )
    return users


def _find_roles(condition: str, users: _Users) -> tuple[set[str], set[str]]:
    """Return the users who can be the one of a pair, and those who can be the other.

    Args:
        condition: what the question asks for, in its words.
    """
    first, _, second = condition.partition(", and the other user has ")
    possible = []
    for role in (first, second or first):
        possible.append({user for user, texts in users.items() if _fits(role, texts)})
    return possible[0], possible[1]


def _fits(role: str, texts: Sequence[tuple[str, date]]) -> bool:
    for exactly, number, *labels in _COUNT.findall(role):
        count = sum(label in labels for label, _ in texts)
        wanted = 1 + (number == "two")
        if count != wanted if exactly else count < wanted:
            return False
    for name, order, day in _DATES.findall(role):
        limit = datetime.strptime(day, "%B %d, %Y").date()
        for label, when in texts:
            if order == "after":
                is_in_range = when > limit
            else:
                is_in_range = when < limit
            if label == name and not is_in_range:
                return False
    return True


def can_read_pairs(record: ScorerInput) -> bool:
    """Whether an answer has a pair of users."""
    return _PAIR.search(record["prediction"]) is not None


def score_pairs(record: ScorerInput) -> MetricValues:
    """Return the F1 of the pairs in an answer, and whether it is 1, if the record has references.

    The references are the users of both roles. Their pairs are counted, not made: a text of 1m has 28 million.
    """
    if len(record.get("references") or ()) != 2:
        return {}
    first, second = ({*filter(None, text.split(", "))} for text in record["references"])
    both = len(first & second)
    right = len(first) * len(second) - both - comb(both, 2)
    pairs = set()
    for pair in _PAIR.findall(record["prediction"]):
        pairs.add(tuple(sorted(pair)))
    hits = 0
    for one, other in pairs:
        fits = (one in first and other in second) or (one in second and other in first)
        hits += one != other and fits
    if pairs or right:
        f1 = 2 * hits / (len(pairs) + right)
    else:
        f1 = 1.0
    return {"f1": f1, "exact": float(f1 == 1)}
