"""LongGenBench's one task, as in mozhu621/LongGenBench at 62c0e86, Evalution/inference.py. Levels are output tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from helm_longctx.benchmarks.longgenbench import scoring
from helm_longctx.benchmarks.longgenbench.data import BUDGETS, COMMIT, FILES, KINDS, RECORD_SHAPES, REPOSITORY, load
from helm_longctx.tasks.benchmark import Benchmark, Category, Metric, Terms, read_published
from helm_longctx.tasks.judge_scores import REPLIES, SPREAD
from helm_longctx.tasks.lengths import Axis
from helm_longctx.tasks.prompt import Message
from helm_longctx.tasks.task import Baseline, Task, Variant
from helm_longctx.tasks.template import Template


def write_headings(messages: Sequence[Message]) -> str | None:
    """Write 365 entries without a text. None if the prompt begins no entry."""
    name = re.search(rf"{re.escape(scoring.SEPARATOR)} (\D+) 1\b[^\n]*\Z", messages[-1]["content"])
    return name and "".join(f"\n{scoring.SEPARATOR} {name[1]} {number}:" for number in range(2, 366))


TEXTS = Task(
    name="texts",
    title="Texts",
    template=Template("{input}", "", separator=""),
    sizes=BUDGETS,
    unit="output tokens",
    load=load,
    score=scoring.score,
    headline=("judge_stic_2",),
    metrics=scoring.METRICS,
    max_tokens=BUDGETS,
    num_samples=400,
    sources=lambda length: (FILES[length],) if length in FILES else (),
    variants={"paper": Variant(stop=(scoring.STOP,), temperature=0.95)},
    official_judge=scoring.JUDGE,
    cut="nothing",
    record_shapes={**REPLIES, **RECORD_SHAPES},
    baseline=Baseline(write_headings, "The end."),
)

LONGGENBENCH = Benchmark(
    name="longgenbench",
    title="LongGenBench (Golden Thread)",
    description="Benchmarking Long-Form Generation in Long Context LLMs (arXiv 2409.02076)",
    revision=f"{REPOSITORY}@{COMMIT[:7]}",
    comparability=1,
    url=f"https://github.com/{REPOSITORY}/tree/{COMMIT[:7]}",
    data={
        "https://github.com/mozhu621/LongGenBench": Terms("not stated"),
    },
    categories=(Category("", "", (TEXTS,), judge="helm_longctx.benchmarks.longgenbench.judge.CheckAnnotator"),),
    metrics=(
        Metric(
            "judge_stic_2",
            "STIC-2",
            "Number of checks that the judge confirms, divided by an average row's number of checks.",
            range=None,
        ),
        Metric("judge_stic_1", "STIC-1", "Share of the checks of existing entries that the judge confirms."),
        *(
            Metric(name, f"Accuracy, {kind}", f"STIC-1 of the instructions of kind {kind}.")
            for name, kind in zip(scoring.BY_KIND, KINDS, strict=True)
        ),
        Metric(
            "checks_made",
            "Checks made",
            "Number of checks of existing entries, divided by an average row's number of checks.",
            range=None,
        ),
        Metric("completion_rate", "Completion rate", "Share of the entries that the text has."),
        Metric(
            "output_words", "Words", "Number of words, for texts with more than 40 entries and 2,000 words.", None, None
        ),
        Metric("judge_stic_2_strict", "STIC-2, strict", "STIC-2, with 0 for a text without a verdict.", range=None),
        replace(SPREAD, range=None),
    ),
    axis=Axis("output tokens"),
    published=partial(read_published, __package__, best=1),
)
