"""Run specs from checked entries: everything a benchmark needs to be known to HELM."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.annotation.annotator import AnnotatorSpec
from helm.benchmark.metrics.metric import MetricSpec
from helm.benchmark.run_spec import RunSpec, run_spec_function
from helm.benchmark.scenarios.scenario import ScenarioSpec
from helm.common.object_spec import ObjectSpec, get_class_by_name

from helm_longctx._version import VERSION
from helm_longctx.helm.adapter import method_for
from helm_longctx.helm.annotator import JudgeAnnotator
from helm_longctx.helm.metric import LongContextMetric
from helm_longctx.helm.patches import apply_patches
from helm_longctx.helm.scenario import LongContextScenario
from helm_longctx.protocol.entry import Entry, check_entry, fetch_command
from helm_longctx.protocol.task import Benchmark
from helm_longctx.sources.fetch import ensure
from helm_longctx.sources.root import DataRoot

Spec = TypeVar("Spec", bound=ObjectSpec)

_OF_THE_REQUEST = ("style", "truncation", "judge", "repeats")
"""Arguments that change no instance: the adapter spec and the annotators carry them."""


def spec_of(kind: type[Spec], cls: type, **arguments: Any) -> Spec:
    """A HELM spec of a class, its arguments checked against the constructor now rather than in the run.

    Raises:
        TypeError: the constructor does not take them.
    """
    inspect.signature(cls).bind(**arguments)
    return kind(class_name=f"{cls.__module__}.{cls.__qualname__}", args=arguments)


def register_run_specs(benchmarks: Iterable[Benchmark]) -> None:
    """Tell HELM the run entries of benchmarks."""
    for benchmark in benchmarks:
        for entry in benchmark.entries:
            run_spec_function(entry)(partial(build_run_spec, benchmark, entry))


def build_run_spec(benchmark: Benchmark, name: str, /, **arguments: Any) -> RunSpec:
    """The run spec of an entry.

    Raises:
        InputError: an argument is wrong, or data is missing where nothing may be downloaded.
    """
    apply_patches()
    entry = check_entry(benchmark, name, arguments)
    check_data([entry])
    return RunSpec(
        name=entry.description,
        scenario_spec=make_scenario(entry),
        adapter_spec=_adapter_spec(entry),
        metric_specs=make_metrics(entry),
        annotators=make_annotators(entry),
        groups=entry.groups,
    )


def make_scenario(entry: Entry) -> ScenarioSpec:
    """Return the scenario spec of an entry."""
    arguments = {key: value for key, value in entry.arguments.items() if key not in _OF_THE_REQUEST}
    if entry.settings.length is not None:
        arguments["length"] = entry.settings.length
    return spec_of(
        ScenarioSpec,
        LongContextScenario,
        entry=entry.name,
        revision=entry.benchmark.revision,
        comparability=entry.benchmark.comparability,
        **arguments,
    )


def _adapter_spec(entry: Entry) -> AdapterSpec:
    """The spec of our adapter: everything that HELM's adapters would put around a prompt is empty."""
    return AdapterSpec(
        method=method_for(entry.settings.style, entry.settings.truncation),
        input_prefix="",
        input_suffix="",
        output_prefix="",
        output_suffix="",
        instance_prefix="",
        max_train_instances=0,
        num_outputs=1,
        num_trials=entry.repeats,
        temperature=entry.temperature,
        max_tokens=entry.max_tokens,
    )


def make_metrics(entry: Entry) -> list[MetricSpec]:
    """Return the metric specs of an entry."""
    # Imported here: it imports scikit-learn and looks for NLTK data, which would slow down every helm-run.
    from helm.benchmark.metrics.basic_metrics import InstancesPerSplitMetric

    return [
        # Not in the scenario's arguments: HELM would put runs of different versions into different tables.
        spec_of(MetricSpec, LongContextMetric, benchmark=entry.benchmark.name, package=VERSION),
        spec_of(MetricSpec, InstancesPerSplitMetric),
    ]


def make_annotators(entry: Entry) -> list[AnnotatorSpec]:
    """Return the annotator spec of an entry's judge; none if there is nothing to judge or `judge=none`."""
    name, judge = entry.category.judge, entry.settings.judge
    if not name or judge == "none" or not any(task.has_judge for task in entry.tasks):
        return []
    annotator: type[JudgeAnnotator] = get_class_by_name(name)
    annotator.check(judge)
    return [AnnotatorSpec(name, {"judge": judge})]


def check_data(entries: Sequence[Entry], benchmark_output: str | Path = "benchmark_output") -> None:
    """With a mirror, see before any run starts that it has what entries need; a cache can be filled later.

    Raises:
        InputError: it lacks something; the message names all of it.
    """
    root = DataRoot.find(benchmark_output)
    if root.mirror:
        needed = [(entry, [*entry.sources, *entry.judge_sources(root)]) for entry in entries]
        lacking = [entry for entry, found in needed if any(not root.has(p) for s in found for p in s.paths)]
        ensure([source for _, found in needed for source in found], root, fetch_command(lacking, root))
