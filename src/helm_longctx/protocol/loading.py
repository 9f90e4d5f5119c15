"""A task's examples, checked: what is wrong with a file is one line, whichever loader reads it."""

from __future__ import annotations

from collections.abc import Iterator

from helm_longctx.errors import InputError, is_format_error, shorten
from helm_longctx.protocol.shapes import TEXT, TEXTS
from helm_longctx.protocol.task import Example, Settings, Task
from helm_longctx.sources.root import DataRoot


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
        if not is_format_error(error):
            raise
        what = f"{type(error).__name__}: {shorten(str(error))}"
        raise InputError(f"{where}: a row is not as {task.name} has it ({what})") from error
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
