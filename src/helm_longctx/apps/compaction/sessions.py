"""Reads transcripts from files: OpenAI's and Anthropic's messages, and the sessions of Claude Code, Codex and OpenCode.

The formats of the sessions, read in November 2026:

- Claude Code writes `~/.claude/projects/PROJECT/SESSION.jsonl`. A line has a `type`, and those of users and assistants
  a `message` in Anthropic's form, `uuid` and `parentUuid`. The blocks of one answer are several lines with its id.
- Codex writes `~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl`. A line has a `type` and a `payload`; those of the type
  `response_item` are items of the Responses API (`codex-rs/protocol/src/models.rs` in openai/codex).
- `opencode export SESSION` prints `{"info", "messages": [{"info", "parts"}]}`
  (`packages/opencode/src/session/message-v2.ts` in anomalyco/opencode).

What an earlier compaction of the agent wrote is left out, because the messages that it replaced still stand in these
files.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from helm_longctx.apps.compaction.transcripts import (
    ASSISTANT,
    TOOL,
    USER,
    Transcript,
    TranscriptMessage,
    drop_system,
    name_tools,
    read_arguments,
    read_message,
    read_text,
)
from helm_longctx.errors import InputError, shorten
from helm_longctx.tasks.methods.method import ToolCall

_log = logging.getLogger(__name__)

_FILES = (".jsonl", ".json")
"""The ends of the names of files that are read in a folder."""

_Row = tuple[int, Mapping[str, Any]]
"""The number of a line, and its object. The number is 0 if the file is one JSON document."""

_CODEX_TYPES = (
    "response_item",
    "session_meta",
    "event_msg",
    "turn_context",
    "compacted",
)
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")


class _Format(NamedTuple):
    """A format of transcripts.

    Args:
        is_row: whether an object is a row of this format.
        read: returns the messages of each transcript, with the transcript's name. Empty for a file with one.
    """

    name: str
    is_row: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Sequence[_Row]], list[tuple[str, list[TranscriptMessage]]]]


def read_transcripts(paths: Iterable[Path]) -> list[Transcript]:
    """Read the transcripts in files, and in all files of folders that end in `.jsonl` or `.json`.

    Raises:
        InputError: a file cannot be read, has another format, or has no message.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.rglob("*") if file.suffix in _FILES)
            if not inside:
                raise InputError(
                    f"compaction: {path}: no file in this folder ends in .jsonl or .json"
                )
            files += inside
        else:
            files.append(path)
    transcripts: list[Transcript] = []
    for file in files:
        transcripts += _read_file(file)
    return _with_own_names(transcripts)


def _with_own_names(transcripts: Sequence[Transcript]) -> list[Transcript]:
    """Return transcripts of which no two have the same name. Files of different folders can."""
    times: dict[str, int] = {}
    named = []
    for transcript in transcripts:
        number = times.get(transcript.name, 0) + 1
        times[transcript.name] = number
        if number > 1:
            transcript = replace(transcript, name=f"{transcript.name} ({number})")
        named.append(transcript)
    return named


def _read_file(path: Path) -> list[Transcript]:
    rows = _read_rows(path)
    row_format = _find_format(rows)
    if row_format is None:
        names = "messages of OpenAI or Anthropic, or sessions of Claude Code, Codex or OpenCode"
        raise InputError(f"compaction: {path}: this is no transcript; give {names}")
    try:
        read = row_format.read(rows)
    except _RowError as error:
        where = f"{path}:{error.line}" if error.line else str(path)
        raise InputError(f"compaction: {where}: {error}") from None
    transcripts = []
    for name, messages in read:
        kept = name_tools(drop_system(messages))
        if not kept:
            raise InputError(f"compaction: {path}: there is no message in it")
        full_name = f"{path.name} {name}".strip()
        transcripts.append(Transcript(full_name, row_format.name, kept, path))
    return transcripts


def _find_format(rows: Iterable[_Row]) -> _Format | None:
    """Return the format of the first row that one knows."""
    for _, row in rows:
        for known in _FORMATS:
            if known.is_row(row):
                return known
    return None


class _RowError(ValueError):
    """A row of a file cannot be read."""

    def __init__(self, line: int, what: str):
        super().__init__(what)
        self.line = line


def _read_rows(path: Path) -> list[_Row]:
    """Return the objects of a file: its lines, the elements of its list, or the only one."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"compaction: {path}: {error.strerror or error}; give a file of a transcript"
        ) from None
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        return _read_lines(path, content)
    parts = document if isinstance(document, list) else [document]
    if not parts or not all(isinstance(part, Mapping) for part in parts):
        raise InputError(
            f"compaction: {path}: a transcript is an object, a list of them, or JSON lines"
        )
    # A file of one line is both, and its line has a number.
    line = 1 if isinstance(document, Mapping) and content.count(b"\n") < 2 else 0
    return [(line, part) for part in parts]


def _read_lines(path: Path, content: bytes) -> list[_Row]:
    rows: list[_Row] = []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            if number == len(lines) and rows:
                # The agent may be writing it.
                _log.warning("%s: the last line is not complete; it is left out", path)
                continue
            raise InputError(
                f"compaction: {path}:{number}: this line is not JSON; give JSON lines"
            ) from None
        if not isinstance(row, Mapping):
            raise InputError(f"compaction: {path}:{number}: a line is an object")
        rows.append((number, row))
    if not rows:
        raise InputError(f"compaction: {path}: the file is empty")
    return rows


def _read_raw(raw: Mapping[str, Any], line: int) -> list[TranscriptMessage]:
    try:
        return read_message(raw, line)
    except ValueError as error:
        raise _RowError(line, str(error)) from None


def _has_mapping(row: Mapping[str, Any], name: str) -> bool:
    return isinstance(row.get(name), Mapping)


def _is_claude_code(row: Mapping[str, Any]) -> bool:
    return row.get("type") in (USER, ASSISTANT) and _has_mapping(row, "message")


def _read_claude_code(
    rows: Sequence[_Row],
) -> list[tuple[str, list[TranscriptMessage]]]:
    """Return the messages of the main agent, without turns that the user has taken back."""
    entries = []
    for line, row in rows:
        is_left_out = row.get("isSidechain") or row.get("isCompactSummary")
        if (
            _is_claude_code(row)
            and not is_left_out
            and not row.get("isApiErrorMessage")
        ):
            entries.append((line, row))
    abandoned = _find_abandoned(entries)
    messages: list[TranscriptMessage] = []
    last_id = None
    for line, row in entries:
        if row.get("uuid") in abandoned:
            continue
        own_id = row["message"].get("id")
        raw = {"role": row["type"], **row["message"], "id": row.get("uuid")}
        read = _read_raw(raw, line)
        if own_id is not None and own_id == last_id and len(read) == 1:
            # The blocks of one answer.
            messages[-1] = _join_messages(messages[-1], read[0])
        else:
            messages += [message for message in read if message.text or message.calls]
        last_id = own_id if messages and messages[-1].role == ASSISTANT else None
    return [("", messages)]


def _join_messages(
    one: TranscriptMessage,
    other: TranscriptMessage,
) -> TranscriptMessage:
    texts = []
    for text in (one.text, other.text):
        if text:
            texts.append(text)
    return replace(one, text="\n".join(texts), calls=(*one.calls, *other.calls))


def _find_abandoned(entries: Sequence[_Row]) -> set[str]:
    """Return the ids of turns that the user has taken back, and of what follows them.

    After a user goes back, the new prompt has the same parent as the one that it replaces. Results of parallel calls
    can share a parent, too, so only prompts count.
    """
    last: dict[str, str] = {}
    abandoned: set[str] = set()
    for _, row in entries:
        parent = row.get("parentUuid")
        content = row["message"].get("content")
        is_prompt = isinstance(content, str) or not any(
            isinstance(part, Mapping) and part.get("type") == "tool_result"
            for part in content or ()
        )
        if row["type"] == USER and parent and is_prompt and not row.get("isMeta"):
            if parent in last:
                abandoned.add(last[parent])
            last[parent] = str(row.get("uuid"))
    if abandoned:
        # Children come after their parents.
        for _, row in entries:
            if row.get("parentUuid") in abandoned:
                abandoned.add(str(row.get("uuid")))
    return abandoned


def _is_codex(row: Mapping[str, Any]) -> bool:
    if row.get("type") in _CODEX_TYPES and _has_mapping(row, "payload"):
        return True
    is_item = row.get("type") == "message" and "role" in row
    return is_item or row.get("type") in (*_CALLS, *_RESULTS)


def _read_codex(rows: Sequence[_Row]) -> list[tuple[str, list[TranscriptMessage]]]:
    """Return the messages, calls and results. Items of the Responses API without an envelope are read, too."""
    messages: list[TranscriptMessage] = []
    for line, row in rows:
        item = row
        if "payload" in row:
            if row.get("type") != "response_item" or not _has_mapping(row, "payload"):
                continue
            item = row["payload"]
        kind = item.get("type")
        if kind == "message":
            messages += _read_raw(item, line)
        elif kind in _CALLS:
            call = _read_codex_call(item)
            if messages and messages[-1].role == ASSISTANT:
                last = messages[-1]
                messages[-1] = replace(last, calls=(*last.calls, call))
            else:
                messages.append(TranscriptMessage(ASSISTANT, "", (call,), line=line))
        elif kind in _RESULTS:
            text = _read_codex_output(item.get("output"))
            call_id = str(item.get("call_id") or "")
            messages.append(TranscriptMessage(TOOL, text, call_id=call_id, line=line))
    return [("", messages)]


def _read_codex_call(item: Mapping[str, Any]) -> ToolCall:
    name = str(item.get("name") or str(item["type"]).removesuffix("_call"))
    content = next(
        (item[key] for key in ("arguments", "input", "action") if key in item), None
    )
    call_id = str(item.get("call_id") or item.get("id") or "")
    return ToolCall(
        id=call_id,
        name=name,
        arguments=read_arguments(content),
    )


def _read_codex_output(output: object) -> str:
    """Return the text of a result. Older versions wrap it in JSON with its exit status."""
    if isinstance(output, Mapping):
        return read_text(output.get("content", output.get("output")))
    if isinstance(output, str) and output.startswith('{"output":'):
        try:
            wrapped = orjson.loads(output)
        except orjson.JSONDecodeError:
            return output
        return read_text(wrapped["output"])
    return read_text(output)


def _is_opencode(row: Mapping[str, Any]) -> bool:
    if _has_mapping(row, "info") and isinstance(row.get("parts"), list):
        return True
    messages = row.get("messages")
    return isinstance(messages, list) and any(
        isinstance(part, Mapping) and _has_mapping(part, "info") for part in messages
    )


def _read_opencode(rows: Sequence[_Row]) -> list[tuple[str, list[TranscriptMessage]]]:
    """Return the messages of each exported session. Lines with `info` and `parts` are one session."""
    loose: list[TranscriptMessage] = []
    sessions: list[tuple[str, list[TranscriptMessage]]] = []
    for line, row in rows:
        if not isinstance(row.get("messages"), list):
            loose += _read_opencode_message(row, line)
            continue
        messages: list[TranscriptMessage] = []
        for entry in row["messages"]:
            if isinstance(entry, Mapping):
                messages += _read_opencode_message(entry, 0)
        name = str(row["info"].get("id", "")) if _has_mapping(row, "info") else ""
        sessions.append((name if len(rows) > 1 else "", messages))
    return [*sessions, ("", loose)] if loose else sessions


def _read_opencode_message(
    entry: Mapping[str, Any],
    line: int,
) -> list[TranscriptMessage]:
    info = entry.get("info")
    parts = entry.get("parts")
    if not isinstance(info, Mapping) or not isinstance(parts, list):
        raise _RowError(line, "a message of OpenCode has info and parts")
    if info.get("summary") is True:
        return []
    role = ASSISTANT if info.get("role") == ASSISTANT else USER
    message_id = str(info.get("id") or "")
    texts: list[str] = []
    messages: list[TranscriptMessage] = []
    for part in parts:
        if not isinstance(part, Mapping):
            raise _RowError(line, "a part of a message of OpenCode is an object")
        kind = part.get("type")
        if kind == "text" and not part.get("ignored"):
            texts.append(str(part.get("text") or ""))
        elif kind == "file":
            texts.append(f"[file {part.get('filename') or part.get('mime') or ''}]")
        elif kind == "tool":
            call, result = _read_opencode_tool(part, line, message_id)
            text = "\n".join(texts)
            messages.append(
                TranscriptMessage(ASSISTANT, text, (call,), line=line, id=message_id)
            )
            messages.append(result)
            texts = []
    text = "\n".join(text for text in texts if text)
    if text:
        messages.append(TranscriptMessage(role, text, line=line, id=message_id))
    return messages


def _read_opencode_tool(
    part: Mapping[str, Any],
    line: int,
    message_id: str,
) -> tuple[ToolCall, TranscriptMessage]:
    """Return the call and the result of a tool."""
    content = part.get("state")
    state: Mapping[str, Any] = content if isinstance(content, Mapping) else {}
    name = str(part.get("tool") or "")
    call_id = str(part.get("callID") or "")
    call = ToolCall(
        id=call_id,
        name=name,
        arguments=read_arguments(state.get("input")),
    )
    text = read_text(state.get("output", state.get("error")))
    if state.get("status") in ("pending", "running"):
        text = "[interrupted]"
    result = TranscriptMessage(
        TOOL,
        text,
        call_id=call_id,
        tool=name,
        line=line,
        id=message_id,
    )
    return call, result


def _is_message(row: Mapping[str, Any]) -> bool:
    return "role" in row or isinstance(row.get("messages"), list)


def _read_messages(rows: Sequence[_Row]) -> list[tuple[str, list[TranscriptMessage]]]:
    """Return a transcript of all lines that are messages, and one of each line with a list of them."""
    loose: list[TranscriptMessage] = []
    several: list[tuple[str, list[TranscriptMessage]]] = []
    for line, row in rows:
        if not isinstance(row.get("messages"), list):
            loose += _read_raw(row, line)
            continue
        messages: list[TranscriptMessage] = []
        for raw in row["messages"]:
            if not isinstance(raw, Mapping):
                raise _RowError(line, f"{shorten(str(raw), 40)} is no message")
            messages += _read_raw(raw, line)
        several.append((str(row.get("id") or f"line {line}"), messages))
    if len(several) == 1 and not loose:
        return [("", several[0][1])]
    return [*several, ("", loose)] if loose else several


_FORMATS = (
    _Format("Claude Code", _is_claude_code, _read_claude_code),
    _Format("Codex", _is_codex, _read_codex),
    _Format("OpenCode", _is_opencode, _read_opencode),
    _Format("messages", _is_message, _read_messages),
)
"""The formats. The first one that knows a row reads the file."""
