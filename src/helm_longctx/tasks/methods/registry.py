"""Finds the methods of this package, and the methods of other installed packages by their entry points."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from helm_longctx.environment import EXTRAS, require
from helm_longctx.errors import InputError, bad_argument, list_choices, shorten
from helm_longctx.parts import check_fields, check_name, check_type, load_plugins
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.lengths import SMALLEST
from helm_longctx.tasks.methods.agent import AGENT
from helm_longctx.tasks.methods.memory import MEMORY
from helm_longctx.tasks.methods.method import Method
from helm_longctx.tasks.methods.native_tools import NATIVE_TOOLS
from helm_longctx.tasks.methods.prompts import (
    CLOSED_BOOK,
    COT,
    QUESTION_ONLY,
    RETRIEVE,
    RETRIEVE_REASON,
)
from helm_longctx.tasks.methods.reading import COMPACT, MAP_REDUCE, READ_TWICE, REFINE
from helm_longctx.tasks.methods.recursive import RECURSIVE
from helm_longctx.tasks.prompt import Template
from helm_longctx.tasks.sandbox import check_sandbox
from helm_longctx.tasks.task import PLAIN, Example, Settings, Task

GROUP = "helm_longctx.methods"
"""The group of entry points that name a `Method` of another package, by convention `package.module:METHOD`."""

_OURS = (
    RETRIEVE,
    RETRIEVE_REASON,
    CLOSED_BOOK,
    QUESTION_ONLY,
    COT,
    COMPACT,
    MAP_REDUCE,
    REFINE,
    READ_TWICE,
    MEMORY,
    RECURSIVE,
    AGENT,
    NATIVE_TOOLS,
)

_SAMPLE = Task(
    name="sample",
    title="Sample",
    template=Template("{context}\n{question}", "Answer:"),
    load=lambda task, settings, root: (),
    score=lambda record: {},
    headline=(),
    metrics=(),
    max_tokens=1,
    sizes={SMALLEST: 1},
    unscored="a sample",
)
"""A task that every method must be able to look at."""


def load_methods() -> dict[str, Method]:
    """Load all methods by name: ours first, then other packages' methods.

    A method of another package is left out with a warning if it cannot be used, has the name of another one, or has an
    argument of tasks, because entries without the method would then be refused.
    """
    methods = {method.name: method for method in _OURS}
    for method in load_plugins(GROUP, "method", partial(_check, methods)):
        methods[method.name] = method
    return methods


def _check(others: Mapping[str, Method], method: Any) -> Method:
    """Return a method of another package, if it can be used beside others."""
    check_fields(method, Method)
    for name in (method.name, *method.arguments):
        check_name("method", name)
    own = {field.name for field in fields(Settings)}
    if taken := ({method.name} & {PLAIN, *others}) | (own & set(method.arguments)):
        raise InputError(f"{', '.join(sorted(taken))} is the name of something else")
    for name, default in method.arguments.items():
        if isinstance(default, int) and default < 1:
            raise bad_argument("method", name, default, "a whole number from 1")
    if method.extra and method.extra not in EXTRAS:
        raise bad_argument("method", "extra", method.extra, EXTRAS)
    check_type("fits", method.fits(_SAMPLE), bool)
    check_type("first_tokens", method.first_tokens(_SAMPLE), int)
    return method


METHODS: Mapping[str, Method] = load_methods()

METHOD_ARGUMENTS: dict[str, type] = {}
for _method in METHODS.values():
    METHOD_ARGUMENTS |= {
        name: type(default) for name, default in _method.arguments.items()
    }
"""The run-entry arguments of methods, with the type of each: a whole number or a text."""


def check_method(
    benchmark: Benchmark,
    name: str,
    arguments: Mapping[str, Any],
    tasks: Sequence[Task],
) -> Method | None:
    """Return the method that a run entry names, or None for the task's own prompts.

    Args:
        name: the entry's name.
        arguments: the entry's arguments.

    Raises:
        InputError: there is no such method, it cannot ask a task, or an argument belongs to another method.
    """
    given = str(arguments.get("method", PLAIN))
    if given not in (PLAIN, *METHODS):
        raise bad_argument(name, "method", given, (PLAIN, *METHODS))
    method = METHODS.get(given)
    for key in METHOD_ARGUMENTS:
        if key in arguments and not (method and key in method.arguments):
            owners = []
            for owner in METHODS.values():
                if key in owner.arguments:
                    owners.append(owner)
            names = " or ".join(f"method={owner.name}" for owner in owners)
            value = shorten(arguments[key])
            raise InputError(
                f"{name}: {key}={value} is an argument of {names}; give both",
                argument=key,
            )
    if method is None:
        return None
    if arguments.get("context") == "none":
        raise InputError(
            f"{name}: method={method.name} and context=none exclude each other;"
            " method=closed_book also leaves out the context",
            argument="context",
        )
    if method.answer and arguments.get("retry_cut") is not None:
        raise InputError(
            f"{name}: method={method.name} and retry_cut exclude each other; leave out retry_cut",
            argument="retry_cut",
        )
    if lacking := [task.argument for task in tasks if not method.can_ask(task)]:
        raise _cannot_ask(benchmark, name, method, lacking)
    return method


def _cannot_ask(
    benchmark: Benchmark,
    name: str,
    method: Method,
    lacking: Sequence[str],
) -> InputError:
    # The registry of benchmarks imports all of them, and they are needed only here.
    from helm_longctx.tasks.registry import BENCHMARKS

    category = benchmark.entries[name]
    able = []
    for task in (*category.tasks, *category.variants):
        if method.can_ask(task):
            able.append(f"{benchmark.task_argument}={task.argument}")
    if able:
        choices = list_choices("", able)
    else:
        others = []
        for other in BENCHMARKS:
            if any(map(method.can_ask, other.tasks)):
                others.append(other.name)
        choices = f"benchmarks that have them: {', '.join(others)}"
    return InputError(
        f"{name}: method={method.name} cannot ask {shorten(', '.join(lacking))[1:-1]},"
        f" because it needs {method.needs or 'a context and a question'}; {choices}",
        argument="method",
    )


def require_method(method: str) -> None:
    """Check that the extra that a method needs is installed, and that the sandbox works if it needs that.

    Raises:
        InputError: one of both is missing. The message says what to do.
    """
    if method not in METHODS:
        return
    if extra := METHODS[method].extra:
        require(extra, f"method={method}")
    if METHODS[method].needs_sandbox:
        check_sandbox(f"method={method} runs code that the model writes")


def ask(task: Task, settings: Settings, example: Example) -> Example:
    """Return the example that is sent by the entry's method.

    Raises:
        InputError: the example has messages of its own, so it has no context that is known.
    """
    method = METHODS.get(settings.method)
    if method is None:
        return example
    if example.messages:
        raise InputError(
            f"{task.name}: {example.id} has messages, but method={method.name} needs a"
            " context and a question"
        )
    if method.answer and example.follow_up:
        raise InputError(
            f"{task.name} itself has two requests, so method={method.name} cannot ask"
            " it; leave it out"
        )
    # Another prompt has another number of tokens.
    return replace(method.ask(task, settings, example), input_tokens=None, counter=None)
