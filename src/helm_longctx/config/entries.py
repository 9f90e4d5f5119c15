"""The run entries of a configuration: tasks are combined with lengths and arguments, and every entry is checked."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from helm.benchmark.run_expander import RUN_EXPANDERS
from helm.benchmark.run_spec import get_run_spec_function
from helm.common.object_spec import get_class_by_name

from helm_longctx.config.local_models import expand, find_sampling
from helm_longctx.config.places import KeyPath, Places
from helm_longctx.config.schema import Endpoint, LocalModel, RunConfig
from helm_longctx.errors import InputError, list_choices, shorten
from helm_longctx.helm.command_line import read_conf
from helm_longctx.helm.names import check_name
from helm_longctx.helm.run_specs import check_run_entry
from helm_longctx.judging.answer_judge import AnswerAnnotator
from helm_longctx.tasks.entry import allowed_arguments, check_length, split_entry
from helm_longctx.tasks.methods.registry import METHOD_ARGUMENTS
from helm_longctx.tasks.registry import BENCHMARKS, OURS, expand_entry, find_protocol
from helm_longctx.tasks.task import GIVEN_TEXTS

_MODEL = ("model", "model_deployment")


@dataclass(frozen=True)
class PlannedEntry:
    """A checked run entry.

    Args:
        path: the entry's place in the configuration.
        model: the model that the entry names; empty if it names none.
    """

    text: str
    path: KeyPath
    model: str = ""


def plan_entries(config: RunConfig) -> list[PlannedEntry]:
    """Return the run entries of a configuration, each once.

    Raises:
        InputError: an entry, an argument or a length is invalid, or an entry has no model.
    """
    planned: dict[str, PlannedEntry] = {}
    sampled = []
    for asked, at in list_models(config):
        with config.places.at((*at, "sampling")):
            if sampling := find_sampling(asked):
                sampled.append((model_name(asked), sampling, (*at, "sampling")))
    for name, arguments, path in _with_retries(config):
        with config.places.at(path):
            model = _check(name, arguments)
        judged = {**_judge(config, name, arguments), **arguments}
        if not (model or config.models):
            text = _format(name, judged)
            allowed = "a list of names of models, or of mappings with name and url"
            raise config.places.error(("models",), f" is missing, and {shorten(text)} names no model; give {allowed}")
        if model or plain_models(config):
            text = _format(name, judged)
            planned.setdefault(text, PlannedEntry(text, path, model))
        # A sampling is a part of a run's entry, so a model with one has entries of its own.
        for named, sampling, place in [] if model else sampled:
            drawn = {**({} if arguments.get("metric") in GIVEN_TEXTS else sampling), **judged}
            with config.places.at(place):
                _check(name, drawn)
            text = _format(name, {**drawn, "model": named})
            planned.setdefault(text, PlannedEntry(text, path, named))
    return list(planned.values())


def model_name(model: str | Endpoint | LocalModel) -> str:
    """Return the name in HELM of a model of a configuration."""
    name = model if isinstance(model, str) else str(model.name)
    return name if isinstance(model, str) or "/" in name else f"endpoint/{name}"


def list_models(config: RunConfig) -> list[tuple[str | Endpoint | LocalModel, KeyPath]]:
    """Return the models of a configuration with their places. A mapping with a path can stand for several.

    Raises:
        InputError: there is no model at a path.
    """
    found: list[tuple[str | Endpoint | LocalModel, KeyPath]] = []
    for number, model in enumerate(config.models):
        path = ("models", number)
        if isinstance(model, LocalModel):
            with config.places.at(path):
                found += [(each, path) for each in expand(model)]
        else:
            found.append((model, path))
    return found


def plain_models(config: RunConfig) -> list[str]:
    """Return the names of the models that run each entry as it is, without a sampling of their own."""
    return [model_name(model) for model, _ in list_models(config) if isinstance(model, str) or not model.sampling]


Parts = tuple[str, dict[str, Any], KeyPath]
"""Name, arguments and place of an entry."""


def _combine(config: RunConfig) -> Iterator[Parts]:
    if config.tasks is not None:
        yield from _combine_tasks(config, config.tasks)
    for number, protocol in enumerate(config.protocols or []):
        place = ("protocols", number)
        with config.places.at(place):
            found = find_protocol(protocol, BENCHMARKS)[1]
            if not found.entries:
                raise InputError(f"{found.name!r} cannot be run ({found.obstacle})")
        for name, own, _ in (_split(config.places, text, place) for text in found.run_entries):
            allowed = _list_arguments(name, own)
            for key in config.arguments:
                if key not in allowed:
                    choices = list_choices(key, allowed)
                    raise config.places.error(("arguments", key), f" is not an argument of {name}; {choices}")
            # The configuration's arguments replace the protocol's own.
            yield name, {**own, **config.arguments}, place
    for number, text in enumerate(config.entries or []):
        yield from (_split(config.places, entry, ("entries", number)) for entry in expand_entry(text))
    for number, path in enumerate(config.conf_paths or []):
        entries = read_conf(str(path))
        if isinstance(entries, InputError):
            raise config.places.error(("conf_paths", number), f": {entries}")
        yield from (_split(config.places, text, ("conf_paths", number)) for text in entries)


def _with_retries(config: RunConfig) -> Iterator[Parts]:
    """Yield each entry and, if `retry_cut` is given, after it the one that asks again for its cut answers."""
    is_used = False
    for name, arguments, path in _combine(config):
        yield name, arguments, path
        if config.retry_cut and name in OURS and "retry_cut" not in arguments:
            is_used = True
            yield name, {**arguments, "retry_cut": config.retry_cut}, path
    if config.retry_cut and not is_used:
        given = f"={config.retry_cut} is given, but all entries are HELM's own, which do not take it; leave it out"
        raise config.places.error(("retry_cut",), given)


def _split(places: Places, text: str, path: KeyPath) -> Parts:
    with places.at(path):
        return (*split_entry(text), path)


def _combine_tasks(config: RunConfig, tasks: list[str]) -> Iterator[Parts]:
    parts = [
        _split(config.places, entry, ("tasks", number))
        for number, text in enumerate(tasks)
        for entry in expand_entry(text)
    ]
    for name, own, path in parts:
        with config.places.at(path):
            _check_name(name)
            _list_arguments(name, own)
    # At least one task takes each argument, and at least one has lengths if lengths are given.
    taken = {key: None for name, own, _ in parts for key in _list_arguments(name, own) if key != "length"}
    for key in config.arguments:
        if key not in taken:
            choices = list_choices(key, taken)
            raise config.places.error(("arguments", key), f" is an argument that none of the tasks takes; {choices}")
    if config.lengths and not any(name in OURS and OURS[name].axis for name, *_ in parts):
        raise config.places.error(("lengths",), " is given, but no task has lengths; leave it out")
    for name, own, path in parts:
        shared = {key: value for key, value in config.arguments.items() if key in _list_arguments(name, own)}
        for place, length in _lengths(config, name, own):
            at = {} if length is None else {"length": length}
            if place:
                with config.places.at(place):
                    check_length(OURS[name], name, {**at, **own})
                with config.places.at(path):
                    _check(name, {**at, **own})
            # Each argument is checked alone, so that an error has its place. A method's are valid only beside it.
            arguments = {**shared, **own}
            method = {"method": arguments["method"]} if "method" in arguments else {}
            for key in arguments.keys() & config.arguments.keys():
                with config.places.at(("arguments", key)):
                    beside = method if key in METHOD_ARGUMENTS else {}
                    _check(name, {**at, **own, **beside, key: arguments[key]})
            yield name, {**at, **shared, **own}, path


def _lengths(config: RunConfig, name: str, own: Mapping[str, Any]) -> list[tuple[KeyPath, Any]]:
    """Return the lengths at which a task is run, each with its place; a single None for a task without lengths.

    Args:
        own: the arguments that the task itself has.
    """
    if name not in OURS or OURS[name].axis is None or "length" in own:
        return [((), None)]
    if not config.lengths:
        raise config.places.error(("lengths",), f" is missing, and {name} has lengths; give a list such as [8k, 128k]")
    return [(("lengths", number), length) for number, length in enumerate(config.lengths)]


def _list_arguments(name: str, own: Mapping[str, Any]) -> list[str]:
    """Return the arguments that a run entry, ours or HELM's, takes in addition to its own arguments."""
    if name in OURS:
        benchmark = OURS[name]
        return [*allowed_arguments(benchmark, name, own.get(benchmark.task_argument)), *RUN_EXPANDERS]
    function = get_run_spec_function(name)
    return [*(inspect.signature(function).parameters if function else ()), *RUN_EXPANDERS]


def _check_name(name: str) -> None:
    check_name(name, lambda name: get_run_spec_function(name) is not None)


def _check(name: str, arguments: Mapping[str, Any]) -> str:
    """Check an entry and return the model that it names; empty if it names no model or a group of models."""
    _check_name(name)
    if name in OURS:
        check_run_entry(name, arguments)
    else:
        allowed = _list_arguments(name, {})
        for key in arguments:
            if key not in allowed:
                raise InputError(f"{name}: unknown argument {key}; {list_choices(key, allowed)}")
    model = next((str(arguments[key]) for key in _MODEL if key in arguments), "")
    # To HELM a word without a slash is a group of models (helm/benchmark/run.py:51).
    return model if "/" in model else ""


def _judge(config: RunConfig, name: str, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the argument `judge` of an entry with the configuration's judges; empty if they cannot judge the entry.

    Citations keep their NLI model: language models judge them only if the entry itself has the argument `judge`.
    """
    names = "+".join(map(model_name, config.judge.judges))
    if names == "auto" or name not in OURS or "judge" in arguments:
        return {}
    annotator = OURS[name].entries[name].judge
    is_judged = annotator and "judge" in _list_arguments(name, arguments)
    is_able = names == "none" or (annotator and issubclass(get_class_by_name(annotator), AnswerAnnotator))
    return {"judge": names} if is_judged and is_able else {}


def _format(name: str, arguments: Mapping[str, Any]) -> str:
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in arguments.items()}
    pairs = ",".join(f"{key}={text}" for key, text in texts.items())
    return f"{name}:{pairs}" if pairs else name
