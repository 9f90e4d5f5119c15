"""The records of a run: for each question its prompt's digest, the answer, the judges' notes and the statistics.

`records.jsonl.zst` has a line for each question and repeat, in the order of the run; `zstd -dc` prints it. HELM's files
of a run are written from its records. Everything reads records. HELM's files are read in their place for runs of HELM's
own runner, and where they were changed after the records were written.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import zstandard
from dacite import DaciteError

from helm_longctx.errors import DamagedRunError
from helm_longctx.failures import Failure
from helm_longctx.helm_api import PerInstanceStats, RequestState
from helm_longctx.models.results import answer_of, parse_result
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runs.files import (
    FORMAT_ERRORS,
    INSTANCE_STATS,
    STATES,
    find_sample,
    parse,
    reading,
    repeat_of,
)
from helm_longctx.runs.helm_files import (
    State,
    StatisticsRow,
    read_rows,
    read_states,
    to_json,
    to_plain,
    write_helm_files,
)
from helm_longctx.runs.prompts import to_text
from helm_longctx.runs.state_changes import StateChange, apply_change, find_changes
from helm_longctx.tasks.answer import Answer
from helm_longctx.tasks.sample import RecordKey, Sample
from helm_longctx.writing import replace_file

RECORDS = "records.jsonl.zst"

TEST_SPLIT = "test"
"""HELM's name of the split that our scenarios have."""

_CORRECT = {"tags": ["correct"]}
"""HELM's tags of the references that our scenarios have."""

_END = "records"
"""The field of the last line, which has the number of records."""

_LEVEL = 1
"""Level of compression. Level 3 takes half as long again for files that are a tenth smaller."""

_PIECE = 1 << 16
"""Bytes that are compressed or copied at once."""

AnswerValues = tuple[RecordKey, Mapping[str, float]]
"""The statistics of an answer that have a value, by name."""

_Key = tuple[RecordKey, str]
"""A record's key and, for a perturbed copy, the JSON of its perturbation."""


@dataclass(frozen=True)
class Record:
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
        split: HELM's name of the split that has the instance.
        rest: how HELM's request state differs from the one that the other fields make.
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
    split: str = TEST_SPLIT
    rest: Sequence[StateChange] = ()

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
            "split": None if self.split == TEST_SPLIT else self.split,
            "rest": [*self.rest],
        }
        return {
            name: value
            for name, value in content.items()
            if value not in (None, {}, [])
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Record:
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
            split=content.get("split", TEST_SPLIT),
            rest=content.get("rest", ()),
        )

    @classmethod
    def from_state(
        cls,
        state: State,
        answer: Answer | None = None,
        values: Mapping[str, float] | None = None,
    ) -> Record:
        """Make the record from a request state of HELM. Raises any error if it has another form.

        Args:
            state: plain data.
            answer: that of the state, if it was read before.
        """
        instance = state["instance"]
        request = {}
        for name, value in state["request"].items():
            if value is not None:
                request[name] = value
        record = cls(
            task=instance.get("sub_split") or "",
            instance=str(instance["id"]),
            repeat=repeat_of(state),
            sample=find_sample(instance),
            references=[
                reference["output"]["text"]
                for reference in instance.get("references", ())
            ],
            request=request,
            answer=answer or _read_answer(state.get("result")),
            notes=state.get("annotations") or {},
            values=values or {},
            is_perturbed=bool(instance.get("perturbation")),
            split=instance.get("split") or "",
        )
        return replace(record, rest=tuple(find_changes(record._make_state(), state)))

    def to_state(self) -> State:
        """Return HELM's request state of the record. Raises a `DamagedRunError` if its changes do not fit."""
        state = self._make_state()
        try:
            for change in self.rest:
                apply_change(change, state)
        except FORMAT_ERRORS as error:
            raise DamagedRunError(
                f"{RECORDS}: the record of {self.instance} cannot be read"
                f" ({type(error).__name__}); remove the file, and HELM's files are read"
                " in its place"
            ) from error
        return state

    def _make_state(self) -> State:
        """Return the request state that most records have."""
        prompt = {}
        if "prompt" in self.request:
            prompt["text"] = self.request["prompt"]
        if "messages" in self.request:
            prompt["messages"] = self.request["messages"]
        references = [{"output": {"text": text}} | _CORRECT for text in self.references]
        instance = {
            "input": prompt,
            "references": references,
            "split": self.split,
            "sub_split": self.task,
            "id": self.instance,
            "extra_data": self.sample.to_json() if self.sample else {},
        }
        return {
            "instance": instance,
            "train_trial_index": self.repeat,
            "request": dict(self.request),
            "result": _make_result(self.answer),
            "num_train_instances": 0,
            "prompt_truncated": False,
            "num_conditioning_tokens": 0,
            "annotations": dict(self.notes),
        }

    def to_row(self) -> StatisticsRow:
        """Return the row of HELM's file of statistics that has the record's."""
        name: dict[str, Any] = {"split": self.split, "sub_split": self.task}
        about: dict[str, Any] = {"instance_id": self.instance}
        if self.is_perturbed:
            perturbation = self.to_state()["instance"]["perturbation"]
            name["perturbation"] = about["perturbation"] = perturbation
        stats = []
        for metric, value in self.values.items():
            stats.append(
                {
                    "name": {"name": metric, **name},
                    "count": 1,
                    "sum": value,
                    "sum_squared": value * value,
                    "min": value,
                    "max": value,
                    "mean": value,
                    "variance": 0,
                    "stddev": 0,
                }
            )
        return {**about, "train_trial_index": self.repeat, "stats": stats}


def _make_result(answer: Answer) -> dict[str, Any]:
    """Return HELM's result of an answer, as it is in most request states."""
    completions = [_make_completion(answer)]
    if answer.first is not None:
        completions.append(_make_completion(answer.first))
    result = {
        "success": answer.failure is None,
        "embedding": [],
        "completions": completions,
        "cached": answer.is_cached,
        "facts": {"sent": {}, **answer.facts_to_json()},
    }
    if answer.seconds is not None:
        result["request_time"] = answer.seconds
    if answer.error:
        result["error"] = answer.error
    return result


def _make_completion(answer: Answer) -> dict[str, Any]:
    completion: dict[str, Any] = {"text": answer.output, "logprob": 0, "tokens": []}
    if answer.finish_reason:
        completion["finish_reason"] = {"reason": answer.finish_reason}
    if answer.thinking is not None:
        completion["thinking"] = {"text": answer.thinking}
    return completion


def _read_answer(result: Mapping[str, Any] | None) -> Answer:
    if not result:
        return Answer(failure=Failure.UNKNOWN)
    try:
        return answer_of(parse_result(result))
    except DaciteError as error:
        raise ValueError("the result has another form") from error


def write_run(
    run: Path,
    spec: Any,
    scenario: Any,
    stats: Iterable[Any],
    records: Iterable[Record],
) -> None:
    """Write the records of a finished run, and from them HELM's files. One record at a time is in memory.

    Args:
        spec: HELM's run spec. This and the next two arguments are HELM's objects, or the same as plain data.
        scenario: HELM's scenario.
        stats: the statistics of the whole run.
    """
    # Without records, HELM's files count. Older records would look like those of these files if the sizes were equal.
    (run / RECORDS).unlink(missing_ok=True)
    with (
        tempfile.TemporaryFile(dir=run) as lines,
        closing(_write_lines(lines, records)) as written,
    ):
        write_helm_files(
            run,
            spec=spec,
            scenario=scenario,
            states=(record.to_state() for record in written),
            stats=stats,
            rows=_read_rows_again(lines),
        )
        lines.seek(0)
        stamp = zstandard.compress(_to_line(_stamp(run)))
        pieces = iter(lambda: lines.read(_PIECE), b"")
        replace_file(run / RECORDS, stamp, pieces=pieces)


def _write_lines(file: Any, records: Iterable[Record]) -> Generator[Record, None, None]:
    """Yield the records, each after it was written."""
    with zstandard.ZstdCompressor(level=_LEVEL).stream_writer(
        file, closefd=False
    ) as packed:
        count = 0
        for record in records:
            packed.write(_to_line(record.to_json()))
            count += 1
            yield record
        # Without this line, records that were cut off would look whole.
        packed.write(_to_line({_END: count}))


_ROW_FIELDS = ("task", "instance", "repeat", "values", "split")
"""The fields of a record that make its row of statistics, unless it is of a perturbed copy."""


def _read_rows_again(file: Any) -> Iterator[StatisticsRow]:
    """Yield the rows of statistics of records that were written."""
    file.seek(0)
    for content in _parse_lines(_lines(file)):
        if not content.get("values"):
            continue
        needed = content
        if not content.get("is_perturbed"):
            needed = {name: content[name] for name in _ROW_FIELDS if name in content}
        yield Record.from_json(needed).to_row()


def _to_line(content: Mapping[str, Any]) -> bytes:
    return to_json(content) + b"\n"


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


def read_records(run: Path) -> Iterator[Record]:
    """Read the records of a run in order, one at a time.

    Raises:
        InputError: the run's files are missing or damaged.
    """
    return _read_lines(run / RECORDS) if has_records(run) else _read_helm_files(run)


def read_run_states(run: Path) -> Iterator[State]:
    """Read HELM's request states of a run in order, one at a time.

    Raises:
        InputError: the run's files are missing or damaged.
    """
    if has_records(run):
        return (record.to_state() for record in read_records(run))
    return read_states(run / STATES)


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
        if _to_comparable(record) != _to_comparable(other):
            return (
                f"{RECORDS}: record {number} differs from {STATES} or {INSTANCE_STATS}"
            )
    return None


def _to_comparable(record: Record) -> str:
    """Return a record as JSON, in which NaN is equal to itself."""
    return json.dumps(record.to_json(), sort_keys=True)


_MOST_STAMP = 1 << 12
"""Bytes of the first line that are read."""

_ROOM = 1 << 20
_MOST_TIMES = 4
"""Records may unpack to so many bytes, and this many times the size of HELM's files, which have the same content."""


def _lines(file: Any, most: int = sys.maxsize - 1) -> Iterator[bytes]:
    """Yield lines that have at most so many bytes in all. A small file can unpack to more than memory holds."""
    stream = zstandard.ZstdDecompressor().stream_reader(
        file, read_across_frames=True, closefd=False
    )
    lines = io.BufferedReader(stream, buffer_size=1 << 20)
    left = most
    while line := lines.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise ValueError("the records unpack to more than HELM's files hold")
        yield line


def _read_lines(path: Path) -> Iterator[Record]:
    with _reading_records(path), path.open("rb") as file:
        in_helm_files = sum(_stamp(path.parent).values())
        lines = _lines(file, _ROOM + _MOST_TIMES * in_helm_files)
        next(lines)
        yield from map(Record.from_json, _parse_lines(lines))


def _parse_lines(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the records in lines as plain data. Raises a `ValueError` if the last line does not have their number."""
    for count, line in enumerate(lines):
        content = parse(line)
        if _END in content:
            if content[_END] != count:
                raise ValueError("lines are missing")
            return
        yield content
    raise ValueError("the end is missing")


@contextmanager
def _reading_records(path: Path) -> Iterator[None]:
    """Raise a `DamagedRunError` for any error in the block."""
    try:
        yield
    except (*FORMAT_ERRORS, zstandard.ZstdError) as error:
        raise DamagedRunError(
            f"{path} cannot be read ({type(error).__name__}); remove it, and HELM's"
            " files are read in its place"
        ) from error


def _read_helm_files(run: Path) -> Iterator[Record]:
    """Yield the records that HELM's files make. Their statistics are in memory, but one request state at a time."""
    statistics = _read_statistics(run)
    path = run / STATES
    with reading(path):
        answered = ((state, None) for state in read_states(path))
        yield from _add_values(answered, [statistics])


def _read_statistics(run: Path) -> dict[_Key, dict[str, float]]:
    """Return the statistics in HELM's file, by the record that they are of. A run without scores has none."""
    path = run / INSTANCE_STATS
    statistics: dict[_Key, dict[str, float]] = {}
    if not path.is_file():
        return statistics
    for row in read_rows(path):
        with reading(path):
            # Each of several metrics has rows of its own.
            for key, values in _read_values(row).items():
                statistics.setdefault(key, {}).update(values)
    return statistics


def make_records(
    states: Iterable[RequestState],
    rows: Iterable[PerInstanceStats | AnswerValues],
) -> Iterator[Record]:
    """Yield the records of request states and rows of statistics, which have nearly always the same order.

    Args:
        states: HELM's objects. One at a time is in memory.
        rows: the same, or what our metric makes in their place.
    """
    return _add_values(map(_to_answered, states), map(_read_row, rows))


def _read_row(
    row: PerInstanceStats | AnswerValues,
) -> Mapping[_Key, Mapping[str, float]]:
    """Return the statistics of a row, by the record that they are of."""
    if isinstance(row, tuple):
        key, values = row
        return {(key, ""): values}
    return _read_values(_shorten_row(row))


def _to_answered(state: RequestState) -> tuple[State, Answer | None]:
    return to_plain(state), answer_of(state.result) if state.result else None


def _shorten_row(row: PerInstanceStats) -> StatisticsRow:
    """Return a row as plain data with what `_read_values` reads."""
    if row.perturbation:
        return dict(to_plain(row))
    stats = [{"name": vars(stat.name), "mean": stat.mean} for stat in row.stats]
    return {
        "instance_id": row.instance_id,
        "train_trial_index": row.train_trial_index,
        "stats": stats,
    }


def _add_values(
    answered: Iterable[tuple[State, Answer | None]],
    statistics: Iterable[Mapping[_Key, Mapping[str, float]]],
) -> Iterator[Record]:
    left = iter(statistics)
    waiting: dict[_Key, Mapping[str, float]] = {}
    for state, answer in answered:
        instance = state["instance"]
        key = _key_of(instance.get("sub_split") or "", instance["id"], state, instance)
        while key not in waiting:
            further = next(left, None)
            if further is None:
                break
            waiting.update(further)
        yield Record.from_state(state, answer, waiting.pop(key, {}))


def _read_values(row: StatisticsRow) -> dict[_Key, dict[str, float]]:
    """Return the statistics of a row of HELM, by the record that they are of."""
    values: dict[_Key, dict[str, float]] = {}
    for stat in row["stats"]:
        name = stat["name"]
        mean = stat.get("mean")
        if mean is None or name.get("perturbation") != row.get("perturbation"):
            continue
        key = _key_of(name.get("sub_split") or "", row["instance_id"], row, row)
        values.setdefault(key, {})[name["name"]] = mean
    return values


def _key_of(
    task: str,
    instance: object,
    answer: Mapping[str, Any],
    about: Mapping[str, Any],
) -> _Key:
    """Return the key of a request state or of a row; `about` has the perturbation."""
    perturbation = about.get("perturbation")
    key = (task, str(instance), repeat_of(answer))
    return key, json.dumps(perturbation) if perturbation else ""
