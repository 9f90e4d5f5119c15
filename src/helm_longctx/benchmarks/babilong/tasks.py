"""BABILong's twenty tasks with the official prompt, and with less of it.

Source: booydar/babilong at 7a6efee, scripts/run_model_on_babilong.py (parts of the prompt, output budget).
"""

from functools import partial

from helm_longctx.benchmarks.babilong import prompts
from helm_longctx.benchmarks.babilong.baselines import find_label
from helm_longctx.benchmarks.babilong.data import count_examples, count_samples, find_source, load
from helm_longctx.benchmarks.babilong.scoring import LABELS, score_label
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.benchmark_file import read_benchmark
from helm_longctx.tasks.lengths import length_label, parse_length
from helm_longctx.tasks.task import TEXT, Baseline, Task
from helm_longctx.tasks.template import Template

MAIN = tuple(f"qa{number}" for number in range(1, 6))
"""The tasks whose mean is published."""

TITLES = {
    "qa1": "Single Supporting Fact",
    "qa2": "Two Supporting Facts",
    "qa3": "Three Supporting Facts",
    "qa4": "Two-Argument Relations",
    "qa5": "Three-Argument Relations",
    "qa6": "Yes/No Questions",
    "qa7": "Counting",
    "qa8": "Lists and Sets",
    "qa9": "Simple Negation",
    "qa10": "Indefinite Knowledge",
    "qa11": "Basic Coreference",
    "qa12": "Conjunction",
    "qa13": "Compound Coreference",
    "qa14": "Time Reasoning",
    "qa15": "Basic Deduction",
    "qa16": "Basic Induction",
    "qa17": "Positional Reasoning",
    "qa18": "Size Reasoning",
    "qa19": "Path Finding",
    "qa20": "Agents' Motivations",
}

_TOKENS = {f"{k}k": k * 1000 for k in (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)} | {"1m": 10**6, "10m": 10**7}
"""The number of GPT-2's tokens in a sample of each length. At 0k there are only the facts."""


_PARTS = {"instruction": "Instruction Alone", "bare": "Bare Question"}


def _sizes(name: str) -> dict[int, int]:
    number = int(name.removeprefix("qa"))
    longest = 10**7 if number <= 5 else 10**6 if number <= 10 else 0
    return {parse_length(label): tokens for label, tokens in _TOKENS.items() if tokens <= longest}


def _task(name: str, part: str, user: str, shots: int) -> Task:
    template, sizes = Template(user, "", separator=""), _sizes(name)
    title = ", ".join(filter(None, (f"{name.upper()} {TITLES[name]}", _PARTS.get(part))))
    return Task(
        name=f"{name}_{part}" if part else name,
        alias=name if part else "",
        title=title,
        template=template,
        load=partial(load, name=name),
        score=partial(score_label, labels=LABELS[name]),
        headline=("accuracy",),
        metrics=("accuracy",),
        max_tokens=20,
        sizes=sizes,
        unit="tokens of GPT-2",
        num_samples={length: count_samples(name, length_label(length)) for length in sizes},
        shots=shots,
        sources=partial(find_source, name),
        chat=True,
        arguments=("shots",),
        record_shapes={"question": TEXT},
        baseline=Baseline(partial(find_label, template, sorted(LABELS[name])), min(LABELS[name])),
    )


def _full(name: str) -> Task:
    user = f"{prompts.INSTRUCTIONS[name]}\n\n{{examples}}\n\n{prompts.POST_PROMPTS[name]}\n\n{prompts.USER}"
    return _task(name, "", user, count_examples(name))


def _instructed(name: str) -> Task:
    # The parts that are left out are empty, but the official template keeps the line breaks around them.
    return _task(name, "instruction", f"{prompts.INSTRUCTIONS[name]}\n\n\n\n\n\n{prompts.USER}", 0)


def _bare(name: str) -> Task:
    return _task(name, "bare", prompts.USER, 0)


_FURTHER = tuple(name for name in TITLES if name not in MAIN)

_CATEGORIES = (
    Category("", "", tuple(map(_full, MAIN))),
    Category("more", "Further Tasks", tuple(map(_full, _FURTHER)), averaged=False),
    *(
        Category(part, _PARTS[part], tuple(map(make, MAIN)), variants=tuple(map(make, _FURTHER)), averaged=False)
        for part, make in (("instruction", _instructed), ("bare", _bare))
    ),
)

BABILONG = read_benchmark(__package__, _CATEGORIES)
