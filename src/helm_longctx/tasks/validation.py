"""Checks a benchmark of another package when it is loaded, so that no command fails because of it later."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from helm_longctx.data.download import Source
from helm_longctx.environment import EXTRAS
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.parts import check_fields, check_name, check_properties, check_type
from helm_longctx.tasks.benchmark import Benchmark, Erratum
from helm_longctx.tasks.entry import ARGUMENTS, Entry, check_entry, parse_entry
from helm_longctx.tasks.lengths import length_label, parse_length
from helm_longctx.tasks.metric_names import CONDITIONS, LIKELIHOODS
from helm_longctx.tasks.outputs import OutputReader
from helm_longctx.tasks.publications import (
    ModelProperties,
    PrintedCorrelation,
    Protocol,
    Published,
)
from helm_longctx.tasks.task import MAIN_METRIC, Settings, Task


def check_benchmark(benchmark: Any) -> None:
    """Raise an `InputError` if an object is no benchmark that all commands can use.

    Its loaders and scorers are not called, because they need data. Its other code may raise anything else.
    """
    check_fields(benchmark, Benchmark)
    _check_names(benchmark)
    for task in benchmark.tasks:
        _check_task(benchmark, task)
    sources: list[object] = []
    for entry in list_entries(benchmark):
        check_properties(entry)
        for task in entry.tasks:
            sources += task.all_sources(entry.settings.length)
            numbers = (
                task.official_sample(entry.settings),
                task.output_tokens(entry.settings),
                task.repeats,
            )
            if min(numbers) < 1:
                raise InputError(
                    f"{task.name}: num_samples, max_tokens and repeats must be at least 1"
                )
    check_type("sources", sources, list[Source])
    _check_tables(benchmark)


def _check_names(benchmark: Benchmark) -> None:
    if not benchmark.entries or not all(
        category.tasks for category in benchmark.categories
    ):
        raise InputError("categories: give at least one, and at least one task in each")
    tasks: dict[int, Task] = {}
    for category in benchmark.categories:
        tasks |= {id(task): task for task in (*category.tasks, *category.variants)}
    check_name("benchmark", benchmark.name)
    check_name("task_argument", benchmark.task_argument)
    for category in benchmark.categories:
        if category.name:
            check_name("category", category.name)
    for task in tasks.values():
        check_name("task", task.name)
        check_name("task", task.argument)
    _check_unique("categories", [category.name for category in benchmark.categories])
    _check_unique("tasks", [task.name for task in tasks.values()])
    metrics = [metric.name for metric in benchmark.metrics]
    former = list(benchmark.former_metrics)
    for metric in benchmark.metrics:
        _check_unique(f"metrics: {metric.name}: formerly", metric.formerly)
    _check_unique("metrics", [*metrics, *former])
    # The tasks of a benchmark can be metrics.
    arguments = []
    for name in ARGUMENTS:
        if name != "metric":
            arguments.append(name)
    _check_unique("run entries' arguments", [benchmark.task_argument, *arguments])
    taken = {MAIN_METRIC, *LIKELIHOODS, *CONDITIONS}.intersection(metrics)
    if taken:
        raise InputError(f"metrics: {min(taken)} is a name of helm-longctx")
    for category in benchmark.categories:
        # An annotator imports HELM, so only its module is looked up.
        if category.judge and not find_spec(category.judge.rpartition(".")[0]):
            raise InputError(f"judge: there is no module of {category.judge}")


def _check_unique(what: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{what}: two of them have the name {name!r}")


def _check_task(benchmark: Benchmark, task: Task) -> None:
    check_properties(task)
    if unknown := set(task.metrics) - {metric.name for metric in benchmark.metrics}:
        raise InputError(f"{task.name}: the metric {min(unknown)} has no description")
    if not set(task.headline) <= set(task.metrics) or bool(task.headline) == bool(
        task.unscored
    ):
        raise InputError(
            f"{task.name}: give headline, which names some of the task's metrics, or unscored"
        )
    if bool(benchmark.axis) != bool(task.sizes):
        raise InputError(
            f"{task.name}: sizes are needed if the benchmark has an axis, and only then"
        )
    for name, values, allowed in (
        ("extras", task.extras, EXTRAS),
        ("arguments", task.arguments, ARGUMENTS),
        (
            "variants",
            () if "paper" in task.variants else tuple(task.variants),
            ("paper",),
        ),
    ):
        if other := [value for value in values if value not in allowed]:
            raise bad_argument(task.name, name, other[0], allowed)
    for length in task.sizes:
        parse_length(length, task.name)


def list_entries(benchmark: Benchmark) -> Iterator[Entry]:
    """Yield a run entry for each category and each task, at each length."""
    for name, category in benchmark.entries.items():
        path = {"path": "."} if category.needs_path else {}
        lengths: list[int | None] = [*benchmark.lengths]
        for length in lengths or [None]:
            at = {
                **path,
                **({} if length is None else {"length": length_label(length)}),
            }
            if category.tasks_at(length):
                yield check_entry(benchmark, name, at)
            for task in (*category.tasks, *category.variants):
                if task.exists_at(length):
                    yield check_entry(
                        benchmark, name, {**at, benchmark.task_argument: task.argument}
                    )


def _check_tables(benchmark: Benchmark) -> None:
    published = benchmark.published()
    errata = benchmark.errata()
    protocols = benchmark.protocols()
    check_type("published", published, tuple[Published, ...])
    check_type("errata", errata, tuple[Erratum, ...])
    check_type("models", benchmark.models(), Mapping[str, ModelProperties])
    check_type("correlations", benchmark.correlations(), tuple[PrintedCorrelation, ...])
    check_type("protocols", protocols, tuple[Protocol, ...])
    categories = {category.name: category for category in benchmark.categories}
    for row in published:
        if row.category not in categories:
            raise bad_argument("published", "category", row.category, categories)
        for task, score in row.scores.items():
            tasks = categories[row.category].tasks_at(row.length)
            for scored in [benchmark.task(task)] if task else tasks:
                scored.official_sample(Settings(row.length))
            if not 0 <= score <= 1:
                raise bad_argument("published", "score", score, "a number from 0 to 1")
    for protocol in protocols:
        check_properties(protocol)
        for entry in protocol.entries:
            parse_entry([benchmark], entry)
    for sweep in benchmark.sweeps:
        for name in sweep.tasks.values():
            benchmark.task(name)
    for name, kind in (("judge_checks", object), ("outputs", OutputReader)):
        if path := getattr(benchmark, name):
            module, _, attribute = path.rpartition(".")
            if not isinstance(getattr(import_module(module), attribute), kind):
                raise bad_argument(
                    "benchmark", name, path, f"the path of an {kind.__name__}"
                )
