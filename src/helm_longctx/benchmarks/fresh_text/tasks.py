"""The tasks of fresh text: recall of codes, recall without shared words, multi-hop graph, counting and conversation."""

from __future__ import annotations

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
from helm_longctx.tasks.benchmark import Benchmark, Category, Metric
from helm_longctx.tasks.lengths import LARGEST, STANDARD, Axis
from helm_longctx.tasks.task import Baseline, Task
from helm_longctx.tasks.template import NO_TEMPLATE, Template

SHORTEST = 1024

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

FRESH_TEXT = Benchmark(
    name="fresh_text",
    title="Fresh text",
    description="Questions about texts that are drawn anew for each run, so that no model can have seen them",
    revision="2",
    comparability=2,
    url="https://github.com/stanford-crfm/helm",
    categories=(Category("", "", TASKS),),
    metrics=(
        Metric("found", "Found", "Share of what was asked for that the answer has; for counting the F1 of the towns."),
        Metric("number", "Number", "Share of answers whose last number is the number of towns."),
        *(
            Metric(place, place.replace("_", " ").capitalize(), "Share of answers with the code at this depth.")
            for place in PLACES
        ),
    ),
    axis=Axis("tokens of the prompt, about", shortest=SHORTEST, longest=LARGEST),
)
