"""The schema that helm-summarize needs: statistics, and groups by benchmark, length, category and task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any

from helm_longctx.core.lengths import length_label, parse_length
from helm_longctx.core.metric_names import CONDITIONS, DEPTHS, depth_score, metric_fields, task_score
from helm_longctx.core.task import MAIN_METRIC, Benchmark
from helm_longctx.errors import InputError

Group = dict[str, Any]


def make_schema(benchmarks: Iterable[Benchmark], run_groups: Collection[str] | None = None) -> dict[str, Any]:
    """A HELM schema as plain data.

    Args:
        run_groups: only what these groups need, e.g. those of a suite's runs; None for every standard length.
    """
    benchmarks = tuple(benchmarks)
    groups = [group for benchmark in benchmarks for group in _groups(benchmark, run_groups)]
    fields = {field["name"]: field for benchmark in benchmarks for field in metric_fields(benchmark)}
    official = dict.fromkeys(name for b in benchmarks for task in b.tasks for name in task.metrics)
    return {
        "metrics": list(fields.values()),
        "perturbations": [],
        "metric_groups": [
            _metric_group("score", "Score", ["${main_name}"]),
            _metric_group("by_depth", "By depth", [depth_score(depth) for depth in DEPTHS]),
            _metric_group("official", "Official metrics", official),
            _metric_group("conditions", "Conditions", CONDITIONS),
        ],
        "run_groups": groups,
    }


def _metric_group(name: str, title: str, metrics: Iterable[str]) -> Group:
    # No mean over columns: models that were run on fewer of them would not be comparable.
    return {
        "name": name,
        "display_name": title,
        "aggregation_strategies": [],
        "metrics": [{"name": metric, "split": "${main_split}"} for metric in metrics],
    }


def _groups(benchmark: Benchmark, wanted: Collection[str] | None) -> Iterator[Group]:
    leaves = [
        leaf
        for length in _lengths(benchmark, wanted)
        for leaf in (*_category_leaves(benchmark, length), *_task_leaves(benchmark, length))
        if wanted is None or leaf["name"] in wanted
    ]
    yield from _parents(benchmark, leaves)
    for leaf in leaves:
        leaf.pop("of")
        yield leaf


def _lengths(benchmark: Benchmark, wanted: Collection[str] | None) -> list[str]:
    """Labels, ascending; beside the standard lengths any that the wanted groups end in."""
    tokens = {length_label(length): length for length in benchmark.lengths}
    for name in wanted or ():
        with suppress(InputError):  # a group of another benchmark ends in something else
            length = parse_length(name.rsplit("_", 1)[-1])
            tokens[length_label(length)] = length
    return sorted(tokens, key=lambda label: tokens[label])


def _category_leaves(benchmark: Benchmark, label: str) -> Iterator[Group]:
    for category, title in benchmark.categories.items():
        tasks = benchmark.category_tasks(category)
        yield {
            **_leaf(f"{benchmark.name}_{category}_{label}", benchmark.title, title, label, "categories"),
            "of": (label, category, None),
            "description": f"{title}: mean of {', '.join(task.title for task in tasks)}, {label} tokens.",
            "metric_groups": ["score", "by_depth", "official", "conditions"],
            "environment": {"main_name": MAIN_METRIC, "main_split": "test"},
            "sub_splits": [task.name for task in tasks],
        }


def _task_leaves(benchmark: Benchmark, label: str) -> Iterator[Group]:
    for task in benchmark.tasks:
        yield {
            **_leaf(f"{benchmark.name}_{task.name}_{label}", benchmark.title, task.title, label, "tasks"),
            "of": (label, None, task.name),
            "description": f"{task.title}: {task.headline}, {label} tokens.",
            "metric_groups": ["score"],
            "environment": {"main_name": task_score(task.name), "main_split": "test"},
        }


def _leaf(name: str, benchmark: str, title: str, label: str, kind: str) -> Group:
    return {
        "name": name,
        "display_name": f"{benchmark} {title} {label}",
        "short_display_name": f"{title} {label}",
        "category": f"{benchmark} {kind} at one length",
    }


def _parents(benchmark: Benchmark, leaves: list[Group]) -> Iterator[Group]:
    """The tables that put leaves side by side: everything, one length, one category, one task."""
    name, title = benchmark.name, benchmark.title
    every = [leaf for leaf in leaves if leaf["of"][1]]
    yield from _parent(name, title, f"{title} leaderboards", every, benchmark.description)
    for label in dict.fromkeys(leaf["of"][0] for leaf in leaves):
        at = [leaf for leaf in every if leaf["of"][0] == label]
        yield from _parent(
            f"{name}_{label}", f"{title} {label}", f"{title} leaderboards", at, f"{title}, {label} tokens"
        )
    for category, about in benchmark.categories.items():
        of = [leaf for leaf in leaves if leaf["of"][1] == category]
        yield from _parent(f"{name}_{category}", f"{title} {about}", f"{title} by length", of, f"{about} by length")
    for task in benchmark.tasks:
        of = [leaf for leaf in leaves if leaf["of"][2] == task.name]
        yield from _parent(f"{name}_{task.name}", f"{title} {task.title}", f"{title} by length", of, task.headline)


def _parent(name: str, title: str, category: str, leaves: list[Group], about: str) -> Iterator[Group]:
    if leaves:
        yield {
            "name": name,
            "display_name": title,
            "description": about,
            "category": category,
            "subgroups": [leaf["name"] for leaf in leaves],
            "subgroup_metric_groups_hidden": ["official"],
        }
