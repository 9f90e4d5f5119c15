"""Reads the logs of inspect_ai: `.json` files, and `.eval` files, which are ZIP archives of JSON.

Source: UKGovernmentBEIS/inspect_ai at 499e615, log/_log.py (EvalLog, EvalSample), log/_recorders/eval.py (names in the
archive), _util/zipfile.py (compression by Zstandard, which Python before 3.14 cannot read).
"""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import zstandard

from helm_longctx.data.jsonl import parse_json, read_object
from helm_longctx.errors import InputError
from helm_longctx.results.formats.answers import Answer, make_runs
from helm_longctx.tasks.outputs import Output, OutputReader, OutputRun
from helm_longctx.tasks.shapes import is_whole

Row = Mapping[str, Any]

MOST_BYTES = 256 << 20
"""Largest number of bytes of a decompressed file. A sample with a million tokens has a few million bytes."""

MOST_FILES = 100_000
"""Largest number of files in an archive."""

_ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""The header of a file in a ZIP archive: it starts with a signature and ends with the lengths of name and extras."""

_ATTACHMENT = "attachment://"


def _read(path: Path, entry: str) -> Iterator[OutputRun]:
    header, samples = _read_archive(path) if path.suffix == ".eval" else _read_log(path)
    about = header.get("eval")
    if not isinstance(about, dict):
        raise InputError(f"{path}: it lacks the object 'eval' of inspect_ai's logs")
    answers = [_answer(about, sample, place) for place, sample in samples]
    yield from make_runs(answers, entry)


def _read_log(path: Path) -> tuple[Row, Iterator[tuple[str, Any]]]:
    log = read_object(path)
    samples = log.get("samples")
    if not isinstance(samples, list):
        raise InputError(f"{path}: it lacks the list 'samples'; export the log with its samples")
    return log, ((f"{path}: sample {number}", sample) for number, sample in enumerate(samples, 1))


def _read_archive(path: Path) -> tuple[Row, Iterator[tuple[str, Any]]]:
    """Return the header of an archive, and its samples one at a time."""
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        raise InputError(f"{path}: not an archive of inspect_ai: {error}") from error
    members = archive.infolist()
    if len(members) > MOST_FILES:
        raise InputError(f"{path}: it has {len(members)} files; an archive may have {MOST_FILES}")
    by_name = {member.filename: member for member in members}
    # The log of an unfinished evaluation has only its start.
    header = next((by_name[name] for name in ("header.json", "_journal/start.json") if name in by_name), None)
    if header is None:
        raise InputError(f"{path}: it lacks header.json; is it a log of inspect_ai?")
    samples = [member for name, member in by_name.items() if name.startswith("samples/") and name.endswith(".json")]
    content = _parse(archive, header)
    return content, ((f"{path}: {member.filename}", _parse(archive, member)) for member in samples)


def _parse(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    place = f"{archive.filename}: {member.filename}"
    try:
        return parse_json(_decompress(archive, member))
    except (OSError, ValueError, RecursionError, zipfile.BadZipFile, zlib.error, zstandard.ZstdError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{place}: not readable: {error}") from error


def _decompress(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return a file of an archive. The sizes that an archive declares are not trusted."""
    if member.compress_type == _ZSTANDARD:
        assert archive.fp
        part = io.BytesIO(_read_compressed(archive.fp, member))
        stream: IO[bytes] = zstandard.ZstdDecompressor().stream_reader(part, read_across_frames=True)
    else:
        stream = archive.open(member)
    with stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InputError(f"{archive.filename}: {member.filename} is larger than {MOST_BYTES >> 20} MiB")
    return content


def _read_compressed(file: IO[bytes], member: zipfile.ZipInfo) -> bytes:
    """Return the compressed bytes of a file in the archive."""
    file.seek(member.header_offset)
    signature, name, extras = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if signature != b"PK\x03\x04" or member.compress_size > MOST_BYTES:
        raise InputError(f"{file.name}: {member.filename} is damaged or too large")
    file.seek(name + extras, io.SEEK_CUR)
    return file.read(member.compress_size)


def _answer(about: Row, sample: Any, place: str) -> Answer:
    """Return a sample as an answer. Its metadata are the fields of the example in the data set."""
    if not isinstance(sample, dict):
        raise InputError(f"{place}: not a JSON object but {type(sample).__name__}")
    epoch, error, tokens = sample.get("epoch", 1), sample.get("error"), None
    if not is_whole(epoch) or epoch < 1 or sample.get("id") is None:
        raise InputError(f"{place}: it must have an id, and an epoch from 1")
    usage = (sample.get("output") or {}).get("usage") if isinstance(sample.get("output"), dict) else None
    if isinstance(usage, dict) and is_whole(usage.get("input_tokens")):
        tokens = usage["input_tokens"]
    output = Output(
        id=str(sample["id"]),
        prediction=None,
        references=(),
        prompt=_whole_text(sample.get("input"), sample),
        repeat=epoch - 1,
        error=str(error.get("message", "")) if isinstance(error, dict) else "",
        input_tokens=tokens,
    )
    metadata = sample.get("metadata")
    fields = {"target": sample.get("target"), **(metadata if isinstance(metadata, dict) else {})}
    task = str(about.get("task") or "").rpartition("/")[2]
    return Answer(place, task, None if error else _text(sample, place), fields, output, str(about.get("model") or ""))


def _text(sample: Row, place: str) -> str | None:
    """Return the model's answer; None if the model was not asked."""
    output = sample.get("output")
    choices = output.get("choices") if isinstance(output, dict) else None
    if not choices:
        return None
    try:
        return _whole_text(choices[0]["message"]["content"], sample)
    except (LookupError, TypeError) as error:
        raise InputError(f"{place}: output.choices has no message") from error


def _whole_text(content: Any, sample: Row) -> str:
    """Return a text, the texts of a message's parts, or a conversation as JSON; attachments are put in their places."""
    if isinstance(content, list):
        if all(isinstance(part, dict) and "type" in part for part in content):
            return "".join(_whole_text(part.get("text"), sample) for part in content if part["type"] == "text")
        turns = [part for part in content if isinstance(part, dict)]
        if len(turns) == 1:
            return _whole_text(turns[0].get("content"), sample)
        messages = [{"role": turn.get("role"), "content": _whole_text(turn.get("content"), sample)} for turn in turns]
        return json.dumps(messages, ensure_ascii=False)
    text = content if isinstance(content, str) else ""
    attachments = sample.get("attachments")
    if text.startswith(_ATTACHMENT) and isinstance(attachments, dict):
        return str(attachments.get(text.removeprefix(_ATTACHMENT), text))
    return text


READER = OutputReader(
    "logs of inspect_ai (2025-01-31T12-00-00_TASK_ID.eval or .json)",
    re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d.*\.(?:eval|json)|.*\.eval"),
    _read,
)
