"""Tests of calls of tools, and of the reasoning that goes back with them, in the pieces of a stream."""

from __future__ import annotations

from typing import Any

import pytest
from helm.common.request import Request

from helm_longctx.failures import FailureError
from helm_longctx.models.apis.tools import (
    CallPieces,
    anthropic_messages,
    anthropic_tools,
    join_details,
    openai_messages,
    read_openai_calls,
    template_messages,
)


def piece(
    index: int | None, id: str | None, name: str | None, arguments: Any
) -> dict[str, Any]:
    function = (
        {"arguments": arguments}
        if name is None
        else {"name": name, "arguments": arguments}
    )
    tool: dict[str, Any] = {"type": "function", "function": function}
    if index is not None:
        tool["index"] = index
    if id is not None:
        tool["id"] = id
    return tool


TWO = [("a", "open", {"at": 1}), ("b", "find", {"text": "x"})]
"""Two calls: id, name and arguments."""

STREAMS = {
    "pieces under an index": [
        [piece(0, "a", "open", "")],
        [piece(0, None, None, '{"at"')],
        [piece(0, None, None, ": 1}")],
        [piece(1, "b", "find", "")],
        [piece(1, None, None, '{"text": "x"}')],
    ],
    "both in turns": [
        [piece(0, "a", "open", ""), piece(1, "b", "find", '{"text"')],
        [piece(1, None, None, ': "x"}'), piece(0, None, None, '{"at": 1}')],
    ],
    "an empty id with each further piece": [
        [piece(0, "a", "open", '{"at"')],
        [piece(0, "", "", ": 1}")],
        [piece(1, "b", "find", '{"text": "x"}')],
    ],
    "id and name with each piece": [
        [piece(0, "a", "open", '{"at"')],
        [piece(0, "a", "open", ": 1}")],
        [piece(1, "b", "find", '{"text"')],
        [piece(1, "b", "find", ': "x"}')],
    ],
    "no index": [
        [piece(None, "a", "open", '{"at": 1}')],
        [piece(None, "b", "find", '{"text": "x"}')],
    ],
    "no index, in pieces": [
        [piece(None, "a", "open", '{"at"')],
        [piece(None, None, None, ": 1}")],
        [piece(None, "b", "find", '{"text": "x"}')],
    ],
    "0 for each call": [
        [piece(0, "a", "open", '{"at": 1}')],
        [piece(0, "b", "find", '{"text"')],
        [piece(0, None, None, ': "x"}')],
    ],
    "arguments that are an object": [
        [piece(0, "a", "open", {"at": 1}), piece(1, "b", "find", {"text": "x"})],
    ],
}
"""How servers send two calls."""


@pytest.mark.parametrize("name", STREAMS)
def test_calls_in_pieces(name: str) -> None:
    """Two calls are joined whatever a server does with indices, ids and names."""
    pieces = CallPieces()
    for event in STREAMS[name]:
        pieces.add(event)
    calls = read_openai_calls({"tool_calls": pieces.join()})
    assert [(call.id, call.name, call.arguments) for call in calls] == TWO
    assert all(not call.extra for call in calls)


def test_signatures_stay() -> None:
    """Other fields of a call, such as Google's signature, go back with it."""
    pieces = CallPieces()
    signature = {"google": {"thought_signature": "s"}}
    pieces.add([{**piece(0, "a", "open", "{}"), "extra_content": signature}])
    (call,) = read_openai_calls({"tool_calls": pieces.join()})
    assert call.extra == {"extra_content": signature}


@pytest.mark.parametrize("pieces", ["open", {"id": "a"}, ["open"], [None]])
def test_malformed_pieces(pieces: object) -> None:
    """Calls that are no list of objects are a malformed answer."""
    with pytest.raises(FailureError, match="malformed tool calls"):
        CallPieces().add(pieces)


def test_details_of_reasoning() -> None:
    """Pieces of OpenRouter's reasoning with the same index and type are one block, which goes back as it came in one piece."""
    text = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    pieces = [
        {**text, "text": "Look "},
        {**text, "text": "for it."},
        {**text, "text": None, "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "ab"},
        {"type": "reasoning.encrypted", "data": "cd"},
    ]
    assert join_details(pieces) == [
        {**text, "text": "Look for it.", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "ab"},
        {"type": "reasoning.encrypted", "data": "cd"},
    ]


LOG: list[dict[str, Any]] = [
    {"role": "user", "content": "Round 1"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "a",
                "type": "function",
                "function": {"name": "open", "arguments": '{"at":  1}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "a", "name": "open", "content": "text"},
    {"role": "user", "content": "What?"},
]
"""A log as a benchmark's data has it, in OpenAI's form."""


def test_a_log_in_the_form_of_openai_stays() -> None:
    """Messages with calls and results that are in OpenAI's form are sent as they are, to the last space."""
    assert openai_messages(LOG) == LOG


def test_a_log_for_anthropic() -> None:
    """Anthropic gets the calls and results of a log as blocks, and definitions of the tools, which it may not call."""
    _, call, result, _ = anthropic_messages(LOG)
    use = {"type": "tool_use", "id": "a", "name": "open", "input": {"at": 1}}
    assert call == {"role": "assistant", "content": [use]}
    assert result["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "text"}
    ]
    fields = anthropic_tools(Request(model="x/y", messages=LOG))
    assert fields == {
        "tools": [{"name": "open", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "none"},
    }
    assert not anthropic_tools(Request(model="x/y", messages=LOG[:1]))


def test_a_log_for_a_chat_template() -> None:
    """A chat template gets the arguments of a call as an object, or as they are if they are none."""
    (call,) = template_messages(LOG)[1]["tool_calls"]
    assert call["function"] == {"name": "open", "arguments": {"at": 1}}
    call["function"]["arguments"] = "{"
    broken = [{**LOG[1], "tool_calls": [call]}]
    assert template_messages(broken)[0]["tool_calls"] == [call]
