"""The arguments of run entries: their names, and the checks of their values."""

from __future__ import annotations

import re
from typing import Any

from helm_longctx.errors import InputError, bad_argument, shorten
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.lengths import Axis, length_label, parse_length
from helm_longctx.tasks.methods.registry import METHOD_ARGUMENTS
from helm_longctx.tasks.task import Task

ARGUMENTS = (
    "length",
    "shots",
    "seed",
    "texts",
    "num_samples",
    "style",
    "protocol",
    "labels",
    "context",
    "method",
    *METHOD_ARGUMENTS,
    "thinking_tokens",
    "truncation",
    "judge",
    "repeats",
    "retry_cut",
    "count_with",
    "depth",
    "path",
)
"""Arguments of run entries except the one that names a task, in the order of a run's name."""

OF_PROMPTS = ("seed", "shots", "labels", "protocol")
"""Arguments that change the question or the prompt of an instance, but not its name."""

# Official codes seed NumPy's legacy generator, which refuses larger seeds.
LARGEST_NUMBER = 2**32 - 1
MOST_REPEATS = 1000
MOST_TIMES = 1000
MOST_TEXTS = 1000
MOST_DEPTH = 100
MOST_SHOTS = 100_000
"""More than the longest context has room for. A training set sets no limit, because its rows are repeated if needed."""


def arguments_of(benchmark: Benchmark) -> tuple[str, ...]:
    """Return every argument that a benchmark's run entries can have, in the order of a run's name."""
    return (benchmark.task_argument, *ARGUMENTS)


def read_length(benchmark: Benchmark, name: str, value: Any, tasks: tuple[Task, ...]) -> int | None:
    """Return the length that a run entry names; None if the benchmark has no lengths.

    Raises:
        InputError: the length is missing, or none of the tasks exists at it.
    """
    axis = benchmark.axis
    if axis is None:
        if value is not None:
            raise InputError(f"{name}: length={shorten(value)}: {benchmark.title} has no lengths; leave it out")
        return None
    if value is None:
        raise InputError(f"{name}: length is missing; give {_lengths(axis, tasks)}")
    length = parse_length(value, where=name)
    at_any = axis.shortest <= length <= axis.longest
    if not any((task.any_length and at_any) or length in task.sizes for task in tasks):
        raise bad_argument(name, "length", value, _lengths(axis, tasks))
    return length


def _lengths(axis: Axis, tasks: tuple[Task, ...]) -> str:
    # A length is valid if one of the tasks exists at it, so sizes within a range need not be listed.
    if any(task.any_length for task in tasks):
        sizes = {size for task in tasks for size in task.sizes if not axis.shortest <= size <= axis.longest}
        span = f"any number of {axis.unit} from {length_label(axis.shortest)} to {length_label(axis.longest)}"
        return ", ".join([span, *map(length_label, sorted(sizes))])
    lengths = {length for task in tasks for length in task.sizes}
    return "one of " * (len(lengths) > 1) + ", ".join(length_label(length) for length in sorted(lengths))


def read_number(name: str, key: str, value: Any, at_least: int, at_most: int = LARGEST_NUMBER) -> int | None:
    """Return the whole number that an argument names; None if it is not given.

    Raises:
        InputError: it is no whole number in the range.
    """
    if value is None:
        return None
    try:
        number = int(str(value))
    except ValueError:
        # A text gets the same error as a number that is too small.
        number = at_least - 1
    if not at_least <= number <= at_most:
        limit = "" if at_most == LARGEST_NUMBER else f" to {at_most}"
        raise bad_argument(name, key, value, f"a whole number from {at_least}{limit}")
    return number


def read_times(name: str, key: str, value: Any) -> int | None:
    """Return the factor that an argument such as `4x` names; None if it is not given.

    Raises:
        InputError: it has another form, or the factor is not in 2 to `MOST_TIMES`.
    """
    if value is None:
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,3})x", str(value))
    if match is None or not 2 <= int(match[1]) <= MOST_TIMES:
        raise bad_argument(name, key, value, f"a factor from 2x to {MOST_TIMES}x, such as 4x")
    return int(match[1])


def read_choice(name: str, key: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """Return the value of an argument.

    Raises:
        InputError: it is not one of the allowed values.
    """
    if value not in allowed:
        raise bad_argument(name, key, value, allowed)
    return value
