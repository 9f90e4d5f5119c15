"""LongMemEval's three files of chats, read in several forms.

Source: xiaowu0162/LongMemEval at 9e0b455, src/generation/run_generation.py and run_generation.sh.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from helm_longctx.benchmarks.longmemeval import scoring
from helm_longctx.benchmarks.longmemeval.data import REPO, Form, find_source, load
from helm_longctx.benchmarks.longmemeval.prompts import CON, DIRECT
from helm_longctx.tasks.benchmark import Benchmark, Category, Metric, Terms
from helm_longctx.tasks.judge_scores import REPLIES, SPREAD, STRICT
from helm_longctx.tasks.task import Baseline, Shape, Task
from helm_longctx.tasks.template import Template

COMMIT = "9e0b455"
QUESTIONS = 500
TITLES = {"s": "LongMemEval-S", "oracle": "Evidence Sessions", "m": "LongMemEval-M"}
"""The title of each file."""


class Reading(NamedTuple):
    """A way in which the official code reads the chats.

    Args:
        title: of its category.
        notes: whether the prompt asks for the relevant information before the answer (`con`), or for the answer alone
            (`direct`).
        form: how the chats are written.
    """

    title: str
    notes: bool
    form: Form


READINGS = {
    "": Reading("", True, Form()),
    "direct": Reading("Direct", False, Form()),
    "nl": Reading("Text", True, Form(json=False)),
    "nl_direct": Reading("Text, Direct", False, Form(json=False)),
    "user_only": Reading("User's Turns", True, Form(user_only=True)),
}
"""The readings by the names of their categories."""

_SHAPES = {
    "question_type": Shape(f"one of {', '.join(scoring.KINDS)}", lambda value: value in scoring.KINDS),
    "abstention": Shape("true or false", lambda value: isinstance(value, bool)),
    **REPLIES,
}


def _task(name: str, category: str) -> Task:
    reading = READINGS[category]
    return Task(
        name=f"{name}_{category}" if category else name,
        alias=name if category else "",
        title=TITLES[name],
        template=Template(CON if reading.notes else DIRECT, "", separator=""),
        load=partial(load, form=reading.form, kinds=scoring.KINDS),
        score=scoring.score,
        headline=("judge_score",),
        metrics=scoring.METRICS,
        max_tokens=800 if reading.notes else 500,
        num_samples=QUESTIONS,
        sources=lambda length: (find_source(name),),
        chat=True,
        official_judge=scoring.JUDGE,
        cut="context",
        record_shapes=_SHAPES,
        baseline=Baseline("span", "You did not mention this."),
    )


def _category(name: str) -> Category:
    main, *others = (_task(file, name) for file in TITLES)
    annotator = "helm_longctx.benchmarks.longmemeval.judge.LabelAnnotator"
    return Category(name, READINGS[name].title, (main,), tuple(others), averaged=not name, judge=annotator)


_metric = partial(Metric, description="Whether the judge takes the answer for right, for questions of this type.")

LONGMEMEVAL = Benchmark(
    name="longmemeval",
    title="LongMemEval",
    description="LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory (arXiv 2410.10813)",
    revision=f"xiaowu0162/LongMemEval@{COMMIT}",
    comparability=1,
    url=f"https://github.com/xiaowu0162/LongMemEval/tree/{COMMIT}",
    data={f"https://huggingface.co/datasets/{REPO}": Terms("MIT, as the card of the first version says")},
    categories=tuple(map(_category, READINGS)),
    metrics=(
        Metric("judge_score", "Accuracy", "Whether the judge takes the answer for right."),
        *(_metric(metric, kind.replace("-", " ").capitalize()) for kind, metric in scoring.BY_KIND.items()),
        Metric(scoring.ABSTENTION, "Abstention", "Whether the model says that the chats do not answer the question."),
        STRICT,
        SPREAD,
    ),
    axis=None,
    outputs="helm_longctx.benchmarks.longmemeval.outputs.READER",
)
