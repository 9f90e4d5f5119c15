"""The names of a run's files, small files of a run, and the recognition of damaged files."""

import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import orjson

from helm_longctx.errors import DamagedRunError, InputError, shorten
from helm_longctx.tasks.sample import Sample
from helm_longctx.writing import replace_file

RUN_SPEC = "run_spec.json"
SCENARIO = "scenario.json"
STATES = "scenario_state.json"
STATS = "stats.json"
INSTANCE_STATS = "per_instance_stats.json"
_LOOKS = "looks.json"
DATA = "data.json"
"""The files that the questions were read from, with their digests."""
MODEL = "python_model.json"
"""What identifies a model that ran in the process of the run."""

FILES = (RUN_SPEC, SCENARIO, STATES, STATS, INSTANCE_STATS)
"""HELM's files, in the order in which HELM writes them. A run is complete if it has the last one."""

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

_TAIL = 16
"""Bytes read at the end of a file to see whether the file is complete."""

FORMAT_ERRORS = (OSError, ValueError, LookupError, TypeError, AttributeError)
"""Errors of code that reads a file in another form."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise a `DamagedRunError` for any error in the block."""
    try:
        yield
    except DamagedRunError:
        raise  # the error of a file that was read within the block
    except FORMAT_ERRORS as error:
        raise DamagedRunError(
            f"{path} cannot be read ({type(error).__name__}); repeat that run"
        ) from error


def read_json(path: Path) -> Any:
    """Read a small JSON file. Raises an `InputError` if the file is missing or damaged."""
    with reading(path):
        return parse(path.read_bytes())


def read_model(run: Path) -> dict[str, Any]:
    """Return what identifies a run's model (empty if it ran elsewhere), or raise an `InputError`."""
    path = run / MODEL
    return dict(read_json(path)) if path.is_file() else {}


def write_model(run: Path, identity: Mapping[str, Any]) -> None:
    """Write what identifies the model of a run."""
    run.mkdir(parents=True, exist_ok=True)
    content = orjson.dumps(identity, option=orjson.OPT_INDENT_2, default=str)
    # A file that is cut off by an interruption could not be compared when the run goes on.
    replace_file(run / MODEL, content)


def read_data(run: Path) -> dict[str, str]:
    """Return the SHA-256 of the files that a run's questions were read from, by path. Older runs have none.

    Raises an `InputError` if the file is damaged.
    """
    path = run / DATA
    if not path.is_file():
        return {}
    with reading(path):
        return {name: str(about["sha256"]) for name, about in read_json(path).items()}


def write_data(run: Path, described: Mapping[str, Any]) -> None:
    """Write which files a run's questions were read from. A run without files gets none."""
    if described:
        run.mkdir(parents=True, exist_ok=True)
        replace_file(run / DATA, orjson.dumps(described, option=orjson.OPT_INDENT_2))


_LONGEST_RUN_NAME = 240
"""Bytes of the longest run name. File systems allow 255 for a folder, and names of lock files are a few bytes longer."""


def check_run_name(name: str) -> None:
    """Raise an `InputError` if the name of a run is too long for its folder."""
    size = len(name.encode())
    if size > _LONGEST_RUN_NAME:
        raise InputError(
            f"the name of the run has {size} bytes, and at most {_LONGEST_RUN_NAME} are"
            f" allowed because its folder has this name: {shorten(name)}; use a shorter"
            " name of the model, or fewer arguments"
        )


def read_run_spec(run: Path) -> dict[str, Any]:
    """Read the run spec of a run's folder. Raises an `InputError` if it is missing or damaged."""
    path = run / RUN_SPEC
    spec = read_json(path)
    with reading(path):
        if not isinstance(spec, dict):
            raise TypeError("a run spec is an object")
    return spec


def find_runs(suite: Path) -> list[Path]:
    """Return the folders of a suite that have a run spec, sorted."""
    return [path.parent for path in sorted(suite.glob(f"*/{RUN_SPEC}"))]


def read_undamaged(
    runs: Iterable[Path],
    read: Callable[[Path], _T],
) -> Iterator[tuple[Path, _T]]:
    """Yield each run with what `read` returns for it. Runs for which it raises an `InputError` are left out.

    At the end there is a warning for each run that was left out.

    Raises:
        InputError: every run is damaged. It is the error of the first one.
    """
    errors: list[InputError] = []
    has_readable_run = False
    for run in runs:
        try:
            content = read(run)
        except InputError as error:
            errors.append(error)
            continue
        has_readable_run = True
        yield run, content
    if errors and not has_readable_run:
        raise errors[0]
    for damage in errors:
        _log.warning("left out: %s", damage)


def read_run_specs(suite: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the folders and run specs of a suite's runs, sorted. Damaged ones are left out with a warning.

    Raises an `InputError` if all of them are damaged.
    """
    return read_undamaged(find_runs(suite), read_run_spec)


def find_sample(instance: Mapping[str, Any]) -> Sample | None:
    """Return the sample in an instance's `extra_data`. An instance of another package's scenario has none."""
    extra = instance.get("extra_data")
    return Sample.from_json(extra) if Sample.is_in(extra) else None


def repeat_of(answer: Mapping[str, Any]) -> int:
    """Return the number of the repeat, from 0, of a request state or of a row of statistics."""
    return answer.get("train_trial_index") or 0


def write_looks(run: Path, looks: Iterable[int]) -> None:
    """Write after how many instances somebody looked at a run and could stop it, as tests must know."""
    replace_file(run / _LOOKS, orjson.dumps(sorted(looks)))


def read_looks(run: Path) -> tuple[int, ...]:
    """Return what `write_looks` wrote, ascending (nothing for a run of fixed size), or raise an `InputError`."""
    path = run / _LOOKS
    if not path.exists():
        return ()
    with reading(path):
        return tuple(sorted({int(size) for size in read_json(path)}))


def find_incomplete_files(run_path: Path) -> list[str]:
    """Return the names of HELM's files of a run that are missing or cut off. Only the ends of the files are read."""
    incomplete = []
    for name in FILES:
        end = b""
        with suppress(OSError), (run_path / name).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            end = file.read().rstrip()
        # In indented JSON only the last bracket stands at the start of a line.
        if not end.endswith((b"\n}", b"\n]")) and end not in (b"{}", b"[]"):
            incomplete.append(name)
    return incomplete


def parse(data: bytes) -> Any:
    """Parse JSON that HELM or this package has written. Raises a `ValueError` if it is damaged."""
    try:
        return orjson.loads(data)
    except ValueError:  # HELM may write NaN and lone surrogates, which orjson refuses
        return json.loads(data, parse_int=_parse_number, parse_float=_parse_number)


def _parse_number(digits: str) -> int | float:
    """Return a number. One that no float can hold, such as 1e400, is damage."""
    if math.isinf(value := float(digits)):
        raise ValueError("the number is too large")
    return int(digits) if digits.lstrip("-").isdigit() else value
