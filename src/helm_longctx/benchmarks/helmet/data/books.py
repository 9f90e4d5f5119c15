"""Books and law cases, cut by HELMET's ruler so that every model reads the same text: long-document QA and summaries.

Source: princeton-nlp/HELMET at 4526dfb, data.py load_narrativeqa, load_infbench, load_multi_lexsum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from helm_longctx.benchmarks.helmet import prompts
from helm_longctx.benchmarks.helmet.data.llama import LLAMA_2, cutter
from helm_longctx.errors import InputError
from helm_longctx.protocol.sampling import Reshuffles, shuffled
from helm_longctx.protocol.task import Example, Settings, Task
from helm_longctx.protocol.template import CONTEXT
from helm_longctx.protocol.text import Cutter
from helm_longctx.sources.jsonl import FileRow, JsonLines, Row
from helm_longctx.sources.root import DataRoot

LONGEST = 131072
"""NarrativeQA's texts have more Llama 2 tokens than this."""

LONG = 65536
"""The other texts have at least so many."""

_BATCH = 8


def load_narrativeqa(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """The first 100 questions about texts of more than 131,072 tokens, the same at every length.

    Raises:
        InputError: a file is malformed, or has too few demonstrations.
    """
    train, test, *_ = task.paths(settings.length)
    types = {"question": dict, "answers": list}
    demos = [prompts.NARRATIVEQA_DEMO.format(**_narrativeqa(row)) for row in JsonLines(root / train, types)]
    rows = JsonLines(root / test, {**types, "document": dict})
    ordered = rows.rows(shuffled(len(rows), settings.seed))
    draws, shots = Reshuffles(settings.seed), _drawn(task, settings, demos, root / train)
    measured = _measured(ordered, lambda row: str(row["document"].get("text")), _cutter(task, settings, root))
    long = ((row, text) for row, text, tokens in measured if tokens > LONGEST)
    for position, (row, text) in enumerate(islice(long, task.sample(settings))):
        shown = [demos[i] for i in draws.next(len(demos))[:shots]] if shots else []
        fields = {
            "demo": prompts.NARRATIVEQA_DEMOS.format(demos="\n\n".join(shown)) if shots else "",
            "question": _narrativeqa(row)["question"],
        }
        answers = [answer["text"] for answer in row["answers"]]
        yield _example(task, settings, root, position, fields, text, answers)


Convert = Callable[[Row], dict[str, Any]]
"""A row of InfiniteBench without its book → template fields and `answer`, a list."""


def load_infbench(task: Task, settings: Settings, root: DataRoot, convert: Convert, demo: str) -> Iterator[Example]:
    """100 questions about books, or 100 books to summarize; demonstrations are other rows without their books.

    Args:
        demo: the template of a demonstration.

    Raises:
        InputError: the file is malformed, or has too few rows.
    """
    path, *_ = task.paths(settings.length)
    rows = JsonLines(root / path, {"id": (int, str), CONTEXT: str, "input": str, "answer": list})
    items, long = [], []
    cut = _cutter(task, settings, root)
    for number, (row, _, tokens) in enumerate(_measured(rows, lambda row: str(row[CONTEXT]), cut)):
        items.append({"id": row["id"], **_converted(convert, row, root / path, number)})
        if tokens >= LONG:
            long.append(number)
    order = shuffled(len(long), settings.seed)[: task.sample(settings)]
    chosen, shots = [long[place] for place in order], task.demonstrations(settings)
    keypoints = _keypoints(task, root, "keypoints")
    texts = _measured(rows.rows(chosen), lambda row: str(row[CONTEXT]), cut)
    for position, (number, (row, text, _)) in enumerate(zip(chosen, texts, strict=True)):
        item = items[number]
        others = [other for other in items if other["id"] != item["id"]]
        if shots > len(others):
            raise InputError(f"{root / path}: shots={shots}, but there are only {len(others)} other rows")
        shown = [demo.format(**others[i]) for i in shuffled(len(others), settings.seed)[:shots]]
        fields = {**item, "demo": prompts.INFBENCH_DEMOS.format(demos="\n\n".join(shown)) if shots else ""}
        record = {"keypoints": keypoints[row["id"]]} if row["id"] in keypoints else {}
        yield _example(task, settings, root, position, fields, text, fields.pop("answer"), record)


def infbench_question(row: Row) -> dict[str, Any]:
    """A question about a book."""
    return {"question": row["input"], "answer": row["answer"]}


def infbench_book(row: Row) -> dict[str, Any]:
    """A book to summarize."""
    return {"summary": row["answer"][0].strip(), "answer": row["answer"]}


def infbench_choice(row: Row) -> dict[str, Any]:
    """A question with four options; the answer is its letter, or the letter and the option."""
    letter = chr(ord("A") + row["options"].index(row["answer"][0]))
    return {
        "question": row["input"],
        "options": prompts.INFBENCH_OPTIONS.format(*row["options"]),
        "answer": [letter, f"{letter}. {row['answer'][0]}"],
    }


def load_lexsum(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Law cases of at least 65,536 tokens that have a short summary.

    Raises:
        InputError: a file is malformed, or has too few demonstrations.
    """
    train, validation, *_ = task.paths(settings.length)
    maybe = {"summary/short": (str, type(None))}
    demos = [row["summary/short"] for row in JsonLines(root / train, maybe) if row["summary/short"] is not None]
    rows = JsonLines(root / validation, {**maybe, "sources": list})
    short = [number for number, row in enumerate(rows) if row["summary/short"] is not None]
    draws, shots = Reshuffles(settings.seed), _drawn(task, settings, demos, root / train)
    # The official code draws for the training rows first, whose prompts it then does not use.
    draws.skip(len(demos))
    shown = {number: draws.next(len(demos))[:shots] for number in short}
    cut = _cutter(task, settings, root)
    measured = _measured(rows.rows(short), _sources, cut)
    long = [number for number, (_, _, tokens) in zip(short, measured, strict=True) if tokens >= LONG]
    sample = task.sample(settings)
    if len(long) > sample:
        long = [long[place] for place in shuffled(len(long), settings.seed)[:sample]]
    keypoints = _keypoints(task, root, "summary/short_keypoints")
    for position, (number, (row, text, _)) in enumerate(
        zip(long, _measured(rows.rows(long), _sources, cut), strict=True)
    ):
        summaries = [prompts.LEXSUM_DEMO.format(summary=demos[i]) for i in shown[number]]
        fields = {"demo": prompts.LEXSUM_DEMOS.format(demos="\n\n".join(summaries)) if shots else ""}
        record = {"keypoints": keypoints.get(row.get("id")), "long_summary": row.get("summary/long")}
        known = {name: value for name, value in record.items() if value is not None}
        yield _example(task, settings, root, position, fields, text, [row["summary/short"]], known)


def _example(
    task: Task,
    settings: Settings,
    root: DataRoot,
    position: int,
    fields: dict[str, Any],
    text: str,
    answers: list[str],
    record: Row | None = None,
) -> Example:
    fields[CONTEXT] = "" if settings.context == "none" else text
    origin = LLAMA_2.origin(root)
    known = dict(record or {})
    for path in _judge_files(task, "rubric", root):
        known["rubric"] = str(root / path)
    return Example(f"{task.name}-{position}", fields, answers, "official", counter=origin, record=known)


def _judge_files(task: Task, what: str, root: DataRoot) -> list[str]:
    paths = task.judge_sources[what].paths if what in task.judge_sources else []
    return [path for path in paths if root.has(path)]


def _drawn(task: Task, settings: Settings, demos: list[str], path: Path) -> int:
    shots = task.demonstrations(settings)
    if shots > len(demos):
        raise InputError(f"{path}: shots={shots}, but there are only {len(demos)} demonstrations")
    return shots


def _cutter(task: Task, settings: Settings, root: DataRoot) -> Cutter:
    return cutter(root, task.sizes[settings.level])


def _measured(
    rows: Iterable[FileRow], text: Callable[[FileRow], str], cut: Cutter
) -> Iterator[tuple[FileRow, str, int]]:
    """(row, its text cut to the limit, tokens of the whole text), a few texts in memory at a time."""
    # Hundreds of books take minutes; no bar where standard error is no terminal.
    rows = iter(tqdm(rows, desc="measuring texts", unit="texts", disable=None))
    while batch := list(islice(rows, _BATCH)):
        texts = [text(row) for row in batch]
        for row, whole, (tokens, end) in zip(batch, texts, cut.measure(texts), strict=True):
            yield row, whole if end is None else whole[:end] + prompts.OMITTED, tokens


def _narrativeqa(row: FileRow) -> dict[str, str]:
    try:
        return {"question": row["question"]["text"], "answer": row["answers"][0]["text"]}
    except (LookupError, TypeError) as error:
        raise InputError(f"{row}: 'question' or 'answers' lacks a text") from error


def _converted(convert: Convert, row: Row, path: Path, number: int) -> dict[str, Any]:
    try:
        return convert(row)
    except (LookupError, ValueError, TypeError) as error:
        raise InputError(f"{path}: row {number + 1}: it has no answer, or not four options with the answer") from error


def _sources(row: Row) -> str:
    return "\n\n".join(row["sources"])


def _keypoints(task: Task, root: DataRoot, column: str) -> dict[Any, list[str]]:
    """What a good summary says, by the row's id; none where the release's file is not there."""
    return {
        row["id"]: row[column]
        for path in _judge_files(task, "keypoints", root)
        for row in JsonLines(root / path, {column: list})
    }
