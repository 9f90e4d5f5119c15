"""MRCR's tasks, one for each number of needles.

The output budget and the chat form are from princeton-nlp/HELMET at 5dde2de, configs/dev_mrcr_v2.yaml.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from helm_longctx.benchmarks.mrcr.data import LENGTHS, NEEDLES, SAMPLE, SOURCE, load, load_shuffled
from helm_longctx.benchmarks.mrcr.needles import find_answer
from helm_longctx.benchmarks.mrcr.scoring import score
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.benchmark_file import read_benchmark
from helm_longctx.tasks.task import TEXT, Baseline, Example, Task
from helm_longctx.tasks.template import NO_TEMPLATE

BUDGET = 1000
"""The output budget in tokens."""


def _task(needles: int, load: Callable[..., Iterator[Example]] = load, *arguments: str) -> Task:
    return Task(
        name=f"{needles}needle",
        alias=str(needles),
        title=f"{needles} needles",
        template=NO_TEMPLATE,
        sizes={length: length for length in LENGTHS.values()},
        unit="tokens",
        load=partial(load, needles=needles),
        score=score,
        headline=("score",),
        metrics=("score",),
        max_tokens=BUDGET,
        num_samples=SAMPLE,
        sources=lambda length: (SOURCE,),
        chat=True,
        cut="nothing",
        record_shapes={"answer": TEXT, "random_string_to_prepend": TEXT},
        arguments=arguments,
        extras=("openai-tokens",),
        baseline=Baseline(find_answer, "I do not know."),
    )


_TASKS = tuple(map(_task, NEEDLES))
_HELMET2_TASKS = tuple(_task(needles, load_shuffled, "seed") for needles in (4, 8))

MRCR = read_benchmark(__package__, (Category("", "", _TASKS),))

HELMET2 = replace(
    MRCR,
    name="helmet2_mrcr",
    title="HELMET's new MRCR",
    description="MRCR as HELMET's repository asks it since 2026: a shuffled sample, without two needles",
    categories=(Category("", "", _HELMET2_TASKS),),
    protocols=tuple,
)
