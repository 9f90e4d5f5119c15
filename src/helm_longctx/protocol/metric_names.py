"""Names of our statistics and what they mean, for the metric, the schema and the documentation."""

from __future__ import annotations

from typing import Any

from helm_longctx.protocol.task import MAIN_METRIC, Benchmark, Task

DEPTHS = (0, 20, 40, 60, 80, 100)
"""Depths in percent by which scores are reported; an instance counts at the nearest."""

CONDITIONS = {
    "request_too_long": (
        "Too long",
        "Share of requests that the server refused because they exceed the model's context; not in the means.",
        True,
    ),
    "request_refused": (
        "Refused",
        "Share of requests that a content policy or filter left without an answer; not in the means.",
        True,
    ),
    "request_failed": (
        "Failed requests",
        "Share of requests without an answer for another reason; not in the means.",
        True,
    ),
    "request_cached": ("From the cache", "Share of answers that came from HELM's request cache.", None),
    "judge_failed": (
        "Failed judgements",
        "Share of answers without a judge's verdict, of a jury the share of its verdicts; not in the means.",
        True,
    ),
    "jury_alpha": ("Jury's agreement", "Krippendorff's alpha of the scores that a jury's judges gave.", False),
    "prompt_cut": ("Cut prompts", "Share of prompts whose context was cut to fit.", None),
    "subsampled": (
        "Drawn by -m",
        "Share of instances that HELM's -m drew from more; the benchmark's sample is another.",
        None,
    ),
    "generated_data": ("Generated data", "Share of instances that were generated, not read from official files.", None),
    "depth": ("Depth", "Where the evidence stands in the context, from 0 (start) to 1 (end).", None),
    "input_tokens": ("Input tokens", "Length of the prompt in Llama 2 tokens, or their estimate.", None),
    "prompt_tokens": (
        "Prompt tokens",
        "Tokens of the prompt by the deployment's tokenizer, where it was read whole to see whether it fits.",
        None,
    ),
    "request_seconds": ("Seconds", "Seconds a request.", True),
    "published": ("Published", "1 for a score that its authors published; it was not run here.", None),
    "num_instances": ("Instances", "Number of instances.", None),
}
"""Statistics that say how a run went: name to title, description, whether lower is better."""


def task_score(task: str) -> str:
    """The name of a task's score among a run's statistics, where a run has several tasks."""
    return f"{task}_score"


def depth_score(percent: int) -> str:
    """The name of the score over instances whose evidence stands at a depth."""
    return f"{MAIN_METRIC}_at_depth_{percent}"


def pass_at(repeats: int) -> str:
    """The name of the share of questions with a success among so many repeats."""
    return f"pass_at_{repeats}"


def headline_text(task: Task) -> str:
    """What a task's score is, by its official names, or why it has none."""
    if not task.headline:
        return f"none: {task.unscored}"
    return task.headline[0] if len(task.headline) == 1 else f"mean of {', '.join(task.headline)}"


def metric_fields(benchmark: Benchmark) -> list[dict[str, Any]]:
    """A schema entry for every statistic that a benchmark's runs can have."""
    headline = "The task's official headline metric, 0 to 1; of several tasks the unweighted mean."
    return [
        _field(MAIN_METRIC, "Score", headline, False),
        *(
            _field(task_score(t.name), t.title, f"{t.title}: {headline_text(t)}.", False, "Score")
            for t in benchmark.tasks
        ),
        *(_field(m.name, m.title, m.description, m.lower_is_better) for m in benchmark.metrics),
        *(
            _field(depth_score(d), f"Score at depth {d} %", f"{headline} Evidence at {d} % of the context.", False)
            for d in DEPTHS
        ),
        *(_field(name, *about) for name, about in CONDITIONS.items()),
    ]


def _field(name: str, title: str, about: str, lower: bool | None, short: str | None = None) -> dict[str, Any]:
    field = {"name": name, "display_name": title, "description": about, "lower_is_better": lower}
    return {**field, "short_display_name": short} if short else field
