"""HelloBench's five tasks, and the instructions that require a number of words.

Source: Quehry/HelloBench at d403282, run.py and README.md (temperature, output budgets).
"""

import re
from collections.abc import Sequence

from helm_longctx.benchmarks.hellobench import scoring
from helm_longctx.benchmarks.hellobench.data import FILES, LENGTHS, WEIGHTS, WEIGHTS_SHAPE, load
from helm_longctx.data.wheel import SENTENCE_MODEL
from helm_longctx.tasks import TEXTS, Baseline, Message, Task, Template, Variant, read_benchmark
from helm_longctx.tasks.benchmark import Category, Sweep
from helm_longctx.tasks.judge_scores import REPLIES
from helm_longctx.tasks.sentences import SENTENCE_TERMS

BUDGET = 16384
BUDGETS = {"heuristic_text_generation_16k": 24000}
"""Larger output budgets."""
SIZES = {
    "open_ended_qa": ("Open-Ended QA", 200),
    "summarization": ("Summarization", 100),
    "chat": ("Chat", 147),
    "text_completion": ("Text Completion", 77),
    "heuristic_text_generation": ("Heuristic Text Generation", 123),
}
"""The title of each task in the paper, and its number of instructions."""

_MATERIAL = re.compile(r"\n\[[A-Z][\w ]*\]:\s*(.+?)\s*(?:\[Text End\]\s*)?\n\[Requirements\]:\n1\. ", re.DOTALL)


def copy_material(messages: Sequence[Message]) -> str | None:
    """Return the text, question or topic of an instruction; None if it has no such part and requirements after it."""
    match = _MATERIAL.search(messages[-1]["content"])
    return match[1] if match else None


def _task(name: str, title: str, samples: int) -> Task:
    return Task(
        name=name,
        title=title,
        template=Template("{input}", "", separator=""),
        load=load,
        score=scoring.score,
        headline=("judge_score",),
        metrics=scoring.METRICS,
        max_tokens=BUDGETS.get(name, BUDGET),
        num_samples=samples,
        sources=lambda length: (FILES[name], WEIGHTS),
        chat=True,
        variants={"paper": Variant(temperature=0.8)},
        official_judge=scoring.JUDGE,
        judgement=scoring.JUDGEMENT,
        judge_sources={"sentences": SENTENCE_MODEL},
        cut="nothing",
        record_shapes={"checklists": TEXTS, "weights": WEIGHTS_SHAPE, **REPLIES},
        baseline=Baseline(copy_material, "Once upon a time."),
    )


_LAST = "heuristic_text_generation"
_TASKS = tuple(_task(name, *about) for name, about in SIZES.items())
_WORDS = tuple(_task(f"{_LAST}_{label}", f"{words} Words", SIZES[_LAST][1]) for label, words in LENGTHS.items())
_ANNOTATOR = "helm_longctx.benchmarks.hellobench.judge.ChecklistAnnotator"
CATEGORIES = (
    Category("", "", _TASKS, judge=_ANNOTATOR),
    Category("words", "Required Words", _WORDS, averaged=False, judge=_ANNOTATOR),
)

HELLOBENCH = read_benchmark(
    __package__,
    CATEGORIES,
    sweeps=(
        Sweep(
            "Required words",
            "The number of words that the same instructions require; `free` requires none.",
            {"free": _LAST, **{label: f"{_LAST}_{label}" for label in LENGTHS}},
        ),
    ),
    data=SENTENCE_TERMS,
)
