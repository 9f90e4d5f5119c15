"""Makes the run entries of a configuration, and checks each of them once."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from helm_longctx.config.local_models import ConfiguredModel, find_sampling, model_name
from helm_longctx.config.schema import RunConfig
from helm_longctx.config.source_map import KeyPath
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, list_choices, shorten
from helm_longctx.helm.command_line import read_conf
from helm_longctx.helm.names import check_name, check_single
from helm_longctx.helm.registry import (
    expander_names,
    find_run_spec_function,
    load_class,
)
from helm_longctx.helm.run_specs import check_run_entry
from helm_longctx.judging.answer_judge import AnswerAnnotator
from helm_longctx.tasks.entry import (
    allowed_arguments,
    check_own_questions,
    split_entry,
)
from helm_longctx.tasks.registry import BENCHMARKS, OURS, expand_entry, find_protocol
from helm_longctx.tasks.request_settings import GIVEN_TEXTS

_MODEL = ("model", "model_deployment")


@dataclass(frozen=True)
class PlannedEntry:
    """A checked run entry, its key path in the configuration, and the model that it names, if any."""

    text: str
    path: KeyPath
    model: str = ""


@dataclass(frozen=True)
class _Draft:
    """A run entry that is not checked.

    Args:
        path: the key path of the entry.
        paths: the key paths of those arguments that stand elsewhere.
    """

    name: str
    arguments: Mapping[str, Any]
    path: KeyPath
    paths: Mapping[str, KeyPath] = field(default_factory=dict)


def plan_entries(
    config: RunConfig, models: Sequence[ConfiguredModel]
) -> list[PlannedEntry]:
    """Return the run entries of a configuration, each once.

    Args:
        models: the configuration's models (`expand_models`).

    Raises:
        InputError: an entry has an invalid part, or no model.
    """
    sampled = []
    for configured in models:
        path = (*configured.path, "sampling")
        with config.source_map.at(path):
            if sampling := find_sampling(configured):
                sampled.append((configured.name, sampling, path))
    is_any_plain = any(not configured.has_sampling for configured in models)
    planned: dict[str, PlannedEntry] = {}

    def plan(draft: _Draft, model: str) -> None:
        text = _format(draft.name, draft.arguments)
        entry = PlannedEntry(
            text=text,
            path=draft.path,
            model=model,
        )
        planned.setdefault(text, entry)

    for draft in _draft_entries(config):
        model = _check(config, draft)
        judged = replace(
            draft, arguments={**_choose_judge(config, draft), **draft.arguments}
        )
        if not (model or models):
            allowed = "a list of names of models, or of mappings with name and url"
            text = shorten(_format(judged.name, judged.arguments))
            raise config.source_map.error(
                ("models",), f" is missing, and {text} names no model; give {allowed}"
            )
        if model or is_any_plain:
            plan(judged, model)
        # A sampling is a part of a run's entry, so a model with one has entries of its own.
        for named, sampling, path in [] if model else sampled:
            drawn = judged
            if draft.arguments.get("metric") not in GIVEN_TEXTS:
                drawn = replace(judged, arguments={**sampling, **judged.arguments})
            _check(config, replace(drawn, path=path, paths={}))
            plan(
                replace(drawn, arguments={**drawn.arguments, "model": named}),
                named,
            )
    return list(planned.values())


def _draft_entries(config: RunConfig) -> Iterator[_Draft]:
    """Yield each entry and, if `retry_cut` is given, after it the one that asks again for its cut answers."""
    is_used = False
    for draft in _combine(config):
        yield draft
        is_ours = draft.name in OURS and "retry_cut" not in draft.arguments
        if config.retry_cut and is_ours:
            is_used = True
            arguments = {**draft.arguments, "retry_cut": config.retry_cut}
            yield replace(draft, arguments=arguments)
    if config.retry_cut and not is_used:
        given = f"={config.retry_cut} is given, but all entries are HELM's own, which do not take it; leave it out"
        raise config.source_map.error(("retry_cut",), given)


def _combine(config: RunConfig) -> Iterator[_Draft]:
    if config.tasks is not None:
        yield from _combine_tasks(config, config.tasks)
    if config.protocols:
        yield from _combine_protocols(config, config.protocols)
    for number, text in enumerate(config.entries or []):
        for entry in expand_entry(text):
            yield _split(config, entry, ("entries", number))
    for number, path in enumerate(config.conf_paths or []):
        entries = read_conf(str(path))
        if isinstance(entries, InputError):
            raise config.source_map.error(("conf_paths", number), f": {entries}")
        for text in entries:
            yield _split(config, text, ("conf_paths", number))


def _combine_tasks(config: RunConfig, tasks: Sequence[str]) -> Iterator[_Draft]:
    drafts = []
    taken_by: list[list[str]] = []
    for number, text in enumerate(tasks):
        for entry in expand_entry(text):
            draft = _split(config, entry, ("tasks", number))
            with config.source_map.at(draft.path):
                taken_by.append(_list_arguments(draft))
            drafts.append(draft)
    # At least one task takes each argument, and at least one has lengths if lengths are given.
    taken: dict[str, None] = {}
    for names in taken_by:
        taken |= dict.fromkeys(names)
    taken.pop("length", None)
    for key in config.arguments:
        if key not in taken:
            choices = list_choices(key, taken)
            raise config.source_map.error(
                ("arguments", key),
                f" is an argument that none of the tasks takes; {choices}",
            )
    if config.lengths and not any(map(_has_lengths, drafts)):
        raise config.source_map.error(
            ("lengths",), " is given, but no task has lengths; leave it out"
        )
    for draft, names in zip(drafts, taken_by, strict=True):
        shared = {}
        paths: dict[str, KeyPath] = {}
        for key, value in config.arguments.items():
            if key in names and key not in draft.arguments:
                shared[key] = value
                paths[key] = ("arguments", key)
        if not _has_lengths(draft) or "length" in draft.arguments:
            arguments = {**shared, **draft.arguments}
            yield replace(draft, arguments=arguments, paths=paths)
            continue
        if not config.lengths:
            raise config.source_map.error(
                ("lengths",),
                f" is missing, and {draft.name} has lengths; give a list such as [8k, 128k]",
            )
        for number, length in enumerate(config.lengths):
            yield replace(
                draft,
                arguments={"length": length, **shared, **draft.arguments},
                paths={**paths, "length": ("lengths", number)},
            )


def _combine_protocols(config: RunConfig, protocols: Sequence[str]) -> Iterator[_Draft]:
    """Yield the entries of protocols, if their benchmarks' own questions are there or the configuration needs none."""
    drafts = []
    asked = {}
    for number, protocol_name in enumerate(protocols):
        path = ("protocols", number)
        with config.source_map.at(path):
            benchmark, protocol = find_protocol(protocol_name, BENCHMARKS)
            if not protocol.entries:
                raise InputError(
                    f"{protocol.name!r} cannot be run ({protocol.obstacle})"
                )
        asked[protocol.name] = (benchmark, protocol.entries)
        for text in protocol.run_entries:
            draft = _split(config, text, path)
            allowed = _list_arguments(draft)
            for key in config.arguments:
                if key not in allowed:
                    choices = list_choices(key, allowed)
                    raise config.source_map.error(
                        ("arguments", key),
                        f" is not an argument of {draft.name}; {choices}",
                    )
            # The configuration's arguments replace the protocol's own.
            arguments = {**draft.arguments, **config.arguments}
            drafts.append(replace(draft, arguments=arguments))
    if not config.generated:
        check_own_questions(asked, DataRoot.find(config.output_path))
    yield from drafts


def _split(config: RunConfig, text: str, path: KeyPath) -> _Draft:
    """Return the draft of a run entry, whose name is checked here and nowhere else."""
    with config.source_map.at(path):
        name, arguments = split_entry(text)
        check_name(name, lambda name: find_run_spec_function(name) is not None)
        check_single(name)
    return _Draft(
        name=name,
        arguments=arguments,
        path=path,
    )


def _has_lengths(draft: _Draft) -> bool:
    return draft.name in OURS and OURS[draft.name].axis is not None


def _list_arguments(draft: _Draft) -> list[str]:
    """Return the arguments that a run entry, ours or HELM's, takes in addition to its own arguments."""
    if draft.name in OURS:
        benchmark = OURS[draft.name]
        task = draft.arguments.get(benchmark.task_argument)
        own = allowed_arguments(benchmark, draft.name, task)
    else:
        function = find_run_spec_function(draft.name)
        own = [*(inspect.signature(function).parameters if function else ())]
    return [*own, *expander_names()]


def _check(config: RunConfig, draft: _Draft) -> str:
    """Check an entry, and return the model that it names. It is empty if it names no model or a group of models.

    Raises:
        InputError: the entry is wrong. The error has the place of the argument that is wrong.
    """
    try:
        return _check_entry(draft)
    except InputError as error:
        path = draft.paths.get(error.argument, draft.path)
        raise config.source_map.error(path, f": {error}") from error


def _check_entry(draft: _Draft) -> str:
    name = draft.name
    if name in OURS:
        check_run_entry(name, draft.arguments)
    else:
        allowed = _list_arguments(replace(draft, arguments={}))
        for key in draft.arguments:
            if key not in allowed:
                raise InputError(
                    f"{name}: unknown argument {key}; {list_choices(key, allowed)}",
                    argument=key,
                )
    named = [str(draft.arguments[key]) for key in _MODEL if key in draft.arguments]
    # To HELM a word without a slash is a group of models (helm/benchmark/run.py:51).
    return named[0] if named and "/" in named[0] else ""


def _choose_judge(config: RunConfig, draft: _Draft) -> dict[str, str]:
    """Return the argument `judge` of an entry with the configuration's judges, or empty if they cannot judge the entry.

    Citations keep their NLI model: language models judge them only if the entry itself has the argument `judge`.
    """
    names = "+".join(map(model_name, config.judge.judges))
    if names == "auto" or draft.name not in OURS or "judge" in draft.arguments:
        return {}
    annotator = OURS[draft.name].entries[draft.name].judge
    is_judged = annotator and "judge" in _list_arguments(draft)
    is_able = names == "none" or (
        annotator and issubclass(load_class(annotator), AnswerAnnotator)
    )
    return {"judge": names} if is_judged and is_able else {}


def _format(name: str, arguments: Mapping[str, Any]) -> str:
    texts = []
    for key, value in arguments.items():
        text = str(value).lower() if isinstance(value, bool) else value
        texts.append(f"{key}={text}")
    return f"{name}:{','.join(texts)}" if texts else name
