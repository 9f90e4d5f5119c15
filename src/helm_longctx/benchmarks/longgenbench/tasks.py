"""LongGenBench's one task, as in mozhu621/LongGenBench at 62c0e86, Evalution/inference.py. Levels are output tokens."""

import re
from collections.abc import Sequence
from functools import partial

from helm_longctx.benchmarks.longgenbench import scoring
from helm_longctx.benchmarks.longgenbench.data import BUDGETS, FILES, RECORD_SHAPES, load
from helm_longctx.tasks import Baseline, Message, Task, Template, Variant, read_benchmark
from helm_longctx.tasks.benchmark import Category, read_published
from helm_longctx.tasks.judge_scores import REPLIES


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
    judgement=scoring.JUDGEMENT,
    cut="nothing",
    record_shapes={**REPLIES, **RECORD_SHAPES},
    baseline=Baseline(write_headings, "The end."),
)

LONGGENBENCH = read_benchmark(
    __package__,
    (Category("", "", (TEXTS,), judge="helm_longctx.benchmarks.longgenbench.judge.CheckAnnotator"),),
    published=partial(read_published, __package__, best=1),
)
