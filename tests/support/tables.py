"""Describes what the tables of benchmarks say: numbers, names, limits and data of each task, without functions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.task import Task

TABLES = Path(__file__).parents[1] / "tasks" / "tables.json"
"""What the tables of all benchmarks said when somebody last looked at a change."""

LONG = 40
"""Characters from which only a text's digest is kept."""

PROSE = {"title", "description"}
"""Fields for readers, which change no score."""

_DIGITS = 9
"""Decimal digits of numbers. Later ones can differ between versions of Python."""

Facts = dict[str, Any]


def describe_benchmark(benchmark: Benchmark) -> dict[str, Facts]:
    """Return the facts of a benchmark, of its categories and metrics, and of each of its tasks, by name."""
    own: Facts = {
        "comparability": benchmark.comparability,
        "axis": describe_value(benchmark.axis),
        "floors": list(benchmark.floors),
        "effective_score": benchmark.effective_score,
        "overall": benchmark.overall,
        "sweeps": [describe_value(dict(sweep.tasks)) for sweep in benchmark.sweeps],
        "metrics": [describe_value(metric) for metric in benchmark.metrics],
    }
    facts = {"benchmark": own}
    for category in benchmark.categories:
        facts[f"category {category.name}".strip()] = {
            "tasks": [task.name for task in category.tasks],
            "variants": [task.name for task in category.variants],
            "averaged": category.averaged,
            "judge": category.judge,
        }
    by_task = {task.name: _describe_task(task) for task in benchmark.tasks}
    facts["every task"] = common = _find_common(list(by_task.values()))
    for name, task_facts in by_task.items():
        facts[name] = {
            key: value for key, value in task_facts.items() if key not in common
        }
    return facts


def _find_common(tasks: list[Facts]) -> Facts:
    """Return the facts that are the same for all tasks."""
    first = tasks[0]
    return {
        key: value
        for key, value in first.items()
        if all(key in task and task[key] == value for task in tasks)
    }


def _describe_task(task: Task) -> Facts:
    facts: Facts = describe_value(task)
    del facts["name"]
    data = [
        (length, task.sources(length), task.optional_sources(length))
        for length in task.sizes or [None]
    ]
    facts["data"] = _make_digest(repr(data))
    return facts


def describe_value(value: Any) -> Any:
    """Return a value as JSON has it. Functions are left out, and long texts become digests."""
    if isinstance(value, str):
        return value if len(value) < LONG else _make_digest(value)
    if is_dataclass(value):
        facts: Facts = {}
        for field in fields(value):
            part = getattr(value, field.name)
            if field.name in PROSE or callable(part) or _is_default(field, part):
                continue
            facts[field.name] = describe_value(part)
        return facts
    if isinstance(value, Mapping):
        return {str(key): describe_value(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [describe_value(part) for part in value]
    if callable(value):
        return "function"
    if isinstance(value, float):
        return round(value, _DIGITS)
    if value is None or isinstance(value, bool | int):
        return value
    return type(value).__name__


def _is_default(field: Field[Any], value: Any) -> bool:
    if field.default_factory is not MISSING:
        return bool(value == field.default_factory())
    return field.default is not MISSING and bool(value == field.default)


def _make_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
