"""Parses and checks run entries such as `helmet_recall:task=json_kv,length=8k`, before data is loaded or sent."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from helm_longctx.errors import InputError, bad_argument, list_choices, shorten
from helm_longctx.protocol.benchmark import Benchmark, Category
from helm_longctx.protocol.lengths import Axis, length_label, parse_length
from helm_longctx.protocol.task import Context, Labels, Settings, Style, Task, Truncation
from helm_longctx.sources.fetch import Source
from helm_longctx.sources.release import PinnedFile
from helm_longctx.sources.root import DataRoot, digest_files

ARGUMENTS = (
    "length",
    "shots",
    "seed",
    "num_samples",
    "style",
    "protocol",
    "labels",
    "context",
    "thinking_tokens",
    "truncation",
    "judge",
    "repeats",
    "count_with",
    "depth",
    "path",
)
"""Arguments of run entries beside the one that names a task, in the order of a run's name."""

# Official codes seed NumPy's legacy generator, which refuses larger seeds.
MOST = 2**32 - 1
MOST_REPEATS = 1000
MOST_DEPTH = 100
MOST_SHOTS = 100_000
"""More than the longest context has room for. A training set sets no limit, because its rows are repeated if needed."""

METHOD = "longctx"
"""`AdapterSpec.method` without `style` and `truncation`; with them `longctx_chat`, `longctx_chat_error` and so on."""

CLOSED_BOOK = "closed"
"""Part of the names of run groups without context, which distinguishes them from the others."""

JUDGED_BY = "_judged_by_"
"""Separates a run group from its judge, if that is not the official one."""

IN_FOLDER = "_in_folder_"
"""Separates a run group from the folder of the user's own files."""

_LONGEST_PART = 60
"""Most characters of a judge or a folder in a run group, because a run group is a file name."""

_SLASH = "--"
"""Replaces slashes in a run group."""


@dataclass(frozen=True)
class Entry:
    """A checked run entry without its model.

    Args:
        arguments: the arguments as the user wrote them. They are part of the run's name.
    """

    benchmark: Benchmark
    name: str
    tasks: tuple[Task, ...]
    settings: Settings
    arguments: Mapping[str, Any]

    @property
    def category(self) -> Category:
        """The category that the entry runs."""
        return self.benchmark.entries[self.name]

    @property
    def groups(self) -> list[str]:
        """The run groups: the category at this length, then each task at this length.

        Each judge other than the official one, and each folder of the user's own files, has its own groups, and so its
        own columns.
        """
        closed, folder = self.settings.context == "none", folder_name(self.settings.path)
        return [
            group_name(self.benchmark, name, self.label, closed, self._other_judge(tasks), folder)
            for name, tasks in ((self.category.name, self.tasks), *((task.name, (task,)) for task in self.tasks))
        ]

    def _other_judge(self, tasks: Iterable[Task]) -> str:
        judge = self.settings.judge
        # A category is official only if each of its judged tasks has its official judge.
        return "" if all(task.is_official(judge) for task in tasks) else judge

    @property
    def label(self) -> str:
        """The length's label; empty if the benchmark has no lengths."""
        return "" if self.settings.length is None else length_label(self.settings.length)

    @property
    def repeats(self) -> int:
        """How often each question is asked."""
        return self.settings.repeats or max(task.repeats for task in self.tasks)

    @property
    def title(self) -> str:
        """The title, e.g. `HELMET Recall 8k`; the task's instead of the category's if the entry names a task."""
        what = self.tasks[0].title if self.benchmark.task_argument in self.arguments else self.category.title
        closed = "closed book" if self.settings.context == "none" else ""
        return " ".join(filter(None, (self.benchmark.title, what, closed, self.label)))

    @property
    def description(self) -> str:
        """The entry in normal form: arguments in the usual order, and the length in its shortest notation."""
        arguments = {**self.arguments, **({"length": self.label} if self.label else {})}
        pairs = ",".join(f"{key}={arguments[key]}" for key in arguments_of(self.benchmark) if key in arguments)
        return f"{self.name}:{pairs}" if pairs else self.name

    @property
    def max_tokens(self) -> int:
        """The largest output budget of the tasks, tokens for thinking included."""
        return max(task.budget(self.settings) for task in self.tasks)

    @property
    def counts_tokens(self) -> bool:
        """Whether the examples are generated to fit the length by a tokenizer, which `count_with` names."""
        return any("count_with" in task.arguments for task in self.tasks)

    @property
    def temperature(self) -> float:
        """The temperature of requests. It belongs to the protocol, so all tasks have the same."""
        return max(task.variant(self.settings).temperature for task in self.tasks)

    @property
    def sources(self) -> list[Source]:
        """The data that a run needs."""
        return [source for task in self.tasks for source in task.sources(self.settings.length)]

    @property
    def files_digest(self) -> str | None:
        """The digest of the user's own files as they are now; None if the tasks read none, or if there are none."""
        return digest_own_files(self.tasks, self.settings.path)

    def judge_sources(self, root: DataRoot) -> list[Source]:
        """Return the files that the judge of a run needs.

        If the entry names no judge, these are only the small files; with a mirror there are none. A run without a named
        judge also works without these files.
        """
        if self.settings.judge == "none":
            return []
        # A pinned file is small (`PinnedFile`). The other files of judges can be models of many gigabytes, which a run
        # must not download unless the user asks for that judge.
        is_named = self.settings.judge != "auto"
        every = [source for task in self.tasks for source in task.judge_sources.values()]
        return [source for source in every if is_named or (isinstance(source, PinnedFile) and not root.mirror)]

    def check_machine(self) -> None:
        """Check that the answers can be scored on this machine.

        Raises:
            InputError: they cannot.
        """
        for task in self.tasks:
            if task.check_machine:
                task.check_machine()

    def fetch_command(self, root: DataRoot) -> str:
        """Return the command that fetches the entry's data."""
        return fetch_command([self], root)


def is_our_method(method: str) -> bool:
    """Whether an adapter method's name, with or without its arguments, is that of this package's adapter."""
    return method.split("_")[0] == METHOD


def digest_own_files(tasks: Iterable[Task], path: str | None) -> str | None:
    """Return the digest of the files that tasks read in the user's folder; None if there are no such files."""
    names = sorted({name for task in tasks for name in task.own_files})
    return digest_files(Path(path) / name for name in names) if path else None


def arguments_of(benchmark: Benchmark) -> tuple[str, ...]:
    """Return every argument that a benchmark's run entries can have, in the order of a run's name."""
    return (benchmark.task_argument, *ARGUMENTS)


def fetch_command(entries: Iterable[Entry], root: DataRoot) -> str:
    """Return the command that fetches the data of several entries."""
    names = " ".join(entry.description for entry in entries)
    return f"helm-longctx fetch {names}" + (f" --to {root.path}" if root.mirror else "")


def group_name(
    benchmark: Benchmark, name: str, label: str, closed: bool = False, judge: str = "", folder: str = ""
) -> str:
    """Return the run group of a category or task at a length.

    Examples: `helmet_rag_8k`; `helmet_closed_rag_8k` without context; `helmet_summ_8k_judged_by_vllm--judge`;
    `any_jsonl_8k_in_folder_my-test`.

    Args:
        judge: the judge; empty for the official one.
        folder: the `folder_name` of the user's own files; empty if there are none.
    """
    group = "_".join(filter(None, (benchmark.name, CLOSED_BOOK if closed else "", name, label)))
    group += f"{IN_FOLDER}{_file_name(folder)}" if folder else ""
    return f"{group}{JUDGED_BY}{_file_name(judge)}" if judge else group


def _file_name(text: str) -> str:
    """Return a part of a run group, which is also a file name."""
    return shorten_name(text.replace("/", _SLASH), _LONGEST_PART)


def folder_name(path: str | None) -> str:
    """Return the name of the folder of the user's own files, in tables and run groups; empty for None."""
    return re.sub(r"[^\w./~-]", "-", os.path.normpath(path)) if path else ""


def shorten_name(name: str, limit: int) -> str:
    """Return a name of at most `limit` characters: its start and a digest, if it is longer."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return name if len(name) <= limit else f"{name[: limit - len(digest) - 1]}~{digest}"


def judge_of(group: str) -> str:
    """Return the judge in a group's name; empty if it has none."""
    return group.partition(JUDGED_BY)[2].replace(_SLASH, "/")


def folder_of(group: str) -> str:
    """Return the folder in a group's name; empty if it has none."""
    return group.partition(JUDGED_BY)[0].partition(IN_FOLDER)[2].replace(_SLASH, "/")


def base_group(group: str) -> str:
    """Return a group's name without its folder and its judge."""
    return group.partition(JUDGED_BY)[0].partition(IN_FOLDER)[0]


def check_entry(benchmark: Benchmark, name: str, arguments: Mapping[str, Any]) -> Entry:
    """Check the arguments of a run entry.

    Raises:
        InputError: an argument is unknown, missing or has a value that is not allowed for these tasks.
    """
    names = arguments_of(benchmark)
    for key in arguments:
        if key not in names:
            raise _unknown_argument(name, key, arguments[key], names)
    tasks = _tasks(benchmark, name, arguments.get(benchmark.task_argument))
    length = _length(benchmark, name, arguments.get("length"), tasks)
    # This comes after the check of the length, whose error lists the lengths of all tasks that the entry names.
    tasks = tuple(task for task in tasks if task.exists_at(length))
    _check_arguments(benchmark, name, arguments, tasks)
    samples = min((task.most_samples for task in tasks if task.most_samples is not None), default=MOST)
    settings = Settings(
        length=length,
        shots=_whole(name, "shots", arguments.get("shots"), 0, MOST_SHOTS),
        # `or 0` tells the type checker that the result is not None.
        seed=_whole(name, "seed", arguments.get("seed", 42), 0) or 0,
        num_samples=_whole(name, "num_samples", arguments.get("num_samples"), 1, samples),
        style=_choice(name, "style", arguments.get("style", "auto"), get_args(Style)),
        protocol=_choice(name, "protocol", arguments.get("protocol", "paper"), _protocols(tasks)),
        labels=_choice(name, "labels", arguments.get("labels", "integer"), get_args(Labels)),
        context=_choice(name, "context", arguments.get("context", "full"), get_args(Context)),
        thinking_tokens=_whole(name, "thinking_tokens", arguments.get("thinking_tokens", 0), 0) or 0,
        truncation=_choice(name, "truncation", arguments.get("truncation", "auto"), get_args(Truncation)),
        judge=str(arguments.get("judge", "auto")),
        repeats=_whole(name, "repeats", arguments.get("repeats"), 1, MOST_REPEATS),
        count_with=str(arguments["count_with"]) if "count_with" in arguments else None,
        depth=_whole(name, "depth", arguments.get("depth"), 1, MOST_DEPTH),
        path=str(arguments["path"]) if "path" in arguments else None,
    )
    return Entry(benchmark, name, tasks, settings, arguments)


def parse_entry(benchmarks: Iterable[Benchmark], text: str) -> Entry:
    """Parse and check a run entry that names no model.

    Raises:
        InputError: the entry's format, name or arguments are wrong.
    """
    by_name = {name: benchmark for benchmark in benchmarks for name in benchmark.entries}
    name, arguments = split_entry(text)
    if name not in by_name:
        raise InputError(f"unknown run entry {shorten(name)}; allowed: {list_choices(name, by_name)}")
    return check_entry(by_name[name], name, arguments)


def split_entry(text: str) -> tuple[str, dict[str, str]]:
    """Split a run entry into its name and its arguments, without checking them.

    Raises:
        InputError: a part is not `name=value`, or an argument is given twice.
    """
    name, colon, rest = text.strip().partition(":")
    arguments: dict[str, str] = {}
    for part in rest.split(",") if colon else []:
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise InputError(f"{name}: expected name=value, found {shorten(part)}")
        if key in arguments:
            raise InputError(f"{name}: {key} is given twice")
        arguments[key] = value
    return name, arguments


def _tasks(benchmark: Benchmark, name: str, task: object) -> tuple[Task, ...]:
    category = benchmark.entries[name]
    if task is None:
        return category.tasks
    every = (*category.tasks, *category.variants)
    selection = tuple(row for row in every if row.argument == str(task))
    if not selection:
        raise bad_argument(name, benchmark.task_argument, task, [row.argument for row in every])
    return selection


def _length(benchmark: Benchmark, name: str, value: Any, tasks: tuple[Task, ...]) -> int | None:
    axis = benchmark.axis
    if axis is None:
        if value is not None:
            raise InputError(f"{name}: length={shorten(value)} is not allowed; {benchmark.title} has no lengths")
        return None
    if value is None:
        raise InputError(f"{name}: length is missing; allowed: {_lengths(axis, tasks)}")
    length = parse_length(value, where=name)
    at_any = axis.shortest <= length <= axis.longest
    if not any((task.any_length and at_any) or length in task.sizes for task in tasks):
        raise bad_argument(name, "length", value, _lengths(axis, tasks))
    return length


def _lengths(axis: Axis, tasks: tuple[Task, ...]) -> str:
    # A length is allowed if one of the tasks exists at it, so sizes within a range need not be listed.
    if any(task.any_length for task in tasks):
        sizes = {size for task in tasks for size in task.sizes if not axis.shortest <= size <= axis.longest}
        span = f"any number of {axis.unit} from {length_label(axis.shortest)} to {length_label(axis.longest)}"
        return ", ".join([span, *map(length_label, sorted(sizes))])
    lengths = {length for task in tasks for length in task.sizes}
    return ", ".join(length_label(length) for length in sorted(lengths))


def _unknown_argument(name: str, key: str, value: Any, names: Iterable[str]) -> InputError:
    if key.strip() != key:
        return InputError(f"{name}: there is a space around the argument {shorten(key)}; write {shorten(key.strip())}")
    return InputError(
        # The slice removes the quotes that `shorten` adds.
        f"{name}: unknown argument {shorten(key)[1:-1]}={shorten(value)}; allowed: {list_choices(key, names)}"
    )


def _check_arguments(benchmark: Benchmark, name: str, arguments: Mapping[str, Any], tasks: tuple[Task, ...]) -> None:
    """Check that the tasks take the arguments.

    An argument is allowed if some tasks of a category take it, and then applies to these. But all tasks must take
    `context`, because runs without context have their own run groups.
    """
    allowed = _list_arguments(benchmark, tasks)
    for key in arguments:
        if key not in allowed:
            # All allowed arguments are listed, because `list_choices` would suggest a similar name, which is no help.
            what = tasks[0].name if len(tasks) == 1 else "these tasks"
            raise InputError(
                f"{name}: {key}={shorten(arguments[key])} is not an argument of {what}; allowed: {', '.join(allowed)}"
            )


def allowed_arguments(benchmark: Benchmark, name: str, task: str | None = None) -> list[str]:
    """Return the arguments that a run entry takes.

    Args:
        name: the entry's name.
        task: the task that the entry names; None if it runs all tasks of its category.

    Raises:
        InputError: the entry has no such task.
    """
    return _list_arguments(benchmark, _tasks(benchmark, name, task))


def _list_arguments(benchmark: Benchmark, tasks: tuple[Task, ...]) -> list[str]:
    some, every = (
        combine(*(task.all_arguments for task in tasks)) for combine in (frozenset.union, frozenset.intersection)
    )
    return [benchmark.task_argument, *(key for key in ARGUMENTS if key in (every if key == "context" else some))]


def _protocols(tasks: tuple[Task, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(protocol for task in tasks for protocol in task.variants))


def _whole(name: str, key: str, value: Any, at_least: int, at_most: int = MOST) -> int | None:
    if value is None:
        return None
    try:
        number = int(str(value))
    except ValueError:
        # A text gets the same error as a number that is too small.
        number = at_least - 1
    if not at_least <= number <= at_most:
        limit = "" if at_most == MOST else f" to {at_most}"
        raise bad_argument(name, key, value, f"a whole number from {at_least}{limit}")
    return number


def _choice(name: str, key: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    if value not in allowed:
        raise bad_argument(name, key, value, allowed)
    return value
