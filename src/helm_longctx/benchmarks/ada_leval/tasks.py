"""Ada-LEval's tasks: BestAnswer, whose files are called stackselect, and TSort, whose files are called textsort.

Source: open-compass/Ada-LEval at 2154258, run.py, ada_leval/api.py, and ada_leval/dataset.py (`evaluate` of
`StackSelect` and `TextSort`).
"""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise, permutations
from typing import Any

from helm_longctx.benchmarks.ada_leval import prompts
from helm_longctx.benchmarks.ada_leval.data import ORDER, file_of, load_questions, load_sections
from helm_longctx.tasks import Baseline, Category, Message, Shape, Template, is_whole, read_benchmark
from helm_longctx.tasks.task import Record, Scores, Task, Variant

ORDERS = ["".join(map(str, order)) for order in permutations(range(1, 5))]
NO_ORDER = [0, 0, 0, 0]


def find_designation(answer: str, count: int) -> str | None:
    """Return the designation, `A1` to `A<count>`, that an answer contains; None if it contains none.

    The highest one counts, or else the highest number without an A. It need not stand alone: `A1` occurs in `A12`.
    """
    for prefix in ("A", ""):
        for number in range(count, 0, -1):
            if f"{prefix}{number}" in answer:
                return f"A{number}"
    return None


def find_order(answer: str) -> Any:
    """Return the JSON value after the first `Answer:`, or else the only order whose digits occur in sequence.

    A second `Answer:` ends the value. The result is four zeros if there is no value and not exactly one such order.
    """
    text = answer.split("Answer:")[1].strip() if "Answer:" in answer else answer
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # `in` moves the iterator past the digit that it finds, so the next digit is searched after it.
        found = [order for order in ORDERS if all(digit in rest for rest in [iter(text)] for digit in order)]
    return [int(digit) for digit in found[0]] if len(found) == 1 else NO_ORDER


def score_designation(record: Record) -> Scores:
    """Return accuracy: 1 if the answer names the accepted designation, else 0."""
    if record.get("num_choice") is None:
        return {}
    found = find_designation(record["prediction"], record["num_choice"])
    return {"accuracy": float(found in record["references"])}


def score_order(record: Record) -> Scores:
    """Return accuracy: 1 if no part stands at a wrong place, else 0. Officially, missing parts are not wrong."""
    if record.get("order") is None:
        return {}
    found = find_order(record["prediction"])
    # The official code ends in an error if the value is a number or null.
    if not isinstance(found, Iterable):
        return {"accuracy": 0.0}
    return {"accuracy": float(all(part == place for part, place in zip(record["order"], found, strict=False)))}


BUDGET = 1024
"""The output budget in tokens that the official code sets for APIs."""

QUESTION_LENGTHS = [k * 1024 for k in (1, 2, 4, 6, 8, 12, 16, 32, 64, 128)]
SECTION_LENGTHS = [k * 1024 for k in (1, 2, 4, 8, 16, 32, 64, 128)]
ULTRA_LONG = 32 * 1024
"""The official code sends fewer prompts at this length and above."""

MOST_CHOICES = 100_000
CHOICES = Shape(f"a whole number up to {MOST_CHOICES}", lambda value: is_whole(value) and value <= MOST_CHOICES)

_QUESTION = Template(prompts.BEST_ANSWER, "", separator="")
_WORD = re.compile(r"\w{4,}")
_ANSWER = re.compile(r"(?:^|\n\n)A\d+:\n\n")
_SECTION = re.compile(r"^\s*(Before|Part [1-4]|After):", re.MULTILINE)
_SECTIONS = ["Before", "Part 1", "Part 2", "Part 3", "Part 4", "After"]
_EDGE = 2000
"""Number of characters at each end of a section that the baseline compares with the neighbouring section."""


def _task(name: str, lengths: Sequence[int], **further: Any) -> Task:
    samples, api_samples = (
        {length: long if length < ULTRA_LONG else ultra_long for length in lengths}
        for long, ultra_long in ((1000, 200), (200, 50))
    )
    return Task(
        name=name,
        sizes={length: length for length in lengths},
        unit="tokens",
        headline=("accuracy",),
        metrics=("accuracy",),
        max_tokens=BUDGET,
        num_samples=samples,
        sources=lambda length: (file_of(name, length),),
        chat=True,
        variants={"paper": Variant(), "api": Variant(num_samples=api_samples)},
        cut="nothing",
        **further,
    )


def choose_answer(messages: Sequence[Message]) -> str | None:
    """Choose the answer that has the most words of the question; None if the prompt is not BestAnswer's."""
    fields = _QUESTION.parse(messages[-1]["content"])
    if fields is None:
        return None
    asked = set(_WORD.findall(fields["question"].lower()))
    shared = [len(asked.intersection(_WORD.findall(text.lower()))) for text in _ANSWER.split(fields["context"])[1:]]
    return f"Answer: A{shared.index(max(shared)) + 1}" if shared else None


def sort_parts(messages: Sequence[Message]) -> str | None:
    """Sort the parts so that neighbours share the most words where they meet; None if the prompt has no four parts."""
    prompt = messages[-1]["content"]
    found = list(_SECTION.finditer(prompt))[-len(_SECTIONS) :]
    if [section[1] for section in found] != _SECTIONS:
        return None
    ends = [*(section.start() for section in found[1:]), len(prompt)]
    texts = [prompt[section.end() : end] for section, end in zip(found, ends, strict=True)]
    first, last = ([set(_WORD.findall(text[part])) for text in texts] for part in (slice(_EDGE), slice(-_EDGE, None)))

    def fit(order: tuple[int, ...]) -> int:
        return sum(len(last[left] & first[right]) for left, right in pairwise((0, *order, 5)))

    best = max(permutations(range(1, 5)), key=fit)
    return f"Answer: {list(best)}"


BEST_ANSWER = _task(
    "stackselect",
    QUESTION_LENGTHS,
    title="BestAnswer",
    template=_QUESTION,
    load=load_questions,
    score=score_designation,
    record_shapes={"num_choice": CHOICES},
    baseline=Baseline(choose_answer, "Answer: A1"),
)
TSORT = _task(
    "textsort",
    SECTION_LENGTHS,
    title="TSort",
    template=Template("{context}", "", separator=""),
    load=load_sections,
    score=score_order,
    record_shapes={"order": ORDER},
    baseline=Baseline(sort_parts, "Answer: [1, 2, 3, 4]"),
)
CATEGORIES = (Category("bestanswer", "BestAnswer", (BEST_ANSWER,)), Category("tsort", "TSort", (TSORT,)))

ADA_LEVAL = read_benchmark(__package__, CATEGORIES)
