"""A task's examples, checked: what is wrong with a file is one line, whichever loader reads it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from traceback import format_tb

from helm_longctx.errors import InputError, is_unfit, shorten
from helm_longctx.protocol.shapes import TEXT, TEXTS
from helm_longctx.protocol.task import Example, Settings, Task
from helm_longctx.sources.jsonl import find_row
from helm_longctx.sources.root import DataRoot

_log = logging.getLogger(__name__)


def load_examples(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """A task's examples in the official order.

    Raises:
        InputError: a file is malformed, or has no row for the task.
    """
    where, count = files_read(task, settings, root), 0
    try:
        for example in task.load(task, settings, root):
            _check(task, example, where)
            count += 1
            yield example
    except InputError:
        raise
    except BaseException as error:
        if not is_unfit(error):
            raise
        # Only the places in the code: the error's own text can hold a part of a row.
        _log.debug("%s:\n%s", task.name, "".join(format_tb(error.__traceback__)))
        row = find_row(error.__traceback__) or f"a row of {where}"
        what = f"{type(error).__name__} {shorten(error.args[0] if error.args else '')}"
        raise InputError(f"{row} does not have {task.name}'s format: {what}") from error
    if not count:
        raise InputError(f"{where}: no row is left for {task.name}: it is other data, or texts are too short")


def files_read(task: Task, settings: Settings, root: DataRoot) -> str:
    """The files that the task is read from, for errors."""
    return ", ".join(str(root / path) for path in task.paths(settings.length) if root.has(path))


def _check(task: Task, example: Example, where: str) -> None:
    """A prompt is made of texts alone, and a scorer gets what it can score."""
    if not TEXTS.fits(example.references):
        raise InputError(f"{where}: {example.id} has answers that are no strings")
    for name in sorted(task.template.names):
        TEXT.check(f"{where}: {example.id}: {name}", example.fields[name])
    task.check_record(example.record, f"{where}: {example.id}")
