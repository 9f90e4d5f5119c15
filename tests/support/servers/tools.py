"""A server whose model thinks and calls tools, in OpenAI's and in Anthropic's protocol.

As DeepSeek, Google and Anthropic it refuses calls that come back without their reasoning and signatures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any, NamedTuple

from tests.support.servers.threads import serve_in_thread

Body = dict[str, Any]


class Turn(NamedTuple):
    """What a model does: it writes a text, or calls a tool with arguments."""

    text: str = ""
    tool: str = ""
    arguments: Body = {}  # noqa: RUF012  # never changed


Script = Callable[[str, Sequence[str]], Turn]
"""(task, results of tools so far) → the next turn."""


@contextmanager
def serve_tools(
    script: Script, streams_only: bool = False
) -> Iterator[tuple[str, list[Body]]]:
    """Yield the address of a running server and the list of the bodies that arrive.

    Args:
        streams_only: whether OpenAI's protocol refuses requests for an answer in one piece.
    """
    bodies: list[Body] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            bodies.append(body)
            is_openai = not self.path.endswith("/messages")
            if is_openai and streams_only and not body.get("stream"):
                self._send(
                    400, "application/json", json.dumps({"error": {"message": REFUSAL}})
                )
                return
            reply = _openai(body, script) if is_openai else _anthropic(body, script)
            if body.get("stream"):
                lines = [
                    f"data: {json.dumps(event)}\n\n" for event in _split_reply(reply)
                ]
                self._send(
                    200, "text/event-stream", "".join([*lines, "data: [DONE]\n\n"])
                )
            else:
                self._send(200, "application/json", json.dumps(reply))

        def _send(self, status: int, kind: str, text: str) -> None:
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            pass

    class QuietServer(ThreadingHTTPServer):
        def handle_error(self, *arguments: object) -> None:
            """Say nothing about clients that were killed."""

    server = QuietServer(("127.0.0.1", 0), Handler)
    with serve_in_thread(server) as address:
        yield address, bodies


REFUSAL = "This model only supports stream mode, please enable the stream parameter to access it."
"""What DashScope answers for some of Qwen's models."""


def _split_reply(reply: Body) -> Iterator[Body]:
    """Yield the events of a stream of OpenAI's protocol. The arguments of calls are in pieces of five characters."""
    (choice,) = reply["choices"]
    message = choice["message"]
    deltas: list[Body] = [{"role": "assistant", "content": ""}]
    if "reasoning_content" in message:
        deltas += [
            {"reasoning_content": piece} for piece in message["reasoning_content"]
        ]
    if message["content"]:
        deltas.append({"content": message["content"]})
    for index, call in enumerate(message.get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        first = {
            **call,
            "function": {"name": call["function"]["name"], "arguments": ""},
        }
        deltas.append({"tool_calls": [{"index": index, **first}]})
        for start in range(0, len(arguments), 5):
            piece = {"arguments": arguments[start : start + 5]}
            deltas.append({"tool_calls": [{"index": index, "function": piece}]})
    about = {name: reply[name] for name in ("id", "model")}
    for delta in deltas:
        yield {
            **about,
            "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
        }
    end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield {**about, "choices": [end]}
    yield {**about, "choices": [], "usage": reply["usage"]}


def _sign(number: int) -> Body:
    return {"google": {"thought_signature": f"signature {number}"}}


def _think(number: int) -> Body:
    return {
        "type": "thinking",
        "thinking": f"thought {number}",
        "signature": f"signature {number}",
    }


def _openai(body: Body, script: Script) -> Body:
    messages = body["messages"]
    assert all(tool["type"] == "function" for tool in body["tools"])
    # As the provider: each result belongs to a call of the message before.
    ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    results = [message for message in messages if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in results] == ids
    thoughts = [
        message["reasoning_content"] for message in messages if "tool_calls" in message
    ]
    assert thoughts == [f"thought {number}" for number in range(len(ids))]
    signatures = [
        call["extra_content"]
        for message in messages
        for call in message.get("tool_calls", ())
    ]
    assert signatures == [_sign(number) for number in range(len(ids))]
    task = next(message for message in messages if message["role"] == "user")
    turn = script(task["content"], [message["content"] for message in results])
    message: Body = {"role": "assistant", "content": turn.text or None}
    if turn.tool:
        function = {"name": turn.tool, "arguments": json.dumps(turn.arguments)}
        message["reasoning_content"] = f"thought {len(ids)}"
        call = {"id": f"call_{len(ids)}", "type": "function", "function": function}
        message["tool_calls"] = [{**call, "extra_content": _sign(len(ids))}]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": "tool_calls" if turn.tool else "stop",
    }
    usage = {
        "prompt_tokens": len(str(messages)),
        "completion_tokens": 5,
        "total_tokens": len(str(messages)) + 5,
    }
    return {
        "id": "x",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [choice],
        "usage": usage,
    }


def _anthropic(body: Body, script: Script) -> Body:
    messages = body["messages"]
    assert all("input_schema" in tool for tool in body["tools"])
    assert all(one["role"] != other["role"] for one, other in pairwise(messages))
    blocks = [
        block
        for message in messages
        for block in message["content"]
        if isinstance(block, dict)
    ]
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [block for block in blocks if block["type"] == "tool_result"]
    assert [block["tool_use_id"] for block in results] == ids
    turn = script(messages[0]["content"], [block["content"] for block in results])
    thoughts = [block for block in blocks if block["type"] == "thinking"]
    assert thoughts == [_think(number) for number in range(len(ids))]
    # Thinking comes before everything else in its message.
    for message in messages[1::2]:
        assert message["content"][0]["type"] == "thinking"
    content: list[Body] = [{"type": "text", "text": turn.text}] if turn.text else []
    if turn.tool:
        content.insert(0, _think(len(ids)))
        content.append(
            {
                "type": "tool_use",
                "id": f"toolu_{len(ids)}",
                "name": turn.tool,
                "input": turn.arguments,
            }
        )
    return {
        "id": "x",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "tool_use" if turn.tool else "end_turn",
        "usage": {"input_tokens": len(str(messages)), "output_tokens": 5},
    }
