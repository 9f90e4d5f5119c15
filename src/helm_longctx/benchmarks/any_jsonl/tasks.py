"""The tasks of `any_jsonl`: a user's questions, padded with the user's distractors, and scored by one of the metrics.

questions.jsonl     rows with `context` and `question`, or `messages`; with `answers`; optional: `id`, `group`, `meta`
distractors.jsonl   optional; rows with a `text` that answers no question
rubric.txt          optional; the criteria by which a judge grades answers

Of several references the best one counts.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from helm_longctx.benchmarks.any_jsonl.prompts import JUDGE as JUDGE_PROMPT
from helm_longctx.benchmarks.any_jsonl.prompts import PROMPT
from helm_longctx.data.jsonl import NOT_UTF_8, Row
from helm_longctx.errors import list_choices, shorten
from helm_longctx.tasks import (
    TEXT,
    TEXTS,
    Baseline,
    Category,
    DataRoot,
    Example,
    FileRow,
    InputError,
    JsonLines,
    Judgement,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Shape,
    Task,
    is_text,
    is_whole,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES, judge_scores
from helm_longctx.tasks.metric_names import DEPTHS
from helm_longctx.tasks.prompt import read_messages
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.words import english_words, f1, rouge_l

QUESTIONS = "questions.jsonl"
DISTRACTORS = "distractors.jsonl"
_RUBRIC = "rubric.txt"
FIELDS = ("context", "question", "messages", "answers", "id", "group", "meta")
"""The fields that a question can have. `meta` is for the user's own data, and is not read."""
SEPARATOR = "\n\n"
MARGIN = 100
"""Number of tokens left free for the markup of a chat."""
_LEAST_FILLED = 0.9
"""If there are distractors, each prompt must fill at least this share of the tokens that are left for it."""

# An output contains every blank text.
_ANSWERS = Shape(
    "a list of texts that are not blank",
    lambda value: TEXTS.fits(value) and all(map(str.strip, value)),
)
_NEEDS_CRITERIA = "it must have the judge's criteria"


class Document(NamedTuple):
    """A text, and the number of tokens of it and of the separator."""

    text: str
    tokens: int


class Padding:
    """Puts distractors around contexts, so that prompts fill a length.

    Args:
        room: most tokens of a prompt.

    Raises:
        InputError: the file is malformed.
    """

    def __init__(
        self,
        path: Path,
        count: Callable[[str], int],
        room: int,
    ):
        texts = (row["text"] for row in JsonLines(path, {"text": str}))
        self._distractors = [Document(text, count(text + SEPARATOR)) for text in texts]
        self._path = path
        self._count = count
        self._room = room

    def pad(
        self,
        context: str,
        question: str,
        depth: float,
    ) -> tuple[str, float | None]:
        """Put the context among the first distractors that fit, in file order, so that prompts share beginnings.

        Args:
            depth: the share of the distractors' tokens that should stand before the context.

        Returns:
            The padded context, and the share of the distractors' tokens that stands before it. That is the nearest
            one to `depth` that is possible without splitting a distractor. It is None if no distractor fits.

        Raises:
            InputError: the context leaves no room, or the distractors do not fill it.
        """
        fields = {"context": context, "question": question}
        left = self._room - self._count(PROMPT.render(fields).user_turn + SEPARATOR)
        if left < 0:
            raise InputError(
                f"the context and the question have {-left} tokens too many for the"
                " length; shorten the context"
            )
        chosen = self._choose(left)
        before = [0, *accumulate(document.tokens for document in chosen)]
        index = min(
            range(len(before)),
            key=lambda index: abs(before[index] - depth * before[-1]),
        )
        texts = [document.text for document in chosen]
        padded = SEPARATOR.join([*texts[:index], context, *texts[index:]])
        return padded, before[index] / before[-1] if before[-1] else None

    def _choose(self, left: int) -> list[Document]:
        """Return the first distractors that fit into the tokens that are left."""
        chosen = []
        too_large = []
        for document in self._distractors:
            if document.tokens <= left:
                chosen.append(document)
                left -= document.tokens
            else:
                too_large.append(document.tokens)
        if left <= (1 - _LEAST_FILLED) * self._room:
            return chosen
        if not too_large:
            raise InputError(
                f"{self._path}: {left} more tokens of distractors are needed to fill"
                " the length; add some"
            )
        raise InputError(
            f"{self._path}: {left} tokens of the length stay free, and each of the"
            f" {len(too_large)} distractors that are left has at least"
            f" {min(too_large)}; add shorter distractors"
        )


@take_sample
def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the questions of the folder `path` in file order, padded if it has distractors."""
    if settings.path is None:
        raise InputError(f"any_jsonl: path is missing; give a folder with {QUESTIONS}")
    folder = Path(settings.path)
    if task.has_judge:
        record = {"rubric": _read_rubric(folder / _RUBRIC)}
    else:
        record = {}
    padding = None
    distractors = folder / DISTRACTORS
    if distractors.is_file():
        room = settings.level - task.output_tokens(settings) - MARGIN
        padding = Padding(distractors, settings.count_tokens("any_jsonl"), room)
    for number, row in enumerate(JsonLines(folder / QUESTIONS, {"answers": list})):
        # The questions take turns at the depths, from the first to the last.
        wanted_depth = DEPTHS[number % len(DEPTHS)] / 100
        try:
            _check(row, task)
            fields, messages, depth = _question(row, padding, wanted_depth)
            name = _name(row, "id", str(row.number))
            group = _name(row, "group", "")
        except InputError as error:
            raise InputError(f"{folder / QUESTIONS}:{row.number}: {error}") from error
        yield Example(
            id=name,
            fields=fields,
            references=row["answers"],
            source="official",
            depth=depth,
            record=record,
            messages=messages,
            group=group,
        )


def _check(row: Row, task: Task) -> None:
    for name in row:
        if name not in FIELDS:
            # A misspelled field would be ignored, and the scores would belong to another question.
            raise InputError(
                f"unknown field {shorten(name)}; data of your own can be in 'meta';"
                f" {list_choices(name, FIELDS)}"
            )
    _ANSWERS.check("column 'answers'", row["answers"])
    if not row["answers"] and not task.has_judge:
        raise InputError(
            f"column 'answers' is empty, but metric={task.argument} needs an accepted"
            " answer; only metric=rubric grades without one"
        )


def _question(
    row: Row,
    padding: Padding | None,
    depth: float,
) -> tuple[dict[str, str], Sequence[Message], float | None]:
    """Return the template's fields of a row, its messages, and the depth of its context.

    A row with messages has the last of them as the field `question`. Only a padded context has a depth.
    """
    context = row.get("context")
    question = row.get("question")
    if row.get("messages") is not None:
        if context is not None or question is not None:
            raise InputError(
                "a row has 'messages', or 'context' and 'question', but not both"
            )
        if padding:
            raise InputError(
                "a row with 'messages' cannot be padded; give 'context' and 'question'"
            )
        messages = read_messages("'messages'", row["messages"])
        return {"context": "", "question": messages[-1]["content"]}, messages, None
    if not isinstance(context, str) or not isinstance(question, str):
        raise InputError(
            "a row needs the texts 'context' and 'question', or 'messages'"
        )
    padded, actual_depth = (
        padding.pad(context, question, depth) if padding else (context, None)
    )
    return {"context": padded, "question": question}, (), actual_depth


def _name(row: FileRow, field: str, default: str) -> str:
    """Return a name that is optional. Programs that write JSON can write null or an empty text for a missing one."""
    value = row.get(field)
    if value is None or value == "":
        return default
    Shape(
        "text or a whole number", lambda value: is_text(value) or is_whole(value)
    ).check(f"column {field!r}", value)
    return str(value)


def _read_rubric(path: Path) -> str:
    """Return the criteria of a judge.

    Raises:
        InputError: there is no such file, or it is empty or not in UTF-8.
    """
    try:
        text = path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: {NOT_UTF_8}") from error
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({type(error).__name__}); {_NEEDS_CRITERIA}"
        ) from error
    if not text:
        raise InputError(f"{path}: is empty; {_NEEDS_CRITERIA}")
    return text


_BEST_GRADE = 10

# The whole last line must be the verdict: a grade anywhere else can be a quotation from the answer.
_VERDICT = re.compile(r"GRADE: *([0-9]{1,2})(?: ?(?:/|out of) ?10)?\.?")
_EMPHASIS = str.maketrans("", "", "*_`#")
"""Signs of Markdown that some judges put around their verdict."""


def _simplify(text: str) -> str:
    return " ".join(text.lower().split())


_COMPARE: dict[str, Callable[[str, str], float]] = {
    "contains": lambda output, reference: float(
        _simplify(reference) in _simplify(output)
    ),
    "exact_match": lambda output, reference: float(
        english_words(output) == english_words(reference)
    ),
    "f1": lambda output, reference: f1(english_words(output), english_words(reference)),
    "rouge_l": rouge_l,
}
"""The metrics by name: (output, reference) → 0 to 1."""


def score(record: ScorerInput) -> MetricValues:
    """Return all metrics that need no judge. There are none without references."""
    references = record["references"]
    if not references:
        return {}
    output = record["prediction"]
    scores = {}
    for name, compare in _COMPARE.items():
        scores[name] = max(compare(output, reference) for reference in references)
    return scores


def _score_judged(record: ScorerInput) -> MetricValues:
    """Return the judge's grade, or the mean of a jury's grades, and the metrics that need no judge."""
    return {**score(record), **judge_scores(record, "judge_score", read_grade)}


def read_grade(reply: Any) -> MetricValues:
    """Return the grade in the last line of a reply, 0 to 1; empty unless the line is `GRADE: n`, also as `8/10`."""
    text = reply.rstrip() if isinstance(reply, str) else ""
    last = text[text.rfind("\n") + 1 :].translate(_EMPHASIS).strip()
    grade = _VERDICT.fullmatch(last)
    if grade and int(grade[1]) <= _BEST_GRADE:
        return {"judge_score": int(grade[1]) / _BEST_GRADE}
    return {}


def judge_prompt(record: ScorerInput) -> str:
    """Make the judge's prompt."""
    references = (
        "\n".join(f"- {reference}" for reference in record["references"]) or "(none)"
    )
    return JUDGE_PROMPT.format_map({**record, "references": references})


_JUDGEMENT = Judgement(
    judge_prompt,
    lambda reply, record: read_grade(reply),
    lambda record: f"{JUDGE_PROMPT}\0{record['rubric']}",
    max_tokens=1024,
    silence_reply="GRADE: 0",
)


JUDGE = "openai/gpt-4o-2024-05-13"
"""The judge if the run entry names none. It is also HELMET's judge."""

_TITLES = {
    "contains": "Contains",
    "exact_match": "Exact match",
    "f1": "F1",
    "rouge_l": "ROUGE-L",
}
"""The metrics that need no judge. For each of them there is a task whose score it is."""


def _task(
    name: str,
    title: str,
    headline: str,
    judged: bool = False,
) -> Task:
    return Task(
        name=name,
        title=title,
        template=PROMPT,
        sizes=sizes_in_tokens(),
        load=load,
        score=_score_judged if judged else score,
        headline=(headline,),
        metrics=(*_COMPARE, *(JUDGED if judged else ())),
        own_files=(QUESTIONS, DISTRACTORS, *((_RUBRIC,) if judged else ())),
        official_judge=JUDGE if judged else None,
        judgement=_JUDGEMENT if judged else None,
        record_shapes={**REPLIES, "rubric": TEXT} if judged else {},
        baseline=Baseline("label_or_span", "I do not know."),
        **task_fields(__package__),
    )


_TASKS = (
    *(_task(name, title, name) for name, title in _TITLES.items()),
    _task("rubric", "Rubric", "judge_score", judged=True),
)

ANY_JSONL = read_benchmark(
    __package__,
    (
        Category(
            "",
            "",
            _TASKS[:1],
            _TASKS[1:],
            judge=f"{__package__}.judge.OwnRubricAnnotator",
        ),
    ),
)
