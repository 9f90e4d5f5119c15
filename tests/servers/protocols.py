"""The bodies of OpenAI's chat and completions protocols and of Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]
Event = tuple[str | None, Body]
"""Of a stream: its name, where the protocol has names, and its data."""


@dataclass(frozen=True)
class Reply:
    """What a model says. Without a text it refuses; `finish` is OpenAI's word for why it ends."""

    text: str | None
    finish: str = "stop"

    def pieces(self, size: int = 7) -> Iterator[str]:
        """The text as it is streamed."""
        text = self.text or ""
        return (text[start : start + size] for start in range(0, len(text), size))


class Chat:
    """OpenAI's chat completions."""

    last_event: str | None = "[DONE]"

    def prompt(self, body: Body) -> str:
        """All that is asked, as one text."""
        return "\n".join(message["content"] for message in body["messages"])

    def whole(self, body: Body, reply: Reply) -> Body:
        """The answer in one body."""
        refusal = "I cannot judge this." if reply.text is None else None
        message = {"role": "assistant", "content": reply.text, "refusal": refusal}
        choice = {"index": 0, "finish_reason": reply.finish, "logprobs": None, "message": message}
        return _completion(body, "chat.completion", choice)

    def events(self, body: Body, reply: Reply) -> Iterator[Event]:
        """The same in pieces."""
        deltas = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in reply.pieces())]
        deltas += [{"refusal": "I cannot judge this."}] if reply.text is None else []
        for delta in deltas:
            yield None, _completion(body, "chat.completion.chunk", {"index": 0, "delta": delta, "finish_reason": None})
        end = {"index": 0, "delta": {}, "finish_reason": reply.finish}
        yield None, _completion(body, "chat.completion.chunk", end)

    def error(self, kind: str, message: str) -> Body:
        """What comes with a status that is not 200."""
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}


class Completions(Chat):
    """OpenAI's completions of a text, whole ones only."""

    def prompt(self, body: Body) -> str:
        """The text."""
        return str(body["prompt"])

    def whole(self, body: Body, reply: Reply) -> Body:
        """The answer in one body, one token long."""
        text = reply.text or ""
        logprobs = {"tokens": [text], "token_logprobs": [0.0], "top_logprobs": [{text: 0.0}], "text_offset": [0]}
        choice = {"index": 0, "finish_reason": reply.finish, "logprobs": logprobs, "text": text}
        return _completion(body, "text_completion", choice)


FINISHES = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
"""OpenAI's words and Anthropic's."""


class Messages:
    """Anthropic's messages."""

    last_event: str | None = None

    def prompt(self, body: Body) -> str:
        """All that is asked, as one text."""
        turns = [message["content"] for message in body["messages"]]
        return "\n".join([body["system"], *turns] if "system" in body else turns)

    def whole(self, body: Body, reply: Reply) -> Body:
        """The answer in one body; one that refuses has no content."""
        content = [] if reply.text is None else [{"type": "text", "text": reply.text}]
        return {**self._message(body), "content": content, "stop_reason": self._finish(reply)}

    def events(self, body: Body, reply: Reply) -> Iterator[Event]:
        """The same in pieces."""
        yield "message_start", {"type": "message_start", "message": self._message(body)}
        if reply.text is not None:
            block = {"type": "text", "text": ""}
            yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
            for piece in reply.pieces():
                delta = {"type": "text_delta", "text": piece}
                yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": 0}
        end = {"stop_reason": self._finish(reply), "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}}
        yield "message_stop", {"type": "message_stop"}

    def error(self, kind: str, message: str) -> Body:
        """What comes with a status that is not 200."""
        return {"type": "error", "error": {"type": kind, "message": message}}

    def _message(self, body: Body) -> Body:
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "usage": usage}
        return {**message, "content": [], "stop_reason": None, "stop_sequence": None}

    def _finish(self, reply: Reply) -> str:
        return "refusal" if reply.text is None else FINISHES[reply.finish]


def _completion(body: Body, kind: str, choice: Body) -> Body:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "1", "object": kind, "created": 1, "model": body["model"], "choices": [choice], "usage": usage}


PROTOCOLS: dict[str, Chat | Messages] = {
    "/v1/chat/completions": Chat(),
    "/v1/completions": Completions(),
    "/v1/messages": Messages(),
}
"""By path."""
