"""Makes HELM's run specs of run entries, and registers the entries with HELM."""

import inspect
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.annotation.annotator import AnnotatorSpec
from helm.benchmark.metrics.metric import MetricSpec
from helm.benchmark.run_expander import RUN_EXPANDERS
from helm.benchmark.run_spec import (
    RunSpec,
    get_run_spec_function,
    run_spec_function,
)
from helm.benchmark.scenarios.scenario import ScenarioSpec
from helm.common.object_spec import ObjectSpec, get_class_by_name, parse_object_spec

from helm_longctx._version import VERSION
from helm_longctx.data.fetch import find_lacking
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, list_choices, shorten
from helm_longctx.helm.annotator import JudgeAnnotator
from helm_longctx.helm.likelihood import LikelihoodMetric
from helm_longctx.helm.metric import LongContextMetric
from helm_longctx.helm.patches import apply_patches
from helm_longctx.helm.scenario import LongContextScenario
from helm_longctx.helm.style import check_drawing
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import (
    ADAPTER_METHOD,
    Entry,
    WrittenEntry,
    allowed_arguments,
    check_entry,
    select_category,
)
from helm_longctx.tasks.entry_data import digest_own_files, fetch_command
from helm_longctx.tasks.registry import OURS, unknown_entry
from helm_longctx.tasks.stored_entry import scenario_arguments

_Spec = TypeVar("_Spec", bound=ObjectSpec)


def _spec_of(kind: type[_Spec], cls: type, **arguments: Any) -> _Spec:
    """Make a HELM spec of a class. Raises a `TypeError` now if its constructor does not take the arguments."""
    inspect.signature(cls).bind(**arguments)
    return kind(class_name=f"{cls.__module__}.{cls.__qualname__}", args=arguments)


def register_run_specs(benchmarks: Iterable[Benchmark]) -> None:
    """Register the run entries of benchmarks with HELM."""
    for benchmark in benchmarks:
        for entry in benchmark.entries:
            run_spec_function(entry)(partial(build_run_spec, benchmark, entry))
        if benchmark.category_argument:
            run_spec_function(benchmark.name)(
                partial(build_run_spec, benchmark, benchmark.name)
            )


def list_arguments(written: WrittenEntry) -> list[str]:
    """Return the arguments that a run entry, ours or HELM's, can have. Raises an `InputError` if there is no such entry."""
    if written.name in OURS:
        benchmark = OURS[written.name]
        task = written.arguments.get(benchmark.task_argument)
        own = allowed_arguments(benchmark, written.name, task)
    else:
        function = get_run_spec_function(written.name)
        if function is None:
            raise unknown_entry(written.name)
        own = [*inspect.signature(function).parameters]
    return [*own, *RUN_EXPANDERS]


def check_run_entry(written: WrittenEntry) -> Entry | None:
    """Check a run entry, and return what it is if it is ours. HELM itself checks the values of its own entries.

    Raises:
        InputError: the name is unknown, or an argument is wrong. It has the argument.
    """
    if written.name in OURS:
        return check_own_entry(written)
    allowed = list_arguments(written)
    for key in written.arguments:
        if key not in allowed:
            raise InputError(
                f"{written.name}: unknown argument {key}; {list_choices(key, allowed)}",
                argument=key,
            )
    return None


def check_own_entry(written: WrittenEntry) -> Entry:
    """Check one of our entries, with HELM's run expanders on its own run spec, or raise an `InputError`."""
    name, arguments = written
    # HELM removes its own arguments before it calls the entry's function (helm/benchmark/run_spec_factory.py:64).
    own = {key: value for key, value in arguments.items() if key not in RUN_EXPANDERS}
    entry = check_entry(OURS[name], name, own)
    spec = make_entry_spec(entry)
    for key, text in arguments.items():
        if key in own or key in ("model", "model_deployment"):
            continue
        try:
            # A number, if it is one to HELM.
            value = parse_object_spec(f"{name}:{key}={text}").args[key]
            spec = RUN_EXPANDERS[key](value).expand(spec)[0]
        except Exception as error:  # each expander raises its own
            raise InputError(
                f"{name}: HELM refuses {key}={shorten(text)}: {describe_error(error)}",
                argument=key,
            ) from None
    check_drawing(entry.settings.request.sampling, spec.adapter_spec)
    return entry


def build_run_spec(benchmark: Benchmark, name: str, /, **arguments: Any) -> RunSpec:
    """Make the run spec of an entry. Raises an `InputError` if an argument is wrong."""
    apply_patches()
    written = select_category(name, arguments)
    entry = check_entry(benchmark, written.name, written.arguments)
    return make_entry_spec(entry, digest_own_files(entry.tasks, entry.settings.path))


def make_entry_spec(entry: Entry, files: str | None = None) -> RunSpec:
    """Return the run spec of a checked entry, without looking for data.

    Args:
        files: the digest of the user's own files (`digest_own_files`), for a run that is made.
    """
    adapter_spec = AdapterSpec(
        method=ADAPTER_METHOD,
        # HELM's adapters add these texts to a prompt.
        **dict.fromkeys(
            (
                "input_prefix",
                "input_suffix",
                "output_prefix",
                "output_suffix",
                "instance_prefix",
            ),
            "",
        ),
        max_train_instances=0,
        num_outputs=1,
        num_trials=entry.repeats,
        # The temperature belongs to the protocol, so all tasks have the same.
        temperature=max(
            task.variant(entry.settings).temperature for task in entry.tasks
        ),
        max_tokens=entry.max_tokens,
    )
    return RunSpec(
        name=entry.description,
        scenario_spec=make_scenario(entry, files),
        adapter_spec=adapter_spec,
        metric_specs=make_metrics(entry),
        annotators=make_annotators(entry),
        groups=entry.groups,
    )


def make_scenario(entry: Entry, files: str | None = None) -> ScenarioSpec:
    """Return the scenario spec of an entry, with the digest of the user's own files if it is given."""
    arguments = scenario_arguments(entry)
    if files:
        arguments["files"] = files
    return _spec_of(
        ScenarioSpec,
        LongContextScenario,
        entry=arguments.pop("entry"),
        revision=entry.benchmark.revision,
        comparability=entry.benchmark.comparability,
        **arguments,
    )


def make_metrics(entry: Entry) -> list[MetricSpec]:
    """Return the metric specs of an entry."""
    # The version is an argument of the metric, because HELM puts runs with different scenarios into different tables.
    metric = LikelihoodMetric if entry.metric else LongContextMetric
    return [
        _spec_of(MetricSpec, metric, benchmark=entry.benchmark.name, package=VERSION)
    ]


def make_annotators(entry: Entry) -> list[AnnotatorSpec]:
    """Return the annotator spec of an entry's judge; none if there is nothing to judge or `judge=none`."""
    name = entry.category.judge
    judge = entry.settings.judge
    if (
        not name
        or judge == "none"
        or entry.metric
        or not any(task.has_judge for task in entry.tasks)
    ):
        return []
    annotator: type[JudgeAnnotator] = get_class_by_name(name)
    # HELM does not pass the credentials here, so the check is without them.
    annotator.check(judge)
    return [AnnotatorSpec(name, {"judge": judge})]


def fetch_entries(entries: Sequence[Entry], root: DataRoot) -> dict[str, InputError]:
    """Fetch the data of entries, each file once. Return the error of each entry that lacks data, by its description."""
    needed = {}
    for entry in entries:
        needed[entry.description] = (
            entry,
            [*entry.sources, *entry.judge_sources(root)],
        )
    every = []
    for _, sources in needed.values():
        every += sources
    failed = find_lacking(every, root, fetch_command(entries, root))
    errors = {}
    for name, (entry, sources) in needed.items():
        lacking = []
        for source in sources:
            lacking += [path for path in source.paths if path in failed]
        if not lacking:
            continue
        if root.mirror:
            errors[name] = root.missing_error(lacking, fetch_command([entry], root))
        else:
            errors[name] = failed[lacking[0]]
    return errors
