"""The common form of a recorded answer in files of other programs, and the runs and run entries of a file's answers."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from helm_longctx.errors import InputError, shorten, suggest
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import Entry, parse_entry
from helm_longctx.tasks.outputs import Output, OutputRun
from helm_longctx.tasks.reasoning import split_reasoning
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import TEXTS, Task, is_whole

RECORD = "record"
"""The field of an exported answer that has the whole record, so that an import gives the same score."""

_REFERENCES = ("references", "outputs", "answers", "answer", "target")
"""Fields in which programs store the accepted answers. The first one that exists is used."""

LENGTH = "max_length"
"""The field with a row's length in tokens. In other programs, `length` is the length of the single example."""

_FOR_JUDGES = ("question", "keypoints", "long_summary")


@dataclass(frozen=True)
class ForeignAnswer:
    """A row of a file.

    Args:
        task: the program's name for the task, if the row has one.
        fields: all fields of the example in the row.
        output: the values that all programs have, without those that depend on the task.
    """

    task: str
    text: str | None
    fields: Mapping[str, Any]
    output: Output
    model: str = ""


def make_runs(answers: Sequence[ForeignAnswer], entry: str) -> list[OutputRun]:
    """Group answers into runs: one run for each model, task and length.

    Raises:
        InputError: a row does not name its task, or lacks a field that the task's scorer reads.
    """
    entries: dict[str, str] = {}
    runs: dict[tuple[str, str], list[ForeignAnswer]] = defaultdict(list)
    for answer in answers:
        own = entry or answer.fields.get("entry")
        length = answer.fields.get(LENGTH)
        length = length if is_whole(length) else None
        key = f"{answer.task} {length} {answer.fields.get('entry')}"
        if key not in entries:
            # The user's entry, the entry in the row, or the entry of the task's name.
            if not isinstance(own, str) or not own:
                try:
                    own = _find_entry(BENCHMARKS, answer.task, length)
                except InputError as error:
                    raise InputError(f"{answer.output.location}: {error}") from error
            elif length is not None and not re.search(r"[:,]length=", own):
                own = f"{own}{',' if ':' in own else ':'}length={length}"
            entries[key] = own
        runs[entries[key], answer.model].append(answer)
    output_runs = []
    for (own, model), rows in runs.items():
        outputs = [_output(own, row) for row in rows]
        output_runs.append(OutputRun(entry=own, model=model, outputs=outputs))
    return output_runs


def _output(entry: str, answer: ForeignAnswer) -> Output:
    try:
        (task,) = resolve_entry(BENCHMARKS, entry).tasks
    except InputError as error:
        raise InputError(f"{answer.output.location}: {error}") from error
    fields = answer.fields
    own = fields.get(RECORD)
    if isinstance(own, dict):
        record = dict(own)
    else:
        names = (*task.record_shapes, *_FOR_JUDGES)
        record = {}
        for name in names:
            if fields.get(name) is not None:
                record[name] = fields[name]
    prefix = record.pop("answer_prefix", "")
    notes = record.pop("notes", {})
    references = record.pop("references", None)
    if references is None:
        # A sample that a program did not reach has no references.
        is_missing = answer.text is None and not fields.keys() & {*_REFERENCES}
        if is_missing:
            references = []
        else:
            references = _find_references(fields, answer.output.location)
    text = answer.text
    if text is not None:
        split = split_reasoning(text)
        # As in a run, the prefix comes before the reasoning, and is removed with it.
        has_reasoning = split.reasoning is not None and not split.is_open
        text = text if has_reasoning else f"{prefix}{text}"
    return replace(
        answer.output,
        prediction=text,
        references=references,
        record=record,
        notes=notes,
    )


def _find_references(fields: Mapping[str, Any], location: str) -> list[str]:
    value = next(
        (fields[name] for name in _REFERENCES if fields.get(name) not in (None, "")),
        None,
    )
    if isinstance(value, str) and value.startswith("["):
        # A text can start with a bracket, and some programs write lists in Python's notation.
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            value = ast.literal_eval(value)
    references = [value] if isinstance(value, str) else value
    # An empty accepted answer is in every text, so each prediction would be right.
    if (
        not TEXTS.fits(references)
        or not references
        or not all(map(str.strip, references))
    ):
        about = f"the accepted answers must be texts that are not empty, in one of {', '.join(_REFERENCES)}"
        raise InputError(f"{location}: {about}; found {shorten(value)}")
    return references


_LENGTH = re.compile(r"(.+)_(\d+(?:\.\d+)?[km]?)")
"""A task's name and a length, as in the names of run groups: `helmet_nq_8k`."""


def resolve_entry(benchmarks: Iterable[Benchmark], text: str) -> Entry:
    """Check a run entry of one task. Raises an `InputError` if the entry is wrong, or names several tasks."""
    entry = parse_entry(benchmarks, text)
    if len(entry.tasks) == 1:
        return entry
    names = ", ".join(task.argument for task in entry.tasks)
    raise InputError(
        f"{entry.name}: {entry.benchmark.task_argument} is missing; choose from {names}"
    )


def _find_entry(
    benchmarks: Iterable[Benchmark],
    name: str,
    length: int | None = None,
) -> str:
    """Return the run entry of a task that another program calls `name`: `helmet_nq_8k`, `ruler_vt`, `nq`.

    Raises:
        InputError: no task has this name, or several have it.
    """
    benchmarks = tuple(benchmarks)
    entries = list(dict.fromkeys(_entries(benchmarks, name, length)))
    if not entries and (match := _LENGTH.fullmatch(name)):
        entries = list(dict.fromkeys(_entries(benchmarks, match[1], match[2])))
    if len(entries) == 1:
        return entries[0]
    if entries:
        raise InputError(
            f"task {shorten(name)} has several run entries; give --entry with"
            f" {' or '.join(entries)}"
        )
    names: set[str] = set()
    for benchmark in benchmarks:
        names.update(*(_names(benchmark, task) for task in benchmark.tasks))
    raise InputError(
        f"task {shorten(name)} is not known; give its run entry with"
        f" --entry{suggest(name, sorted(names))}"
    )


def _entries(
    benchmarks: Iterable[Benchmark],
    name: str,
    length: object,
) -> Iterator[str]:
    for benchmark in benchmarks:
        for task in benchmark.tasks:
            if name not in _names(benchmark, task):
                continue
            arguments = f"{benchmark.task_argument}={task.argument}"
            if length is not None and benchmark.axis:
                arguments += f",length={length}"
            for entry, category in benchmark.entries.items():
                if task in (*category.tasks, *category.variants):
                    yield f"{entry}:{arguments}"
                    break


def _names(benchmark: Benchmark, task: Task) -> set[str]:
    return {task.name, f"{benchmark.name}_{task.name}"}
