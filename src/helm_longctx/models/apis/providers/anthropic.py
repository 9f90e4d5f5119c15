"""Anthropic: the client for its messages, its batches, and the provider's record.

Limits of batches: https://platform.claude.com/docs/en/build-with-claude/batch-processing, read in November 2026.
"""

from collections.abc import Generator, Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any

import orjson

from helm_longctx.failures import (
    Failure,
    FailureError,
    Problem,
    check_reason,
    failure_of_body,
)
from helm_longctx.helm_api import Request, RequestResult
from helm_longctx.models.apis import batches, protocol, tools
from helm_longctx.models.apis.caching import LongCache, mark_beginning
from helm_longctx.models.apis.client import ProviderClient
from helm_longctx.models.apis.parameters import ADAPTIVE
from helm_longctx.models.apis.protocol import Body
from helm_longctx.models.apis.provider import HelmClient, Provider
from helm_longctx.models.results import add_facts
from helm_longctx.run_settings import read_variable
from helm_longctx.tasks.answer import Usage, check_usage, read_counts

_MESSAGES = "/v1/messages"

_EMPTY = ("max_tokens", "model_context_window_exceeded", "stop_sequence")
"""Stop reasons with which an answer can have no block. The API sends no empty block."""

_CLOCK_ERROR = 600
"""Largest difference in seconds between this computer's clock and the provider's."""

_LONGEST_IN_ONE_PIECE = 21_333
"""Most tokens of an answer that is not streamed. The package refuses longer ones: by its estimate of 128,000 tokens per
hour they take more than ten minutes, after which networks drop idle connections."""


class AnthropicClient(ProviderClient):
    """Sends messages in Anthropic's protocol. It has the arguments of `ProviderClient`.

    `thinking_tokens` is sent as the budget of extended thinking, or asks for adaptive thinking if the model has no
    budgets; `reasoning_effort` is sent as the effort; without `thinking_tokens` it asks for adaptive thinking.
    """

    takes_tools = True

    def parse(self, request: Request, reply: Body) -> RequestResult:
        """Return the answer in a reply; see `ProviderClient.parse`."""
        protocol.check_error(reply)
        content = reply.get("content")
        reason = reply.get("stop_reason")
        has_calls = reason == "tool_use" and bool(tools.tools_of(request))
        ending = "stop" if has_calls else check_reason(reason)
        if not isinstance(content, list) or not isinstance(reason, str):
            raise FailureError(
                Failure.MALFORMED,
                "the server's answer has no content or no stop reason",
            )
        blocks = []
        for block in content:
            if isinstance(block, Mapping):
                blocks.append(block)
        texts = []
        for block in blocks:
            if block.get("type") == "text":
                texts.append(block.get("text"))
        if len(blocks) < len(content) or not all(
            isinstance(text, str) for text in texts
        ):
            raise FailureError(
                Failure.MALFORMED,
                "the server's answer has a block without a text, or of another type",
            )
        thinking = _join_blocks(content, "thinking")
        text = _join_blocks(content, "text")
        if text is None and (thinking is not None or has_calls or reason in _EMPTY):
            text = ""  # the answer is only reasoning or calls, or ended before its first token
        if text is None:
            raise FailureError(
                Failure.MALFORMED,
                "the server's answer has no text: none of its blocks is one",
            )
        result = protocol.make_result(request, text, ending, thinking)
        if has_calls:
            calls = tools.read_anthropic_calls(blocks)
        else:
            calls = []
        result = tools.with_calls(result, calls, tools.read_anthropic_reasoning(blocks))
        return add_facts(result, usage=_usage(reply.get("usage")))

    def wanted_body(self, request: Request) -> Body:
        """Return the body of a request to the messages route."""
        protocol.check_text(request)
        settings = self.settings
        messages = protocol.turns(request)
        system = []
        for message in messages:
            if message["role"] == "system":
                system.append(message["content"])
        others = tools.anthropic_messages(
            message for message in messages if message["role"] != "system"
        )
        fields: Body = {
            "model": settings.model or request.model.partition("/")[2],
            # Anthropic counts the thinking towards `max_tokens`.
            "max_tokens": request.max_tokens + settings.thinking_tokens,
            "messages": mark_beginning(
                request, others, self.provider.cache_mark, self.provider.long_cache
            ),
            "temperature": request.temperature,
        }
        budget = settings.thinking_tokens
        effort = settings.reasoning_effort
        if budget:
            thinking: Mapping[str, object] | None = {
                "type": "enabled",
                "budget_tokens": budget,
            }
        elif effort:
            thinking = ADAPTIVE
        else:
            thinking = None
        optional: Body = {
            # The protocol has no system role: the text stands in a field of its own.
            "system": "\n\n".join(system) or None,
            # Newer models refuse `top_p` beside `temperature`; 1 is the default, so it need not be sent.
            "top_p": request.top_p if request.top_p != 1 else None,
            "top_k": getattr(request, "top_k", None),
            "stop_sequences": request.stop_sequences or None,
            "thinking": thinking,
            "output_config": {"effort": effort} if effort else None,
            **tools.anthropic_tools(request),
        }
        return protocol.fill_body(fields, optional, settings.extra_body)

    def make_library(self, **options: Any) -> Any:
        """Return the client of the package `anthropic`, which sends bearer tokens in place of a key."""
        import anthropic

        return anthropic.Anthropic(**options)

    def _unsent_keys(self) -> tuple[str, ...]:
        token = read_variable("ANTHROPIC_AUTH_TOKEN")
        headers = []
        for name in self.settings.headers or {}:
            headers.append(name.lower())
        # Older versions of the package, such as 0.97, also send this token if there is a key.
        if token and self._has_key and "authorization" not in headers:
            return (token,)
        return ()

    def stream_fields(self, body: Body) -> Body:
        """Return the fields that ask for a stream. Long answers are always streamed."""
        is_long = body["max_tokens"] > _LONGEST_IN_ONE_PIECE
        if is_long:
            return {"stream": True}
        return super().stream_fields(body)

    def join_stream(self, events: Iterable[Any]) -> Body:
        """Return the message that the events of a stream consist of."""
        message: Body = {}
        blocks: dict[int, Body] = {}
        for event in events:
            kind = event.get("type")
            if kind == "message_start":
                message = dict(event["message"])
            elif kind == "content_block_start":
                blocks[event["index"]] = event["content_block"]
            elif kind == "content_block_delta":
                # The texts of a delta (`text_delta`, `thinking_delta`, …) continue the fields of the same names.
                block = blocks[event["index"]]
                for name, text in event["delta"].items():
                    protocol.check_piece(name, text)
                    protocol.check_piece(name, block.get(name))
                    if name != "type" and isinstance(text, str):
                        block[name] = f"{block.get(name) or ''}{text}"
            elif kind == "message_delta":
                # The counts in `message_delta` are cumulative, so they replace the counts of `message_start`. If one of
                # them has something else, nothing was counted.
                # Other servers send null or 0 for the prompt. It then has the counts of `message_start`.
                first = message.get("usage") or {}
                last = event.get("usage") or {}
                usage = None
                if isinstance(first, dict) and isinstance(last, dict):
                    usage = first | {
                        name: count for name, count in last.items() if count
                    }
                message |= {**event["delta"], "usage": usage}
        if not message.get("stop_reason"):
            raise protocol.cut_stream()
        return {**message, "content": list(blocks.values())}


def _join_blocks(content: list[Mapping[str, Any]], kind: str) -> str | None:
    texts = []
    for block in content:
        if block.get("type") == kind:
            texts.append(block.get(kind))
    if texts:
        return "".join(text for text in texts if isinstance(text, str))
    return None


def _usage(usage: object) -> Usage | None:
    counts = read_counts(
        usage,
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens",
        "output_tokens_details.thinking_tokens",
    )
    if counts is None:
        return None
    prompt, cached, written, answer, reasoning = counts
    # Anthropic does not count cached tokens among the tokens of the prompt.
    return check_usage(
        Usage(
            input_tokens=prompt + cached + written,
            cached_tokens=cached,
            cache_write_tokens=written,
            output_tokens=answer,
            reasoning_tokens=reasoning,
        )
    )


class _AnthropicBatches(batches.Service):
    """Anthropic's message batches."""

    name = "anthropic"
    format = batches.BatchFormat(b'{"requests":[', b",\n", b"]}", 100_000, 256_000_000)

    def __init__(self, client: ProviderClient, run_path: Path):
        self._bulk = client.bulk_library()
        self._batches = batches.patient(client.client).messages.batches

    def line(
        self,
        name: str,
        route: str,
        body: Body,
    ) -> bytes:
        """Return an element of the list of requests."""
        return orjson.dumps({"custom_id": name, "params": body})

    def create(self, part: batches.BatchShare, file: IO[bytes]) -> str:
        """Create the batch. The package's own method would hold all requests in memory, several times."""
        from anthropic.types.messages import MessageBatch

        with batches.unsure():
            batch = self._bulk.post(
                "/v1/messages/batches", cast_to=MessageBatch, content=file
            )
            return batches.check_type(batch.id, str)

    def find(self, part: batches.BatchShare, others: set[str]) -> batches.BatchSearch:
        """Look for a batch of the same time and size. When it has ended, its results show whether it is the part's.

        Anthropic stores no metadata with a batch.
        """
        is_final = True
        for batch in self._batches.list(limit=100):
            if batch.created_at.timestamp() < part.time - _CLOCK_ERROR:
                break  # the newest come first
            # The sum over all states of requests is the batch's size.
            if batch.id in others or sum(
                batch.request_counts.to_dict().values()
            ) != len(part.requests):
                continue
            if batch.processing_status != "ended":
                is_final = False
                continue
            # Names are digests of requests, so a single common name proves that the batch is the part's.
            with (
                suppress(batches.LostResultsError),
                closing(self._results(batch)) as results,
            ):
                if (
                    next((result.name for result in results if result.name), None)
                    in part.requests
                ):
                    return batches.BatchSearch(batch.id, True)
        return batches.BatchSearch(None, is_final)

    def progress(self, part: batches.BatchShare) -> batches.BatchProgress:
        """Return the batch's status. Anthropic counts the requests only when the batch has ended."""
        batch = batches.retrieve(self._batches, part)
        total = len(part.requests)
        problem = Problem(
            Failure.TEMPORARY, "the batch ended before this request was answered"
        )
        status = batch.processing_status
        done = total - batch.request_counts.processing
        if (
            status == "ended"
            and not batch.results_url
            and _can_results_come(part, batch)
        ):
            return batches.BatchProgress(batches.STORING, False, done, total, problem)
        return batches.BatchProgress(status, status == "ended", done, total, problem)

    def outcomes(
        self,
        part: batches.BatchShare,
    ) -> Generator[batches.BatchLine, None, None]:
        """Yield the outcomes in the results of an ended batch, as Anthropic orders them."""
        batch = batches.retrieve(self._batches, part)
        try:
            yield from self._results(batch)
        except batches.LostResultsError as error:
            if _can_results_come(part, batch):
                raise batches.ResultsNotReadyError(part.batch) from error
            raise

    def cancel(self, part: batches.BatchShare) -> None:
        """Cancel the batch."""
        self._batches.cancel(part.batch)

    def _results(self, batch: Any) -> Generator[batches.BatchLine, None, None]:
        # Anthropic keeps results for 29 days, and the batch longer.
        if not batch.results_url:
            raise batches.LostResultsError
        # The response is closed here. The garbage collector could close it while the HTTP library holds the lock that
        # closing needs, and the library would be blocked forever.
        bulk = batches.patient(self._bulk)
        with (
            batches.lost_if_missing(),
            closing(bulk.messages.batches.results(batch.id)) as rows,
        ):
            # The package's own reader ends at the first malformed line.
            yield from batches.read_outcomes(
                rows.http_response.iter_bytes(), "the results", read_result
            )


def _can_results_come(part: batches.BatchShare, batch: Any) -> bool:
    """Whether the missing results of a batch can still appear: it counts answers, and was not archived."""
    counts = batch.request_counts
    has_answers = counts.succeeded + counts.errored > 0
    if batch.ended_at:
        ended = batch.ended_at.timestamp()
    else:
        ended = None
    return (
        has_answers
        and batch.archived_at is None
        and batches.can_results_come(part, ended)
    )


_STATUSES = {
    "invalid_request_error": 400,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}
"""The status that a type of error has outside of batches (https://platform.claude.com/docs/en/api/errors)."""


def read_result(row: Body) -> batches.BatchReading:
    """Read the outcome from a line of the results of a message batch."""
    result = row["result"]
    if result["type"] == "succeeded":
        return batches.check_type(result["message"], dict)
    if result["type"] == "errored":
        # The result holds the body of an error response, in which the error is nested once more.
        error = result["error"].get("error", result["error"])
        batches.check_type(error, dict)
        # The type says what the status of a response says.
        status = _STATUSES.get(str(error.get("type")))
        return Problem(failure_of_body(error, status), str(error))
    if result["type"] in ("canceled", "expired"):
        return Problem(Failure.TEMPORARY, f"the request is {result['type']}")
    raise ValueError


PROVIDER = Provider(
    name="anthropic",
    client=AnthropicClient,
    address="https://api.anthropic.com",
    package="anthropic",
    install="helm-longctx[anthropic]",
    key_prefix="ANTHROPIC",
    routes={"chat": _MESSAGES},
    sampling=("temperature", "top_p", "top_k"),
    # Only this package adds the version to the address.
    address_has_version=False,
    # A page of the list has 20 models by default and at most 1,000.
    models_query="?limit=1000",
    # The protocol has no other kind of cache.
    cache_mark={"cache_control": {"type": "ephemeral"}},
    # Writes cost twice the price of input, instead of 1.25 times: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
    long_cache=LongCache(
        {"cache_control": {"type": "ephemeral", "ttl": "1h"}}, write_price=2 / 1.25
    ),
    limits_cached_tokens=False,
    batches=_AnthropicBatches,
    helm_clients={
        "AnthropicClient": HelmClient("ANTHROPIC", sends_messages=False),
        "AnthropicMessagesClient": HelmClient("ANTHROPIC", sends_messages=True),
    },
    helm_model_arguments=("anthropic_model_name",),
)
