"""Names of our statistics and what they mean, for the metric, the schema and the documentation."""

from __future__ import annotations

from typing import Any

from helm_longctx.core.task import MAIN_METRIC, Benchmark

DEPTHS = (0, 20, 40, 60, 80, 100)
"""Depths in percent by which scores are reported; an instance counts at the nearest."""

_OFFICIAL = {
    "exact_match": ("Exact match", "Whether the normalized answer equals a reference."),
    "f1": ("F1", "Token F1 with the best reference."),
    "substring_exact_match": ("Substring EM", "Whether the normalized output holds a reference."),
    "rougeL_f1": ("ROUGE-L F1", "ROUGE-L F1 with the best reference."),
    "rougeL_recall": ("ROUGE-L recall", "ROUGE-L recall with the best reference."),
    "rougeLsum_f1": ("ROUGE-Lsum F1", "ROUGE-Lsum F1 with the best reference."),
    "rougeLsum_recall": ("ROUGE-Lsum recall", "ROUGE-Lsum recall with the best reference."),
    "ruler_recall": ("RULER recall", "Share of the answers that the output holds."),
}

CONDITIONS = {
    "request_failed": ("Failed requests", "Share of requests without an answer; they are not in the means.", True),
    "prompt_cut": ("Cut prompts", "Share of prompts whose context was cut to fit.", None),
    "generated_data": ("Generated data", "Share of instances that were generated, not read from official files.", None),
    "depth": ("Depth", "Where the evidence stands in the context, from 0 (start) to 1 (end).", None),
    "input_tokens": ("Input tokens", "Length of the prompt in Llama 2 tokens, or their estimate.", None),
    "request_seconds": ("Seconds", "Seconds a request.", True),
    "num_instances": ("Instances", "Number of instances.", None),
}
"""Statistics that say how a run went: name to title, description, whether lower is better."""


def task_score(task: str) -> str:
    """The name of a task's score among a run's statistics, where a run has several tasks."""
    return f"{task}_score"


def depth_score(percent: int) -> str:
    """The name of the score over instances whose evidence stands at a depth."""
    return f"{MAIN_METRIC}_at_depth_{percent}"


def metric_fields(benchmark: Benchmark) -> list[dict[str, Any]]:
    """A schema entry for every statistic that a benchmark's runs can have."""
    headline = "The task's official headline metric, 0 to 1; of several tasks the unweighted mean."
    official = dict.fromkeys(name for task in benchmark.tasks for name in task.metrics)
    return [
        _field(MAIN_METRIC, "Score", headline, False),
        *(_field(task_score(t.name), t.title, f"{t.title}: {t.headline}.", False, "Score") for t in benchmark.tasks),
        *(_field(name, *_OFFICIAL.get(name, (name, name)), False) for name in official),
        *(
            _field(depth_score(d), f"Score at depth {d} %", f"{headline} Evidence at {d} % of the context.", False)
            for d in DEPTHS
        ),
        *(_field(name, *about) for name, about in CONDITIONS.items()),
    ]


def _field(name: str, title: str, about: str, lower: bool | None, short: str | None = None) -> dict[str, Any]:
    field = {"name": name, "display_name": title, "description": about, "lower_is_better": lower}
    return {**field, "short_display_name": short} if short else field
