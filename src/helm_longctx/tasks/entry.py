"""Run entries such as `helmet_recall:task=json_kv,length=8k`. They are checked before data is loaded or sent."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, get_args

from helm_longctx.data.download import Source
from helm_longctx.data.release import PinnedFile
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, bad_argument, list_choices, shorten
from helm_longctx.tasks.benchmark import Benchmark, Category
from helm_longctx.tasks.groups import folder_name, group_name
from helm_longctx.tasks.lengths import Axis, length_label, parse_length
from helm_longctx.tasks.logprobs import LONGPPL_RULE
from helm_longctx.tasks.methods.registry import (
    METHOD_ARGUMENTS,
    METHODS,
    check_method,
    require_method,
)
from helm_longctx.tasks.metric_names import SCORE_NAMES
from helm_longctx.tasks.request_settings import (
    GIVEN_TEXTS,
    LONGPPL,
    PERPLEXITIES,
    SAMPLING,
    MetricArgument,
    RequestSettings,
    Sampling,
    StyleArgument,
    Truncation,
)
from helm_longctx.tasks.task import (
    Chats,
    Context,
    Labels,
    ProtocolArgument,
    Settings,
    Task,
)

_OF_EVERY_TASK = frozenset(("context", "method", "stream"))
"""Arguments that all tasks of an entry must take."""

ADAPTER_METHOD = "longctx"
"""`AdapterSpec.method` of all our runs. What a run was asked with is in its scenario's arguments (`read_entry`)."""

OUTPUT_LIMITS = ("max_tokens", "max_new_tokens", "max_output_tokens")
"""Names that APIs give the limit on an output's tokens. HELM's run entries have `num_output_tokens`."""


# Official codes seed NumPy's legacy generator, and that refuses larger seeds.
_LARGEST_NUMBER = 2**32 - 1
MOST_REPEATS = 1000
_MOST_TIMES = 1000
_MOST_TEXTS = 1000
_MOST_DEPTH = 100
_MOST_SHOTS = 100_000
"""More than the longest context has room for. A training set sets no limit, because its rows are repeated if needed."""

_Read = Callable[[str, str, Any], Any]
"""(name of the run entry, name of the argument, its value) → the checked value. Raises `InputError` for a wrong one."""


def _number(
    kind: type[int] | type[float],
    lowest: float,
    highest: float = _LARGEST_NUMBER,
) -> _Read:
    """Make the reader of a number in a range, both ends included: a whole one, or any."""

    def read(name: str, key: str, value: Any) -> float:
        try:
            number = kind(str(value))
        except ValueError:
            number = math.nan  # a text gets the same error as a number out of the range
        if not lowest <= number <= highest:
            what = "a whole number" if kind is int else "a number"
            limit = "" if highest == _LARGEST_NUMBER else f" to {highest}"
            raise bad_argument(name, key, value, f"{what} from {lowest}{limit}")
        return number

    return read


_whole = partial(_number, int)


def _one_of(allowed: tuple[Any, ...]) -> _Read:
    """Make the reader of a value that must be one of several."""

    def read(name: str, key: str, value: Any) -> Any:
        if value not in allowed:
            raise bad_argument(name, key, value, allowed)
        return value

    return read


def _text(name: str, key: str, value: Any) -> str:
    return str(value)


def read_times(name: str, key: str, value: Any) -> int | None:
    """Return the factor that a value such as `4x` names, if it is given, or raise an `InputError`."""
    if value is None:
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,3})x", str(value))
    if match is None or not 2 <= int(match[1]) <= _MOST_TIMES:
        raise bad_argument(
            name, key, value, f"a factor from 2x to {_MOST_TIMES}x, such as 4x"
        )
    return int(match[1])


_READERS: Mapping[str, _Read] = {
    "shots": _whole(0, _MOST_SHOTS),
    "seed": _whole(0),
    "texts": _whole(1, _MOST_TEXTS),
    "num_samples": _whole(1),
    "style": _one_of(get_args(StyleArgument)),
    "protocol": _one_of(get_args(ProtocolArgument)),
    "labels": _one_of(get_args(Labels)),
    "context": _one_of(get_args(Context)),
    "chats": _one_of(get_args(Chats)),
    "stream": _whole(100),
    "method": _text,
    **{
        name: _text if kind is str else _whole(1)
        for name, kind in METHOD_ARGUMENTS.items()
    },
    "thinking_tokens": _whole(0),
    "truncation": _one_of(get_args(Truncation)),
    "judge": _text,
    "repeats": _whole(1, MOST_REPEATS),
    "top_p": _number(float, 0.001, 1),
    "top_k": _whole(1),
    "min_p": _number(float, 0, 1),
    "sampling_seed": _whole(0),
    "retry_cut": read_times,
    "count_with": _text,
    "depth": _whole(1, _MOST_DEPTH),
    "path": _text,
    "scorer": _text,
    "metric": _one_of(get_args(MetricArgument)),
}
"""The readers of all arguments except the length and the one that names a task, in the order of a run's name."""

ARGUMENTS = ("length", *_READERS)
"""Arguments of run entries except the one that names a task, in the order of a run's name."""

_OF_REQUESTS = ("style", "truncation", "metric")
"""The fields of `RequestSettings` apart from the sampling."""

OF_PROMPTS = ("seed", "shots", "labels", "protocol", "chats")
"""Arguments that change the question or the prompt of an instance, but not its name."""


def arguments_of(benchmark: Benchmark) -> tuple[str, ...]:
    """Return every argument that a benchmark's run entries can have, in the order of a run's name."""
    # The tasks of `any_jsonl` are metrics, among which likelihood is one more.
    return tuple(dict.fromkeys((benchmark.task_argument, *ARGUMENTS)))


class WrittenEntry(NamedTuple):
    """A run entry as it is written: a name that can be unknown, and arguments that are not checked."""

    name: str
    arguments: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The entry as HELM takes it, such as `helmet_recall:task=json_kv,length=8k`."""
        parts = []
        for key, value in self.arguments.items():
            shown = str(value).lower() if isinstance(value, bool) else value
            parts.append(f"{key}={shown}")
        return f"{self.name}:{','.join(parts)}" if parts else self.name


@dataclass(frozen=True)
class Entry:
    """A checked run entry without its model. Its arguments, as the user wrote them, are in the run's name."""

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
        judge = self.settings.judge
        closed = self.settings.context == "none"
        folder = folder_name(self.settings.path)
        groups = []
        for name, tasks in (
            (self.category.name, self.tasks),
            *((task.name, (task,)) for task in self.tasks),
        ):
            # A category is official only if each of its judged tasks has its official judge.
            if all(task.is_official(judge) for task in tasks):
                other_judge = ""
            else:
                other_judge = judge
            groups.append(
                group_name(
                    self.benchmark,
                    name,
                    self.label,
                    closed,
                    other_judge,
                    folder,
                    self.metric,
                )
            )
        return groups

    @property
    def metric(self) -> str:
        """One of `GIVEN_TEXTS`, empty for the official metrics."""
        metric = self.settings.request.metric
        return metric if metric in GIVEN_TEXTS else ""

    @property
    def label(self) -> str:
        """The length's label, empty if the benchmark has no lengths."""
        if self.settings.length is None:
            return ""
        return length_label(self.settings.length)

    @property
    def repeats(self) -> int:
        """Number of times to ask each question."""
        return self.settings.repeats or max(task.repeats for task in self.tasks)

    @property
    def title(self) -> str:
        """The title, e.g. `HELMET Recall 8k`; the task's instead of the category's if the entry names a task."""
        task = self.arguments.get(self.benchmark.task_argument)
        if task in (None, *GIVEN_TEXTS):
            what = self.category.title
        else:
            what = self.tasks[0].title
        closed = "closed book" if self.settings.context == "none" else ""
        is_named = self.metric and self.metric != self.tasks[0].metric
        score = SCORE_NAMES[self.metric] if is_named else ""
        parts = [self.benchmark.title, score, what, closed, self.label]
        return " ".join(part for part in parts if part)

    @property
    def description(self) -> str:
        """The entry in normal form: arguments in the usual order, and the length in its shortest notation."""
        arguments = dict(self.arguments)
        if self.label:
            arguments["length"] = self.label
        texts = []
        for key in arguments_of(self.benchmark):
            if key in arguments:
                texts.append(f"{key}={arguments[key]}")
        pairs = ",".join(texts)
        if pairs:
            return f"{self.name}:{pairs}"
        return self.name

    @property
    def max_tokens(self) -> int:
        """The largest output budget of the tasks and of the method, tokens for thinking included."""
        method = METHODS.get(self.settings.method)
        if method:
            first = max(method.first_tokens(task) for task in self.tasks)
        else:
            first = 0
        return max(
            first + self.settings.thinking_tokens,
            *(task.budget(self.settings) for task in self.tasks),
        )

    @property
    def sources(self) -> list[Source]:
        """The data that a run needs."""
        length = self.settings.length
        return list(chain.from_iterable(task.sources(length) for task in self.tasks))

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
        chosen = []
        for task in self.tasks:
            for source in task.judge_sources.values():
                if is_named or (isinstance(source, PinnedFile) and not root.mirror):
                    chosen.append(source)
        return chosen

    def check_machine(self) -> None:
        """Check that the answers can be scored on this machine."""
        require_method(self.settings.method)
        for task in self.tasks:
            task.check_extras()
            if task.check_machine:
                task.check_machine()


def check_entry(benchmark: Benchmark, name: str, arguments: Mapping[str, Any]) -> Entry:
    """Check the arguments of a run entry, or raise an `InputError` if one is unknown, missing or invalid."""
    names = arguments_of(benchmark)
    for key in arguments:
        if key not in names:
            raise _unknown_argument(name, key, arguments[key], names)
    named = arguments.get(benchmark.task_argument)
    tasks = _tasks(benchmark, name, named)
    if len(tasks) == 1 and tasks[0].short_name == named:
        # Both names of a task make the same run.
        arguments = {**arguments, benchmark.task_argument: tasks[0].argument}
    length = _read_length(benchmark, name, arguments.get("length"), tasks)
    # This comes after the check of the length, whose error lists the lengths of all tasks that the entry names.
    tasks = tuple([task for task in tasks if task.exists_at(length)])
    _check_allowed(benchmark, name, arguments, tasks)
    method = check_method(benchmark, name, arguments, tasks)
    values = _read_values(benchmark, name, arguments, tasks)
    of_method = {}
    for key, default in (method.arguments if method else {}).items():
        of_method[key] = values.pop(key, default)
    request = _take_request(name, values, tasks)
    settings = Settings(length, **values, request=request, method_arguments=of_method)
    entry = Entry(
        benchmark=benchmark,
        name=name,
        tasks=tasks,
        settings=settings,
        arguments=arguments,
    )
    if entry.metric:
        _check_given_texts(entry)
    return entry


def _check_allowed(
    benchmark: Benchmark,
    name: str,
    arguments: Mapping[str, Any],
    tasks: tuple[Task, ...],
) -> None:
    """Raise an `InputError` for an argument that none of the tasks takes. `check_method` checks arguments of methods."""
    allowed = _list_arguments(benchmark, tasks)
    for key in arguments:
        if key not in (*allowed, "method", *METHOD_ARGUMENTS):
            # All allowed arguments are listed, because `list_choices` would suggest a similar name, and that is no help.
            what = tasks[0].name if len(tasks) == 1 else "these tasks"
            raise InputError(
                f"{name}: {key}={shorten(arguments[key])} is not an argument of {what};"
                f" choose from {', '.join(allowed)}",
                argument=key,
            )


def _read_values(
    benchmark: Benchmark,
    name: str,
    arguments: Mapping[str, Any],
    tasks: tuple[Task, ...],
) -> dict[str, Any]:
    """Return the checked values of the arguments that are given. An argument of None is not given."""
    limits = [task.most_samples for task in tasks if task.most_samples is not None]
    protocols: dict[str, None] = {}
    scorers: dict[str, None] = {}
    for task in tasks:
        protocols |= dict.fromkeys(task.variants)
        scorers |= dict.fromkeys(task.scorers)
    readers = {
        **_READERS,
        "num_samples": _whole(1, min(limits, default=_LARGEST_NUMBER)),
        "protocol": _one_of(tuple(protocols)),
        "scorer": _one_of(tuple(scorers)),
    }
    values = {}
    for key in _READERS:
        value = arguments.get(key)
        if value is None:
            continue
        if key == benchmark.task_argument and value not in GIVEN_TEXTS:
            continue  # it names a task
        values[key] = readers[key](name, key, value)
    return values


def _take_request(
    name: str,
    values: dict[str, Any],
    tasks: tuple[Task, ...],
) -> RequestSettings:
    """Take out of the values what every request shares. Raises an `InputError` if the tasks have another metric."""
    only = tasks[0].metric
    fitting = PERPLEXITIES if only in PERPLEXITIES else (only,)
    if values.setdefault("metric", only) not in fitting and only != "score":
        raise bad_argument(name, "metric", values["metric"], fitting)
    sampling = {}
    for key in SAMPLING:
        if key in values:
            sampling[key] = values.pop(key)
    of_requests = {}
    for key in _OF_REQUESTS:
        if key in values:
            of_requests[key] = values.pop(key)
    return RequestSettings(**of_requests, sampling=Sampling(**sampling))


def _check_given_texts(entry: Entry) -> None:
    """Raise an `InputError` for an argument that has no meaning where the model writes nothing."""
    unused = []
    for name in ("judge", "repeats", *SAMPLING, "retry_cut", "thinking_tokens"):
        if name in entry.arguments:
            unused.append(name)
    method = METHODS.get(entry.settings.method)
    if method and any(map(method.first_tokens, entry.tasks)):
        unused.append("method")
    for name in unused:
        raise InputError(
            f"{entry.name}: {name}={shorten(entry.arguments[name])} and"
            f" metric={entry.metric} exclude each other, because the model writes no"
            " answer",
            argument=name,
        )
    length = entry.settings.length
    if entry.metric == LONGPPL and length and length <= LONGPPL_RULE.short_context:
        raise InputError(
            f"{entry.name}: length={entry.label} and metric={LONGPPL} exclude each other, because no token has more than"
            f" {LONGPPL_RULE.short_context} tokens before it; give a longer length",
            argument="length",
        )


def parse_entry(benchmarks: Iterable[Benchmark], text: str) -> Entry:
    """Parse and check a run entry that names no model, or raise an `InputError`."""
    return check_written_entry(benchmarks, split_entry(text))


def check_written_entry(
    benchmarks: Iterable[Benchmark],
    written: WrittenEntry,
) -> Entry:
    """Check a run entry that names no model, or raise an `InputError`."""
    name, arguments = written
    by_name: dict[str, Benchmark] = {}
    for benchmark in benchmarks:
        by_name |= dict.fromkeys(benchmark.entries, benchmark)
    check_category(name)
    if name not in by_name:
        raise InputError(
            f"unknown run entry {shorten(name)}; {list_choices(name, by_name)}"
        )
    return check_entry(by_name[name], name, arguments)


def split_entry(text: str) -> WrittenEntry:
    """Split a run entry into its name and its unchecked arguments, or raise an `InputError`."""
    name, colon, rest = text.strip().partition(":")
    arguments: dict[str, str] = {}
    for part in rest.split(",") if colon else []:
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise InputError(f"{name}: expected name=value, found {shorten(part)}")
        if key in arguments:
            raise InputError(f"{name}: {key} is given twice; give it once")
        arguments[key] = value
    return select_category(name, arguments)


def select_category(name: str, arguments: Mapping[str, Any]) -> WrittenEntry:
    """Return the entry that `oneruler:language=de` stands for, and the rest, or raise an `InputError`."""
    from helm_longctx.tasks.registry import (
        BY_CATEGORY,
    )  # benchmarks import modules of this room

    benchmark = BY_CATEGORY.get(name)
    rest = dict(arguments)
    if benchmark is None or benchmark.category_argument not in rest:
        return WrittenEntry(name, rest)
    value = rest.pop(benchmark.category_argument)
    names = {category.name: entry for entry, category in benchmark.entries.items()}
    if value not in names:
        raise bad_argument(name, benchmark.category_argument, value, list(names))
    return WrittenEntry(names[value], rest)


def check_category(name: str) -> None:
    """Check that a run entry is not the name of a benchmark whose run entry must select a category."""
    from helm_longctx.tasks.registry import (
        BY_CATEGORY,
    )  # benchmarks import modules of this room

    if benchmark := BY_CATEGORY.get(name):
        names = ", ".join(category.name for category in benchmark.categories)
        raise InputError(
            f"{name}: {benchmark.category_argument} is missing; choose from {names}"
        )


def _tasks(benchmark: Benchmark, name: str, task: object) -> tuple[Task, ...]:
    category = benchmark.entries[name]
    if task in (None, *GIVEN_TEXTS):
        return category.tasks
    every = (*category.tasks, *category.variants)
    selection = tuple(
        row
        for row in every
        if str(task) in (row.argument, row.short_name or row.argument)
    )
    if not selection:
        raise bad_argument(
            name, benchmark.task_argument, task, [row.argument for row in every]
        )
    return selection


def _unknown_argument(
    name: str,
    key: str,
    value: Any,
    names: Iterable[str],
) -> InputError:
    if key.strip() != key:
        return InputError(
            f"{name}: there is a space around the argument {shorten(key)}; write"
            f" {shorten(key.strip())}",
            argument=key,
        )
    if key in OUTPUT_LIMITS:
        return InputError(
            f"{name}: unknown argument {key}={shorten(value)}; HELM's limit of outputs"
            " is num_output_tokens=",
            argument=key,
        )
    return InputError(
        # The slice removes the quotes that `shorten` adds.
        f"{name}: unknown argument {shorten(key)[1:-1]}={shorten(value)};"
        f" {list_choices(key, names)}",
        argument=key,
    )


def allowed_arguments(
    benchmark: Benchmark,
    name: str,
    task: str | None = None,
) -> list[str]:
    """Return the arguments that a run entry with this task, or with all tasks, takes, or raise an `InputError`."""
    return _list_arguments(benchmark, _tasks(benchmark, name, task))


def _list_arguments(benchmark: Benchmark, tasks: tuple[Task, ...]) -> list[str]:
    some = tasks[0].all_arguments
    every = tasks[0].all_arguments
    for task in tasks[1:]:
        some |= task.all_arguments
        every &= task.all_arguments
    # Scores of tasks that take these arguments must not be mixed with scores of the category's other tasks.
    taken = some - (_OF_EVERY_TASK - every)
    taken |= set(METHOD_ARGUMENTS) if "method" in taken else set()
    shared = [key for key in ARGUMENTS if key in taken]
    return [*dict.fromkeys([benchmark.task_argument, *shared])]


def _read_length(
    benchmark: Benchmark,
    name: str,
    value: Any,
    tasks: tuple[Task, ...],
) -> int | None:
    """Return the length of a run entry, None for a benchmark without lengths, or raise an `InputError`."""
    axis = benchmark.axis
    if axis is None:
        if value is not None:
            raise InputError(
                f"{name}: length={shorten(value)}: {benchmark.title} has no lengths; leave it out",
                argument="length",
            )
        return None
    if value is None:
        raise InputError(
            f"{name}: length is missing; give {_list_lengths(axis, tasks)}",
            argument="length",
        )
    length = parse_length(value, where=name)
    in_range = axis.contains(length)
    exists = any(
        length in task.sizes or (task.any_length and in_range) for task in tasks
    )
    if not exists:
        raise bad_argument(name, "length", value, _list_lengths(axis, tasks))
    return length


def _list_lengths(axis: Axis, tasks: tuple[Task, ...]) -> str:
    # A length is valid if one of the tasks exists at it, so sizes within a range need not be listed.
    if any(task.any_length for task in tasks):
        sizes: set[int] = set()
        for task in tasks:
            sizes.update(size for size in task.sizes if not axis.contains(size))
        span = f"any number of {axis.unit} from {length_label(axis.shortest)} to {length_label(axis.longest)}"
        return ", ".join([span, *map(length_label, sorted(sizes))])
    lengths = set(chain.from_iterable(task.sizes for task in tasks))
    labels = ", ".join(length_label(length) for length in sorted(lengths))
    if len(lengths) > 1:
        return f"one of {labels}"
    return labels
