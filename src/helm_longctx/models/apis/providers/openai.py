"""OpenAI: the client for its protocol, of OpenAI and of any compatible server, its batches, and the provider's record.

Limits of batches: https://platform.openai.com/docs/guides/batch, read in November 2026.
"""

import shutil
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

import orjson

from helm_longctx.errors import InputError, bad_argument, error_text
from helm_longctx.failures import (
    Ending,
    Failure,
    FailureError,
    Problem,
    check_reason,
    describe_reason,
    ending_of,
    failure_of_body,
    failure_of_reason,
    failure_of_text,
)
from helm_longctx.helm_api import CacheConfig, Request, RequestResult
from helm_longctx.models.apis import batches, echo, protocol, tools
from helm_longctx.models.apis.answer_logprobs import read_distributions
from helm_longctx.models.apis.client import ProviderClient
from helm_longctx.models.apis.nvcf import FunctionTransport
from helm_longctx.models.apis.protocol import Body
from helm_longctx.models.apis.provider import HelmClient, Provider
from helm_longctx.models.results import add_facts, make_failure
from helm_longctx.models.sampling import with_fields
from helm_longctx.models.scoring import AnswerRequest, ScoringRequest, SpanRequest
from helm_longctx.tasks.answer import Usage, check_usage, read_counts
from helm_longctx.writing import replacing

CHAT = "/v1/chat/completions"
_COMPLETIONS = "/v1/completions"

_TAG = "helm_longctx"
"""Name of the field in the metadata of batches that holds our identifier of the part."""

_MANY = 10**9

_PIECE = 1 << 20
"""Bytes of a file of results that are read at once."""

FORMS = {
    "chat": "chat",
    "completions": "completion",
    "both": "both",
}
"""The allowed values of `form`, and the form of the prompt for each of them."""


class OpenAIClient(ProviderClient):
    """Sends chats and completions in OpenAI's protocol.

    Args:
        cache_config, api_key, base_url, settings: see `ProviderClient`.
        org_id: OpenAI's organization; HELM takes it from its credentials file.
        form: `chat` sends every request as a chat, `completions` as a completion. With `both`, a request that
            has `messages`, which can be an empty list, is sent as a chat, and any other as a completion.
        nvcf: whether `base_url` is a function in NVIDIA Cloud Functions.

    Raises:
        InputError: `form` is invalid, `base_url` is not the address of a function, or see `ProviderClient`.
    """

    takes_tokens = True

    gives_distributions = True
    """Whether it answers a `SpanRequest` and an `AnswerRequest`, if its server does."""

    @property
    def takes_tools(self) -> bool:
        """Whether native calls of tools can be sent: only chats have them."""
        return self._form != "completion"

    def __init__(
        self,
        cache_config: CacheConfig,
        api_key: str | None = None,
        base_url: str | None = None,
        org_id: str | None = None,
        form: str = "chat",
        nvcf: bool = False,
        **settings: Any,
    ):
        self._form = self.request_form({"form": form})
        self._org_id = org_id
        self._function = base_url or "" if nvcf else None
        super().__init__(cache_config, api_key, base_url, **settings)
        self._way: str | None = None

    @classmethod
    def request_form(cls, arguments: Mapping[str, Any]) -> str:
        """Return what a client with these arguments sends; raise an `InputError` if `form` is invalid."""
        form = arguments.get("form", "chat")
        if form not in FORMS:
            raise bad_argument(cls.__name__, "form", form, FORMS)
        return FORMS[form]

    def route(self, request: Request) -> str:
        """Return the path of chats or of completions."""
        if isinstance(request, echo.EchoRequest):
            server = (
                str(self.client.base_url)
                .rstrip("/")
                .removesuffix(self.provider.version)
            )
            if request.way == echo.GENERATE:
                return f"{server}/generate"
            return _COMPLETIONS
        if self._form == "both":
            is_completion = request.messages is None
        else:
            is_completion = self._form == "completion"
        return _COMPLETIONS if is_completion else CHAT

    def parse(self, request: Request, reply: Body) -> RequestResult:
        """Return the answer in a reply; see `ProviderClient.parse`."""
        if isinstance(request, echo.EchoRequest):
            return add_facts(echo.parse_reply(reply), usage=_usage(reply.get("usage")))
        protocol.check_error(reply)
        choices = _first_choices(reply.get("choices"))
        if not choices:
            raise FailureError(Failure.MALFORMED, "the server's answer has no choices")
        message = choices[0].get("message") or {}
        reason = choices[0].get("finish_reason")
        text = message.get("content", choices[0].get("text"))
        _check_provider(choices[0], text)
        if message.get("refusal"):
            raise FailureError(Failure.REFUSED, f"{reason}: {message['refusal']}")
        if tools.tools_of(request):
            calls = tools.read_openai_calls(message)
        else:
            calls = []
        if calls:
            reason = "stop"
            text = text or ""
        if (
            not text
            and not calls
            and (message.get("tool_calls") or message.get("function_call"))
        ):
            reason = "tool_calls"  # some servers send another reason
        ending = check_reason(reason)
        reasoning = protocol.read_reasoning(message)
        if message and isinstance(text, list):
            text, between = protocol.read_parts(text)
            reasoning = reasoning or between
        if text is None and (ending == "length" or reasoning):
            text = ""  # the answer is only reasoning
        if not isinstance(text, str):
            what = "its content is null or of another type"
            raise FailureError(
                Failure.MALFORMED, f"the server's answer has no text: {what}"
            )
        result = protocol.make_result(request, text, ending, reasoning)
        if isinstance(reason, str) and reason.lower().startswith("repetition"):
            result = add_facts(result, is_repeating=True)
        if isinstance(request, AnswerRequest):
            result = add_facts(
                result, distributions=(tuple(read_distributions(reply)),)
            )
        result = tools.with_calls(result, calls, tools.read_openai_reasoning(message))
        return add_facts(result, usage=_usage(reply.get("usage")))

    def make_request(self, request: Request) -> RequestResult:
        """Send a request once; see `ProviderClient.make_request`. A `ScoringRequest` needs one for each text."""
        if not isinstance(request, ScoringRequest | SpanRequest):
            return super().make_request(request)
        reason = "" if self._way else self.score_support()
        if self._way is None or request.messages:
            reason = reason or "chats have no log-probabilities of given texts"
            return make_failure(Failure.BAD_REQUEST, reason)
        # `super()` sends each text as any other request, with the cache, the rate and the failures of one.
        if isinstance(request, SpanRequest):
            return super().make_request(
                with_fields(echo.EchoRequest, request, way=self._way)
            )
        return echo.score(super(), request, self._way)

    def score_support(self) -> str:
        """Return why the server gives no log-probabilities of texts, or an empty text if it does."""
        if self._form == "chat":
            return "its deployment sends only chats; set form: completions (type: completions)"
        self._way, reason = echo.find_way(
            super(), f"endpoint/{self.settings.model or 'model'}"
        )
        return reason

    def _reply_in_error(self, error: Exception) -> Body | None:
        return protocol.cut_reply(error_text(error))

    def _exchange(self, request: Request, body: Body) -> Body:
        reply = super()._exchange(request, body)
        if isinstance(request, echo.EchoRequest):
            return echo.shorten_reply(request, reply)
        return reply

    def wanted_body(self, request: Request) -> Body:
        """Return the body of a chat or a completion."""
        if isinstance(request, echo.EchoRequest):
            if request.way == echo.GENERATE:
                name = "text"
            else:
                name = "prompt"
            model = {"model": self.settings.model or request.model.partition("/")[2]}
            return {
                **model,
                name: request.prompt,
                **request.fields,
                **(self.settings.extra_body or {}),
            }
        protocol.check_text(request)
        settings = self.settings
        chats = self.route(request) == CHAT
        if not chats and request.messages:
            raise FailureError(
                Failure.BAD_REQUEST,
                "messages cannot be sent as a completion; set form=both",
            )
        asked: Body = {"prompt": request.prompt}
        if chats:
            asked = {"messages": tools.openai_messages(protocol.turns(request))}
        fields: Body = {
            "model": settings.model or request.model.partition("/")[2],
            **asked,
            "max_tokens": request.max_tokens + settings.thinking_tokens,
            "temperature": request.temperature,
        }
        optional: Body = {
            # Without sampling `top_p` has no effect. It is not sent, because some servers refuse it.
            "top_p": request.top_p if request.temperature else None,
            "presence_penalty": request.presence_penalty or None,
            "frequency_penalty": request.frequency_penalty or None,
            "stop": request.stop_sequences or None,
            # HELM's own requests lack these (`models.sampling.SampledRequest`).
            **{
                name: getattr(request, name, None)
                for name in ("top_k", "min_p", "seed")
            },
            # The route of completions does not know the parameter.
            "reasoning_effort": settings.reasoning_effort if chats else None,
            "tools": tools.openai_tools(request),
        }
        if isinstance(request, AnswerRequest):
            fields["logprobs"] = True if chats else request.top
            if chats:
                fields["top_logprobs"] = request.top
        return protocol.fill_body(fields, optional, settings.extra_body)

    def make_library(self, **options: Any) -> Any:
        """Return the client of the package `openai`."""
        import openai

        return openai.OpenAI(organization=self._org_id, **options)

    def _make_transport(self, is_bulk: bool) -> Any:
        transport = super()._make_transport(is_bulk)
        if self._function is None:
            return transport
        return FunctionTransport(transport, self._http, self._function)

    def stream_fields(self, body: Body) -> Body:
        """Return the fields that ask for a stream, with its usage."""
        # Log-probabilities are not read from the pieces of a stream.
        is_whole = any(
            name in body for name in ("logprobs", "prompt_logprobs", "return_logprob")
        )
        streams = (self.settings.stream or body.get("stream")) and not is_whole
        if streams:
            return {"stream": True, "stream_options": {"include_usage": True}}
        return {}

    def join_stream(self, events: Iterable[Any]) -> Body:
        """Return the reply that the events of a stream consist of."""
        reply: Body = {}
        texts: defaultdict[str, list[str]] = defaultdict(list)
        calls = tools.CallPieces()
        details: list[Any] = []
        provider: Body = {}
        reason = None
        chats = True
        for chunk in events:
            for name in _FIELDS:
                if chunk.get(name) is not None:
                    reply[name] = chunk[name]
            for choice in _first_choices(chunk.get("choices")):
                # Chunks of completions have a text instead of a delta.
                chats = "text" not in choice
                if chats:
                    delta = choice.get("delta") or {}
                else:
                    delta = {"text": choice["text"]}
                for name, text in delta.items():
                    if name == "content" and isinstance(text, list):
                        written, reasoning = protocol.read_parts(text)
                        texts[name] += [written] if written is not None else []
                        texts["reasoning_content"] += [reasoning] if reasoning else []
                        continue
                    protocol.check_piece(name, text)
                    if name == "tool_calls" and text is not None:
                        calls.add(text)
                    elif name == "reasoning_details" and isinstance(text, list):
                        details += text
                    elif isinstance(text, str):
                        texts[name].append(text)
                reason = choice.get("finish_reason") or reason
                for name in _OF_PROVIDER:
                    if choice.get(name):
                        provider[name] = choice[name]
        if reason is None and not provider:
            raise protocol.cut_stream()
        parts: Body = {}
        for name, pieces in texts.items():
            if pieces:
                parts[name] = "".join(pieces)
        if called := calls.join():
            parts["tool_calls"] = called
        if details:
            parts["reasoning_details"] = tools.join_details(details)
        # `role` stands last because its pieces were joined, too, and some servers send it with every chunk.
        choice = {"text": parts.get("text")}
        if chats:
            choice = {
                "message": {
                    "content": None,
                    **parts,
                    "role": "assistant",
                }
            }
        return {
            **reply,
            "choices": [
                {
                    "index": 0,
                    "finish_reason": reason,
                    **provider,
                    **choice,
                }
            ],
        }


def _check_provider(choice: Body, text: object) -> None:
    """Raise a `FailureError` if a router says in a choice that the provider behind it failed or refused.

    Its own finish reason is `stop` all the same. The provider's reason for an answer that has text counts only if it
    says that the server gave up.
    """
    if error := choice.get("error"):
        raise FailureError(
            failure_of_body(error),
            f"the provider behind the server answered with an error: {error}",
        )
    native = choice.get("native_finish_reason")
    ending = ending_of(native)
    if ending is Ending.BROKEN or (ending is Ending.REFUSED and not text):
        kind = failure_of_reason(native)
        assert kind is not None
        raise FailureError(kind, f"native_finish_reason: {describe_reason(native)}")


def _usage(usage: object) -> Usage | None:
    counts = read_counts(
        usage,
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details.cached_tokens",
        "prompt_tokens_details.cache_write_tokens",
        "completion_tokens_details.reasoning_tokens",
    )
    if counts is None:
        return None
    prompt, answer, total, cached, written, reasoning = counts
    # Some servers count reasoning only in the total.
    return check_usage(
        Usage(
            input_tokens=prompt,
            cached_tokens=cached,
            cache_write_tokens=written,
            output_tokens=max(answer, total - prompt),
            reasoning_tokens=reasoning,
        )
    )


_FIELDS = ("id", "object", "created", "model", "usage")

_OF_PROVIDER = ("error", "native_finish_reason")
"""The fields of a choice in which a router says what happened at the provider."""


def _first_choices(choices: object) -> list[Body]:
    """Return the choices with the index 0: no other one is asked for. Some servers send no index."""
    if not isinstance(choices, list):
        return []
    first = []
    for choice in choices:
        if isinstance(choice, dict) and choice.get("index") in (0, None):
            first.append(choice)
    return first


class _OpenAIBatches(batches.Service):
    """OpenAI's batch API, of OpenAI or of a compatible server."""

    name = "openai"
    format = batches.BatchFormat(b"", b"\n", b"\n", 50_000, 200_000_000)

    def __init__(self, client: ProviderClient, run_path: Path):
        self._client = client.client
        self._patient = batches.patient(client.client)
        self._bulk = batches.patient(client.bulk_library())

    def line(
        self,
        name: str,
        route: str,
        body: Body,
    ) -> bytes:
        """Return a line of an input file."""
        return _line(name, route, body)

    def create(self, part: batches.BatchShare, file: IO[bytes]) -> str:
        """Upload the file and create the batch. A file without a batch costs nothing and expires after 30 days."""
        uploaded = self._bulk.files.create(
            file=(f"helm-longctx-{part.id}.jsonl", file), purpose="batch"
        )
        with batches.unsure():
            # The call is not repeated, because a second batch would cost as much as the first one.
            batch = self._client.batches.create(
                completion_window="24h",
                endpoint=part.route,
                input_file_id=uploaded.id,
                metadata={_TAG: part.id},
            )
            return batches.check_type(batch.id, str)

    def find(self, part: batches.BatchShare, others: set[str]) -> batches.BatchSearch:
        """Look for the batch that has the part's identifier in its metadata."""
        listed = self._patient.batches.list(limit=100)
        matches = (
            batch.id for batch in listed if (batch.metadata or {}).get(_TAG) == part.id
        )
        return batches.BatchSearch(next(matches, None), True)

    def progress(self, part: batches.BatchShare) -> batches.BatchProgress:
        """Return the batch's status."""
        batch = batches.retrieve(self._patient.batches, part)
        counts = batch.request_counts
        status = batch.status
        done = counts.completed + counts.failed if counts else 0
        problem = Problem(
            Failure.TEMPORARY,
            f"the batch ended ({status}) before this request was answered",
        )
        if errors := [
            error.message
            for error in (batch.errors and batch.errors.data) or []
            if error.message
        ]:
            problem = Problem(
                failure_of_text(errors[0]), f"the batch has failed: {errors[0]}"
            )
        is_ended = status in ("completed", "failed", "expired", "cancelled")
        has_file = batch.output_file_id or batch.error_file_id
        # For some seconds a batch can be complete without the names of its files.
        if (
            is_ended
            and done
            and not has_file
            and batches.can_results_come(part, _end_time(batch))
        ):
            return batches.BatchProgress(
                batches.STORING, False, done, len(part.requests), problem
            )
        return batches.BatchProgress(
            status, is_ended, done, len(part.requests), problem
        )

    def outcomes(
        self,
        part: batches.BatchShare,
    ) -> Generator[batches.BatchLine, None, None]:
        """Read the file of answers and the file of errors."""
        batch = batches.retrieve(self._patient.batches, part)
        counts = batch.request_counts
        for file in filter(None, (batch.output_file_id, batch.error_file_id)):
            try:
                with self._bulk.files.with_streaming_response.content(file) as response:
                    yield from batches.read_outcomes(
                        response.iter_bytes(), file, read_result
                    )
            except Exception as error:
                if not batches.is_missing(error):
                    raise
                # The batch was found, so address and key are right: the file is not there yet, or has expired.
                has_answers = bool(counts) and counts.completed + counts.failed > 0
                if has_answers and batches.can_results_come(part, _end_time(batch)):
                    raise batches.ResultsNotReadyError(part.batch) from error
                raise batches.LostResultsError from error

    def cancel(self, part: batches.BatchShare) -> None:
        """Cancel the batch."""
        self._patient.batches.cancel(part.batch)


class _BatchFiles(batches.Service):
    """Files in OpenAI's format. The user gives them to `vllm run-batch`. A batch is identified by its file's name.

    The files stand in the folder `batches` of the run's folder.
    """

    name = "files"
    has_server = False
    # A file has no limits, unlike a provider's batch.
    format = batches.BatchFormat(b"", b"\n", b"\n", _MANY, _MANY * _MANY)

    def __init__(self, client: ProviderClient, run_path: Path):
        self._folder = run_path / "batches"

    def line(
        self,
        name: str,
        route: str,
        body: Body,
    ) -> bytes:
        """Return a line of an input file; raise an `InputError` if the request is not a chat."""
        if route != CHAT:
            raise InputError(
                f"`vllm run-batch` answers no requests to {route}; set form: chat in the deployment"
            )
        return _line(name, route, body)

    def create(self, part: batches.BatchShare, file: IO[bytes]) -> str:
        """Write the file."""
        path = self._folder / _file_name(part)
        path.parent.mkdir(exist_ok=True)
        # `vllm run-batch` never reads an incomplete file.
        with replacing(path) as unfinished, unfinished.open("wb") as target:
            shutil.copyfileobj(file, target)
        return path.name

    def find(self, part: batches.BatchShare, others: set[str]) -> batches.BatchSearch:
        """Look for the file."""
        name = _file_name(part)
        return batches.BatchSearch(
            name if (self._folder / name).exists() else None, True
        )

    def progress(self, part: batches.BatchShare) -> batches.BatchProgress:
        """Count the lines of the result file."""
        path, results = self.paths(part)
        # vLLM may still be writing the last line.
        lines = (
            line
            for line in batches.split_lines(_chunks(results))
            if line.endswith(b"\n") and line.strip()
        )
        done = sum(1 for _ in lines)
        total = len(part.requests)
        problem = Problem(Failure.TEMPORARY, f"{results} has no line for the request")
        if not path.exists():
            return batches.BatchProgress("cancelled", True, done, total, problem)
        return batches.BatchProgress(
            "completed" if done >= total else "written",
            done >= total,
            done,
            total,
            problem,
        )

    def outcomes(
        self,
        part: batches.BatchShare,
    ) -> Generator[batches.BatchLine, None, None]:
        """Read the result file."""
        path = self.paths(part)[1]
        yield from batches.read_outcomes(_chunks(path), path.name, read_result)

    def cancel(self, part: batches.BatchShare) -> None:
        """Remove the file."""
        self.paths(part)[0].unlink(missing_ok=True)

    def paths(self, part: batches.BatchShare) -> tuple[Path, Path]:
        """Return the input file and the result file of a part."""
        path = self._folder / (part.batch or _file_name(part))
        return path, path.with_suffix(".results.jsonl")


def _end_time(batch: Any) -> float | None:
    """Return when a batch ended, in seconds since 1970, if the provider says it."""
    times = (batch.completed_at, batch.cancelled_at, batch.expired_at, batch.failed_at)
    return next(filter(None, times), None)


def read_result(row: Body) -> batches.BatchReading:
    """Read the outcome from a line of OpenAI's results, or of `vllm run-batch`."""
    error = row.get("error")
    if error and not row.get("response"):
        return Problem(failure_of_text(str(error)), str(error))
    response = batches.check_type(row["response"], dict)
    status = response.get("status_code", 200)
    body = response.get("body")
    # Some servers write the number as a text.
    if isinstance(status, str) and status.isdecimal():
        status = int(status)
    status = batches.check_type(status, int)
    if status == 200 and not error:
        return batches.check_type(body, dict)
    if status == 400 and (reply := protocol.cut_reply(str(error or body))):
        return reply
    # This is the wording of the package openai.
    text = f"Error code: {status} - {error or body}"
    return Problem(failure_of_body(error or body, status), text)


def _file_name(part: batches.BatchShare) -> str:
    return f"batch-{part.id[:12]}.jsonl"


def _line(name: str, route: str, body: Body) -> bytes:
    return orjson.dumps(
        {
            "custom_id": name,
            "method": "POST",
            "url": route,
            "body": body,
        }
    )


def _chunks(path: Path) -> Iterator[bytes]:
    """Yield the content of a file in pieces; none if there is no file yet."""
    if path.exists():
        with path.open("rb") as file:
            yield from iter(partial(file.read, _PIECE), b"")


PROVIDER = Provider(
    name="openai",
    client=OpenAIClient,
    address="https://api.openai.com/v1",
    package="openai",
    install="helm-longctx[openai]",
    key_prefix="OPENAI",
    routes={"chat": CHAT, "completions": _COMPLETIONS},
    sampling=("temperature", "top_p", "sampling_seed"),
    server_sampling=("top_k", "min_p"),
    batches=_OpenAIBatches,
    batch_files=_BatchFiles,
    helm_clients={
        "OpenAIClient": HelmClient("OPENAI", sends_messages=True),
        "OpenAIResponseClient": HelmClient("OPENAI", sends_messages=True),
        "OpenAILegacyCompletionsClient": HelmClient("OPENAI", sends_messages=False),
        "AzureOpenAIClient": HelmClient("AZURE_OPENAI", sends_messages=True),
    },
    helm_model_arguments=("openai_model_name",),
    address_variables=("AZURE_OPENAI_ENDPOINT",),
)
