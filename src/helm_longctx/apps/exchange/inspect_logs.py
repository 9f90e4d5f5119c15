"""Reads the logs of inspect_ai: `.json` files, and `.eval` files (ZIP archives of JSON).

Source: UKGovernmentBEIS/inspect_ai at 499e615, log/_log.py (EvalLog, EvalSample), log/_recorders/eval.py (names in the
archive), _util/zipfile.py (compression by Zstandard: Python before 3.14 cannot read it).
"""

import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import zstandard

from helm_longctx.apps.exchange.answers import LENGTH, ForeignAnswer, make_runs
from helm_longctx.data.jsonl import find_nested, parse_json, read_object
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, FailureError
from helm_longctx.tasks.outputs import Output, OutputReader, OutputRun
from helm_longctx.tasks.task import is_whole

_Row = Mapping[str, Any]

_MOST_BYTES = 256 << 20
"""Largest number of bytes of a decompressed file. A sample with a million tokens has a few million bytes."""

_MOST_BYTES_IN_ALL = 2 << 30
"""Largest number of bytes of all decompressed files of an archive. Their prompts are in memory together."""

_MOST_FILES = 100_000

_ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""The header of a file in a ZIP archive: it starts with a signature and ends with the lengths of name and extras."""

_ATTACHMENT = "attachment://"

_UNFINISHED = ("started", "cancelled", "error")
"""The statuses of evaluations that can lack samples."""

_CUT = {"max_tokens": "length", "model_length": "length"}
"""HELM's names of stop reasons that inspect_ai calls otherwise."""


def _read(path: Path, entry: str) -> Iterator[OutputRun]:
    samples: Any
    if path.suffix == ".eval":
        header, samples = _read_archive(path)
    else:
        header = read_object(path)
        if not isinstance(header.get("samples"), list):
            raise InputError(
                f"{path}: it lacks the list 'samples'; export the log with its samples"
            )
        numbered = enumerate(header["samples"], 1)
        samples = ((f"{path}: sample {number}", sample) for number, sample in numbered)
    about = header.get("eval")
    if not isinstance(about, dict):
        raise InputError(f"{path}: it lacks the object 'eval' of inspect_ai's logs")
    answers = []
    for location, sample in samples:
        answers.append(_answer(about, sample, location))
    yield from make_runs([*answers, *_missing(header, about, answers, path)], entry)


def _missing(
    header: _Row,
    about: _Row,
    answers: Sequence[ForeignAnswer],
    path: Path,
) -> Iterator[ForeignAnswer]:
    """Yield an answer without a text for each sample that an unfinished evaluation did not log."""
    status = header.get("status")
    ids = find_nested(about, "dataset", "sample_ids")
    if status not in _UNFINISHED or not isinstance(ids, list) or not answers:
        return
    epochs = find_nested(about, "config", "epochs")
    count = max(epochs, 1) if isinstance(epochs, int) else 1
    if count * len(ids) > _MOST_FILES:
        raise InputError(
            f"{path}: the evaluation has {len(ids)} samples, and a log may have"
            f" {_MOST_FILES} with all epochs"
        )
    missing = set()
    for name in ids:
        for repeat in range(count):
            missing.add((str(name), repeat))
    missing -= {(answer.output.id, answer.output.repeat) for answer in answers}
    common = {}
    for name in (LENGTH, "entry"):
        common[name] = answers[0].fields.get(name)
    for answer in answers if missing else ():
        if any(answer.fields.get(name) != value for name, value in common.items()):
            problem = f"the evaluation has the status {status!r} and lacks {len(missing)} samples of unknown length"
            raise InputError(f"{path}: {problem}; finish it with inspect eval-retry")
    error = f"the evaluation has the status {status!r} and ended before this sample"
    for name, repeat in sorted(missing):
        output = Output(
            id=name,
            prediction=None,
            references=(),
            repeat=repeat,
            error=error,
            failure=Failure.UNKNOWN,
            location=f"{path}: sample {name}",
        )
        yield replace(
            answers[0],
            text=None,
            fields=common,
            output=output,
        )


def _read_archive(path: Path) -> tuple[_Row, Iterator[tuple[str, Any]]]:
    """Return the header of an archive, and its samples one at a time."""
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        raise InputError(f"{path}: not an archive of inspect_ai: {error}") from error
    members = archive.infolist()
    if len(members) > _MOST_FILES:
        raise InputError(
            f"{path}: it has {len(members)} files; an archive may have {_MOST_FILES}"
        )
    by_name = {}
    for member in members:
        by_name[member.filename] = member
    # The log of an unfinished evaluation has only its start.
    start = "_journal/start.json"
    header = next(
        (by_name[name] for name in ("header.json", start) if name in by_name), None
    )
    if header is None:
        raise InputError(f"{path}: it lacks header.json; is it a log of inspect_ai?")
    samples = []
    for name, member in by_name.items():
        if name.startswith("samples/") and name.endswith(".json"):
            samples.append(member)
    (_, content), *_rest = _parse(archive, [header])
    if header.filename == start:
        content = {"status": "started", **content}
    return content, _parse(archive, samples)


def _parse(
    archive: zipfile.ZipFile,
    members: Sequence[zipfile.ZipInfo],
) -> Iterator[tuple[str, Any]]:
    """Yield the names and the contents of files in an archive. The sizes that the archive declares are not trusted."""
    left = _MOST_BYTES_IN_ALL
    for member in members:
        location = f"{archive.filename}: {member.filename}"
        try:
            content = _decompress(archive, member)
            left -= len(content)
            if left < 0:
                raise InputError(
                    f"{archive.filename}: its files are larger than"
                    f" {_MOST_BYTES_IN_ALL >> 20} MiB in all"
                )
            yield location, parse_json(content)
        except InputError:
            raise
        except (
            OSError,
            ValueError,
            RecursionError,
            zipfile.BadZipFile,
            zlib.error,
            zstandard.ZstdError,
        ) as error:
            raise InputError(f"{location}: not readable: {error}") from error


def _decompress(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.compress_type == _ZSTANDARD:
        assert archive.fp
        archive.fp.seek(member.header_offset)
        signature, name, extras = _LOCAL_HEADER.unpack(
            archive.fp.read(_LOCAL_HEADER.size)
        )
        if signature != b"PK\x03\x04" or member.compress_size > _MOST_BYTES:
            raise InputError(
                f"{archive.filename}: {member.filename} is damaged or too large"
            )
        archive.fp.seek(name + extras, io.SEEK_CUR)
        part = io.BytesIO(archive.fp.read(member.compress_size))
        stream: IO[bytes] = zstandard.ZstdDecompressor().stream_reader(
            part, read_across_frames=True
        )
    else:
        stream = archive.open(member)
    with stream:
        content = stream.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise InputError(
            f"{archive.filename}: {member.filename} is larger than {_MOST_BYTES >> 20} MiB"
        )
    return content


def _answer(about: _Row, sample: Any, location: str) -> ForeignAnswer:
    """Return a sample as an answer. Its metadata are the fields of the example in the data set."""
    if not isinstance(sample, dict):
        raise InputError(f"{location}: not a JSON object but {type(sample).__name__}")
    epoch = sample.get("epoch", 1)
    error = sample.get("error")
    if not is_whole(epoch) or epoch < 1 or sample.get("id") is None:
        raise InputError(f"{location}: it must have an id, and an epoch from 1")
    tokens = find_nested(sample, "output", "usage", "input_tokens")
    text = None
    reason = ""
    message = str(find_nested(error, "message") or "")
    failure = None
    if not error:
        try:
            text, reason = _text_and_reason(sample)
        except FailureError as no_answer:
            failure = no_answer.kind
            message = str(no_answer)
    prompt = ""
    with suppress(FailureError):  # the score needs no prompt
        prompt = _whole_text(sample.get("input"), sample)
    answer = Output(
        id=str(sample["id"]),
        prediction=None,
        references=(),
        prompt=prompt,
        repeat=epoch - 1,
        error=message,
        failure=failure,
        finish_reason=reason,
        input_tokens=tokens if is_whole(tokens) else None,
        location=location,
    )
    metadata = sample.get("metadata")
    fields = {
        "target": sample.get("target"),
        **(metadata if isinstance(metadata, dict) else {}),
    }
    task = str(about.get("task") or "").rpartition("/")[2]
    return ForeignAnswer(
        task=task,
        text=text,
        fields=fields,
        output=answer,
        model=str(about.get("model") or ""),
    )


def _text_and_reason(sample: _Row) -> tuple[str, str]:
    """Return the model's answer, and why it ended. Raises a `FailureError` if there is no answer."""
    try:
        choice = sample["output"]["choices"][0]
        content = choice["message"]["content"]
    except (LookupError, TypeError):
        raise FailureError(Failure.MALFORMED, "the sample has no answer") from None
    if not isinstance(content, (str, list)):
        raise FailureError(
            Failure.MALFORMED, f"the answer is not a text but {type(content).__name__}"
        )
    reason = str(choice.get("stop_reason") or "")
    text = _whole_text(content, sample)
    if isinstance(content, list) and any(_is_reasoning(part) for part in content):
        # The parser that has taken the reasoning apart has left the white space after it.
        text = text.strip()
    reason = _CUT.get(reason, reason)
    # An empty text is an answer. A message without any text is none, unless a limit ended the reasoning before it.
    has_text = isinstance(content, str) and not choice["message"].get("tool_calls")
    if not (text or has_text or reason in ("length", "content_filter")):
        raise FailureError(Failure.MALFORMED, "the answer has no text")
    return text, reason


def _is_reasoning(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "reasoning"


def _whole_text(content: Any, sample: _Row) -> str:
    """Return a text, the texts of a message's parts, or a conversation as JSON. Attachments are put in."""
    if isinstance(content, list):
        if all(isinstance(part, dict) and "type" in part for part in content):
            texts = []
            for part in content:
                if part["type"] == "text":
                    texts.append(part.get("text"))
            return "".join(_whole_text(text, sample) for text in texts)
        turns = [part for part in content if isinstance(part, dict)]
        if len(turns) == 1:
            return _whole_text(turns[0].get("content"), sample)
        messages = []
        for turn in turns:
            text = _whole_text(turn.get("content"), sample)
            messages.append({"role": turn.get("role"), "content": text})
        return json.dumps(messages, ensure_ascii=False)
    text = content if isinstance(content, str) else ""
    if not text.startswith(_ATTACHMENT):
        return text
    attached = find_nested(sample, "attachments", text.removeprefix(_ATTACHMENT))
    if not isinstance(attached, str):
        raise FailureError(Failure.MALFORMED, "the sample lacks an attachment")
    return attached


READER = OutputReader(
    "logs of inspect_ai (2025-01-31T12-00-00_TASK_ID.eval or .json)",
    re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d.*\.(?:eval|json)|.*\.eval"),
    _read,
)
