"""Plans the runs of a configuration: run entries, run specs, the equivalent `helm-run` commands, and the cost."""

import inspect
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helm_longctx.config.local_models import (
    find_sampling,
    list_models,
    model_name,
    plain_models,
)
from helm_longctx.config.models import ModelBook
from helm_longctx.config.schema import Endpoint, RunConfig
from helm_longctx.config.settings import list_key_variables, list_limits
from helm_longctx.config.source_map import KeyPath, SourceMap
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, is_format_error, list_choices, shorten
from helm_longctx.helm.command_line import RUNNER, make_run_specs, read_conf
from helm_longctx.helm.names import check_name
from helm_longctx.helm.registry import (
    expander_names,
    find_run_spec_function,
    load_class,
    read_credentials,
)
from helm_longctx.helm.run_specs import check_run_entry
from helm_longctx.helm.style import check_sampling
from helm_longctx.helm_api import RunSpec
from helm_longctx.judging.answer_judge import AnswerAnnotator
from helm_longctx.judging.judge import parse_judges
from helm_longctx.judging.keys.client import check_credentials
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.results.suite import suite_path
from helm_longctx.runner.estimate import Estimate, Rate, estimate_run
from helm_longctx.runner.resuming import earlier_name, retry_factor
from helm_longctx.runner.runner import LongContextRunner, runner_arguments
from helm_longctx.runner.spool import is_long_context
from helm_longctx.runner.stopping import group_specs
from helm_longctx.runs.files import check_run_name, find_incomplete_files
from helm_longctx.tasks.entry import (
    allowed_arguments,
    check_length,
    fetch_line,
    find_official_entries,
    parse_entry,
    split_entry,
)
from helm_longctx.tasks.registry import BENCHMARKS, OURS, expand_entry, find_protocol
from helm_longctx.tasks.request_settings import GIVEN_TEXTS
from helm_longctx.tasks.stop_rules import parse_rule

_MODEL = ("model", "model_deployment")

_Parts = tuple[str, dict[str, Any], KeyPath]
"""Name, arguments and key path of an entry."""


@dataclass(frozen=True)
class _PlannedEntry:
    """A checked run entry, its key path in the configuration, and the model that it names, if any."""

    text: str
    path: KeyPath
    model: str = ""


@dataclass(frozen=True)
class Plan:
    """A checked configuration.

    Args:
        entries: the configuration's run entries, without the models that the configuration adds.
        specs: HELM's run specs, one for each entry and model.
        missing: endpoints that the files in `local_path` lack. A dry run does not write them.
    """

    config: RunConfig
    entries: Sequence[_PlannedEntry]
    specs: Sequence[RunSpec]
    missing: Sequence[Endpoint] = ()

    @property
    def deployments(self) -> list[str]:
        """The deployments of the runs, each once."""
        return list(
            dict.fromkeys(spec.adapter_spec.model_deployment for spec in self.specs)
        )

    def commands(self) -> list[str]:
        """Return the equivalent shell commands: `helm-longctx models add` for new endpoints, and `helm-run`."""
        add = []
        for endpoint in self.missing:
            add.append(_add_command(endpoint, self.config.local_path))
        # helm-run drops entries whose model is not among --models-to-run (helm/benchmark/run.py:66). So entries that
        # name a model get a second command without that option.
        groups = [
            (
                [entry.text for entry in self.entries if not entry.model],
                plain_models(self.config),
            )
        ]
        groups += [([entry.text for entry in self.entries if entry.model], [])]
        return add + [
            _run_command(self.config, entries, models)
            for entries, models in groups
            if entries
        ]

    def estimates(self) -> list[Estimate]:
        """Estimate the long-context runs, or raise an `InputError`.

        Runs of other scenarios cannot be estimated, nor those that ask again for cut answers of unfinished runs.
        """
        runner = make_runner(self.config)
        later = self.retries
        known = (
            spec for spec in self.specs if is_long_context(spec) and spec not in later
        )
        estimates = []
        for spec in known:
            estimates.append(estimate_run(runner, spec, {}, Rate()))
        return estimates

    @property
    def retries(self) -> list[RunSpec]:
        """The runs that ask again for the cut answers of runs that are not finished."""
        folder = suite_path(self.config.output_path, self.config.suite)
        asking = (
            spec for spec in self.specs if is_long_context(spec) and retry_factor(spec)
        )
        specs = []
        for spec in asking:
            if find_incomplete_files(folder / earlier_name(spec.name)):
                specs.append(spec)
        return specs


def make_plan(config: RunConfig) -> Plan:
    """Check a configuration, and make its run specs, or raise an `InputError`. Its settings (`make_settings`) are in use.

    HELM's registries must be filled. Except in a dry run, the servers of new endpoints are then asked what they offer,
    with one tiny request for each style of prompts, and HELM's files are written.
    """
    entries = plan_entries(config)
    book = ModelBook(
        config, [(entry.model, entry.path) for entry in entries if entry.model]
    )
    book.register()
    credentials = read_credentials(config.local_path)
    for number, name in enumerate(map(model_name, config.judge.judges)):
        if name not in ("auto", "none"):
            with config.source_map.at(("judge", "judges", number)):
                parse_judges(name)
                if not config.dry_run:
                    check_credentials(name, credentials)
    specs = _make_specs(config, entries)
    if config.limits.stop_when:
        group_specs(parse_rule(config.limits.stop_when), specs)
    book.check_prices(
        Plan(
            config=config,
            entries=entries,
            specs=specs,
        ).deployments
    )
    missing = book.missing
    if not config.dry_run:
        book.ask_servers()
        # Again, because the style of prompts can depend on the server.
        specs = _make_specs(config, entries)
    # The weights of one model after the other are in memory. HELM's order alternates between models.
    order = {}
    for number, name in enumerate(book.local_models):
        order[name] = number
    specs = sorted(
        specs, key=lambda spec: order.get(spec.adapter_spec.model_deployment, -1)
    )
    return Plan(
        config=config,
        entries=entries,
        specs=specs,
        missing=missing if config.dry_run else (),
    )


def make_runner(config: RunConfig) -> LongContextRunner:
    """Return the runner for a configuration. The runner skips complete runs."""
    arguments = runner_arguments(
        output_path=config.output_path,
        suite=config.suite,
        local_path=config.local_path,
        parallelism=config.parallelism,
        skip_completed_runs=True,
    )
    runner = LongContextRunner(**arguments)
    runner.logs_scores = False  # `helm-longctx run` prints them as a table
    return runner


def _make_specs(config: RunConfig, entries: Sequence[_PlannedEntry]) -> list[RunSpec]:
    names = plain_models(config)
    most = config.limits.max_eval_instances
    specs: list[RunSpec] = []
    # HELM gets one entry at a time, so that an error has the entry's location.
    for entry in entries:
        models = [] if entry.model else names
        with config.source_map.at(entry.path):
            try:
                made = make_run_specs(
                    [entry.text], [], models, config.suite, most, config.output_path
                )
            except Exception as error:
                if not is_format_error(error):
                    raise
                raise InputError(
                    f"{shorten(entry.text)} is not a run of HELM: {describe_error(error)}"
                ) from error
            for spec in made:
                check_sampling(spec)
                check_run_name(spec.name)
            specs += made
    return specs


def _run_command(
    config: RunConfig, entries: Sequence[str], models: Sequence[str]
) -> str:
    variables = {}
    for name, value in list_limits(config).items():
        variables[name] = shlex.quote(value)
    # The shell fills in the key, so no key is printed.
    for name, source in list_key_variables(config).items():
        if source != name:
            variables[name] = f'"${source}"'
    options = {
        "--run-entries": entries,
        "--models-to-run": models,
        "--suite": [config.suite],
        "-m": [str(config.limits.max_eval_instances)],
        "-n": [str(config.parallelism)],
        "-o": [str(config.output_path)],
        "--local-path": [str(config.local_path)],
        "--runner-class-name": [RUNNER],
    }
    lines = []
    for option, values in options.items():
        if values:
            lines.append(f"{option} {shlex.join(values)}")
    command = " ".join(
        [*(f"{name}={value}" for name, value in variables.items()), "helm-run"]
    )
    return " \\\n    ".join([command, *lines, "--skip-completed-runs"])


def _add_command(endpoint: Endpoint, local_path: Path) -> str:
    names = (
        "url",
        "model",
        "api",
        "type",
        "api_key_env",
        "token_env",
        "context",
        "tokenizer",
    )
    values = {name: getattr(endpoint, name) for name in names} | {
        "local_path": local_path
    }
    given = {}
    for name, value in values.items():
        if value:
            given[f"--{name.replace('_', '-')}"] = str(value)
    words = ["helm-longctx", "models", "add", model_name(endpoint)]
    for option in given.items():
        if option != ("--api", "openai"):
            words += option
    for name, value in endpoint.headers.items():
        words += ["--header", f"{name}: {value}"]
    if endpoint.nvcf:
        words.append("--nvcf")
    return shlex.join(words)


def plan_entries(config: RunConfig) -> list[_PlannedEntry]:
    """Return the run entries, each once. Raises an `InputError` if one has an invalid part or no model."""
    planned: dict[str, _PlannedEntry] = {}
    sampled = []
    for asked, at in list_models(config):
        with config.source_map.at((*at, "sampling")):
            if sampling := find_sampling(asked):
                sampled.append((model_name(asked), sampling, (*at, "sampling")))
    for name, arguments, path in _with_retries(config):
        with config.source_map.at(path):
            model = _check(name, arguments)
        judged = {**_judge(config, name, arguments), **arguments}
        text = _format(name, judged)
        if not (model or config.models):
            allowed = "a list of names of models, or of mappings with name and url"
            raise config.source_map.error(
                ("models",),
                f" is missing, and {shorten(text)} names no model; give {allowed}",
            )
        if model or plain_models(config):
            planned.setdefault(
                text,
                _PlannedEntry(
                    text=text,
                    path=path,
                    model=model,
                ),
            )
        # A sampling is a part of a run's entry, so a model with one has entries of its own.
        for named, sampling, sampling_path in [] if model else sampled:
            drawn = {
                **({} if arguments.get("metric") in GIVEN_TEXTS else sampling),
                **judged,
            }
            with config.source_map.at(sampling_path):
                _check(name, drawn)
            text = _format(name, {**drawn, "model": named})
            planned.setdefault(
                text,
                _PlannedEntry(
                    text=text,
                    path=path,
                    model=named,
                ),
            )
    return list(planned.values())


def _combine(config: RunConfig) -> Iterator[_Parts]:
    if config.tasks is not None:
        yield from _combine_tasks(config, config.tasks)
    _check_questions(config)
    for number, protocol_name in enumerate(config.protocols or []):
        key_path = ("protocols", number)
        with config.source_map.at(key_path):
            protocol = find_protocol(protocol_name, BENCHMARKS)[1]
            if not protocol.entries:
                raise InputError(
                    f"{protocol.name!r} cannot be run ({protocol.obstacle})"
                )
        for text in protocol.run_entries:
            name, own, _ = _split(config.source_map, text, key_path)
            allowed = _list_arguments(name, own)
            for key in config.arguments:
                if key not in allowed:
                    choices = list_choices(key, allowed)
                    raise config.source_map.error(
                        ("arguments", key), f" is not an argument of {name}; {choices}"
                    )
            # The configuration's arguments replace the protocol's own.
            yield name, {**own, **config.arguments}, key_path
    for number, text in enumerate(config.entries or []):
        for entry in expand_entry(text):
            yield _split(config.source_map, entry, ("entries", number))
    for number, path in enumerate(config.conf_paths or []):
        entries = read_conf(str(path))
        if isinstance(entries, InputError):
            raise config.source_map.error(("conf_paths", number), f": {entries}")
        for text in entries:
            yield _split(config.source_map, text, ("conf_paths", number))


def _check_questions(config: RunConfig) -> None:
    """Raise an `InputError` if protocols would ask generated questions, unless the configuration allows that."""
    if config.generated:
        return
    root = DataRoot.find(config.output_path)
    entries: dict[str, None] = {}
    protocols: list[str] = []
    for text in config.protocols or []:
        with suppress(
            InputError
        ):  # `_combine` reports an unknown name with its location
            benchmark, protocol = find_protocol(text, BENCHMARKS)
            official: dict[str, str] = {}
            for run_entry in protocol.entries:
                official |= find_official_entries(
                    parse_entry([benchmark], run_entry), root
                )
            if official:
                protocols.append(protocol.name)
                entries |= dict.fromkeys(entry for entry in official.values() if entry)
    if protocols:
        names = ", ".join(map(repr, protocols))
        line = fetch_line(entries, root)
        raise InputError(
            f"{names} cannot compare: generated questions, because the benchmark's own are missing;"
            f" get them with `{line}`, or give --generated to ask generated ones all the same"
        )


def _with_retries(config: RunConfig) -> Iterator[_Parts]:
    """Yield each entry and, if `retry_cut` is given, after it the one that asks again for its cut answers."""
    is_used = False
    for name, arguments, path in _combine(config):
        yield name, arguments, path
        if config.retry_cut and name in OURS and "retry_cut" not in arguments:
            is_used = True
            yield name, {**arguments, "retry_cut": config.retry_cut}, path
    if config.retry_cut and not is_used:
        given = f"={config.retry_cut} is given, but all entries are HELM's own, which do not take it; leave it out"
        raise config.source_map.error(("retry_cut",), given)


def _split(source_map: SourceMap, text: str, path: KeyPath) -> _Parts:
    with source_map.at(path):
        return (*split_entry(text), path)


def _combine_tasks(config: RunConfig, tasks: list[str]) -> Iterator[_Parts]:
    parts = []
    for number, text in enumerate(tasks):
        for entry in expand_entry(text):
            parts.append(_split(config.source_map, entry, ("tasks", number)))
    for name, own, path in parts:
        with config.source_map.at(path):
            _check_name(name)
            _list_arguments(name, own)
    # At least one task takes each argument, and at least one has lengths if lengths are given.
    taken: dict[str, None] = {}
    for name, own, _ in parts:
        taken |= dict.fromkeys(_list_arguments(name, own))
    taken.pop("length", None)
    for key in config.arguments:
        if key not in taken:
            choices = list_choices(key, taken)
            raise config.source_map.error(
                ("arguments", key),
                f" is an argument that none of the tasks takes; {choices}",
            )
    if config.lengths and not any(
        name in OURS and OURS[name].axis for name, *_ in parts
    ):
        raise config.source_map.error(
            ("lengths",), " is given, but no task has lengths; leave it out"
        )
    for name, own, path in parts:
        shared = {}
        for key, value in config.arguments.items():
            if key in _list_arguments(name, own):
                shared[key] = value
        for length_path, length in _lengths(config, name, own):
            at = {} if length is None else {"length": length}
            if length_path:
                with config.source_map.at(length_path):
                    check_length(OURS[name], name, {**at, **own})
                with config.source_map.at(path):
                    _check(name, {**at, **own})
            # Arguments are added one by one, so that an error has the location of the one that is wrong.
            checked = {**at, **own}
            for key in sorted(shared.keys() - own.keys(), key=_order_check):
                checked[key] = shared[key]
                with config.source_map.at(("arguments", key)):
                    _check(name, checked)
            yield (
                name,
                {
                    **at,
                    **shared,
                    **own,
                },
                path,
            )


_CHECKED_FIRST = ("method", "temperature")
"""Arguments beside which alone others are valid: a method's own, and those that say how tokens are drawn."""


def _order_check(argument: str) -> tuple[bool, str]:
    return argument not in _CHECKED_FIRST, argument


def _lengths(
    config: RunConfig, name: str, own: Mapping[str, Any]
) -> list[tuple[KeyPath, Any]]:
    """Return the lengths of a task with its own arguments, each with its key path. Without lengths it is a single None."""
    if name not in OURS or OURS[name].axis is None or "length" in own:
        return [((), None)]
    if not config.lengths:
        raise config.source_map.error(
            ("lengths",),
            f" is missing, and {name} has lengths; give a list such as [8k, 128k]",
        )
    lengths: list[tuple[KeyPath, Any]] = []
    for number, length in enumerate(config.lengths):
        lengths.append((("lengths", number), length))
    return lengths


def _list_arguments(name: str, own: Mapping[str, Any]) -> list[str]:
    """Return the arguments that a run entry, ours or HELM's, takes in addition to its own arguments."""
    if name in OURS:
        benchmark = OURS[name]
        return [
            *allowed_arguments(benchmark, name, own.get(benchmark.task_argument)),
            *expander_names(),
        ]
    function = find_run_spec_function(name)
    return [
        *(inspect.signature(function).parameters if function else ()),
        *expander_names(),
    ]


def _check_name(name: str) -> None:
    check_name(name, lambda name: find_run_spec_function(name) is not None)


def _check(name: str, arguments: Mapping[str, Any]) -> str:
    """Check an entry and return the model that it names, or empty if it names no model or a group of models."""
    _check_name(name)
    if name in OURS:
        check_run_entry(name, arguments)
    else:
        allowed = _list_arguments(name, {})
        for key in arguments:
            if key not in allowed:
                raise InputError(
                    f"{name}: unknown argument {key}; {list_choices(key, allowed)}"
                )
    model = next((str(arguments[key]) for key in _MODEL if key in arguments), "")
    # To HELM a word without a slash is a group of models (helm/benchmark/run.py:51).
    return model if "/" in model else ""


def _judge(
    config: RunConfig, name: str, arguments: Mapping[str, Any]
) -> dict[str, str]:
    """Return the argument `judge` of an entry with the configuration's judges, or empty if they cannot judge the entry.

    Citations keep their NLI model: language models judge them only if the entry itself has the argument `judge`.
    """
    names = "+".join(map(model_name, config.judge.judges))
    if names == "auto" or name not in OURS or "judge" in arguments:
        return {}
    annotator = OURS[name].entries[name].judge
    is_judged = annotator and "judge" in _list_arguments(name, arguments)
    is_able = names == "none" or (
        annotator and issubclass(load_class(annotator), AnswerAnnotator)
    )
    return {"judge": names} if is_judged and is_able else {}


def _format(name: str, arguments: Mapping[str, Any]) -> str:
    texts = {}
    for key, value in arguments.items():
        texts[key] = str(value).lower() if isinstance(value, bool) else value
    pairs = ",".join(f"{key}={text}" for key, text in texts.items())
    return f"{name}:{pairs}" if pairs else name
