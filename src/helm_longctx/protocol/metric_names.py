"""The statistics of a run: their names and meaning, and which scores an average is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from helm_longctx.protocol.task import MAIN_METRIC, Benchmark, Task

DEPTHS = (0, 20, 40, 60, 80, 100)
"""Depths, in percent, at which scores are reported. An instance counts at the nearest depth."""

CONDITIONS = {
    "request_too_long": (
        "Too long",
        "Share of requests that the server refused because they exceed the model's context. They are not in the means.",
        True,
    ),
    "request_refused": (
        "Refused",
        "Share of requests that a content policy or filter left without an answer. They are not in the means.",
        True,
    ),
    "request_failed": (
        "Failed requests",
        "Share of requests without an answer for another reason. They are not in the means.",
        True,
    ),
    "request_cached": ("From the cache", "Share of answers that came from HELM's request cache.", None),
    "billed_prompt_tokens": (
        "Billed prompt tokens",
        "Number of tokens of the prompt as the provider counts them, cached ones included.",
        None,
    ),
    "cached_tokens": ("Cached tokens", "Number of tokens of the prompt that the provider read from its cache.", None),
    "cache_write_tokens": (
        "Tokens written to the cache",
        "Number of tokens of the prompt that the provider wrote to its cache.",
        None,
    ),
    "output_tokens": (
        "Output tokens",
        "Number of tokens that the model generated, reasoning included, as the provider counts them.",
        None,
    ),
    "reasoning_tokens": ("Reasoning tokens", "Number of tokens of the reasoning, as the provider counts them.", None),
    "cost": (
        "Cost",
        "Dollars for an answer, by the price table of genai-prices or the user's prices. An answer from HELM's cache"
        " has the cost of its request.",
        True,
    ),
    "price_date": ("Date of the prices", "Date of the price table as a number, YYYYMMDD; none for own prices.", None),
    "output_truncated": ("Cut answers", "Share of answers that the token limit ended.", True),
    "thinking_unfinished": (
        "Unfinished reasoning",
        "Share of answers for which the token limit was reached while the model was reasoning.",
        True,
    ),
    "judge_failed": (
        "Failed judgements",
        "Share of answers without a judge's verdict (of a jury, of missing verdicts). They are not in the means.",
        True,
    ),
    "jury_alpha": ("Jury's agreement", "Krippendorff's alpha of the scores that a jury's judges gave.", False),
    "prompt_cut": ("Cut prompts", "Share of prompts whose context was cut to fit.", None),
    "subsampled": (
        "Drawn by -m",
        "Share of instances that HELM's -m drew from a larger set, so that the sample is not the benchmark's.",
        None,
    ),
    "generated_data": ("Generated data", "Share of instances that were generated, not read from official files.", None),
    "depth": ("Depth", "Position of the evidence in the context, from 0 (start) to 1 (end).", None),
    "input_tokens": ("Input tokens", "Length of the prompt in Llama 2 tokens, counted or estimated.", None),
    "prompt_tokens": (
        "Prompt tokens",
        "Number of tokens of the prompt by the deployment's tokenizer, if all of the prompt was tokenized.",
        None,
    ),
    "request_seconds": ("Seconds", "Seconds per request.", True),
    "published": ("Published", "1 for a score that the benchmark's authors published, which was not run here.", None),
    "num_instances": ("Instances", "Number of instances.", None),
}
"""Statistics on how a run went: name to title, description, and whether lower is better."""

FAILURES = ("request_too_long", "request_refused", "request_failed")
"""Statistics that count requests without an answer."""


def task_score(task: str) -> str:
    """The name of a task's score in the statistics of a run with several tasks."""
    return f"{task}_score"


def depth_score(percent: int) -> str:
    """The name of the score of the instances whose evidence stands at a depth."""
    return f"{MAIN_METRIC}_at_depth_{percent}"


def pass_at(repeats: int) -> str:
    """The name of pass@k: the share of questions with at least one success in `repeats` answers."""
    return f"pass_at_{repeats}"


def headline_text(task: Task) -> str:
    """A task's headline metric by its official name, e.g. `f1` or `mean of f1, recall`; or why it has none."""
    if not task.headline:
        return f"none: {task.unscored}"
    return task.headline[0] if len(task.headline) == 1 else f"mean of {', '.join(task.headline)}"


def metric_fields(benchmark: Benchmark) -> list[dict[str, Any]]:
    """The schema entries of all statistics that runs of a benchmark can have."""
    headline = "The task's official headline metric, 0 to 1; of several tasks the unweighted mean."
    return [
        _field(MAIN_METRIC, "Score", headline, False),
        *(
            _field(task_score(t.name), t.title, f"{t.title}: {headline_text(t)}.", False, "Score")
            for t in benchmark.tasks
        ),
        *(_field(m.name, m.title, m.description, m.lower_is_better) for m in benchmark.metrics),
        *(
            _field(
                depth_score(d),
                f"Score at depth {d} %",
                f"{headline} Evidence at {d} % of the context.",
                False,
                f"@ {d} %",
            )
            for d in DEPTHS
        ),
        *(_field(name, *about) for name, about in CONDITIONS.items()),
    ]


def _field(name: str, title: str, about: str, lower: bool | None, short: str | None = None) -> dict[str, Any]:
    field = {"name": name, "display_name": title, "description": about, "lower_is_better": lower}
    return {**field, "short_display_name": short} if short else field


Score = TypeVar("Score")

AVERAGE = "average"
"""Replaces the task or the length in the key of an average."""


class Cell(NamedTuple):
    """The key of a score in the tables; `length` is a label such as `16k`."""

    model: str
    task: str
    length: str


def group_for_averages(cells: Mapping[Cell, Score]) -> dict[Cell, list[Score]]:
    """Group scores by the averages that are made of them, as in LV-Eval's published tables.

    Returns:
        For each average the scores of its unweighted mean: all tasks at one length, and all lengths of one task.
    """
    groups: dict[Cell, list[Score]] = defaultdict(list)
    for cell, score in cells.items():
        groups[cell._replace(task=AVERAGE)].append(score)
        groups[cell._replace(length=AVERAGE)].append(score)
    return groups
