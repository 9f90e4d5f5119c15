"""Servers' own compaction, in the two forms that are published.

- OpenAI's `POST /responses/compact` takes the items of the Responses API, and returns those of users and one item of the
  type `compaction`, whose content is encrypted (https://platform.openai.com/docs/api-reference/responses/compact). Only
  the same server can read it, so it also answers the probes, by `POST /responses`.
- Anthropic's beta `compact-2026-01-12` of the Messages API has the edit `compact_20260112`. With
  `pause_after_compaction`, the answer is the block `compaction`, whose content is a summary in plain text
  (https://platform.claude.com/docs/en/build-with-claude/compaction). It begins only beyond a trigger, which is at least
  50,000 tokens.

Both were read in November 2026, with the types of openai 2.54 and anthropic 0.125.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from helm_longctx.apps.compaction.asking import (
    AskedModel,
    ProbeReply,
    name_of,
    read_usage,
)
from helm_longctx.apps.compaction.compactors import (
    Compacted,
    CompactionError,
    Compactor,
)
from helm_longctx.apps.compaction.transcripts import (
    ASSISTANT,
    TOOL,
    USER,
    TranscriptMessage,
    count_tokens,
    read_message,
    to_plain,
)
from helm_longctx.errors import InputError
from helm_longctx.failures import failure_of_error
from helm_longctx.models.apis.client import ProviderClient
from helm_longctx.models.apis.providers.anthropic import AnthropicClient
from helm_longctx.models.apis.providers.openai import OpenAIClient
from helm_longctx.models.apis.tools import anthropic_messages
from helm_longctx.runs.journal import KeptValues
from helm_longctx.tasks.answer import Usage

_RESPONSES = "/responses"
_COMPACT = "/responses/compact"
_BETA = "compact-2026-01-12"
_EDIT = "compact_20260112"

TRIGGER = 50_000
"""The smallest trigger of Anthropic's compaction, in tokens."""

_SUMMARY_TOKENS = 16_000
"""The output budget of a compaction."""


def make_server_compactor(name: str, model: AskedModel, kept: KeptValues) -> Compactor:
    """Return the compactor of a deployment's server.

    Raises:
        InputError: the deployment's client speaks another protocol.
    """
    client = model.connect()
    if isinstance(client, OpenAIClient):
        return OpenAIServer(name, model, client, kept)
    if isinstance(client, AnthropicClient):
        return AnthropicServer(name, model, client)
    raise InputError(
        f"compaction: --compactor server: {model.name} has no compaction; give a"
        " deployment that speaks OpenAI's or Anthropic's protocol"
    )


class OpenAIServer(Compactor):
    """OpenAI's `/responses/compact`, and `/responses` for probes about its result."""

    def __init__(
        self,
        name: str,
        model: AskedModel,
        client: ProviderClient,
        kept: KeptValues,
    ):
        super().__init__(name, f"server {model.name} {_COMPACT}")
        self.model = model
        self._client = client
        self._kept = kept

    def compact(self, messages: Sequence[TranscriptMessage], keep: int) -> Compacted:
        """Ask the server for the items that take the place of the messages."""
        size = 2 * count_tokens(messages)
        body = {
            "model": _model_name(self.model, self._client),
            "input": to_items(messages),
        }
        with self.model.pay(size, _SUMMARY_TOKENS) as payment:
            reply = _post(self._client, _COMPACT, body)
            usage = _read_usage(reply)
            dollars = _dollars(self.model, usage)
            payment.dollars = payment.dollars if dollars is None else dollars
        output = reply.get("output")
        if not isinstance(output, list) or not output:
            raise CompactionError("the server's reply has no output")
        written = usage.output_tokens if usage else 0
        return Compacted(_read_items(output, written), dollars, 1)

    def estimate(self, tokens: int) -> tuple[int, int] | None:
        """Return the tokens of one request."""
        return tokens, _SUMMARY_TOKENS

    def answer(
        self,
        messages: Sequence[TranscriptMessage],
        prompt: str,
        max_tokens: int,
    ) -> ProbeReply:
        """Return the server's reply to a prompt after what it has compacted.

        Raises:
            InputError: the limit on the cost has no room.
        """
        items = [*to_items(messages), {"role": USER, "content": prompt}]
        text = orjson.dumps(items, default=str).decode()
        name = name_of(self.model.name, _RESPONSES, str(max_tokens), text)
        known = self._kept.get(name)
        if known is not None:
            return ProbeReply(**known)
        body = {
            "model": _model_name(self.model, self._client),
            "input": items,
            "max_output_tokens": max_tokens,
        }
        with self.model.pay(len(text.encode()), max_tokens) as payment:
            try:
                reply = _post(self._client, _RESPONSES, body)
            except CompactionError as error:
                payment.dollars = 0.0
                return ProbeReply(None, str(error), dollars=0.0)
            usage = _read_usage(reply)
            dollars = _dollars(self.model, usage)
            payment.dollars = payment.dollars if dollars is None else dollars
        texts = []
        for item in reply.get("output") or ():
            if isinstance(item, Mapping) and item.get("type") == "message":
                texts += [message.text for message in read_message(item)]
        tokens = usage.input_tokens if usage else None
        if not texts:
            return ProbeReply(None, "the server's reply has no text", tokens, dollars)
        result = ProbeReply("\n".join(texts).strip(), "", tokens, dollars)
        self._kept.add(name, vars(result))
        return result


class AnthropicServer(Compactor):
    """Anthropic's compaction of the Messages API."""

    def __init__(
        self,
        name: str,
        model: AskedModel,
        client: ProviderClient,
    ):
        super().__init__(name, f"server {model.name} {_EDIT}")
        self.model = model
        self._client = client

    def compact(self, messages: Sequence[TranscriptMessage], keep: int) -> Compacted:
        """Ask the server for a summary of the messages."""
        edit = {
            "type": _EDIT,
            "trigger": {"type": "input_tokens", "value": TRIGGER},
            "pause_after_compaction": True,
        }
        body = {
            "model": _model_name(self.model, self._client),
            "max_tokens": _SUMMARY_TOKENS,
            "messages": anthropic_messages(map(to_plain, messages)),
            "context_management": {"edits": [edit]},
        }
        size = 2 * count_tokens(messages)
        with self.model.pay(size, _SUMMARY_TOKENS) as payment:
            reply = _post(
                self._client,
                self._client.provider.routes["chat"],
                body,
                {"anthropic-beta": _BETA},
            )
            usage = read_usage(reply.get("usage"), "input_tokens", "output_tokens")
            # The compaction is an iteration of its own, and the usage beside it does not have its tokens.
            iterations = (reply.get("usage") or {}).get("iterations") or ()
            counts = []
            for iteration in iterations:
                counts.append(read_usage(iteration, "input_tokens", "output_tokens"))
            usage = Usage.sum(count for count in counts if count) if counts else usage
            dollars = _dollars(self.model, usage)
            payment.dollars = payment.dollars if dollars is None else dollars
        for block in reply.get("content") or ():
            if isinstance(block, Mapping) and block.get("type") == "compaction":
                text = block.get("content")
                if isinstance(text, str) and text.strip():
                    return Compacted(
                        [TranscriptMessage(USER, text.strip())], dollars, 1
                    )
                raise CompactionError("the server's compaction has no summary")
        raise CompactionError(
            f"the server did not compact: its trigger is {TRIGGER:,} tokens"
        )

    def estimate(self, tokens: int) -> tuple[int, int] | None:
        """Return the tokens of one request."""
        return tokens, _SUMMARY_TOKENS


def to_items(messages: Sequence[TranscriptMessage]) -> list[dict[str, Any]]:
    """Return messages as items of the Responses API. A server's own item stays as it is."""
    items: list[dict[str, Any]] = []
    for message in messages:
        if message.item is not None:
            items.append(dict(message.item))
        elif message.role == TOOL:
            result = {"type": "function_call_output", "call_id": message.call_id}
            items.append({**result, "output": message.text})
        else:
            if message.text:
                items.append({"role": message.role, "content": message.text})
            for call in message.calls:
                own = {"type": "function_call", "call_id": call.id, "name": call.name}
                arguments = orjson.dumps(dict(call.arguments)).decode()
                items.append({**own, "arguments": arguments})
    return items


def _read_items(output: Sequence[Any], written: int) -> list[TranscriptMessage]:
    """Return the items that a server's compaction has left.

    Args:
        written: the tokens of the compaction as the server counts them: its content cannot be read.
    """
    messages: list[TranscriptMessage] = []
    for item in output:
        if not isinstance(item, Mapping):
            raise CompactionError("the server's output has an item of another type")
        if item.get("type") == "message":
            messages += read_message(item)
        else:
            messages.append(
                TranscriptMessage(ASSISTANT, "", item=dict(item), size=written)
            )
    return messages


def is_opaque(messages: Sequence[TranscriptMessage]) -> bool:
    """Whether only the server that made messages can read them."""
    return any(message.item is not None for message in messages)


def _model_name(model: AskedModel, client: ProviderClient) -> str:
    """Return the model's name in requests."""
    return client.settings.model or model.name.partition("/")[2]


def _post(
    client: ProviderClient,
    path: str,
    body: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Send a body once, and return the reply.

    Raises:
        CompactionError: there is none.
    """
    try:
        return client.post(path, dict(body), headers)
    except Exception as error:  # the packages have their own errors
        raise CompactionError(
            f"the server has no reply: {failure_of_error(error).value}"
        ) from error


def _read_usage(reply: Mapping[str, Any]) -> Usage | None:
    return read_usage(reply.get("usage"), "input_tokens", "output_tokens")


def _dollars(model: AskedModel, usage: Usage | None) -> float | None:
    return model.prices.dollars(usage) if model.prices and usage else None
