"""Makes the bodies of OpenAI's chat and completions protocols and of Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support.servers.models import (
    KEPT_SECONDS,
    Counts,
    Model,
    Prefix,
    Refusal,
    prefixes,
    steps,
)

Body = dict[str, Any]
Event = tuple[str | None, Body]
"""An event of a stream: its name, if the protocol has names, and its data."""


@dataclass(frozen=True)
class Reply:
    """A model's reply. Without a text it refuses; `finish` is OpenAI's word for why it ends.

    Args:
        thinking: its reasoning; None if it returns none.
    """

    text: str | None
    finish: str = "stop"
    thinking: str | None = None
    counts: Counts = field(default_factory=Counts)

    def pieces(self, size: int = 7) -> Iterator[str]:
        """Return the text in the pieces in which it is streamed."""
        text = self.text or ""
        return (text[start : start + size] for start in range(0, len(text), size))


class Chat:
    """OpenAI's protocol of chat completions."""

    last_event: str | None = "[DONE]"
    limits = ("max_completion_tokens", "max_tokens")

    def prompt(self, body: Body) -> str:
        """Return all that is asked as one text."""
        # A message with calls of tools can have no content.
        return "\n".join(message["content"] or "" for message in body["messages"])

    def thinks(self, body: Body, model: Model) -> bool:
        """Return whether the model reasons before it answers."""
        return bool(model.reasoning)

    def prefixes(self, body: Body, model: Model) -> tuple[list[Prefix], list[Prefix]]:
        """Return the prefixes of the prompt that can be read from the cache, and those that are written to it, here the same."""
        prefix_keys = prefixes(body["model"], steps(self.prompt(body)))
        prefix_keys = [key for key in prefix_keys if key[0] >= model.cache_minimum]
        return prefix_keys, prefix_keys

    def kept_seconds(self, body: Body) -> float:
        """Return the seconds for which the prefixes stay in the cache after each use."""
        return KEPT_SECONDS

    def whole(self, body: Body, reply: Reply) -> Body:
        """Return the answer in one body."""
        refusal = "I cannot judge this." if reply.text is None else None
        message = {"role": "assistant", "content": reply.text, "refusal": refusal}
        if reply.thinking is not None:
            message |= {
                "reasoning_content": reply.thinking,
                "content": reply.text or None,
            }
        choice = {
            "index": 0,
            "finish_reason": reply.finish,
            "logprobs": None,
            "message": message,
        }
        return _completion(body, "chat.completion", [choice], reply.counts)

    def events(self, body: Body, reply: Reply) -> Iterator[Event]:
        """Yield the answer in pieces."""
        deltas = [
            {"role": "assistant", "content": ""},
            *({"content": piece} for piece in reply.pieces()),
        ]
        deltas[1:1] = (
            [{"reasoning_content": reply.thinking}]
            if reply.thinking is not None
            else []
        )
        deltas += [{"refusal": "I cannot judge this."}] if reply.text is None else []
        for delta in deltas:
            yield None, _chunk(body, {"delta": delta, "finish_reason": None})
        yield None, _chunk(body, {"delta": {}, "finish_reason": reply.finish})
        yield from _usage_chunk(body, reply)

    def error(self, refusal: Refusal) -> Body:
        """Return the body that comes with a status other than 200."""
        words = {
            "message": refusal.message,
            "type": refusal.kind,
            "param": refusal.param,
            "code": refusal.code,
        }
        return {"error": words}

    def refuse_parameter(self, body: Body, model: Model) -> Refusal | None:
        """Return why the model refuses the body's parameters; None if it accepts them."""
        for name in model.refuses:
            if name in body:
                advice = (
                    " Use 'max_completion_tokens' instead."
                    if name == "max_tokens"
                    else ""
                )
                message = f"Unsupported parameter: '{name}' is not supported with this model.{advice}"
                return Refusal(
                    400, "invalid_request_error", message, name, "unsupported_parameter"
                )
        for name in model.only_default:
            if body.get(name, 1) != 1:
                value = f"'{name}' does not support {body[name]} with this model. Only the default (1) value is supported."
                return Refusal(
                    400,
                    "invalid_request_error",
                    f"Unsupported value: {value}",
                    name,
                    "unsupported_value",
                )
        if model.streams_only and not body.get("stream"):
            message = "This model only support stream mode, please enable the stream parameter to access the model. "
            return Refusal(
                400, "invalid_request_error", message, None, "invalid_parameter_error"
            )
        return None

    def unknown_model(self, name: str) -> Refusal:
        """Return the error for a model that does not exist or was removed."""
        message = f"The model `{name}` does not exist or you do not have access to it."
        return Refusal(404, "invalid_request_error", message, None, "model_not_found")

    def too_long(self, context: int, prompt: int, answer: int) -> Refusal:
        """Return the error for a prompt that exceeds the context."""
        message = (
            f"This model's maximum context length is {context} tokens. However, your messages resulted in {prompt} "
            "tokens. Please reduce the length of the messages."
        )
        return Refusal(
            400, "invalid_request_error", message, "messages", "context_length_exceeded"
        )


class Completions(Chat):
    """OpenAI's protocol of completions of a text."""

    def prompt(self, body: Body) -> str:
        """Return the prompt's text."""
        return str(body["prompt"])

    def thinks(self, body: Body, model: Model) -> bool:
        """Return False, because a completion has no place for reasoning."""
        return False

    def whole(self, body: Body, reply: Reply) -> Body:
        """Return the answer in one body, one token long."""
        text = reply.text or ""
        logprobs = {
            "tokens": [text],
            "token_logprobs": [0.0],
            "top_logprobs": [{text: 0.0}],
            "text_offset": [0],
        }
        choice = {
            "index": 0,
            "finish_reason": reply.finish,
            "logprobs": logprobs,
            "text": text,
        }
        return _completion(body, "text_completion", [choice], reply.counts)

    def events(self, body: Body, reply: Reply) -> Iterator[Event]:
        """Yield the answer in pieces."""
        for piece in reply.pieces():
            yield (
                None,
                _chunk(body, {"text": piece, "finish_reason": None}, "text_completion"),
            )
        yield (
            None,
            _chunk(
                body, {"text": "", "finish_reason": reply.finish}, "text_completion"
            ),
        )
        yield from _usage_chunk(body, reply)


FINISHES = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
"""The words for the end of an answer: OpenAI's, and for each of them Anthropic's."""


class Messages:
    """Anthropic's protocol of messages."""

    last_event: str | None = None
    limits = ("max_tokens",)

    def prompt(self, body: Body) -> str:
        """Return all that is asked as one text."""
        return "\n".join(text for text, _ in self._blocks(body))

    def thinks(self, body: Body, model: Model) -> bool:
        """Return whether the model reasons before it answers."""
        return bool(model.reasoning) and "thinking" in body

    def prefixes(self, body: Body, model: Model) -> tuple[list[Prefix], list[Prefix]]:
        """Return the prefixes that can be read from the cache, and those that are written to it, which are marked in the body."""
        blocks = self._blocks(body)
        prefix_keys = prefixes(body["model"], (text for text, _ in blocks))
        marked = [
            key for key, (_, marks) in zip(prefix_keys, blocks, strict=True) if marks
        ]
        last = marked[-1][0] if marked else 0
        readable = [key for key in prefix_keys if model.cache_minimum <= key[0] <= last]
        return readable, [block for block in marked if block[0] >= model.cache_minimum]

    def kept_seconds(self, body: Body) -> float:
        """Return the seconds for which the prefixes stay in the cache after each use: five minutes or an hour."""
        marks = [
            block["cache_control"]
            for block in self._flat(body)
            if "cache_control" in block
        ]
        return (
            3600.0 if any(mark.get("ttl") == "1h" for mark in marks) else KEPT_SECONDS
        )

    def whole(self, body: Body, reply: Reply) -> Body:
        """Return the answer in one body; a refusal has no content."""
        content = [self._thinking(reply.thinking)] if reply.thinking is not None else []
        content += [] if reply.text is None else [{"type": "text", "text": reply.text}]
        if reply.thinking is not None and not reply.text:
            content = content[:1]
        usage = {
            **self._message(body, reply)["usage"],
            "output_tokens": reply.counts.output,
        }
        return {
            **self._message(body, reply),
            "content": content,
            "stop_reason": self._finish(reply),
            "usage": usage,
        }

    def events(self, body: Body, reply: Reply) -> Iterator[Event]:
        """Yield the answer in pieces."""
        yield (
            "message_start",
            {"type": "message_start", "message": self._message(body, reply)},
        )
        index = 0
        if reply.thinking is not None:
            delta = {"type": "thinking_delta", "thinking": reply.thinking}
            yield from self._block(index, self._thinking(""), [delta])
            index += 1
        if reply.text is not None and (reply.text or not index):
            deltas = [{"type": "text_delta", "text": piece} for piece in reply.pieces()]
            yield from self._block(index, {"type": "text", "text": ""}, deltas)
        end = {"stop_reason": self._finish(reply), "stop_sequence": None}
        usage = {"output_tokens": reply.counts.output}
        yield "message_delta", {"type": "message_delta", "delta": end, "usage": usage}
        yield "message_stop", {"type": "message_stop"}

    def error(self, refusal: Refusal) -> Body:
        """Return the body that comes with a status other than 200."""
        error = {"type": refusal.kind, "message": refusal.message}
        return {
            "type": "error",
            "error": error,
            "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy",
        }

    def refuse_parameter(self, body: Body, model: Model) -> Refusal | None:
        """Return why the model refuses the body's parameters; None if it accepts them."""
        return next(
            (
                Refusal(400, "invalid_request_error", words)
                for words in self._complaints(body, model)
            ),
            None,
        )

    def unknown_model(self, name: str) -> Refusal:
        """Return the error for a model that does not exist or was removed."""
        return Refusal(404, "not_found_error", f"model: {name}")

    def too_long(self, context: int, prompt: int, answer: int) -> Refusal:
        """Return the error for a prompt that exceeds the context."""
        message = f"prompt is too long: {prompt} tokens > {context} maximum"
        if prompt <= context:
            advice = "decrease input length or `max_tokens` and try again"
            message = f"input length and `max_tokens` exceed context limit: {prompt} + {answer} > {context}, {advice}"
        return Refusal(400, "invalid_request_error", message)

    def _complaints(self, body: Body, model: Model) -> Iterator[str]:
        for name in model.refuses:
            if (
                name == "thinking.type.enabled"
                and body.get("thinking", {}).get("type") == "enabled"
            ):
                advice = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
                yield f'"{name}" is not supported for this model. {advice}'
            elif name in body:
                yield f"`{name}` is deprecated for this model."
        if "thinking" in body and body.get("temperature", 1) != 1:
            yield "`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation."
        if "temperature" in body and "top_p" in body:
            yield "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        if any(not stop.strip() for stop in body.get("stop_sequences", [])):
            yield "stop_sequences: each stop sequence must contain non-whitespace"
        if (marks := sum(marks for _, marks in self._blocks(body))) > 4:
            yield f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."

    def _blocks(self, body: Body) -> list[tuple[str, bool]]:
        """Return the texts of a body in order, each with whether it ends a prefix that is to be cached."""
        texts = []
        for block in self._flat(body):
            # Calls of tools have no text, and their results have it as content.
            text = block.get("text", block.get("content", ""))
            texts.append((text, "cache_control" in block))
        return texts

    def _flat(self, body: Body) -> list[Body]:
        """Return the blocks of a body in order."""
        contents = [body["system"]] if "system" in body else []
        contents += [message["content"] for message in body["messages"]]
        blocks = [
            {"text": content} if isinstance(content, str) else content
            for content in contents
        ]
        return [
            block
            for content in blocks
            for block in (content if isinstance(content, list) else [content])
        ]

    def _block(self, index: int, block: Body, deltas: list[Body]) -> Iterator[Event]:
        yield (
            "content_block_start",
            {"type": "content_block_start", "index": index, "content_block": block},
        )
        for delta in deltas:
            yield (
                "content_block_delta",
                {"type": "content_block_delta", "index": index, "delta": delta},
            )
        yield "content_block_stop", {"type": "content_block_stop", "index": index}

    def _thinking(self, text: str) -> Body:
        return {"type": "thinking", "thinking": text, "signature": "c2ln"}

    def _message(self, body: Body, reply: Reply) -> Body:
        counts = reply.counts
        usage: Body = {
            "input_tokens": counts.prompt - counts.cached - counts.written,
            "cache_read_input_tokens": counts.cached,
            "cache_creation_input_tokens": counts.written,
            "output_tokens": 1,
        }
        if counts.reasoning:
            usage["output_tokens_details"] = {"thinking_tokens": counts.reasoning}
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "usage": usage,
        }
        return {**message, "content": [], "stop_reason": None, "stop_sequence": None}

    def _finish(self, reply: Reply) -> str:
        return "refusal" if reply.text is None else FINISHES[reply.finish]


def _completion(body: Body, kind: str, choices: list[Body], counts: Counts) -> Body:
    usage = {
        "prompt_tokens": counts.prompt,
        "completion_tokens": counts.output,
        "total_tokens": counts.prompt + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
    }
    return {
        "id": "1",
        "object": kind,
        "created": 1,
        "model": body["model"],
        "choices": choices,
        "usage": usage,
    }


def _chunk(body: Body, choice: Body, kind: str = "chat.completion.chunk") -> Body:
    return {
        **_completion(body, kind, [{"index": 0, **choice}], Counts()),
        "usage": None,
    }


def _usage_chunk(body: Body, reply: Reply) -> Iterator[Event]:
    if (body.get("stream_options") or {}).get("include_usage"):
        yield None, _completion(body, "chat.completion.chunk", [], reply.counts)


PROTOCOLS: dict[str, Chat | Messages] = {
    "/v1/chat/completions": Chat(),
    "/v1/completions": Completions(),
    "/v1/messages": Messages(),
}
"""The protocol of each path."""
