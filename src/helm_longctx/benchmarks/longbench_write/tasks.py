"""LongBench-Write's tasks, and LongWrite-Ruler: the length of a text, and a judge's grades of its quality.

Source: THUDM/LongWriter at 3fcfdff, evaluation/, pred.py (`_count_words`, temperature, output budget), eval_length.py
and eval_quality.py. A record has the required `length`, and the reply of a judge in `judge`, or the replies of
several in `jury`.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any

from helm_longctx.tasks import (
    TEXT,
    Baseline,
    Category,
    DataRoot,
    Example,
    InputError,
    JsonLines,
    Judgement,
    Message,
    MetricValues,
    PinnedFile,
    ScorerInput,
    Settings,
    Shape,
    Task,
    Template,
    Variant,
    is_whole,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.judge_scores import REPLIES, judge_scores
from helm_longctx.tasks.sampling import take_sample

_REPOSITORY = "THUDM/LongWriter"
_COMMIT = "3fcfdff43deceb49f7936c6bf25ad88d61df0bfa"
_TOKENS_OF_A_WORD = 1.5
"""The approximate number of tokens of an English word or a Chinese character."""


_pinned_file = partial(
    PinnedFile.of_repository,
    f"{_REPOSITORY}/{_COMMIT}/evaluation",
    target="longbench_write",
)
FILES = {
    "requests": _pinned_file(
        "longbench_write.jsonl",
        "1f6e99497cc24d65894d65e014062f398ba946ebdd254b7f8b339e48d3ab5779",
    ),
    "english_requests": _pinned_file(
        "longbench_write_en.jsonl",
        "87800927761f340e48899e4df5d47fb7211ad4936a63420dbfa979660414259f",
    ),
    "longwrite_ruler": _pinned_file(
        "longwrite_ruler.jsonl",
        "a1d4ebf0df0fa1600567691d11c9a52de3037c4a372970ed2e8f52f2889e0a62",
    ),
}
RUBRIC = _pinned_file(
    "judge.txt", "2c423ce88a0eb6a61482f427997a3c03c4bc11fe861102895dcac45926ae1d57"
)


@take_sample
def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the requests in file order."""
    # Without a judge the rubric may be absent.
    has_rubric = task.has_judge and root.has(RUBRIC.path)
    if has_rubric:
        rubric = {"rubric": (root / RUBRIC.path).read_text(encoding="utf-8")}
    else:
        rubric = {}
    for number, row in enumerate(
        JsonLines(root / FILES[task.name].path, {"prompt": str, "length": int})
    ):
        record = {"length": row["length"], **rubric}
        tokens = round(_TOKENS_OF_A_WORD * row["length"])
        fields = {"input": row["prompt"]}
        yield Example(
            id=f"{task.name}-{number}",
            fields=fields,
            references=[],
            source="official",
            record=record,
            answer_tokens=tokens,
        )


_DIMENSIONS = (
    "Relevance",
    "Accuracy",
    "Coherence",
    "Clarity",
    "Breadth and Depth",
    "Reading Experience",
)
GRADES = {f"judge_{name.lower().replace(' ', '_')}": name for name in _DIMENSIONS}
"""The metric of each dimension, and its name in the judge's reply."""
CLASSES = {
    "0_500": 500,
    "500_2k": 2000,
    "2k_4k": 4000,
    "4k_20k": math.inf,
}
"""The paper's classes of required length, and the upper limit of each. The limit is not in the class."""
_HEADLINE = ("length_score", "judge_score")
_BY_CLASS = tuple(map("_".join, product(_HEADLINE, CLASSES)))

_CHINESE_CHARACTER = re.compile(r"[\u4e00-\u9fff]")
_ENGLISH_WORD = re.compile(r"\b[a-zA-Z]+\b")
_FENCE = "```json\n"


def _find_fenced(reply: str) -> str:
    """Return the text of the first block of JSON.

    Raises:
        ValueError: no block has a start and an end.
    """
    # The official pattern takes time that is quadratic in a text of blocks that do not end.
    start = reply.index(_FENCE) + len(_FENCE)
    return reply[start : reply.index("\n```", start)]


def _count_words(text: str) -> int:
    """Count Chinese characters and English words, but no word that touches a Chinese character."""
    return len(_CHINESE_CHARACTER.findall(text)) + len(_ENGLISH_WORD.findall(text))


def _score_length(required: int, written: int) -> float:
    """Return 1 for the required length, falling to 0 at a third of it and at four times it."""
    if written > required:
        return max(0.0, 1.0 - (written / required - 1) / 3)
    # The official code divides by zero for a text without words.
    if written:
        return max(0.0, 1.0 - (required / written - 1) / 2)
    return 0.0


def read_grades(reply: Any) -> MetricValues:
    """Return the grades of the six dimensions, 1 to 5 as 0 to 1, and their mean. There are none if one cannot be read.

    A grade outside 1 to 5 is not a grade, because the rubric does not allow it. The official code does not look at this.
    """
    if not isinstance(reply, str):
        return {}
    try:
        if "```json" in reply:
            text = _find_fenced(reply)
        else:
            text = reply
        content = json.loads(text.replace("\n", ""))
        grades = {}
        for metric, name in GRADES.items():
            grades[metric] = (float(content[name]) - 1) / 4
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return {}
    # This also leaves out NaN: `float` and Python's JSON parser accept it.
    is_allowed = all(0 <= grade <= 1 for grade in grades.values())
    if is_allowed:
        return {**grades, "judge_score": fmean(grades.values())}
    return {}


def _score_text_length(record: ScorerInput) -> MetricValues:
    """Return the number of words, and the length score if the record has the required length."""
    written = _count_words(record["prediction"])
    required = record.get("length")
    return {
        "output_words": written,
        **({"length_score": _score_length(required, written)} if required else {}),
    }


def score(record: ScorerInput) -> MetricValues:
    """Return the length score and the judge's grades: for all requests, and by class of length."""
    scores = {
        **_score_text_length(record),
        **judge_scores(record, "judge_score", read_grades),
    }
    if required := record.get("length"):
        length_class = next(name for name, end in CLASSES.items() if required < end)
        for name in _HEADLINE:
            if name in scores:
                scores[f"{name}_{length_class}"] = scores[name]
    return scores


def judge_prompt(record: ScorerInput) -> str:
    """Make the user turn of the judge's prompt. As in the official code, a `$RESPONSE$` in a request is replaced."""
    if "rubric" not in record:
        raise InputError(
            f"there is no {RUBRIC.path}: get it with helm-longctx fetch longbench_write"
        )
    return (
        str(record["rubric"])
        .replace("$INST$", record["question"])
        .replace("$RESPONSE$", record["prediction"])
    )


_JUDGEMENT = Judgement(
    judge_prompt,
    lambda reply, record: read_grades(reply),
    lambda record: str(record["rubric"]),
    max_tokens=1024,
    temperature=0.5,
    readings=5,
)


_REQUIRED_LENGTH = Shape(
    "a whole number from 1 on", lambda value: is_whole(value) and value > 0
)

_REQUIRED = re.compile(r"(?<!\d)(\d{2,5})\s*-?(?:words?\b|字)")


def _repeat_request(messages: Sequence[Message]) -> str | None:
    """Repeat a short request until it has the number of words that it names, or return None if it names none."""
    request = messages[-1]["content"]
    # Requests have no fixed words. The limit on their length tells them from the prompts of other benchmarks.
    if len(request) <= 1000:
        required = _REQUIRED.findall(request)
    else:
        required = []
    if not required:
        return None
    return "\n".join(
        [request] * max(max(map(int, required)) // max(_count_words(request), 1), 1)
    )


def _task(name: str, title: str, samples: int) -> Task:
    return Task(
        name=name,
        title=title,
        template=Template.whole("{input}"),
        load=load,
        score=score,
        headline=_HEADLINE,
        metrics=(
            *_HEADLINE,
            "output_words",
            *GRADES,
            *_BY_CLASS,
            "judge_score_strict",
            "judge_spread",
        ),
        num_samples=samples,
        sources=lambda length: (FILES[name],),
        variants={"paper": Variant(temperature=0.5)},
        judgement=_JUDGEMENT,
        judge_sources={"rubric": RUBRIC},
        record_shapes={
            "length": _REQUIRED_LENGTH,
            **REPLIES,
            "rubric": TEXT,
        },
        baseline=Baseline(_repeat_request, "Once upon a time."),
        **task_fields(__package__),
    )


_RULER = replace(
    _task("longwrite_ruler", "LongWrite-Ruler", 48),
    score=_score_text_length,
    headline=(),
    metrics=("length_score", "output_words"),
    official_judge=None,
    judgement=None,
    judge_sources={},
    record_shapes={"length": _REQUIRED_LENGTH},
    unscored="its result is the length of the longest text, the maximum of output_words",
)
_ANNOTATOR = "helm_longctx.benchmarks.longbench_write.judge.QualityAnnotator"


LONGBENCH_WRITE = read_benchmark(
    __package__,
    (
        Category("", "", (_task("requests", "Requests", 120),), judge=_ANNOTATOR),
        Category(
            "english",
            "English",
            (_task("english_requests", "English requests", 60),),
            averaged=False,
            judge=_ANNOTATOR,
        ),
        Category("ruler", "Ruler", (_RULER,), averaged=False),
    ),
)
