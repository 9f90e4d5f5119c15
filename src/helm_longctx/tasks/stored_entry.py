"""Writes a run entry into the arguments of HELM's scenario, and reads it back out of a run spec.

A run spec is the only record that HELM carries from a run entry to the scenario, to a stored run and to every reader.
Nothing else says what a run was asked with: `read_entry` is the one reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from typing import Any

from helm_longctx.tasks.entry import Entry, check_entry
from helm_longctx.tasks.registry import benchmark_of
from helm_longctx.tasks.request_settings import SAMPLING, RequestSettings

_IN_OTHER_FIELDS = ("judge", "repeats")
"""Arguments that HELM has fields for: the annotators and the number of trials."""


OF_REQUESTS = ("style", "truncation", *SAMPLING)
"""Arguments that change how questions are asked, and no question."""

_OTHER_ARGUMENTS = ("revision", "comparability", "files")
"""Arguments of the scenario that no run entry has: what the run spec was made with."""


def scenario_arguments(entry: Entry) -> dict[str, Any]:
    """Return an entry as the arguments of a scenario: plain JSON data."""
    arguments = {}
    for name, value in entry.arguments.items():
        if name not in _IN_OTHER_FIELDS:
            arguments[name] = value
    if entry.settings.length is not None:
        # The length is a number, so that `8k` and `8192` make the same scenario.
        arguments["length"] = entry.settings.length
    temperature = entry.settings.request.sampling.temperature
    if temperature is not None:
        arguments["temperature"] = temperature
    return {"entry": entry.name, **arguments}


def check_arguments(entry: str, arguments: Mapping[str, Any]) -> Entry:
    """Return the entry that `scenario_arguments` has written, or raise an `InputError`.

    Args:
        entry: the run entry's name.
        arguments: the run entry's arguments as the scenario has them.
    """
    given = dict(arguments)
    temperature = given.pop("temperature", None)
    checked = check_entry(benchmark_of(entry), entry, given)
    if temperature is None:
        return checked
    request = checked.settings.request
    sampling = replace(request.sampling, temperature=float(temperature))
    return replace_request(checked, replace(request, sampling=sampling))


def replace_request(entry: Entry, request: RequestSettings) -> Entry:
    """Return the entry with other settings of its requests, whatever its arguments say."""
    return replace(entry, settings=replace(entry.settings, request=request))


def read_entry(spec: Any) -> Entry | None:
    """Return what a run was asked with, or None for another package's scenario and for published results.

    Args:
        spec: HELM's `RunSpec`, or the content of `run_spec.json`.

    Raises:
        InputError: the installed version does not know the benchmark or an argument.
    """
    if is_dataclass(spec) and not isinstance(spec, type):
        content: Mapping[str, Any] = asdict(spec)
    else:
        content = spec
    arguments = dict(content["scenario_spec"].get("args") or {})
    name = arguments.pop("entry", None)
    if name is None:
        return None
    for other in _OTHER_ARGUMENTS:
        arguments.pop(other, None)
    annotators = content.get("annotators") or []
    judges = (annotator.get("args", {}).get("judge") for annotator in annotators)
    judge = next(filter(None, judges), None)
    entry = check_arguments(name, arguments)
    settings = replace(
        entry.settings, repeats=content.get("adapter_spec", {}).get("num_trials", 1)
    )
    if judge is not None:
        settings = replace(settings, judge=judge)
    return replace(entry, settings=settings)
