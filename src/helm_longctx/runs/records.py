"""The records of a run: for each question its prompt's digest, the answer, the judges' notes and the statistics.

`records.jsonl.zst` has a line for each question and repeat, in the order of the run; `zstd -dc` prints it. A finished
run has it beside HELM's files, which have the same in HELM's objects. Analyses, exports and pages read records. HELM's
files are read in their place for runs of HELM's own runner, and where they were changed after the records were written.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import zstandard
from dacite import DaciteError

from helm_longctx.errors import DamagedRunError
from helm_longctx.failures import Failure
from helm_longctx.models.results import answer_of, parse_result
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runs.files import (
    FORMAT_ERRORS,
    INSTANCE_STATS,
    STATES,
    State,
    find_sample,
    parse,
    read_rows,
    read_states,
    reading,
    repeat_of,
    replace_file,
)
from helm_longctx.runs.prompts import to_text
from helm_longctx.tasks.answer import Answer
from helm_longctx.tasks.sample import Sample

RECORDS = "records.jsonl.zst"

TEST_SPLIT = "test"
"""HELM's name of the split that our scenarios have."""

_END = "records"
"""The field of the last line, which has the number of records."""

_LEVEL = 3
"""Level of compression. Higher ones take several times as long for a tenth less."""

RecordKey = tuple[str, str, int]
"""A record's task, instance id and repeat, from 0. A task is empty in HELM's own scenarios."""


@dataclass(frozen=True)
class QuestionRecord:
    """What a run has of a question: what was asked, the answer, what judges said of it, and the statistics.

    Args:
        task: the task's name; empty in HELM's own scenarios.
        instance: the id of the instance.
        repeat: the number of the repeat, from 0.
        sample: the sample of our scenarios; None for an instance of another package's scenario.
        references: the accepted answers.
        request: the fields of HELM's request; long texts are elided in its prompt or messages.
        answer: the model's answer, or why there is none.
        notes: the judges' annotations, by the name of the annotator.
        values: the statistics of the answer, by name; empty if the run was not scored.
        is_perturbed: whether the instance is a copy that HELM has changed. Our statistics leave these out.
    """

    task: str
    instance: str
    repeat: int
    sample: Sample | None
    references: list[str]
    request: Mapping[str, Any]
    answer: Answer
    notes: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    is_perturbed: bool = False

    @property
    def key(self) -> RecordKey:
        """What no other record of the run has, apart from perturbed copies."""
        return self.task, self.instance, self.repeat

    @property
    def prompt_digest(self) -> str:
        """The SHA-256 of the whole prompt, which is in the run's store of prompts."""
        if self.sample and self.sample.full_prompt:
            return str(self.sample.full_prompt["sha256"])
        return digest(self.prompt)

    @property
    def question(self) -> str:
        """The question without its context; empty if the scenario does not tell them apart."""
        return (self.sample.question if self.sample else None) or ""

    @property
    def prompt(self) -> str:
        """The prompt, in which long texts are elided; a conversation as JSON."""
        return to_text(self.request.get("prompt", ""), self.request.get("messages"))

    @property
    def text(self) -> str:
        """The answer, as it is scored after reasoning in a field of its own; empty if there is none."""
        return (
            self.answer.output.strip() if self.answer.thinking else self.answer.output
        )

    @property
    def reasoning(self) -> str:
        """The reasoning in a field of its own; empty if there is none."""
        return self.answer.thinking or ""

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain data, without what is empty."""
        content = {
            "task": self.task,
            "instance": self.instance,
            "repeat": self.repeat,
            "sample": self.sample.to_json() if self.sample else None,
            "references": self.references,
            "request": dict(self.request),
            "answer": self.answer.to_json(),
            "notes": dict(self.notes),
            "values": dict(self.values),
            "is_perturbed": self.is_perturbed or None,
        }
        return {
            name: value
            for name, value in content.items()
            if value not in (None, {}, [])
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> QuestionRecord:
        """Make the record from plain data. Raises any error if it has another form."""
        return cls(
            task=content.get("task", ""),
            instance=content["instance"],
            repeat=content["repeat"],
            sample=Sample.from_json(content["sample"]) if "sample" in content else None,
            references=content.get("references", []),
            request=content.get("request", {}),
            answer=Answer.from_json(content.get("answer", {})),
            notes=content.get("notes", {}),
            values=content.get("values", {}),
            is_perturbed=content.get("is_perturbed", False),
        )

    @classmethod
    def from_state(cls, state: State, values: Mapping[str, float]) -> QuestionRecord:
        """Make the record from a request state of HELM's files. Raises any error if it has another form."""
        instance = state["instance"]
        request = {
            name: value for name, value in state["request"].items() if value is not None
        }
        return cls(
            task=instance.get("sub_split") or "",
            instance=str(instance["id"]),
            repeat=repeat_of(state),
            sample=find_sample(instance),
            references=[
                reference["output"]["text"]
                for reference in instance.get("references", ())
            ],
            request=request,
            answer=_read_answer(state.get("result")),
            notes=state.get("annotations") or {},
            values=values,
            is_perturbed=bool(instance.get("perturbation")),
        )


def _read_answer(result: Mapping[str, Any] | None) -> Answer:
    if not result:
        return Answer(failure=Failure.UNKNOWN)
    try:
        return answer_of(parse_result(result))
    except DaciteError as error:
        raise ValueError("the result has another form") from error


def write_records(run: Path) -> None:
    """Write the records of a run of ours whose HELM files are complete, one at a time."""
    packed = zstandard.ZstdCompressor(level=_LEVEL).chunker(chunk_size=1 << 16)

    def pieces() -> Iterator[bytes]:
        yield from packed.compress(_to_line(_stamp(run)))
        count = 0
        for record in _read_helm_files(run):
            yield from packed.compress(_to_line(record.to_json()))
            count += 1
        # Without this line, records that were cut off would look whole.
        yield from packed.compress(_to_line({_END: count}))
        yield from packed.finish()  # type: ignore[no-untyped-call]

    replace_file(run / RECORDS, pieces=pieces())


def _to_line(content: Mapping[str, Any]) -> bytes:
    # Texts of models can have lone surrogates, which only escapes can hold.
    return json.dumps(content).encode("ascii") + b"\n"


def _stamp(run: Path) -> dict[str, Any]:
    """Return the sizes of the HELM files that have the same content."""
    return {name: os.path.getsize(run / name) for name in (STATES, INSTANCE_STATS)}


def has_records(run: Path) -> bool:
    """Whether a run has records that are of the same time as its HELM files. Raises an `InputError`."""
    path = run / RECORDS
    if not path.is_file():
        return False
    with _reading_records(path), path.open("rb") as file:
        first = next(_lines(file, _MOST_STAMP), b"")
        return bool(parse(first) == _stamp(run))


def read_records(run: Path) -> Iterator[QuestionRecord]:
    """Read the records of a run in order, one at a time.

    Raises:
        InputError: the run's files are missing or damaged.
    """
    return _read_lines(run / RECORDS) if has_records(run) else _read_helm_files(run)


def find_difference(run: Path) -> str | None:
    """Return the first difference between the records of a run and HELM's files of the same time, as a line.

    Raises:
        InputError: the run's files are missing or damaged.
    """
    if not has_records(run):
        return None
    pairs = zip_longest(_read_lines(run / RECORDS), _read_helm_files(run))
    for number, (record, other) in enumerate(pairs, 1):
        if record is None or other is None:
            return f"{RECORDS}: {STATES} does not have as many answers"
        if _comparable(record) != _comparable(other):
            return (
                f"{RECORDS}: record {number} differs from {STATES} or {INSTANCE_STATS}"
            )
    return None


def _comparable(record: QuestionRecord) -> bytes:
    """Return what scores are made of. Compared as JSON, in which NaN is equal to itself."""
    answer = record.answer
    content = [
        record.key,
        answer.output,
        answer.thinking,
        answer.failure,
        dict(record.values),
    ]
    return json.dumps(content, sort_keys=True).encode("ascii")


_MOST_STAMP = 1 << 12
"""Bytes of the first line that are read."""

_ROOM = 1 << 20
_MOST_TIMES = 4
"""Records may unpack to so many bytes, and this many times the size of HELM's files, which have the same content."""


def _lines(file: Any, most: int) -> Iterator[bytes]:
    """Yield lines that have at most so many bytes in all. A small file can unpack to more than memory holds."""
    stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    lines = io.BufferedReader(stream, buffer_size=1 << 20)
    left = most
    while line := lines.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise ValueError("the records unpack to more than HELM's files hold")
        yield line


def _read_lines(path: Path) -> Iterator[QuestionRecord]:
    with _reading_records(path), path.open("rb") as file:
        in_helm_files = sum(_stamp(path.parent).values())
        lines = _lines(file, _ROOM + _MOST_TIMES * in_helm_files)
        next(lines)
        for count, line in enumerate(lines):
            content = parse(line)
            if _END in content:
                if content[_END] != count:
                    raise ValueError("lines are missing")
                return
            yield QuestionRecord.from_json(content)
        raise ValueError("the end is missing")


@contextmanager
def _reading_records(path: Path) -> Iterator[None]:
    """Raise a `DamagedRunError` for any error in the block."""
    try:
        yield
    except (*FORMAT_ERRORS, zstandard.ZstdError) as error:
        raise DamagedRunError(
            f"{path} cannot be read ({type(error).__name__}); remove it, and HELM's files are read in its place"
        ) from error


def _read_helm_files(run: Path) -> Iterator[QuestionRecord]:
    """Yield the request states of HELM's files with the statistics, which have nearly always the same order."""
    path = run / STATES
    rows = _read_statistics(run)
    waiting: dict[RecordKey, dict[str, float]] = {}
    for state in read_states(path):
        with reading(path):
            record = QuestionRecord.from_state(state, {})
        if record.is_perturbed:
            yield record
            continue
        while record.key not in waiting:
            of_row = next(rows, None)
            if of_row is None:
                break
            waiting |= of_row
        yield replace(record, values=waiting.pop(record.key, {}))


def _read_statistics(run: Path) -> Iterator[dict[RecordKey, dict[str, float]]]:
    """Yield the statistics in each row of HELM's file. A run without scores has none."""
    path = run / INSTANCE_STATS
    if not path.is_file():
        return
    for row in read_rows(path):
        with reading(path):
            values = _read_values(row)
        yield values


def _read_values(row: Mapping[str, Any]) -> dict[RecordKey, dict[str, float]]:
    """Return the statistics of a row of HELM's file, by the record that they are of."""
    instance = str(row["instance_id"])
    repeat = repeat_of(row)
    values: dict[RecordKey, dict[str, float]] = {}
    for task, of_task in values_by_task(row, TEST_SPLIT).items():
        values[task, instance, repeat] = of_task
    return values


def values_by_task(row: Mapping[str, Any], split: str) -> dict[str, dict[str, float]]:
    """Return the statistics of a row of HELM's file by task, without those of perturbed copies."""
    tasks: dict[str, dict[str, float]] = {}
    for stat in row["stats"]:
        name = stat["name"]
        if name.get("split") not in (split, None) or "perturbation" in name:
            continue
        if stat.get("mean") is not None:
            tasks.setdefault(name.get("sub_split") or "", {})[name["name"]] = stat[
                "mean"
            ]
    return tasks
