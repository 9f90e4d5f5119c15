"""LongHealth's three tasks.

Source: TIO-IKIM/CLUE at 2de4314, eval/eval_LongHealth.py.
"""

import re
from collections.abc import Sequence
from functools import partial

from helm_longctx.benchmarks.longhealth import prompts
from helm_longctx.benchmarks.longhealth.data import PROMPTS, SOURCE, Setting, load
from helm_longctx.tasks import Baseline, Category, Message, Record, Scores, Task, Template, Variant, read_benchmark

QUESTIONS = 400
BUDGET = 50
"""The output budget in tokens."""
TEMPERATURE = 1.0
"""vLLM's default, which applies because the official code sets no temperature."""

TEMPLATE = Template(
    prompts.TEMPLATE.replace("{documents}", "{context}").replace("{question_text}", "{question}"), "", separator=""
)

_CHOICE = re.compile(r"The correct answer is (\w):")
_OPTION = re.compile(r"^([A-F]): (.*)$", re.MULTILINE)
_WORD = re.compile(r"\w{4,}")


def score(record: Record) -> Scores:
    """Return whether the first letter in the required form is the right one."""
    choice = _CHOICE.search(record["prediction"])
    return {"accuracy": float(choice is not None and choice[1] in record["references"])}


def choose_option(messages: Sequence[Message]) -> str | None:
    """Choose the option with the largest share of words from the documents; None if the prompt is not LongHealth's."""
    fields = TEMPLATE.parse(messages[-1]["content"])
    options = _OPTION.findall(fields["options"]) if fields else []
    if not fields or not options:
        return None
    context_words = set(_WORD.findall(fields["context"].lower()))

    def share(option: tuple[str, str]) -> float:
        words = _WORD.findall(option[1].lower())
        return sum(word in context_words for word in words) / max(len(words), 1)

    letter, text = max(options, key=share)
    return f"The correct answer is {letter}: {text}"


def _task(name: str, title: str, setting: Setting) -> Task:
    return Task(
        name=name,
        title=title,
        template=TEMPLATE,
        load=partial(load, setting=setting),
        score=score,
        headline=("accuracy",),
        metrics=("accuracy",),
        max_tokens=BUDGET,
        num_samples=QUESTIONS * PROMPTS,
        sources=lambda length: (SOURCE,),
        chat=True,
        variants={"paper": Variant(system=prompts.SYSTEM, temperature=TEMPERATURE)},
        cut="nothing",
        arguments=("seed", "count_with"),
        baseline=Baseline(choose_option, "The correct answer is A: "),
    )


_TASKS = (
    _task("task1", "Own documents", "own"),
    _task("task2", "Among others' documents", "mixed"),
    _task("task3", "Without the answer", "unanswerable"),
)

LONGHEALTH = read_benchmark(__package__, (Category("", "", _TASKS),))
