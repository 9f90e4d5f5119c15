"""Finds the whole prompt and the records of an instance by its name on a run's page."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from helm_longctx.errors import InputError, bad_argument
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runs.files import STATES, read_json
from helm_longctx.runs.prompts import INDEX, instance_names, stored_prompt
from helm_longctx.runs.records import Record, read_records

_Value = TypeVar("_Value")


def full_prompt(run_path: Path, instance: str) -> str:
    """Return a prompt exactly as it was sent, a conversation as JSON of its messages. Raises an `InputError`."""
    if (run_path / INDEX).is_file():
        names = read_json(run_path / INDEX)["instances"]
        return stored_prompt(run_path, _choose(run_path, names, instance), instance)
    # HELM's own runner keeps a prompt whole in the request states.
    record = find_records(run_path, instance)[0]
    if record.prompt_digest != digest(record.prompt):
        raise InputError(
            f"{run_path / INDEX} is missing, and {STATES} has only a part of the prompt"
            f" of {instance}"
        )
    return record.prompt


def find_records(run_path: Path, instance: str) -> list[Record]:
    """Return an instance's records in the order of its repeats. Raises an `InputError`."""
    if not (run_path / STATES).is_file():
        raise InputError(
            f"{run_path} is not the folder of a run that has started; give another run"
        )
    rows = []
    for record in read_records(run_path):
        rows.append((record.instance, record.task or None, record.prompt_digest))
    names = instance_names(rows)
    chosen = _choose(run_path, {name: name for name in names}, instance)
    records = zip(names, read_records(run_path), strict=True)
    return [record for name, record in records if name == chosen]


def _choose(run_path: Path, by_name: Mapping[str, _Value], name: str) -> _Value:
    if name in by_name:
        return by_name[name]
    if rivals := [other for other in by_name if other.rpartition("#")[0] == name]:
        raise bad_argument(
            run_path.name,
            "instance",
            name,
            f"one of {', '.join(rivals)}, which share this id",
        )
    some = list(by_name)[:3]
    raise bad_argument(
        run_path.name,
        "instance",
        name,
        f"one of {', '.join(some)} … ({len(by_name)} in all)",
    )
