"""Transcripts: messages with tool calls and results, how models see them, and the forms in which programs get them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from helm_longctx.models.apis.tools import openai_messages
from helm_longctx.tasks.methods.method import ToolCall
from helm_longctx.tasks.token_estimate import estimate_tokens

SYSTEM, USER, ASSISTANT, TOOL = ("system", "user", "assistant", "tool")

_ROLES = {
    "system": SYSTEM,
    "developer": SYSTEM,
    "user": USER,
    "human": USER,
    "assistant": ASSISTANT,
    "model": ASSISTANT,
    "tool": TOOL,
    "function": TOOL,
}
"""The roles in OpenAI's, Anthropic's and Google's messages."""

_TEXTS = ("text", "input_text", "output_text", "summary_text")
"""Types of the parts of a content that are texts."""

_LEFT_OUT = ("thinking", "redacted_thinking", "reasoning")
"""Types of the parts that no later request has: agents drop the reasoning of earlier turns."""

_SEPARATOR = "\n\n"


@dataclass(frozen=True)
class TranscriptMessage:
    """A message of a transcript.

    Args:
        role: `system`, `user`, `assistant` or `tool`.
        calls: the tool calls of an assistant.
        call_id: the id of the call whose result a message of a tool is.
        tool: the name of this tool.
        line: the line of the file, from 1. 0 if the file has no lines of its own for messages.
        id: the id in the file. Empty if there is none.
        item: what only the server that made it can read, such as a compaction with encrypted content.
        size: the number of tokens, if the server has counted them.
    """

    role: str
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tool: str = ""
    line: int = 0
    id: str = ""
    item: Mapping[str, Any] | None = None
    size: int | None = None

    def render(self) -> str:
        """Return the message as the prompts have it."""
        if self.role == TOOL:
            return f"[result of {self.tool or 'a tool'}]\n{self.text}"
        parts = [f"[{self.role}]"]
        if self.text:
            parts.append(self.text)
        for call in self.calls:
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            parts.append(f"[call of {call.name}] {arguments}")
        return "\n".join(parts)

    @cached_property
    def tokens(self) -> int:
        """The number of tokens: an estimate, or the server's count."""
        return estimate_tokens(self.render()) if self.size is None else self.size


@dataclass(frozen=True)
class Transcript:
    """A session of an agent.

    Args:
        name: what tells it from the other transcripts.
        format: the name of the file's format.
        messages: all messages but system messages at the start. Agents send those anew with each request.
    """

    name: str
    format: str
    messages: Sequence[TranscriptMessage]
    path: Path | None = None

    @cached_property
    def tokens(self) -> int:
        """The estimated number of tokens."""
        return count_tokens(self.messages)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of what the messages say."""
        digest = hashlib.sha256()
        for message in self.messages:
            digest.update(message.render().encode("utf-8", "surrogatepass"))
            digest.update(b"\0")
        return digest.hexdigest()

    @cached_property
    def starts(self) -> list[int]:
        """The number of tokens before each message."""
        before = 0
        starts = []
        for message in self.messages:
            starts.append(before)
            before += message.tokens
        return starts

    def find_tail(self, tokens: int) -> int:
        """Return the number of the first message of the last so many tokens."""
        left = tokens
        for number in range(len(self.messages) - 1, -1, -1):
            left -= self.messages[number].tokens
            if left < 0:
                return number + 1
        return 0


def count_tokens(messages: Iterable[TranscriptMessage]) -> int:
    """Return the estimated number of tokens of messages."""
    return sum(message.tokens for message in messages)


def render(messages: Iterable[TranscriptMessage]) -> str:
    """Return messages as the prompts have them."""
    return _SEPARATOR.join(message.render() for message in messages)


def drop_system(messages: Sequence[TranscriptMessage]) -> list[TranscriptMessage]:
    """Return messages without the system messages at their start."""
    first = 0
    while first < len(messages) and messages[first].role == SYSTEM:
        first += 1
    return list(messages[first:])


def name_tools(messages: Iterable[TranscriptMessage]) -> list[TranscriptMessage]:
    """Return messages in which each result has the name of its tool."""
    names: dict[str, str] = {}
    named = []
    for message in messages:
        names |= {call.id: call.name for call in message.calls}
        if message.role == TOOL and not message.tool:
            message = replace(message, tool=names.get(message.call_id, ""))
        named.append(message)
    return named


def read_message(raw: Mapping[str, Any], line: int = 0) -> list[TranscriptMessage]:
    """Read a message in OpenAI's or Anthropic's form.

    A message in Anthropic's form can have several results of tools, and each of them is a message here.

    Raises:
        ValueError: it is no message. The text says what is wrong.
    """
    role = _ROLES.get(str(raw.get("role")))
    if role is None:
        raise ValueError("a message needs a role: system, user, assistant or tool")
    content = raw.get("content")
    calls = [read_call(call) for call in raw.get("tool_calls") or ()]
    own = _Pieces(calls=calls)
    messages: list[TranscriptMessage] = []
    if content is None or isinstance(content, str):
        own.texts.append(content or "")
    elif isinstance(content, list):
        for part in content:
            messages += _read_part(part, own, line)
    else:
        raise ValueError("the content of a message is a text or a list")
    text = "\n".join(text for text in own.texts if text)
    message_id = raw.get("id") if isinstance(raw.get("id"), str) else ""
    if role == TOOL:
        call_id = str(raw.get("tool_call_id") or raw.get("id") or "")
        name = raw.get("name")
        tool = name if isinstance(name, str) else ""
        return [
            TranscriptMessage(
                TOOL,
                text,
                call_id=call_id,
                tool=tool,
                line=line,
            )
        ]
    if text or own.calls or not messages:
        message = TranscriptMessage(
            role, text, tuple(own.calls), line=line, id=str(message_id or "")
        )
        # Results come first: an answer of the user to them stands after them.
        messages.append(message)
    return messages


@dataclass
class _Pieces:
    """What a message has, as its parts are read."""

    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)


def _read_part(part: object, own: _Pieces, line: int) -> Iterator[TranscriptMessage]:
    """Add a part of a content to the pieces of its message, and yield the results of tools in it."""
    if isinstance(part, str):
        own.texts.append(part)
        return
    if not isinstance(part, Mapping):
        raise ValueError("a part of a content is a text or an object")
    kind = part.get("type")
    if kind in _TEXTS:
        own.texts.append(str(part.get("text") or ""))
    elif kind == "tool_use":
        own.calls.append(
            ToolCall(
                id=str(part.get("id") or ""),
                name=str(part.get("name") or ""),
                arguments=_as_arguments(part.get("input")),
            )
        )
    elif kind == "tool_result":
        text = read_text(part.get("content"))
        yield TranscriptMessage(
            TOOL, text, call_id=str(part.get("tool_use_id") or ""), line=line
        )
    elif kind not in _LEFT_OUT:
        own.texts.append(f"[{kind or 'unknown part'}]")


def read_text(content: object) -> str:
    """Return the text of a content: a text, or a list of parts. Other parts, such as images, are named."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = []
        for part in content:
            if isinstance(part, Mapping):
                kind = part.get("type")
                text = part.get("text")
                texts.append(text if isinstance(text, str) else f"[{kind}]")
            else:
                texts.append(str(part))
        return "\n".join(texts)
    return json.dumps(content, ensure_ascii=False)


def read_call(raw: object) -> ToolCall:
    """Read a tool call in OpenAI's form.

    Raises:
        ValueError: it has no function.
    """
    function = raw.get("function") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(function, Mapping):
        raise ValueError("a tool call needs a function")
    return ToolCall(
        id=str(raw.get("id") or ""),
        name=str(function.get("name") or ""),
        arguments=read_arguments(function.get("arguments")),
    )


def read_arguments(text: object) -> dict[str, Any]:
    """Return the arguments of a call: an object, its JSON, or any other text under the name `input`."""
    if isinstance(text, str):
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return {"input": text} if text else {}
        return value if isinstance(value, dict) else {"input": text}
    return _as_arguments(text)


def _as_arguments(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    return dict(value) if isinstance(value, Mapping) else {"input": value}


def to_plain(message: TranscriptMessage) -> dict[str, Any]:
    """Return a message in the form of conversations with tools (`models/apis/tools.py`)."""
    plain: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == TOOL:
        plain["id"] = message.call_id
    if message.calls:
        plain["calls"] = [
            {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}
            for call in message.calls
        ]
    return plain


def to_openai(messages: Iterable[TranscriptMessage]) -> list[dict[str, Any]]:
    """Return messages in OpenAI's form, in which functions and commands get them."""
    return openai_messages(to_plain(message) for message in messages)


def from_openai(raw: object) -> list[TranscriptMessage]:
    """Read what a compactor returns: messages in OpenAI's or Anthropic's form, or a text, which is one message.

    Raises:
        ValueError: it is something else.
    """
    if isinstance(raw, str):
        return [TranscriptMessage(USER, raw)] if raw.strip() else []
    if isinstance(raw, Mapping) and isinstance(raw.get("messages"), list):
        raw = raw["messages"]
    if isinstance(raw, Mapping):
        raw = [raw]
    if not isinstance(raw, Sequence):
        raise ValueError("a compactor returns a list of messages, or a text")
    messages: list[TranscriptMessage] = []
    for part in raw:
        if not isinstance(part, Mapping):
            raise ValueError("a compactor returns a list of messages, or a text")
        messages += read_message(part)
    return name_tools(messages)
