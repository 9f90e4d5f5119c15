"""Loads a task's examples. If a loader fails, the error is one line that names the files.

With `stream=`, each question is asked at several points of its growing context.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from traceback import format_tb

from helm_longctx.data.jsonl import find_row
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import (
    InputError,
    PreconditionError,
    ShapeError,
    is_format_error,
    shorten,
)
from helm_longctx.tasks.methods.method import characters_of
from helm_longctx.tasks.methods.registry import ask, require_method
from helm_longctx.tasks.prompt import CONTEXT
from helm_longctx.tasks.task import TEXT, TEXTS, Example, Settings, Task

_log = logging.getLogger(__name__)


def load_examples(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load a task's examples in official order, check them, and ask them by the method, or raise an `InputError`."""
    task.check_extras()
    require_method(settings.method)
    for example in _load(task, settings, root):
        for asked in grow(example, settings.stream) if settings.stream else (example,):
            yield ask(task, settings, asked)


def _load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    where = list_files(task, settings, root)
    ids: set[str] = set()
    try:
        for example in task.load(task, settings, root):
            if not TEXTS.fits(example.references):
                raise InputError(
                    f"{where}: {example.id} has answers that are not strings"
                )
            # The names are sorted, so that the error does not depend on the order of a frozenset. It changes in each
            # process.
            for name in sorted(task.template.names):
                TEXT.check(f"{where}: {example.id}: {name}", example.fields[name])
            task.check_record(example.record, f"{where}: {example.id}")
            # HELM would end such a run with an error, but only after all requests.
            if example.id in ids:
                raise InputError(
                    f"{where}: two rows have the id {shorten(example.id)}; give each"
                    " row an id of its own"
                )
            ids.add(example.id)
            yield example
    except InputError:
        raise
    except BaseException as error:  # a panic of a library in Rust is not an Exception
        if not is_format_error(error):
            raise
        # Only the lines of code are logged, because the error's text can contain a part of a row.
        _log.debug("%s:\n%s", task.name, "".join(format_tb(error.__traceback__)))
        row = find_row(error.__traceback__) or f"a row of {where}"
        what = f"{type(error).__name__} {shorten(error.args[0] if error.args else '')}"
        raise ShapeError(f"{row} does not have {task.name}'s format: {what}") from error
    if not ids:
        raise PreconditionError(
            f"{where}: no row can be used for {task.name} with these arguments; the"
            " file has other data, or its texts are too short"
        )


_MOST_FILES = 5
"""Number of files that an error names."""


def list_files(task: Task, settings: Settings, root: DataRoot) -> str:
    """Return the names of the existing files that a task is loaded from, of many the first ones, for errors."""
    own = [Path(settings.path or "") / name for name in task.own_files]
    files = []
    for path in task.paths(settings.length):
        if root.has(path):
            files.append(root / path)
    names = list(map(str, [*files, *(path for path in own if path.is_file())]))
    if len(names) > _MOST_FILES:
        more = [f"{len(names) - _MOST_FILES} more files"]
    else:
        more = []
    return ", ".join([*names[:_MOST_FILES], *more])


_MOST_POINTS = 64


def grow(example: Example, tokens: int) -> Iterator[Example]:
    """Yield the example with the context that has come after each so many tokens, at last the whole one.

    The context ends at a line. All points of a question are one group, because their scores are not independent.

    Raises:
        InputError: there are too many points, or the example has no context.
    """
    if CONTEXT not in example.fields or example.messages:
        raise InputError(
            f"{example.id}: stream={tokens} needs a context and a question; leave out stream"
        )
    context = example.fields[CONTEXT]
    size = characters_of(tokens, context)
    points = -(-len(context) // size)
    if points > _MOST_POINTS:
        raise InputError(
            f"stream={tokens} asks {example.id} at {points} points of its context; at"
            f" most {_MOST_POINTS} are allowed, so give a larger number of tokens"
        )
    if example.depth is None:
        position = None
    else:
        position = example.depth * len(context)
    for point in range(1, points + 1):
        is_last = point == points
        end = len(context)
        if not is_last:
            # After the last whole line. A part without a line break is cut inside of its line.
            end = context.rfind("\n", 0, point * size) + 1 or point * size
        depth = None
        has_come = None
        if position is not None:
            has_come = position < end or is_last
            if position <= end:
                depth = min(1.0, position / max(1, end))
        yield replace(
            example,
            id=f"{example.id}@{point * tokens}",
            fields={**example.fields, CONTEXT: context[:end]},
            depth=depth,
            group=example.group or example.id,
            marks=[mark for mark in example.marks if mark[0] < end],
            read=(point * tokens, has_come),
            input_tokens=None,
            counter=None,
        )
