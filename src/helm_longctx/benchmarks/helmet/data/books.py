"""Loads books and law cases for long-document QA and summaries.

Texts are cut by HELMET's length tokenizer, whichever model is asked, so that every model gets the same text.

Source: princeton-nlp/HELMET at 4526dfb, data.py load_narrativeqa, load_infbench, load_multi_lexsum.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from helm_longctx.benchmarks.helmet import prompts
from helm_longctx.benchmarks.helmet.release import LLAMA_2, make_cutter
from helm_longctx.data.jsonl import Row
from helm_longctx.errors import PreconditionError
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks import (
    DataRoot,
    Example,
    FileRow,
    InputError,
    JsonLines,
    Settings,
    Task,
)
from helm_longctx.tasks.counting import TextCutter
from helm_longctx.tasks.prompt import CONTEXT
from helm_longctx.tasks.sampling import UnseededShuffles, shuffle_order
from helm_longctx.tasks.task import TEXT_GROUP

_LONGEST = 131072
"""NarrativeQA uses texts with more Llama 2 tokens than this."""

_LONG = 65536
"""The other tasks use texts with at least this many Llama 2 tokens."""

_BEGINNING = 2000
"""Number of characters at the start of a text that identify a book or a law case. Title pages are shorter."""

_BATCH = 8
"""Number of texts that are tokenized in parallel. A larger batch would only take more memory."""


def load_narrativeqa(
    task: Task,
    settings: Settings,
    root: DataRoot,
) -> Iterator[Example]:
    """Load the first 100 questions about texts of more than 131,072 tokens, the same ones at every length."""
    train, test, *_ = task.paths(settings.length)
    types = {"question": dict, "answers": list}
    demo_rows = JsonLines(root / train, types)
    demos = []
    for row in demo_rows:
        demos.append(prompts.NARRATIVEQA_DEMO.format(**_narrativeqa(row)))
    rows = JsonLines(root / test, {**types, "document": dict})
    ordered = rows.rows(shuffle_order(len(rows), settings.seed))
    draws = UnseededShuffles(settings.seed)
    shots = _count_shots(task, settings, demos, root / train)
    cut = make_cutter(root, task.sizes[settings.level])
    texts = _measure_texts(ordered, lambda row: str(row["document"].get("text")), cut)
    # This generator is lazy, so texts after the sample are not measured.
    long = ((row, text) for row, text, tokens in texts if tokens > _LONGEST)
    for position, (row, text) in enumerate(islice(long, task.sample(settings))):
        if shots:
            row_demos = []
            for i in draws.next(len(demos))[:shots]:
                row_demos.append(demos[i])
        else:
            row_demos = []
        fields = {
            "demo": prompts.NARRATIVEQA_DEMOS.format(demos="\n\n".join(row_demos))
            if shots
            else "",
            "question": _narrativeqa(row)["question"],
        }
        answers = [answer["text"] for answer in row["answers"]]
        yield _example(task, settings, root, position, fields, text, answers)


_Convert = Callable[[Row], dict[str, Any]]
"""(row of InfiniteBench) → template fields except the book, and `answer`, a list."""


def load_infbench(
    task: Task,
    settings: Settings,
    root: DataRoot,
    convert: _Convert,
    demo: str,
) -> Iterator[Example]:
    """Load 100 questions about books, or 100 books to summarize. Demonstrations are other rows, without their books."""
    path, *_ = task.paths(settings.length)
    rows = JsonLines(
        root / path,
        {
            "id": (int, str),
            CONTEXT: str,
            "input": str,
            "answer": list,
        },
    )
    items = []
    long = []
    cut = make_cutter(root, task.sizes[settings.level])
    measured = _measure_texts(rows, lambda row: str(row[CONTEXT]), cut)
    for number, (row, _, tokens) in enumerate(measured):
        # Rows with short texts are kept, too, because demonstrations are drawn from all rows (HELMET data.py:620).
        try:
            items.append({"id": row["id"], **convert(row)})
        except (LookupError, ValueError, TypeError) as error:
            what = "it has no answer, or not four options with the answer"
            raise InputError(f"{root / path}: row {number + 1}: {what}") from error
        if tokens >= _LONG:
            long.append(number)
    order = shuffle_order(len(long), settings.seed)[: task.sample(settings)]
    numbers = [long[index] for index in order]
    shots = task.demonstrations(settings)
    keypoints = _keypoints(task, root, "keypoints")
    texts = _measure_texts(rows.rows(numbers), lambda row: str(row[CONTEXT]), cut)
    for position, (number, (row, text, _)) in enumerate(
        zip(numbers, texts, strict=True)
    ):
        item = items[number]
        # HELMET data.py:620 uses the same seed for every row, so nearly all rows get the same demonstrations.
        others = [other for other in items if other["id"] != item["id"]]
        if shots > len(others):
            raise PreconditionError(
                f"{root / path}: shots={shots}, but there are only {len(others)} other"
                " rows; give fewer shots"
            )
        row_demos = []
        for i in shuffle_order(len(others), settings.seed)[:shots]:
            row_demos.append(demo.format(**others[i]))
        fields = {
            **item,
            "demo": prompts.INFBENCH_DEMOS.format(demos="\n\n".join(row_demos))
            if shots
            else "",
        }
        if row["id"] in keypoints:
            record = {"keypoints": keypoints[row["id"]]}
        else:
            record = {}
        yield _example(
            task, settings, root, position, fields, text, fields.pop("answer"), record
        )


def infbench_choice(row: Row) -> dict[str, Any]:
    """Convert a question with four options. The accepted answers are the letter, and the letter with the option."""
    letter = chr(ord("A") + row["options"].index(row["answer"][0]))
    return {
        "question": row["input"],
        "options": prompts.INFBENCH_OPTIONS.format(*row["options"]),
        "answer": [letter, f"{letter}. {row['answer'][0]}"],
    }


def load_lexsum(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load law cases of at least 65,536 tokens that have a short summary."""
    train, validation, *_ = task.paths(settings.length)
    maybe = {"summary/short": (str, type(None))}
    short_summaries = (row["summary/short"] for row in JsonLines(root / train, maybe))
    demos = []
    for summary in short_summaries:
        if summary is not None:
            demos.append(summary)
    rows = JsonLines(root / validation, {**maybe, "sources": list})
    short = []
    for number, row in enumerate(rows):
        if row["summary/short"] is not None:
            short.append(number)
    draws = UnseededShuffles(settings.seed)
    shots = _count_shots(task, settings, demos, root / train)
    # The official code first draws for the training rows. It does not use their prompts.
    draws.skip(len(demos))
    # All rows with a short summary get a draw, because the official filter by length comes after the draws (HELMET
    # data.py:235).
    demos_of_row = {}
    for number in short:
        demos_of_row[number] = draws.next(len(demos))[:shots]
    cut = make_cutter(root, task.sizes[settings.level])
    texts = _measure_texts(rows.rows(short), _sources, cut)
    long = [
        number
        for number, (_, _, tokens) in zip(short, texts, strict=True)
        if tokens >= _LONG
    ]
    sample = task.sample(settings)
    # A smaller set stays in file order (HELMET data.py:238).
    if len(long) > sample:
        long = [
            long[index] for index in shuffle_order(len(long), settings.seed)[:sample]
        ]
    keypoints = _keypoints(task, root, "summary/short_keypoints")
    measured = _measure_texts(rows.rows(long), _sources, cut)
    for position, (number, (row, text, _)) in enumerate(
        zip(long, measured, strict=True)
    ):
        demo = ""
        if shots:
            summaries = []
            for index in demos_of_row[number]:
                summaries.append(prompts.LEXSUM_DEMO.format(summary=demos[index]))
            demo = prompts.LEXSUM_DEMOS.format(demos="\n\n".join(summaries))
        record = {
            "keypoints": keypoints.get(row.get("id")),
            "long_summary": row.get("summary/long"),
        }
        present = {}
        for name, value in record.items():
            if value is not None:
                present[name] = value
        answers = [row["summary/short"]]
        yield _example(
            task, settings, root, position, {"demo": demo}, text, answers, present
        )


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
    fields_for_judge = dict(record or {})
    for path in _judge_files(task, "rubric", root):
        fields_for_judge["rubric"] = str(root / path)
    # A text begins alike at all lengths and in all tasks, so it is in the same group in each.
    group = f"{TEXT_GROUP}{digest(text[:_BEGINNING])[:12]}"
    name = f"{task.name}-{position}"
    return Example(
        id=name,
        fields=fields,
        references=answers,
        source="official",
        counter=origin,
        record=fields_for_judge,
        group=group,
    )


def _judge_files(task: Task, role: str, root: DataRoot) -> list[str]:
    """Return the existing files of a judge source, such as its `rubric`."""
    if role in task.judge_sources:
        paths = task.judge_sources[role].paths
    else:
        paths = []
    return [path for path in paths if root.has(path)]


def _count_shots(
    task: Task,
    settings: Settings,
    demos: list[str],
    path: Path,
) -> int:
    shots = task.demonstrations(settings)
    if shots > len(demos):
        raise PreconditionError(
            f"{path}: shots={shots}, but there are only {len(demos)} demonstrations;"
            " give fewer shots"
        )
    return shots


def _measure_texts(
    rows: Iterable[FileRow],
    text: Callable[[FileRow], str],
    cut: TextCutter,
) -> Iterator[tuple[FileRow, str, int]]:
    """Yield each row with its text, cut to the limit, and the number of tokens of the whole text.

    Only a few texts are in memory at a time.
    """
    # Hundreds of books take minutes. `disable=None` hides the bar if standard error is not a terminal.
    rows = iter(
        tqdm(
            rows,
            desc="measuring texts",
            unit="texts",
            disable=None,
        )
    )
    while batch := list(islice(rows, _BATCH)):
        texts = [text(row) for row in batch]
        for row, whole, (tokens, end) in zip(
            batch, texts, cut.measure(texts), strict=True
        ):
            yield row, whole if end is None else whole[:end] + prompts.OMITTED, tokens


def _narrativeqa(row: FileRow) -> dict[str, str]:
    try:
        return {
            "question": row["question"]["text"],
            "answer": row["answers"][0]["text"],
        }
    except (LookupError, TypeError) as error:
        raise InputError(f"{row}: 'question' or 'answers' lacks a text") from error


def _sources(row: Row) -> str:
    return "\n\n".join(row["sources"])


def _keypoints(task: Task, root: DataRoot, column: str) -> dict[Any, list[str]]:
    """Load the key points of a good summary, by the row's id. There are none if the release's file is missing."""
    keypoints: dict[Any, list[str]] = {}
    for path in _judge_files(task, "keypoints", root):
        rows = JsonLines(root / path, {column: list})
        keypoints |= {row["id"]: row[column] for row in rows}
    return keypoints
