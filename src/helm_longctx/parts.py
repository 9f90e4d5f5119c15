"""Loads the records of other packages by their entry points: benchmarks, analyses, methods and providers.

A record that cannot be used is found when it is loaded, and is left out with one warning. Other packages can have any
mistake, and none may stop what does not need the record. No code besides the registries has to doubt a record.
"""

from __future__ import annotations

import inspect
import logging
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import cache, cached_property, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from traceback import format_exception_only
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from helm_longctx.errors import InputError, bad_argument, shorten
from helm_longctx.process_state import undo_at_end

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_Value = TypeVar("_Value")

_MOST_CHARACTERS = 300
"""Most characters of an error in a warning."""

_log = logging.getLogger(__name__)


def load_plugins(
    group: str,
    noun: str,
    check: Callable[[Any], _Value],
) -> Iterator[_Value]:
    """Yield the records of other packages, sorted by the names of their entry points.

    The order does not depend on the order of installation, so neither does the choice between two with the same name.

    Args:
        noun: what the records are, for warnings.
        check: returns a record that can be used, and raises an `InputError` for any other object.
    """
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        record = leave_out_faulty(noun, point.value, partial(_load, point, check))
        if record is not None:
            yield record


def _load(point: EntryPoint, check: Callable[[Any], _Value]) -> _Value:
    return check(point.load())


def import_user_module(name: str) -> ModuleType:
    """Import a module that a user names: an installed one, or one in the folder of the command.

    An installed program does not have its folder on Python's path. It is last there, so that no file in the folder takes
    the place of an installed module.
    """
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
        undo_at_end(partial(sys.path.remove, folder))
    return import_module(name)


def leave_out_faulty(
    noun: str,
    where: str,
    load: Callable[[], _Value],
) -> _Value | None:
    """Return what a function loads, with its prints on standard error; None, after a warning, if it fails."""
    try:
        with redirect_stdout(sys.stderr):
            return load()
    except KeyboardInterrupt:
        raise
    except (
        BaseException
    ) as error:  # `sys.exit` at import must not end the command, either
        what = (
            str(error)
            if isinstance(error, InputError)
            else format_exception_only(error)[-1]
        )
        text = textwrap.shorten(what, _MOST_CHARACTERS, placeholder=" …")
        _log.warning("%s %s is left out: %s", noun, where, text)
        return None


def check_fields(
    record: object,
    kind: type,
    names: Mapping[str, Any] | None = None,
) -> None:
    """Raise an `InputError` if an object is no record of a class, or a field does not have its type.

    Its properties are computed, and may raise anything else. `names` are those in annotations without run time.
    """
    if not isinstance(record, kind):
        raise InputError(f"{shorten(record)} is not of the type {kind.__name__}")
    for name, hint in get_type_hints(kind, localns=dict(names or {})).items():
        check_type(name, getattr(record, name), hint)
    check_properties(record)


def check_type(name: str, value: object, hint: Any) -> None:
    """Raise an `InputError` with `name` and the place if a value, or a part of it, does not have a type."""
    # pydantic takes a tenth of a second, and is needed only if there are records of other packages.
    from pydantic import ValidationError

    try:
        _make_validator(hint).validate_python((value,))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InputError(
            f"{'.'.join(map(str, (name, *first['loc'][1:])))}: {first['msg']}"
        ) from None


@cache
def _make_validator(hint: Any) -> TypeAdapter[tuple[Any]]:
    from pydantic import ConfigDict, TypeAdapter

    config = ConfigDict(
        strict=True,
        arbitrary_types_allowed=True,
        revalidate_instances="always",
    )
    # A tuple, because a dataclass itself would ignore the configuration.
    return TypeAdapter(tuple[hint], config=config)


def check_properties(record: object) -> None:
    """Compute every property of a record, so that one that raises an error is found."""
    for name in dir(type(record)):
        if isinstance(
            inspect.getattr_static(type(record), name), property | cached_property
        ):
            getattr(record, name)


def check_name(what: str, name: str) -> None:
    """Raise an `InputError` if a name in run entries and files has not only letters, digits, `_`, `-`, `.`."""
    if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
        raise bad_argument(what, "name", name, "letters, digits, '_', '-' and '.'")
