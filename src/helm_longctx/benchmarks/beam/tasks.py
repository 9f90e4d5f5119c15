"""BEAM's questions about chats of four lengths, and their loader.

Source: mohammadtavakoli78/BEAM at 2e44c8d, answer_generation.py and long_term_methods.py
(`probing_question_evaluation`); how the rows of the hub become chats is in src/beam/download_dataset.py at b2a3ee8.
"""

import ast
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from typing import Any

from helm_longctx.benchmarks.beam import scoring
from helm_longctx.benchmarks.beam.official import EVALUATION, METHODS, PROMPTS, read_texts
from helm_longctx.errors import InputError, ShapeError
from helm_longctx.tasks import NO_TEMPLATE, Category, DataRoot, FileRow, HubDataset, JsonLines, Template
from helm_longctx.tasks.benchmark_file import read_benchmark, task_fields
from helm_longctx.tasks.judge_scores import REPLIES
from helm_longctx.tasks.prompt import Message, read_messages
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import TEXTS, Baseline, Example, Settings, Shape, Task

CHATS = {128 * 1024: ("100K", 20), 500 * 1024: ("500K", 35), 1024**2: ("1M", 35), 10 * 1024**2: ("10M", 10)}
"""The split and the number of chats of each length."""
LONGEST = 10 * 1024**2
QUESTIONS = 20
"""The number of questions about each chat."""
ANSWERS = ("answer", "ideal_response", "ideal_answer", "ideal_summary")
"""The names that the abilities give the reference."""
TEXT = Template(
    "{context}\nAnswer a question about the chat above. Write nothing besides the answer.\n\nQuestion: {question}",
    "",
    separator="",
)
"""Our prompt with the chat as a text."""

Batches = list[tuple[dict[str, Any], tuple[Message, ...]]]
"""The parts of a chat: what is known of each, and its messages."""


def find_source(length: int) -> HubDataset:
    """Return the data of a length."""
    split, chats = CHATS[length]
    name, chat = ("Mohammadta/BEAM-10M", "plans") if length == LONGEST else ("Mohammadta/BEAM", "chat")
    columns = ("conversation_id", "probing_questions", chat)
    return HubDataset(name, {split: chats}, columns={split: columns}, labelled=False)


@take_sample
def load(task: Task, settings: Settings, root: DataRoot, *, is_text: bool) -> Iterator[Example]:
    """Yield the questions in the order of the chats, and of the abilities of each."""
    path, texts = find_source(settings.level).paths[0], read_texts(root)
    for row in JsonLines(root / path, {"conversation_id": str, "probing_questions": str}):
        batches = _read_batches(row, is_long=settings.level == LONGEST)
        messages = [message for _, batch in batches for message in batch]
        # Each text is made once for all questions about a chat.
        lines = ([f"{each['role']}: {each['content']}\n\n" for each in batch] for _, batch in batches if is_text)
        written = ["".join(each) for each in lines]
        context, starts = "".join(written), accumulate(map(len, written), initial=0)
        marks = [(start, known) for start, (known, _) in zip(starts, batches, strict=False)] if is_text else []
        earlier: list[Message] = []
        for place, (ability, number, asked) in enumerate(_read_questions(row)):
            question = asked["question"]
            turn: Message = {"role": "user", "content": texts.question + question}
            yield Example(
                id=f"{row['conversation_id']}-{ability}-{number}",
                fields={"context": context, "question": question} if is_text else {"question": question},
                references=[asked[name] for name in ANSWERS if isinstance(asked.get(name), str)][:1],
                source="hub",
                messages=[] if is_text else [*messages, *earlier, turn],
                record={"rubric": asked["rubric"], "ability": ability, "texts": list(texts)},
                group=f"{CHATS[settings.level][0]} {row['conversation_id']}",
                marks=marks,
            )
            # The official code adds each question but the first to the chat that it keeps for the next one.
            earlier += [turn] if place else []


def _read_batches(row: FileRow, is_long: bool) -> Batches:
    """Return the batches of a chat. One of 10m has several plans, each with its batches."""
    try:
        found = [batch for plan in row["plans"] for batch in plan["chat"]] if is_long else row["chat"]
        return [
            (
                # The first message of a batch has its date.
                {"date": date} if isinstance(date := batch[0].get("time_anchor"), str) else {},
                # The last message of a batch is the assistant's.
                read_messages(str(row), [*batch, {"role": "user", "content": ""}])[:-1],
            )
            for batch in found
        ]
    except (TypeError, LookupError, AttributeError) as error:
        raise ShapeError(f"{row}: the chat must be a list of lists of messages") from error


def _read_questions(row: FileRow) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield the questions about a chat with their abilities and numbers. The column is a Python literal."""
    try:
        for ability, questions in ast.literal_eval(row["probing_questions"]).items():
            for number, asked in enumerate(questions, 1):
                TEXTS.check(f"{row}: rubric of {ability} {number}", asked["rubric"])
                if ability not in scoring.ABILITIES or not isinstance(asked["question"], str):
                    raise InputError(f"{row}: {ability} {number} is no question of {', '.join(scoring.ABILITIES)}")
                yield ability, number, asked
    except (ValueError, SyntaxError, TypeError, LookupError, AttributeError, RecursionError, MemoryError) as error:
        raise ShapeError(f"{row}: column 'probing_questions' must have questions with rubrics by ability") from error


def _task(name: str, title: str, is_text: bool) -> Task:
    return Task(
        name=name,
        title=title,
        template=TEXT if is_text else NO_TEMPLATE,
        load=partial(load, is_text=is_text),
        score=scoring.score,
        metrics=scoring.METRICS,
        sizes={length: length for length in CHATS},
        num_samples={length: chats * QUESTIONS for length, (_, chats) in CHATS.items()},
        sources=lambda length: (find_source(length), PROMPTS, EVALUATION, METHODS),
        official_judge=scoring.JUDGE,
        judgement=scoring.JUDGEMENT,
        cut="context" if is_text else "nothing",
        record_shapes={
            "rubric": TEXTS,
            "ability": Shape(f"one of {', '.join(scoring.ABILITIES)}", lambda value: value in scoring.ABILITIES),
            **REPLIES,
        },
        baseline=Baseline("span", "There is no information about this.") if is_text else None,
        **task_fields(__package__),
    )


_JUDGE = f"{__package__}.judge.RubricAnnotator"
BEAM = read_benchmark(
    __package__,
    [
        Category("", "", (_task("questions", "BEAM", is_text=False),), judge=_JUDGE),
        Category("text", "Text", (_task("text_questions", "BEAM, Text", is_text=True),), averaged=False, judge=_JUDGE),
    ],
)
