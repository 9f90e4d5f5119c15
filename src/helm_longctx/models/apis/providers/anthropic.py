"""Anthropic: the client for its messages, its batches, and the provider's record.

Limits of batches: https://platform.claude.com/docs/en/build-with-claude/batch-processing, read in November 2026.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any

import orjson
from helm.common.request import GeneratedOutput, Request, RequestResult, Thinking

from helm_longctx.failures import Failure, FailureError, check_reason, label_error
from helm_longctx.models.apis.batches import (
    Format,
    LostResultsError,
    Outcome,
    Part,
    Progress,
    Reading,
    Search,
    Service,
    check_type,
    lost_if_missing,
    patient,
    read_outcomes,
    retrieve,
    unsure,
)
from helm_longctx.models.apis.caching import LongCache, mark_beginning
from helm_longctx.models.apis.client import ProviderClient, check_text, turns
from helm_longctx.models.apis.parameters import ADAPTIVE, Body
from helm_longctx.models.apis.provider import HelmClient, Provider
from helm_longctx.models.apis.replies import check_error, check_piece, cut_at_stop, cut_stream
from helm_longctx.models.apis.usage import Usage, check_usage, read_counts, with_usage

MESSAGES = "/v1/messages"

_EMPTY = ("max_tokens", "model_context_window_exceeded", "stop_sequence")
"""Stop reasons with which an answer can have no block. The API sends no empty block."""

CLOCK_ERROR = 600
"""Largest difference in seconds between this computer's clock and the provider's."""

LONGEST_IN_ONE_PIECE = 21_333
"""Most tokens of an answer that is not streamed. The package refuses longer ones: by its estimate of 128,000 tokens per
hour they take more than ten minutes, after which networks drop idle connections."""


class AnthropicClient(ProviderClient):
    """Sends messages in Anthropic's protocol. It has the arguments of `ProviderClient`.

    `thinking_tokens` is sent as the budget of extended thinking, or asks for adaptive thinking if the model has no
    budgets; `reasoning_effort` is sent as the effort; without `thinking_tokens` it asks for adaptive thinking.
    """

    def parse(self, request: Request, reply: Body) -> RequestResult:
        """Return the answer in a reply; see `ProviderClient.parse`."""
        check_error(reply)
        content, reason = reply.get("content"), reply.get("stop_reason")
        ending = check_reason(reason)
        if not isinstance(content, list) or not isinstance(reason, str):
            raise FailureError(Failure.MALFORMED, "the server's answer has no content or no stop reason")
        if not all(map(_is_block, content)):
            raise FailureError(Failure.MALFORMED, "the server's answer has a block without a text, or of another type")
        thinking, text = _join_blocks(content, "thinking"), _join_blocks(content, "text")
        if text is None and (thinking is not None or reason in _EMPTY):
            text = ""  # the answer is only reasoning, or ended before its first token
        if text is None:
            raise FailureError(Failure.MALFORMED, "the server's answer has no text: none of its blocks is one")
        output = GeneratedOutput(
            text=cut_at_stop(text, request.stop_sequences),
            logprob=0,
            tokens=[],
            finish_reason={"reason": ending},
            thinking=None if thinking is None else Thinking(thinking),
        )
        return with_usage(RequestResult(True, [], [output], False), _usage(reply.get("usage")))

    def _wanted_body(self, request: Request) -> Body:
        check_text(request)
        settings, messages = self.settings, turns(request)
        system = [message["content"] for message in messages if message["role"] == "system"]
        body: Body = {
            "model": settings.model or request.model.partition("/")[2],
            # Anthropic counts the thinking towards `max_tokens`.
            "max_tokens": request.max_tokens + settings.thinking_tokens,
            "messages": mark_beginning(
                request,
                [each for each in messages if each["role"] != "system"],
                self.provider.cache_mark,
                self.provider.long_cache,
            ),
            "temperature": request.temperature,
        }
        optional = {
            # The protocol has no system role: the text stands in a field of its own.
            "system": "\n\n".join(system) or None,
            # Newer models refuse `top_p` beside `temperature`; 1 is the default, so it need not be sent.
            "top_p": request.top_p if request.top_p != 1 else None,
            "stop_sequences": request.stop_sequences or None,
            "thinking": self._thinking(),
            "output_config": {"effort": settings.reasoning_effort} if settings.reasoning_effort else None,
        }
        body |= {name: value for name, value in optional.items() if value is not None}
        return {**body, **(settings.extra_body or {})}

    def _thinking(self) -> Body | None:
        if self.settings.thinking_tokens:
            return {"type": "enabled", "budget_tokens": self.settings.thinking_tokens}
        return ADAPTIVE if self.settings.reasoning_effort else None

    def _make_library(self, **options: Any) -> Any:
        import anthropic

        self._has_key = bool(options["api_key"])
        return self._remove_token(anthropic.Anthropic(**options))

    def _copy_library(self, library: Any, http_client: Any) -> Any:
        return self._remove_token(super()._copy_library(library, http_client))

    def _remove_token(self, library: Any) -> Any:
        if self._has_key:
            # Older versions of the package, such as 0.97, would also send the token in ANTHROPIC_AUTH_TOKEN, which they
            # read again for each copy.
            library.auth_token = None
        return library

    def _stream_fields(self, body: Body) -> Body:
        is_long = body["max_tokens"] > LONGEST_IN_ONE_PIECE
        return {"stream": True} if is_long else super()._stream_fields(body)

    def _join(self, events: Iterable[Any]) -> Body:
        return _join(events)


def _is_block(value: Any) -> bool:
    return isinstance(value, Mapping) and (value.get("type") != "text" or isinstance(value.get("text"), str))


def _join_blocks(content: list[Mapping[str, Any]], kind: str) -> str | None:
    """Join the texts of the blocks of a kind; None if there is no such block."""
    texts = [block.get(kind) for block in content if block.get("type") == kind]
    return "".join(text for text in texts if isinstance(text, str)) if texts else None


_COUNTS = (
    *("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    *("output_tokens", "output_tokens_details.thinking_tokens"),
)


def _usage(usage: object) -> Usage | None:
    counts = read_counts(usage, *_COUNTS)
    if counts is None:
        return None
    prompt, cached, written, answer, reasoning = counts
    # Anthropic does not count cached tokens among the tokens of the prompt.
    return check_usage(Usage(prompt + cached + written, cached, written, answer, reasoning))


def _join(events: Iterable[Any]) -> Body:
    """Join the events of a message.

    Raises:
        FailureError: the stream ended without a stop reason, or a piece of the answer is not text.
    """
    message: Body = {}
    blocks: dict[int, Body] = {}
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            message = dict(event["message"])
        elif kind == "content_block_start":
            blocks[event["index"]] = event["content_block"]
        elif kind == "content_block_delta":
            _extend(blocks[event["index"]], event["delta"])
        elif kind == "message_delta":
            # The counts in `message_delta` are cumulative, so they replace the counts of `message_start`.
            message |= {**event["delta"], "usage": _merge(message.get("usage"), event.get("usage"))}
    if not message.get("stop_reason"):
        raise cut_stream()
    return {**message, "content": list(blocks.values())}


def _merge(first: object, last: object) -> Body | None:
    """Return the counts of two events; None, as if nothing was counted, if one of them has something else."""
    first, last = {} if first is None else first, {} if last is None else last
    return {**first, **last} if isinstance(first, dict) and isinstance(last, dict) else None


def _extend(block: Body, delta: Body) -> None:
    """Append the texts of a delta (`text_delta`, `thinking_delta`, …) to the fields of the same names."""
    for name, text in delta.items():
        check_piece(name, text)
        check_piece(name, block.get(name))
        if name != "type" and isinstance(text, str):
            block[name] = f"{block.get(name) or ''}{text}"


class AnthropicBatches(Service):
    """Anthropic's message batches."""

    name = "anthropic"
    format = Format(b'{"requests":[', b",\n", b"]}", 100_000, 256_000_000)

    def __init__(self, client: ProviderClient, run_path: Path):
        self._patient, self._bulk = patient(client.client), client.bulk_library()

    def line(self, name: str, route: str, body: Body) -> bytes:
        """Return an element of the list of requests."""
        return orjson.dumps({"custom_id": name, "params": body})

    def create(self, part: Part, file: IO[bytes]) -> str:
        """Create the batch. The package's own method would hold all requests in memory, several times."""
        from anthropic.types.messages import MessageBatch

        with unsure():
            batch = self._bulk.post("/v1/messages/batches", cast_to=MessageBatch, content=file)
        return str(batch.id)

    def find(self, part: Part, others: set[str]) -> Search:
        """Look for a batch of the same time and size. When it has ended, its results show whether it is the part's.

        Anthropic stores no metadata with a batch.
        """
        is_final = True
        for batch in self._patient.messages.batches.list(limit=100):
            if batch.created_at.timestamp() < part.time - CLOCK_ERROR:
                break  # the newest come first
            # The sum over all states of requests is the batch's size.
            if batch.id in others or sum(batch.request_counts.to_dict().values()) != len(part.requests):
                continue
            if batch.processing_status != "ended":
                is_final = False
                continue
            # Names are digests of requests, so a single common name proves that the batch is the part's.
            with suppress(LostResultsError), closing(self._results(batch)) as results:
                if next((found.name for found in results if found.name), None) in part.requests:
                    return Search(batch.id, True)
        return Search(None, is_final)

    def progress(self, part: Part) -> Progress:
        """Return the batch's status. Anthropic counts the requests only when the batch has ended."""
        batch = retrieve(self._patient.messages.batches, part)
        total = len(part.requests)
        reason = label_error(Failure.TEMPORARY, "the batch ended before this request was answered")
        status = batch.processing_status
        return Progress(status, status == "ended", total - batch.request_counts.processing, total, reason)

    def outcomes(self, part: Part) -> Generator[Outcome, None, None]:
        """Read the results."""
        yield from self._results(retrieve(self._patient.messages.batches, part))

    def cancel(self, part: Part) -> None:
        """Cancel the batch."""
        self._patient.messages.batches.cancel(part.batch)

    def _results(self, batch: Any) -> Generator[Outcome, None, None]:
        # Anthropic keeps results for 29 days, and the batch longer.
        if not batch.results_url:
            raise LostResultsError
        # The response is closed here. The garbage collector could close it while the HTTP library holds the lock that
        # closing needs, and the library would be blocked forever.
        bulk = patient(self._bulk)
        with lost_if_missing(), closing(bulk.messages.batches.results(batch.id)) as rows:
            # The package's own reader ends at the first malformed line.
            yield from read_outcomes(rows.http_response.iter_bytes(), "the results", read_result)


def read_result(row: Body) -> Reading:
    """Read the outcome from a line of the results of a message batch."""
    result = row["result"]
    if result["type"] == "succeeded":
        return check_type(result["message"], dict), None
    if result["type"] == "errored":
        # The result holds the body of an error response, in which the error is nested once more.
        return None, str(result["error"].get("error", result["error"]))
    if result["type"] in ("canceled", "expired"):
        return None, label_error(Failure.TEMPORARY, f"the request is {result['type']}")
    raise ValueError


PROVIDER = Provider(
    name="anthropic",
    client=AnthropicClient,
    address="https://api.anthropic.com",
    package="anthropic",
    install="helm-longctx[anthropic]",
    key_prefix="ANTHROPIC",
    routes={"chat": MESSAGES},
    # Only this package adds the version to the address.
    address_has_version=False,
    # A page of the list has 20 models by default and at most 1,000.
    models_query="?limit=1000",
    # The protocol has no other kind of cache.
    cache_mark={"cache_control": {"type": "ephemeral"}},
    # Writes cost twice the price of input, instead of 1.25 times: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
    long_cache=LongCache({"cache_control": {"type": "ephemeral", "ttl": "1h"}}, write_price=2 / 1.25),
    limits_cached_tokens=False,
    batches=AnthropicBatches,
    helm_clients={
        "AnthropicClient": HelmClient("ANTHROPIC", sends_messages=False),
        "AnthropicMessagesClient": HelmClient("ANTHROPIC", sends_messages=True),
    },
    helm_model_arguments=("anthropic_model_name",),
)
