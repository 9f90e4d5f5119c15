"""Reads a folder with a user's questions, and pads their contexts with the user's distractors.

questions.jsonl     rows with `context` and `question`, or `messages`; with `answers`; optionally with `id` and `group`
distractors.jsonl   optional; rows with a `text` that answers no question
rubric.txt          optional; the criteria by which a judge grades answers
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from helm_longctx.benchmarks.any_jsonl.prompts import PROMPT
from helm_longctx.errors import InputError
from helm_longctx.protocol.metric_names import DEPTHS
from helm_longctx.protocol.prompt import Message, read_messages
from helm_longctx.protocol.shapes import TEXTS, Shape
from helm_longctx.protocol.task import Example, Settings, Task
from helm_longctx.sources.jsonl import JsonLines, Row
from helm_longctx.sources.root import DataRoot

QUESTIONS, DISTRACTORS, RUBRIC = "questions.jsonl", "distractors.jsonl", "rubric.txt"
SEPARATOR = "\n\n"
"""The text between two documents."""
MARGIN = 100
"""Number of tokens left free for the markup of a chat."""
LEAST_FILLED = 0.9
"""If there are distractors, each prompt must fill at least this share of the tokens that are left for it."""

# An output contains every blank text.
_ANSWERS = Shape("a list of texts that are not blank", lambda value: TEXTS.fits(value) and all(map(str.strip, value)))
_NEEDS_CRITERIA = "it must have the judge's criteria"


class Padding:
    """Puts distractors around contexts, so that prompts fill a length.

    Args:
        path: file of the distractors.
        count: counts tokens.
        room: most tokens of a prompt.

    Raises:
        InputError: the file is malformed.
    """

    def __init__(self, path: Path, count: Callable[[str], int], room: int):
        self._texts = [row["text"] for row in JsonLines(path, {"text": str})]
        self._sizes = [count(text + SEPARATOR) for text in self._texts]
        self._path, self._count, self._room = path, count, room

    def pad(self, context: str, question: str, depth: float) -> str:
        """Return the context among the first distractors that fit, in file order, so that prompts share beginnings.

        Raises:
            InputError: the context leaves no room, or all distractors together do not fill it.
        """
        fields = {"context": context, "question": question}
        left = self._room - self._count(PROMPT.render(fields).user_turn + SEPARATOR)
        if left < 0:
            raise InputError(f"the context and the question have {-left} tokens too many for the length")
        chosen = []
        for text, size in zip(self._texts, self._sizes, strict=True):
            if size <= left:
                chosen.append(text)
                left -= size
        if left > (1 - LEAST_FILLED) * self._room:
            raise InputError(f"{self._path}: {left} more tokens of distractors are needed to fill the length")
        place = round(depth * len(chosen))
        return SEPARATOR.join([*chosen[:place], context, *chosen[place:]])


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the questions of the folder `path` in file order, padded if it has distractors.

    Raises:
        InputError: `path` is missing, a file is malformed, or a context cannot be padded.
    """
    if settings.path is None:
        raise InputError(f"any_jsonl: path is missing; allowed: a folder with {QUESTIONS}")
    folder = Path(settings.path)
    record = {"rubric": read_rubric(folder / RUBRIC)} if task.has_judge else {}
    padding = _padding(task, settings, folder / DISTRACTORS)
    for number, row in enumerate(islice(JsonLines(folder / QUESTIONS, {"answers": list}), task.sample(settings))):
        # The questions take turns at the depths, from the first to the last.
        depth = DEPTHS[number % len(DEPTHS)] / 100 if padding else None
        try:
            fields, messages = _question(row, padding, depth)
        except InputError as error:
            raise InputError(f"{folder / QUESTIONS}:{number + 1}: {error}") from error
        yield Example(
            id=str(row.get("id", number + 1)),
            fields=fields,
            references=row["answers"],
            source="official",
            depth=depth,
            record=record,
            messages=messages,
            group=str(row.get("group", "")),
        )


def _padding(task: Task, settings: Settings, path: Path) -> Padding | None:
    if not path.is_file():
        return None
    if settings.counter is None:
        raise InputError("any_jsonl: count_with is missing; allowed: the name or the folder of a tokenizer")
    return Padding(path, settings.counter, settings.level - task.output_tokens(settings) - MARGIN)


def _question(row: Row, padding: Padding | None, depth: float | None) -> tuple[dict[str, str], Sequence[Message]]:
    """Return the template's fields of a row, or its messages with the last of them as the field `question`."""
    _ANSWERS.check("column 'answers'", row["answers"])
    if row.get("messages") is not None:
        if padding:
            raise InputError("a row with 'messages' cannot be padded; allowed: 'context' and 'question'")
        messages = read_messages("'messages'", row["messages"])
        return {"context": "", "question": messages[-1]["content"]}, messages
    context, question = row.get("context"), row.get("question")
    if not isinstance(context, str) or not isinstance(question, str):
        raise InputError("a row needs the texts 'context' and 'question', or 'messages'")
    if padding and depth is not None:
        context = padding.pad(context, question, depth)
    return {"context": context, "question": question}, ()


def read_rubric(path: Path) -> str:
    """Return the criteria of a judge.

    Raises:
        InputError: there is no such file, or it is empty or not in UTF-8.
    """
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({type(error).__name__}); {_NEEDS_CRITERIA}") from error
    if not text:
        raise InputError(f"{path}: is empty; {_NEEDS_CRITERIA}")
    return text
