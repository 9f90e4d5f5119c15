"""Loads questions over passages: RAG (KILT, PopQA), re-ranking (MS MARCO), and answers with citations (ALCE).

Questions of ALCE (ASQA, QAMPARI) have 2,000 retrieved documents each.

Source: princeton-nlp/HELMET at 4526dfb, data.py load_qa, load_msmarco_rerank and load_alce.
"""

import json
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.helmet import asking, prompts
from helm_longctx.data.jsonl import Row
from helm_longctx.errors import PreconditionError
from helm_longctx.tasks import (
    DataRoot,
    Example,
    FileRow,
    InputError,
    JsonArray,
    JsonLines,
    Settings,
    Task,
    Types,
)
from helm_longctx.tasks.methods.prompts import COT
from helm_longctx.tasks.prompt import CONTEXT, fill
from helm_longctx.tasks.sampling import shuffle_order, text_seed

_QA_TYPES: Types = {
    "question": str,
    "answers": list,
    "ctxs": list,
}
_RERANK_TYPES: Types = {
    "qid": str,
    "query": str,
    "ctxs": list,
}


def load_qa(
    task: Task,
    settings: Settings,
    root: DataRoot,
    popularity: float | None = None,
    demos_from_test: bool = False,
) -> Iterator[Example]:
    """Load 100 questions, each at all its depths, in file order.

    Args:
        popularity: keep questions whose subject has fewer than 10 to this power monthly page views (`s_pop`).
        demos_from_test: whether demonstrations come from the test split, so that a question's own rows are left out.
    """
    file, demo_file = (root / path for path in task.paths(settings.length))
    types = _QA_TYPES
    if popularity is not None:
        types = {**_QA_TYPES, "s_pop": (int, float)}
    rows = JsonLines(file, types)
    demos = list(JsonLines(demo_file, types))

    def is_wanted(row: Row) -> bool:
        # The official code ends in an error at the logarithm of 0; such a subject is left out here.
        return popularity is None or bool(
            row["s_pop"] > 0 and math.log10(row["s_pop"]) < popularity
        )

    def write_demo(demo: FileRow) -> str:
        if not demo["answers"]:
            raise InputError(f"{demo}: column 'answers' of a demonstration is empty")
        documents = _documents(demo, _qa_passage)
        if settings.method == COT.name:
            return asking.write_demonstration(demo, documents)
        return prompts.QA_DEMO.format(
            documents=documents,
            question=demo["question"],
            answer=demo["answers"][0],
        )

    # Natural Questions' file has no ids (HELMET data.py:82).
    key = "id" if "id" in next(iter(rows)) else "question"
    candidates = [
        (number, row.get(key)) for number, row in enumerate(rows) if is_wanted(row)
    ]
    sample = _sample_questions(
        [own for _, own in candidates], task.sample(settings), settings.seed, file
    )
    # The sample stays in file order, with each question at all its depths (HELMET data.py:87).
    numbers = []
    for number, own in candidates:
        if own in sample:
            numbers.append(number)
    pool = Demonstrations(
        [demo for demo in demos if is_wanted(demo)],
        key,
        demo_file,
        task.demonstrations(settings),
    )
    for position, row in enumerate(rows.rows(numbers)):
        drawn_demos = pool.draw(row.get(key), without_own=demos_from_test)
        fields = {
            "demos": "".join(write_demo(demo) + "\n\n" for demo in drawn_demos),
            CONTEXT: "" if settings.context == "none" else _documents(row, _qa_passage),
            "question": row["question"],
        }
        depth = _depth(row, fields[CONTEXT])
        yield Example(
            id=f"{task.name}-{position}",
            fields=fields,
            references=row["answers"],
            source="official",
            depth=depth,
            group=f"question {row.get(key)}",
        )


def load_rerank(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load 100 queries, each at all its depths, in file order.

    The reference is the ids of the passages, the most relevant first.
    """
    file, demo_file = (root / path for path in task.paths(settings.length))
    rows = JsonLines(file, _RERANK_TYPES)
    demos = list(JsonLines(demo_file, _RERANK_TYPES))
    queries = [row["qid"] for row in rows]
    sample = _sample_questions(queries, task.sample(settings), settings.seed, file)
    numbers = []
    for number, qid in enumerate(queries):
        if qid in sample:
            numbers.append(number)
    # If there are many demonstrations, the official code leaves out the demonstrations of all test queries at once.
    # Otherwise it leaves out the demonstrations of each example's own query. The draws differ.
    at_once = len(demos) > 2 * len(numbers)
    if at_once:
        demos_left = [demo for demo in demos if demo["qid"] not in sample]
    else:
        demos_left = demos
    pool = Demonstrations(demos_left, "qid", demo_file, task.demonstrations(settings))
    # The official code takes the number of passages from the first query and uses it for all.
    passages = 0
    for position, row in enumerate(rows.rows(numbers)):
        passages = passages or len(row["ctxs"])
        # Passages have titles, also in demonstrations, if the query's first passage has one.
        titled = bool(row["ctxs"]) and "title" in row["ctxs"][0]
        if titled:
            form = prompts.RERANK_TITLED_PASSAGE
        else:
            form = prompts.RERANK_PASSAGE
        passage = partial(_rerank_passage, form)
        drawn = pool.draw(row["qid"], without_own=not at_once)
        fields = {
            "demos": "".join(_write_demonstration(demo, passage) for demo in drawn),
            CONTEXT: _documents(row, passage),
            "question": row["query"],
        }
        # HELMET converts the grades to text and back to numbers (data.py:319 and 327).
        grades = [int(passage["label"]) for passage in row["ctxs"]]
        qrels = {}
        for document in row["ctxs"]:
            qrels[document["id"]] = int(document["label"])
        # Without a difference of grades, no passage is the relevant one.
        depth = None
        if len(set(grades)) > 1:
            depth = _mean_depth([grade == max(grades) for grade in grades])
        yield Example(
            id=f"{task.name}-{position}",
            fields=fields,
            references=[_ranking(row)],
            source="official",
            depth=depth,
            record={"qrels": qrels, "passages": passages},
            group=f"query {row['qid']}",
        )


def _sample_questions(
    keys: list[Any],
    count: int,
    seed: int,
    file: Path,
) -> set[Any]:
    """Draw `count` of the distinct keys, as the official code does: from the sorted keys, with Python's generator.

    Raises:
        InputError: the keys cannot be sorted.
    """
    try:
        distinct = sorted(set(keys))
    except TypeError as error:
        raise InputError(f"{file}: ids must be all strings or all numbers") from error
    # The keys are sorted first, because the order of a set differs from process to process (HELMET data.py:86).
    return set(random.Random(seed).sample(distinct, min(count, len(distinct))))


class Demonstrations:
    """Draws the demonstrations of a question by its key, so that they are the same at all its depths.

    Args:
        key: the column that identifies a question. Of several rows with one key, only the first drawn is used.
    """

    def __init__(
        self,
        rows: list[FileRow],
        key: str,
        file: Path,
        shots: int,
    ):
        self.keys = [row.get(key) for row in rows]
        self.rows = rows
        self.file = file
        self.shots = shots

    def draw(self, own: Any, without_own: bool) -> list[FileRow]:
        """Draw the demonstrations of a question. Raises an `InputError` if there are fewer than `shots`."""
        if not self.shots:
            return []
        numbers = [
            number
            for number, key in enumerate(self.keys)
            if key != own or not without_own
        ]
        demos_by_key: dict[Any, FileRow] = {}
        # The seed depends on the question alone and not on `seed` (HELMET data.py:102).
        for index in shuffle_order(len(numbers), text_seed(str(own))):
            number = numbers[index]
            demos_by_key.setdefault(self.keys[number], self.rows[number])
            if len(demos_by_key) == self.shots:
                return list(demos_by_key.values())
        raise PreconditionError(
            f"{self.file}: shots={self.shots}, but only {len(demos_by_key)}"
            " demonstrations can be drawn; give fewer shots"
        )


def _documents(row: FileRow, passage: Callable[[Row], str]) -> str:
    try:
        return "\n\n".join(map(passage, row["ctxs"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{row}: column 'ctxs' must be a list of passages with text"
        ) from error


def _qa_passage(passage: Row) -> str:
    return prompts.QA_PASSAGE.format(title=passage["title"], text=passage["text"])


def _write_demonstration(demo: FileRow, passage: Callable[[Row], str]) -> str:
    return prompts.RERANK_DEMO.format(
        documents=_documents(demo, passage),
        query=demo["query"],
        ranking=_ranking(demo),
    )


def _rerank_passage(template: str, passage: Row) -> str:
    return template.format(
        id=passage["id"],
        title=passage.get("title"),
        text=passage["text"],
    )


def _ranking(row: Row) -> str:
    # The sort is stable, so passages of the same grade keep the order of the file (HELMET data.py:297).
    by_label = sorted(
        row["ctxs"], key=lambda passage: int(passage["label"]), reverse=True
    )
    return " > ".join(passage["id"] for passage in by_label)


def _depth(row: Row, context: str) -> float | None:
    """Return the depth in the file if it is a share of the context, else the mean position of the answers."""
    depth = row.get("depth")
    if not context or (isinstance(depth, float | int) and 0 <= depth <= 1):
        return depth if context else None
    if all("has_answer" in passage for passage in row["ctxs"]):
        return _mean_depth([passage["has_answer"] for passage in row["ctxs"]])
    text = context.lower()
    answers = (re.escape(str(answer).lower()) for answer in row["answers"] if answer)
    depths = []
    for answer in answers:
        for match in re.finditer(answer, text):
            depths.append(match.start() / len(text))
    return sum(depths) / len(depths) if depths else None


def _mean_depth(marks: list[bool]) -> float | None:
    last = max(1, len(marks) - 1)
    depths = []
    for number, mark in enumerate(marks):
        if mark:
            depths.append(number / last)
    return sum(depths) / len(depths) if depths else None


_GRADED = ("qa_pairs", "answers")
"""The columns that the metrics read: the first of ASQA, the second of QAMPARI."""


def load_alce(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load questions with the first `sizes[length]` documents.

    An answer can also cite the other documents. They are too large for the record. It only says where they are.
    """
    path, prompt_path = task.paths(settings.length)
    try:
        content = json.loads((root / prompt_path).read_text(encoding="utf-8"))
        names = ("instruction", "demo_prompt", "doc_prompt", "demos")
        protocol = {name: content[name] for name in names}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{root / prompt_path}: not a prompt file of HELMET's citation tasks"
        ) from error
    rows = _opened[path] = _open(root / path)
    demos = _demonstrations(protocol, task.demonstrations(settings), settings.seed)
    # Demonstrations are drawn for all rows of the file, before the sample is drawn (HELMET data.py:547 and 679).
    by_row = [next(demos) for _ in range(len(rows))]
    numbers = shuffle_order(len(rows), settings.seed)[: task.sample(settings)]
    for position, (number, row) in enumerate(
        zip(numbers, rows.rows(numbers), strict=True)
    ):
        prompt_docs = row["docs"][: task.sizes[settings.level]]
        fields = {
            "demo_text": by_row[number],
            "instruction": protocol["instruction"],
            "question": row["question"],
            CONTEXT: write_documents(prompt_docs, protocol["doc_prompt"], row),
        }
        record = {}
        for name in _GRADED:
            if row.get(name) is not None:
                record[name] = row[name]
        record |= {
            "question": row["question"],
            "documents": {
                "file": path,
                "item": number,
                "shown": len(prompt_docs),
            },
        }
        # One short answer for each part of the question, only for display: the metrics read the record.
        every = row.get("answers") or [
            pair["short_answers"] for pair in row.get("qa_pairs") or []
        ]
        references = [names[0] for names in every if names]
        yield Example(
            id=f"{task.name}-{position}",
            fields=fields,
            references=references,
            source="official",
            record=record,
        )


def all_documents(path: str, item: int, root: DataRoot) -> list[Row]:
    """Load all documents of an item, also those that the prompt did not contain.

    Args:
        path: the file's path under the data root from which this process last loaded the task, or else under `root`.
    """
    # The judge runs in the process of the run, in which the file is already open.
    rows = _opened.get(path) or _open(root / path)
    (row,) = rows.rows([item])
    docs: list[Row] = row["docs"]
    return docs


_opened: dict[str, JsonArray] = {}


@cache
def _open(path: Path) -> JsonArray:
    """Open a file only once, because finding the items in ASQA's file, of more than a gigabyte, takes long."""
    return JsonArray(path, {"question": str, "docs": list})


def write_documents(docs: list[Row], template: str, where: object) -> str:
    """Format documents for the prompt, numbered from 1.

    Raises:
        InputError: a document lacks a title or a text.
    """
    if not all(
        isinstance(doc, Mapping) and "title" in doc and "text" in doc for doc in docs
    ):
        raise InputError(
            f"{where}: column 'docs' must be a list of documents with title and text"
        )
    return "\n\n".join(
        fill(template, {**doc, "ID": number}) for number, doc in enumerate(docs, 1)
    )


def _demonstrations(
    protocol: Mapping[str, Any],
    shots: int,
    seed: int,
) -> Iterator[str]:
    """Draw the demonstrations of each row, in file order.

    Rows outside the sample also get demonstrations, because each draw depends on the draws before it.
    """
    demos = protocol["demos"]
    if not 0 <= shots <= len(demos):
        raise InputError(
            f"shots={shots} is invalid; give 0 to {len(demos)}, the number of demonstrations"
        )
    texts = []
    for demo in demos:
        context = write_documents(
            demo["docs"], protocol["doc_prompt"], "demonstrations"
        )
        fields = {
            **demo,
            "instruction": protocol["instruction"],
            "context": context,
        }
        texts.append(fill(protocol["demo_prompt"], fields))
    # HELMET seeds Python's global generator (eval.py:42). Nothing else uses it before this loader.
    rng = random.Random(seed)
    while True:
        # Three line breaks between demonstrations and after the last one (HELMET data.py:545 and 550).
        yield "".join(text + "\n\n\n" for text in rng.sample(texts, shots))
