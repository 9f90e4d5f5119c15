"""Ada-LEval's tasks: BestAnswer, whose files are called stackselect, and TSort, whose files are called textsort.

There is one JSON array for each task and length. Source: open-compass/Ada-LEval at 2154258, fetch_data.sh, run.py,
ada_leval/api.py, and ada_leval/dataset.py (`evaluate` of `StackSelect` and `TextSort`).
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise, permutations
from typing import Any

from helm_longctx.benchmarks.ada_leval import prompts
from helm_longctx.tasks import (
    TEXTS,
    Baseline,
    Category,
    DataRoot,
    Example,
    JsonArray,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Shape,
    Task,
    Template,
    Types,
    Variant,
    WebFile,
    are_all,
    is_whole,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.sampling import number_name, take_sample
from helm_longctx.tasks.task import has_text

ADDRESS = "http://opencompass.openxlab.space/utils/AdaLEval"
"""The address from which the official script downloads. It offers neither checksums nor HTTPS."""

_QUESTION_COLUMNS: Types = {
    "question_id": (int, str),
    "question": str,
    "answer": str,
    "all_answers": list,
}
ORDER = Shape("a list of whole numbers", are_all(is_whole))

_SECTION_COLUMNS: Types = {
    "book_id": (int, str),
    "para_offset": (list, str),
    "answer": (list, str),
    "prompt": str,
}


def file_of(name: str, length: int) -> WebFile:
    """Return the file of a task at a length."""
    file = f"{name}_{length_label(length)}.json"
    return WebFile(f"{ADDRESS}/{file}", f"ada_leval/{file}")


@take_sample
def _load_questions(
    task: Task,
    settings: Settings,
    root: DataRoot,
) -> Iterator[Example]:
    """Load BestAnswer's questions in file order."""
    earlier: Counter[str] = Counter()
    for row in JsonArray(task.only_file(settings, root), _QUESTION_COLUMNS):
        answers = row["all_answers"]
        TEXTS.check(f"{row}: column 'all_answers'", answers)
        listed = ""
        for number, text in enumerate(answers, 1):
            listed += prompts.ANSWER.format(number=number, answer=text)
        name = number_name(f"{row['question_id']}_{row['answer']}", earlier)
        fields = {"question": row["question"], "context": listed}
        group = f"question {row['question_id']}"
        yield Example(
            id=name,
            fields=fields,
            references=[row["answer"]],
            source="official",
            record={"num_choice": len(answers)},
            group=group,
        )


@take_sample
def _load_sections(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load TSort's prompts in file order."""
    earlier: Counter[str] = Counter()
    for row in JsonArray(task.only_file(settings, root), _SECTION_COLUMNS):
        order: Any = row["answer"]
        with suppress(ValueError, RecursionError):
            if isinstance(order, str):
                order = json.loads(order)
        ORDER.check(f"{row}: column 'answer'", order)
        name = number_name(
            "_".join(map(str, (row["book_id"], *row["para_offset"]))), earlier
        )
        fields = {"context": row["prompt"]}
        group = f"book {row['book_id']}"
        yield Example(
            id=name,
            fields=fields,
            references=[json.dumps(order)],
            source="official",
            record={"order": order},
            group=group,
        )


_ORDERS = ["".join(map(str, order)) for order in permutations(range(1, 5))]


def _find_designation(answer: str, count: int) -> str | None:
    """Return the designation, `A1` to `A<count>`, that an answer contains, or None if it contains none.

    The highest one counts, or else the highest number without an A. It need not stand alone: `A1` occurs in `A12`.
    """
    for prefix in ("A", ""):
        for number in range(count, 0, -1):
            if f"{prefix}{number}" in answer:
                return f"A{number}"
    return None


_NO_ORDER = [0, 0, 0, 0]
"""The order of an answer without one."""


def _find_order(answer: str) -> Any:
    """Return the JSON value after the first `Answer:`, or else the only order whose digits occur in sequence.

    A second `Answer:` ends the value. The result is four zeros if there is no value and not exactly one such order.
    """
    if "Answer:" in answer:
        text = answer.split("Answer:")[1].strip()
    else:
        text = answer
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        orders = []
        for order in _ORDERS:
            if _occur_in_sequence(order, text):
                orders.append(order)
    if len(orders) == 1:
        return [int(digit) for digit in orders[0]]
    return _NO_ORDER


def _occur_in_sequence(digits: Iterable[str], text: str) -> bool:
    rest = iter(text)
    # `in` moves the iterator past the digit that it finds, so the next digit is searched after it.
    return all(digit in rest for digit in digits)


def _can_read_designation(record: ScorerInput) -> bool:
    """Whether an answer contains a designation."""
    count = record.get("num_choice")
    if count is None:
        return has_text(record)
    return _find_designation(record["prediction"], count) is not None


def _can_read_order(record: ScorerInput) -> bool:
    """Whether an answer has a value in JSON, or exactly one order of four."""
    return _find_order(record["prediction"]) != _NO_ORDER


def _score_designation(record: ScorerInput) -> MetricValues:
    """Return accuracy: 1 if the answer names the accepted designation, else 0."""
    if record.get("num_choice") is None:
        return {}
    designation = _find_designation(record["prediction"], record["num_choice"])
    return {"accuracy": float(designation in record["references"])}


def _score_order(record: ScorerInput) -> MetricValues:
    """Return accuracy: 1 if no part stands at a wrong position, else 0. Officially, missing parts are not wrong."""
    if record.get("order") is None:
        return {}
    order = _find_order(record["prediction"])
    # The official code ends in an error if the value is a number or null.
    if not isinstance(order, Iterable):
        return {"accuracy": 0.0}
    pairs = zip(record["order"], order, strict=False)
    return {"accuracy": float(all(right == given for right, given in pairs))}


_QUESTION_LENGTHS = [k * 1024 for k in (1, 2, 4, 6, 8, 12, 16, 32, 64, 128)]
_SECTION_LENGTHS = [k * 1024 for k in (1, 2, 4, 8, 16, 32, 64, 128)]
_ULTRA_LONG = 32 * 1024
"""The official code sends fewer prompts at this length and above."""

_MOST_CHOICES = 100_000
_CHOICES = Shape(
    f"a whole number up to {_MOST_CHOICES}",
    lambda value: is_whole(value) and value <= _MOST_CHOICES,
)

_QUESTION = Template.whole(prompts.BEST_ANSWER)
_WORD = re.compile(r"\w{4,}")
_ANSWER = re.compile(r"(?:^|\n\n)A\d+:\n\n")
_SECTION = re.compile(r"^\s*(Before|Part [1-4]|After):", re.MULTILINE)
_SECTIONS = ["Before", "Part 1", "Part 2", "Part 3", "Part 4", "After"]
_EDGE = 2000
"""Number of characters at each end of a section that the baseline compares with the neighbouring section."""


def _task(name: str, lengths: Sequence[int], **further: Any) -> Task:
    samples = {}
    for length in lengths:
        samples[length] = 1000 if length < _ULTRA_LONG else 200
    api_samples = {}
    for length in lengths:
        api_samples[length] = 200 if length < _ULTRA_LONG else 50
    return Task(
        name=name,
        sizes=sizes_in_tokens(lengths),
        num_samples=samples,
        sources=lambda length: (file_of(name, length),),
        variants={"paper": Variant(), "api": Variant(num_samples=api_samples)},
        **further,
        **task_fields(__package__),
    )


def _choose_answer(messages: Sequence[Message]) -> str | None:
    """Choose the answer that has the most words of the question, or None if the prompt is not BestAnswer's."""
    fields = _QUESTION.parse(messages[-1]["content"])
    if fields is None:
        return None
    asked = set(_WORD.findall(fields["question"].lower()))
    shared = []
    for text in _ANSWER.split(fields["context"])[1:]:
        shared.append(len(asked.intersection(_WORD.findall(text.lower()))))
    if shared:
        return f"Answer: A{shared.index(max(shared)) + 1}"
    return None


def _sort_parts(messages: Sequence[Message]) -> str | None:
    """Sort the parts so that neighbours share the most words where they meet, or None if the prompt has no four parts."""
    prompt = messages[-1]["content"]
    sections = list(_SECTION.finditer(prompt))[-len(_SECTIONS) :]
    if [section[1] for section in sections] != _SECTIONS:
        return None
    ends = [*(section.start() for section in sections[1:]), len(prompt)]
    texts = []
    for section, end in zip(sections, ends, strict=True):
        texts.append(prompt[section.end() : end])
    first, last = (
        [set(_WORD.findall(text[part])) for text in texts]
        for part in (slice(_EDGE), slice(-_EDGE, None))
    )

    def fit(order: tuple[int, ...]) -> int:
        return sum(
            len(last[left] & first[right]) for left, right in pairwise((0, *order, 5))
        )

    best = max(permutations(range(1, 5)), key=fit)
    return f"Answer: {list(best)}"


_BEST_ANSWER = _task(
    "stackselect",
    _QUESTION_LENGTHS,
    title="BestAnswer",
    template=_QUESTION,
    load=_load_questions,
    score=_score_designation,
    can_read=_can_read_designation,
    record_shapes={"num_choice": _CHOICES},
    baseline=Baseline(_choose_answer, "Answer: A1"),
)
_TSORT = _task(
    "textsort",
    _SECTION_LENGTHS,
    title="TSort",
    template=Template.whole("{context}"),
    load=_load_sections,
    score=_score_order,
    can_read=_can_read_order,
    record_shapes={"order": ORDER},
    baseline=Baseline(_sort_parts, "Answer: [1, 2, 3, 4]"),
)

ADA_LEVAL = read_benchmark(
    __package__,
    (
        Category("bestanswer", "BestAnswer", (_BEST_ANSWER,)),
        Category("tsort", "TSort", (_TSORT,)),
    ),
)
