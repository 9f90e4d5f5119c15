"""The tasks of fresh text: recall of codes, recall without shared words, multi-hop graph, counting and conversation."""

from functools import partial

from helm_longctx.benchmarks.fresh_text.data import loader
from helm_longctx.benchmarks.fresh_text.scoring import (
    PLACES,
    score_items,
    score_path,
    score_person,
    score_recall,
    score_towns,
)
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.benchmark_file import read_benchmark
from helm_longctx.tasks.lengths import STANDARD
from helm_longctx.tasks.task import Baseline, Task
from helm_longctx.tasks.template import NO_TEMPLATE, Template

_task = partial(
    Task,
    headline=("found",),
    sizes={length: length for length in STANDARD.values()},
    unit="tokens",
    any_length=True,
    arguments=("seed", "texts", "context"),
    chat=True,
    cut="nothing",
)


def _template(what: str, form: str) -> Template:
    """Return the template of a kind.

    Args:
        what: what the text is.
        form: how to answer.
    """
    # The question comes last, because models find it better there, and servers that cut a text keep its end.
    return Template(f"Here is {what}. A question follows after it.\n\n{{context}}\n\n{{question}} {form}", "Answer:")


TASKS = (
    _task(
        "recall",
        "Recall of codes",
        template=_template("a text with codes of some things", "Write only the five codes, in this order."),
        load=loader("recall"),
        score=score_recall,
        metrics=("found", *PLACES),
        max_tokens=256,
        baseline=Baseline("span", "1000000"),
    ),
    _task(
        "paraphrase",
        "Recall of a person",
        template=_template("a list of people and what they do", "Write only the person's full name."),
        load=loader("paraphrase"),
        score=score_person,
        metrics=("found",),
        max_tokens=128,
        baseline=Baseline("span", "nobody"),
    ),
    _task(
        "graph",
        "Multi-hop graph",
        template=_template("a list of things with numbers and arrows", "Write only the numbers, in this order."),
        load=loader("graph"),
        score=score_path,
        metrics=("found",),
        max_tokens=256,
        baseline=Baseline("span", "1000000"),
    ),
    _task(
        "count",
        "Counting and aggregation",
        template=_template(
            "a list of things that were found in towns",
            "Write only the towns with commas between them, and in a second line their number.",
        ),
        load=loader("count"),
        score=score_towns,
        headline=("found", "number"),
        metrics=("found", "number"),
        max_tokens=512,
        baseline=Baseline("span", "none"),
    ),
    _task(
        "conversation",
        "Conversation",
        template=NO_TEMPLATE,
        load=loader("conversation"),
        score=score_items,
        metrics=("found",),
        max_tokens=256,
    ),
)

FRESH_TEXT = read_benchmark(__package__, (Category("", "", TASKS),))
