"""Makes the schema for helm-summarize: the statistics, and groups by benchmark, length, category and task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import quote

from helm_longctx.errors import InputError
from helm_longctx.protocol.benchmark import Benchmark, Category
from helm_longctx.protocol.entry import CLOSED_BOOK, base_group, folder_of, group_name, judge_of
from helm_longctx.protocol.lengths import length_label, parse_length
from helm_longctx.protocol.metric_names import CONDITIONS, DEPTHS, depth_score, headline_text, metric_fields, task_score
from helm_longctx.protocol.task import MAIN_METRIC

Group = dict[str, Any]


class Conditions(NamedTuple):
    """The conditions that the scores in a column share.

    Args:
        label: the length's label; empty if the benchmark has no lengths.
        closed: whether the prompts were without their context.
        judge: the judge; empty for the official one.
        folder: the folder of the user's own files; empty if there are none.
    """

    label: str
    closed: bool
    judge: str
    folder: str

    def describe(self, title: str) -> str:
        """Return a column's heading, whose last word is the length."""
        closed, judge = "closed book" if self.closed else "", f"by {self.judge}" if self.judge else ""
        return " ".join(filter(None, (title, self.folder, closed, judge, self.label)))


def make_schema(
    benchmarks: Iterable[Benchmark],
    run_groups: Collection[str] | None = None,
    statistics: Collection[str] | None = None,
) -> dict[str, Any]:
    """Return a HELM schema as plain data.

    Args:
        run_groups: restricts the schema to these groups, such as those of a suite's runs; None for every standard
            length.
        statistics: restricts the columns to these statistics, such as those that a suite's runs have; None for all.
    """
    benchmarks = tuple(benchmarks)
    groups = [group for benchmark in benchmarks for group in _groups(benchmark, run_groups)]
    # Benchmarks share statistics, and a schema has each of them once.
    fields = {field["name"]: field for benchmark in benchmarks for field in metric_fields(benchmark)}
    metric_groups = [
        _metric_group("score", "Score", ["${main_name}"]),
        _metric_group("by_depth", "By depth", [depth_score(depth) for depth in DEPTHS]),
        *(_official(benchmark, category) for benchmark in benchmarks for category in benchmark.categories),
        _metric_group("conditions", "Conditions", CONDITIONS),
    ]
    return {
        "metrics": list(fields.values()),
        "perturbations": [],
        "metric_groups": [_restrict(group, statistics) for group in metric_groups],
        "run_groups": groups,
    }


def _official(benchmark: Benchmark, category: Category) -> Group:
    tasks = (*category.tasks, *category.variants)
    names = dict.fromkeys(name for task in tasks for name in task.metrics)
    return _metric_group(_official_name(benchmark, category), "Official metrics", names)


def _official_name(benchmark: Benchmark, category: Category) -> str:
    return "_".join(filter(None, ("official", benchmark.name, category.name)))


def _metric_group(name: str, title: str, metrics: Iterable[str]) -> Group:
    # There is no mean over columns, because models with fewer columns would not be comparable.
    return {
        "name": name,
        "display_name": title,
        "aggregation_strategies": [],
        "metrics": [{"name": metric, "split": "${main_split}"} for metric in metrics],
    }


def _restrict(group: Group, statistics: Collection[str] | None) -> Group:
    """Omit the columns of statistics that no run has."""
    # `${main_name}` stands for the main statistic of each group, which HELM fills in.
    kept = [each for each in group["metrics"] if statistics is None or each["name"] in {*statistics, "${main_name}"}]
    return {**group, "metrics": kept}


def _groups(benchmark: Benchmark, chosen: Collection[str] | None) -> Iterator[Group]:
    # Each judge and each folder has its own columns. The official judge comes first.
    columns = sorted({("", ""), *((judge_of(group), folder_of(group)) for group in chosen or ())})
    for closed in (False, True):
        leaves = [
            leaf
            for length in _lengths(benchmark, chosen)
            for leaves_of in (_overall_leaves, _category_leaves, _task_leaves)
            for judge, folder in columns
            for leaf in leaves_of(benchmark, Conditions(length, closed, judge, folder))
            if chosen is None or _needed_groups(benchmark, leaf) <= set(chosen)
        ]
        hidden = [_official_name(benchmark, category) for category in benchmark.categories]
        for parent in _parents(benchmark, leaves, closed):
            yield {**parent, "subgroup_metric_groups_hidden": hidden}
        for leaf in leaves:
            # Only needed to build the parents.
            leaf.pop("of")
            yield leaf


def _lengths(benchmark: Benchmark, chosen: Collection[str] | None) -> list[str]:
    """Return length labels, ascending: those of the tasks' sizes, and those at the end of chosen groups' names.

    A benchmark without lengths has one empty label.
    """
    if benchmark.axis is None:
        return [""]
    tokens = {length_label(length): length for length in benchmark.lengths}
    for name in chosen or ():
        with suppress(InputError):  # a group without a length ends in something else
            length = parse_length(base_group(name).rsplit("_", 1)[-1])
            tokens[length_label(length)] = length
    return sorted(tokens, key=lambda label: tokens[label])


OVERALL = "overall"
"""Replaces the category in the name of the group with a benchmark's overall score at one length."""


def _overall_leaves(benchmark: Benchmark, at: Conditions) -> Iterator[Group]:
    # With a single category, the overall score is that category's.
    if benchmark.overall and len(benchmark.categories) > 1 and not (at.closed or at.judge or at.folder):
        yield {
            **_leaf(benchmark, OVERALL, benchmark.overall, at, "categories"),
            "of": (at.label, OVERALL, None),
            "description": f"Mean of all categories, for models with complete categories{_about(at)}.",
            "metric_groups": ["score"],
            "environment": {"main_name": MAIN_METRIC, "main_split": "test"},
        }


def _needed_groups(benchmark: Benchmark, leaf: Group) -> set[str]:
    """Return the run groups that a table needs. An overall score needs those of all averaged categories."""
    label, column, _ = leaf["of"]
    if column != OVERALL:
        return {leaf["name"]}
    return {group_name(benchmark, each.name, label) for each in benchmark.categories if each.averaged}


def _category_leaves(benchmark: Benchmark, at: Conditions) -> Iterator[Group]:
    for category in benchmark.categories:
        tasks = category.tasks_at(parse_length(at.label) if at.label else None)
        if not tasks or (at.closed and not all(task.closed_book for task in tasks)):
            continue
        yield {
            **_leaf(benchmark, category.name, category.title, at, "categories"),
            "of": (at.label, category.name, None),
            "description": f"Mean of {', '.join(task.title for task in tasks)}{_about(at)}.",
            "metric_groups": ["score", "by_depth", _official_name(benchmark, category), "conditions"],
            "environment": {"main_name": MAIN_METRIC, "main_split": "test"},
            "sub_splits": [task.name for task in (*category.tasks, *category.variants)],
        }


def _task_leaves(benchmark: Benchmark, at: Conditions) -> Iterator[Group]:
    for task in benchmark.tasks:
        if (at.closed and not task.closed_book) or not task.exists_at(parse_length(at.label) if at.label else None):
            continue
        yield {
            **_leaf(benchmark, task.name, task.title, at, "tasks"),
            "of": (at.label, None, task.name),
            "description": f"{task.title}: {headline_text(task)}{_about(at)}.",
            "metric_groups": ["score"],
            "environment": {"main_name": task_score(task.name), "main_split": "test"},
        }


def _about(at: Conditions) -> str:
    return (f", at {at.label}" if at.label else "") + (f", judged by {at.judge}" if at.judge else "")


def _leaf(benchmark: Benchmark, name: str, title: str, at: Conditions, kind: str) -> Group:
    without = " without context" if at.closed else ""
    return {
        "name": group_name(benchmark, name, *at),
        "display_name": at.describe(f"{benchmark.title} {title}".strip()),
        "short_display_name": at.describe(title or ("" if at.label else benchmark.title)),
        "category": f"{benchmark.title} {kind}{without}{' at one length' if at.label else ''}",
    }


def _parents(benchmark: Benchmark, leaves: list[Group], closed: bool) -> Iterator[Group]:
    """Yield the tables that combine leaves: all of them, one length, one category, one task."""
    name = "_".join([benchmark.name, *([CLOSED_BOOK] if closed else [])])
    title = f"{benchmark.title}{' closed book' if closed else ''}"
    averaged = {OVERALL, *(category.name for category in benchmark.categories if category.averaged)}
    every = [leaf for leaf in leaves if leaf["of"][1] in averaged]
    if whole := next((leaf for leaf in every if leaf["name"] == name), None):
        # This leaf has the benchmark's name, so it is that table. Other judges' scores are columns beside its own.
        if len(every) > 1:
            whole["subgroups"] = [leaf["name"] for leaf in every if leaf is not whole]
        every = []
    yield from _parent(name, title, f"{title} leaderboards", every, benchmark.description)
    if benchmark.axis is None:
        return
    # With a single category, the tables at one length would repeat that category's.
    several = len(benchmark.categories) > 1
    for label in dict.fromkeys(leaf["of"][0] for leaf in leaves) if several else ():
        at = [leaf for leaf in every if leaf["of"][0] == label]
        yield from _parent(f"{name}_{label}", f"{title} {label}", f"{title} leaderboards", at, f"{title} at {label}")
    columns = {OVERALL: benchmark.overall, **{category.name: category.title for category in benchmark.categories}}
    for column, about in columns.items() if several else ():
        of = [leaf for leaf in leaves if leaf["of"][1] == column]
        yield from _parent(f"{name}_{column}", f"{title} {about}", f"{title} by length", of, f"{about} by length")
    for task in benchmark.tasks:
        of = [leaf for leaf in leaves if leaf["of"][2] == task.name]
        yield from _parent(
            f"{name}_{task.name}", f"{title} {task.title}", f"{title} by length", of, headline_text(task)
        )


def _parent(name: str, title: str, category: str, leaves: list[Group], about: str) -> Iterator[Group]:
    if leaves:
        yield {
            "name": name,
            "display_name": title,
            "description": about,
            "category": category,
            "subgroups": [leaf["name"] for leaf in leaves],
        }


def link_report(schema: dict[str, Any], suite: str) -> None:
    """Add a link to the suite's report to the description of every leaderboard. HELM's pages show it as Markdown."""
    # helm-server serves HELM's output folder under this name.
    address = f"benchmark_output/reports/{quote(suite)}/index.html"
    for group in schema["run_groups"]:
        if "subgroups" in group:
            group["description"] += f" [Report with intervals and comparisons]({address})"
