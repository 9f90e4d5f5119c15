"""Ada-LEval's tasks: BestAnswer, whose files are called stackselect, and TSort, whose files are called textsort.

Source: open-compass/Ada-LEval at 2154258, run.py and ada_leval/api.py.
"""

import re
from collections.abc import Sequence
from itertools import pairwise, permutations

from helm_longctx.benchmarks.ada_leval import prompts
from helm_longctx.benchmarks.ada_leval.data import ORDER, file_of, load_questions, load_sections
from helm_longctx.benchmarks.ada_leval.scoring import score_designation, score_order
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.benchmark_file import read_benchmark
from helm_longctx.tasks.prompt import Message
from helm_longctx.tasks.task import Baseline, Loader, Scorer, Shape, Task, Variant, is_whole
from helm_longctx.tasks.template import Template

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


def _samples(lengths: Sequence[int], long: int, ultra_long: int) -> dict[int, int]:
    return {length: long if length < ULTRA_LONG else ultra_long for length in lengths}


def _task(
    name: str,
    title: str,
    lengths: Sequence[int],
    template: Template,
    load: Loader,
    score: Scorer,
    baseline: Baseline,
    **shapes: Shape,
) -> Task:
    return Task(
        name=name,
        title=title,
        template=template,
        sizes={length: length for length in lengths},
        unit="tokens",
        load=load,
        score=score,
        headline=("accuracy",),
        metrics=("accuracy",),
        max_tokens=BUDGET,
        num_samples=_samples(lengths, 1000, 200),
        sources=lambda length: (file_of(name, length),),
        chat=True,
        variants={"paper": Variant(), "api": Variant(num_samples=_samples(lengths, 200, 50))},
        cut="nothing",
        record_shapes=shapes,
        baseline=baseline,
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
    "BestAnswer",
    QUESTION_LENGTHS,
    _QUESTION,
    load_questions,
    score_designation,
    Baseline(choose_answer, "Answer: A1"),
    num_choice=CHOICES,
)
TSORT = _task(
    "textsort",
    "TSort",
    SECTION_LENGTHS,
    Template("{context}", "", separator=""),
    load_sections,
    score_order,
    Baseline(sort_parts, "Answer: [1, 2, 3, 4]"),
    order=ORDER,
)
CATEGORIES = (Category("bestanswer", "BestAnswer", (BEST_ANSWER,)), Category("tsort", "TSort", (TSORT,)))

ADA_LEVAL = read_benchmark(__package__, CATEGORIES)
