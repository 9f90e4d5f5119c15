"""Native calls of tools, in OpenAI's and in Anthropic's protocol.

HELM's requests have no tools. A conversation of a program has them in one form for both protocols: a message of the
assistant can have `calls`, each with `id`, `name` and `arguments`; a message with the role `tool` has the `id` of a
call and its result as `content`. A conversation that a benchmark's data has is in OpenAI's own form (`tasks/prompt.py`).

The `reasoning` before calls goes back with them, in the provider's own form. DeepSeek ("must be passed back"), Moonshot
and Anthropic (signed blocks of thinking) refuse calls without it, and Google refuses calls without their signatures:
https://api-docs.deepseek.com/guides/thinking_mode,
https://platform.claude.com/docs/en/build-with-claude/extended-thinking,
https://ai.google.dev/gemini-api/docs/thought-signatures, read in November 2026.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from helm_longctx.failures import Failure, FailureError
from helm_longctx.helm_api import Request, RequestResult
from helm_longctx.models.results import add_facts
from helm_longctx.models.sampling import SampledRequest, with_fields
from helm_longctx.tasks.methods.method import ToolCall

_OPENAI_REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""Fields of a message in OpenAI's protocol: of DeepSeek, of vLLM, and OpenRouter's with signatures."""

_ANTHROPIC_REASONING = ("thinking", "redacted_thinking")
"""Types of blocks in Anthropic's protocol."""


@dataclass(frozen=True)
class _ToolRequest(SampledRequest):
    """A request with tools that the model can call: each has `name`, `description` and the JSON schema `parameters`."""

    tools: Sequence[Mapping[str, Any]] = ()


def with_tools(request: Request, tools: Sequence[Mapping[str, Any]]) -> Request:
    """Return the request with tools; the same request if there are none."""
    if tools:
        return with_fields(_ToolRequest, request, tools=tuple(map(dict, tools)))
    return request


def tools_of(request: Request) -> Sequence[Mapping[str, Any]]:
    """Return the tools of a request; none if it is one of HELM's."""
    return getattr(request, "tools", ())


def with_calls(
    result: RequestResult,
    calls: Sequence[ToolCall],
    reasoning: Mapping[str, Any],
) -> RequestResult:
    """Return a result with the calls that the model asks for, and the reasoning that goes back with them."""
    if not calls:
        return result
    return add_facts(
        result, calls=tuple(calls), returned_reasoning=dict(reasoning) or None
    )


def read_openai_reasoning(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a message of OpenAI's protocol that have its reasoning."""
    reasoning = {}
    for name in _OPENAI_REASONING:
        if message.get(name):
            reasoning[name] = message[name]
    return reasoning


def read_anthropic_reasoning(blocks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the blocks of an answer in Anthropic's protocol that have its reasoning, with their signatures."""
    kept = []
    for block in blocks:
        if block.get("type") in _ANTHROPIC_REASONING:
            kept.append(dict(block))
    return {"blocks": kept} if kept else {}


def _read_arguments(text: object) -> dict[str, Any]:
    """Return the arguments of a call from OpenAI's text of JSON, or empty if they are malformed.

    The tool then says what it lacks, as it does for an argument that is missing.
    """
    try:
        if isinstance(text, str):
            value = json.loads(text)
        else:
            value = text
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def openai_tools(request: Request) -> list[dict[str, Any]] | None:
    """Return the tools of a request as OpenAI's protocol has them, or None if there are none."""
    return [
        {"type": "function", "function": dict(tool)} for tool in tools_of(request)
    ] or None


def openai_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages as OpenAI's protocol has them. Those that are in its form stay as they are."""
    converted: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool" and "id" in message:
            converted.append(
                {
                    "role": "tool",
                    "tool_call_id": message["id"],
                    "content": message["content"],
                }
            )
        elif message.get("calls"):
            calls = []
            for call in message["calls"]:
                function = {
                    "name": call["name"],
                    "arguments": orjson.dumps(call["arguments"]).decode(),
                }
                own = {
                    "id": call["id"],
                    "type": "function",
                    "function": function,
                }
                calls.append({**call.get("extra", {}), **own})
            answer = {"role": "assistant", "content": message["content"] or None}
            converted.append(
                {
                    **answer,
                    **message.get("reasoning", {}),
                    "tool_calls": calls,
                }
            )
        else:
            converted.append(dict(message))
    return converted


def template_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages as chat templates want them: the arguments of a call are an object, not the text of one."""
    converted = []
    for message in openai_messages(messages):
        calls = []
        for call in message.get("tool_calls") or ():
            function = call["function"]
            arguments = _parse_arguments(function["arguments"])
            calls.append({**call, "function": {**function, "arguments": arguments}})
        converted.append({**message, "tool_calls": calls} if calls else message)
    return converted


def _parse_arguments(text: str) -> Any:
    """Return the value of a JSON text, or the text if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def read_openai_calls(message: Mapping[str, Any]) -> list[ToolCall]:
    """Return the calls in a message of OpenAI's protocol. Raises a `FailureError` if a call has no function."""
    calls = []
    for number, call in enumerate(message.get("tool_calls") or ()):
        if isinstance(call, Mapping):
            function = call.get("function")
        else:
            function = None
        if not isinstance(function, Mapping) or not isinstance(
            function.get("name"), str
        ):
            raise FailureError(
                Failure.MALFORMED,
                "the server's answer has a tool call without a function",
            )
        # Some servers give no id.
        name = str(call.get("id") or f"call_{number}")
        extra = {}
        for field, value in call.items():
            if field not in ("id", "type", "index", "function") and value is not None:
                extra[field] = value
        calls.append(
            ToolCall(
                id=name,
                name=function["name"],
                arguments=_read_arguments(function.get("arguments")),
                extra=extra,
            )
        )
    return calls


class CallPieces:
    """The pieces of calls in a stream of OpenAI's protocol.

    A piece belongs to the call with its index, and without an index to the last call. A new id begins a new call under
    an index that is taken, too: Google's endpoint sends no index (noho/dayu-agent#57), and some servers send 0 with
    each parallel call (ai-dynamo/dynamo#4723).
    """

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []
        self._by_index: dict[object, dict[str, Any]] = {}

    def add(self, pieces: object) -> None:
        """Add the calls of an event. Raises a `FailureError` if they are malformed."""
        if not isinstance(pieces, list) or not all(
            isinstance(piece, dict) for piece in pieces
        ):
            raise FailureError(
                Failure.MALFORMED, "the server's stream has malformed tool calls"
            )
        for piece in pieces:
            self._add_piece(piece)

    def _add_piece(self, piece: Mapping[str, Any]) -> None:
        index = piece.get("index")
        last = self._calls[-1] if self._calls else None
        if index is None:
            call = last
        else:
            call = self._by_index.get(index)
        if call is None or (
            piece.get("id") and call.get("id") not in (None, piece["id"])
        ):
            call = {"function": {}}
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        for name, value in piece.items():
            if name == "function":
                _add_function(call["function"], value)
            elif name != "index" and value:
                call[name] = value

    def join(self) -> list[dict[str, Any]]:
        """Return the calls as a message in one piece has them."""
        return self._calls


def _add_function(function: dict[str, Any], piece: object) -> None:
    """Add a piece to the name and the arguments of a call. Some servers repeat the name with each piece."""
    if not isinstance(piece, Mapping):
        return
    if piece.get("name"):
        function.setdefault("name", piece["name"])
    arguments = piece.get("arguments")
    if isinstance(arguments, str):
        function["arguments"] = function.get("arguments", "") + arguments
    elif arguments is not None:
        function["arguments"] = arguments


_JOINED = ("text", "summary", "data")
"""The texts of OpenRouter's `reasoning_details` that arrive in pieces."""


def join_details(pieces: Iterable[Any]) -> list[Any]:
    """Return OpenRouter's `reasoning_details` of a stream, whose pieces with the same index and type are one block.

    Source: Kilo-Org/kilocode#3605.
    """
    blocks: list[Any] = []
    by_index: dict[object, dict[str, Any]] = {}
    for piece in pieces:
        if not isinstance(piece, Mapping) or piece.get("index") is None:
            blocks.append(piece)
            continue
        key = (piece["index"], piece.get("type"))
        if key not in by_index:
            by_index[key] = dict(piece)
            blocks.append(by_index[key])
            continue
        block = by_index[key]
        for name, value in piece.items():
            if name in _JOINED and isinstance(value, str):
                block[name] = (block.get(name) or "") + value
            elif value is not None:
                block[name] = value
    return blocks


def anthropic_tools(request: Request) -> dict[str, Any]:
    """Return the fields with the tools of a request as Anthropic's protocol has them, empty if there are none.

    Anthropic refuses calls in a conversation whose request defines no tools. Those that only the conversation has are
    defined by name, and the model may not call them.
    """
    definitions = []
    for tool in tools_of(request):
        definitions.append(
            {
                "name": tool["name"],
                "description": tool["description"],
                "input_schema": tool["parameters"],
            }
        )
    if definitions:
        return {"tools": definitions}
    names = []
    for message in request.messages or ():
        for call in message.get("tool_calls") or ():
            names.append(call["function"]["name"])
    for name in dict.fromkeys(names):
        definitions.append({"name": name, "input_schema": {"type": "object"}})
    if definitions:
        return {"tools": definitions, "tool_choice": {"type": "none"}}
    return {}


def anthropic_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages as Anthropic's protocol has them: results of tools are blocks of one message of the user."""
    converted: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            if not results:
                converted.append({"role": "user", "content": results})
            results.append(
                {
                    "type": "tool_result",
                    "tool_use_id": message.get("id") or message["tool_call_id"],
                    "content": message["content"],
                }
            )
            continue
        results = []
        uses = _anthropic_uses(message)
        if uses:
            text = message["content"] or ""
            texts = [{"type": "text", "text": text}] if text.strip() else []
            # Anthropic wants the thinking first, and unchanged.
            thinking = message.get("reasoning", {}).get("blocks", [])
            converted.append(
                {"role": "assistant", "content": [*thinking, *texts, *uses]}
            )
        else:
            converted.append(dict(message))
    return converted


def _anthropic_uses(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a message as blocks."""
    uses = []
    for call in message.get("calls") or ():
        uses.append((call["id"], call["name"], call["arguments"]))
    for call in message.get("tool_calls") or ():
        function = call["function"]
        arguments = _read_arguments(function["arguments"])
        uses.append((call["id"], function["name"], arguments))
    return [
        {"type": "tool_use", "id": identifier, "name": name, "input": arguments}
        for identifier, name, arguments in uses
    ]


def read_anthropic_calls(blocks: Iterable[Mapping[str, Any]]) -> list[ToolCall]:
    """Return the calls in the blocks of an answer in Anthropic's protocol."""
    uses = (block for block in blocks if block.get("type") == "tool_use")
    # The arguments of a streamed call are a text.
    calls = []
    for use in uses:
        calls.append(
            ToolCall(
                id=str(use.get("id")),
                name=str(use.get("name")),
                arguments=_read_arguments(use.get("partial_json") or use.get("input")),
            )
        )
    return calls
