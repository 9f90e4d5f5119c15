"""MRCR's tasks, one for each number of needles.

The output budget and the chat form are from princeton-nlp/HELMET at 5dde2de, configs/dev_mrcr_v2.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from helm_longctx.benchmarks.mrcr.data import LENGTHS, NEEDLES, SAMPLE, SOURCE, load, load_shuffled
from helm_longctx.benchmarks.mrcr.scoring import score
from helm_longctx.tasks.baseline import Baseline
from helm_longctx.tasks.benchmark import Benchmark, Category, Metric
from helm_longctx.tasks.lengths import Axis
from helm_longctx.tasks.prompt import Message
from helm_longctx.tasks.shapes import TEXT
from helm_longctx.tasks.task import Example, Task
from helm_longctx.tasks.template import NO_TEMPLATE

BUDGET = 1000
"""The output budget in tokens."""

# "Prepend X to the 2nd (1 indexed) poem about tapirs. Do not include any other text."
_REQUEST = re.compile(r"Prepend (\S+) to the (\d+)(?:st|nd|rd|th) \(1 indexed\) (.+?)\. Do not include", re.DOTALL)


def find_answer(messages: Sequence[Message]) -> str | None:
    """Find the answer that the last turn asks for, such as the second poem about tapirs, and add the random string.

    Returns None if the last turn is not one of MRCR's, and an empty text if the conversation has no such answer.
    """
    request = _REQUEST.search(messages[-1]["content"])
    if request is None:
        return None
    random_string, number, wanted = request.groups()
    # Earlier turns ask "write a poem about tapirs".
    asked = f"write a {wanted}".lower()
    answers = [
        answer["content"]
        for turn, answer in pairwise(messages)
        if turn["role"] == "user" and turn["content"].strip().lower() == asked
    ]
    return random_string + answers[int(number) - 1] if 0 < int(number) <= len(answers) else ""


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

MRCR = Benchmark(
    name="mrcr",
    title="MRCR",
    description="OpenAI's Multi-Round Co-reference Resolution, after Michelangelo (arXiv 2409.12640)",
    revision="princeton-nlp/HELMET@5dde2de",
    comparability=1,
    url="https://huggingface.co/datasets/openai/mrcr",
    categories=(Category("", "", _TASKS),),
    metrics=(
        Metric(
            "score",
            "Match ratio",
            "difflib's ratio of output and answer; 0 if the output does not begin with the random string.",
        ),
    ),
    task_argument="needles",
    axis=Axis("o200k_base tokens of all messages and the answer"),
)

HELMET2 = replace(
    MRCR,
    name="helmet2_mrcr",
    title="HELMET's new MRCR",
    description="MRCR as HELMET's repository asks it since 2026: a shuffled sample, without two needles",
    categories=(Category("", "", _HELMET2_TASKS),),
)
