"""A HELM client that runs a Hugging Face model in this process, made for long prompts."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from helm.tokenizers.tokenizer import Tokenizer

from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.errors import InputError, bad_argument, shorten
from helm_longctx.failures import Failure, FailureError
from helm_longctx.helm_api import (
    CacheConfig,
    CachingClient,
    GeneratedOutput,
    Request,
    RequestResult,
    Thinking,
    Token,
)
from helm_longctx.models.apis.protocol import digest_prompt, turns
from helm_longctx.models.apis.tools import template_messages
from helm_longctx.models.local.answers import AnswerDecoder
from helm_longctx.models.local.model import (
    Generation,
    LocalRequest,
    ModelError,
    OutOfMemoryError,
)
from helm_longctx.models.local.packaged import find_model
from helm_longctx.models.local.scoring import (
    make_scored_result,
    make_scorer,
    read_spans,
    respond,
)
from helm_longctx.models.local.templates import check_template
from helm_longctx.models.local.weights import Weights
from helm_longctx.models.objects import Gatherer
from helm_longctx.models.results import LongContextResult, add_facts, make_failure
from helm_longctx.models.sampling import with_fields
from helm_longctx.models.scoring import AnswerRequest, ScoringRequest, SpanRequest
from helm_longctx.models.tokenizer_checks import check_speed
from helm_longctx.tasks.answer import AnswerFacts, Usage
from helm_longctx.tasks.logprobs import LONGPPL_RULE
from helm_longctx.tasks.request_settings import SAMPLING

CHUNK_SIZE = 2048

_NEWLINES = ("\n", "Ċ", "ĊĊ", "<0x0A>")
"""The tokens at which the official code stops for a newline (HELMET model_utils.py:914). A token with other characters
before the newline does not stop the answer."""


_FURTHER = ("arguments", "adapter", "remote_code", "quantized_cache")
"""Fields of the weights that are in the cache's key only if they are set, so that it finds earlier answers."""


def _load_tokenizer(tokenizer: Any, path: str) -> Any:
    """Return the tokenizer of transformers that HELM's tokenizer object loads.

    Raises:
        InputError: a file of the tokenizer or of the model has another form. Errors of the disk are raised as they are.
    """
    try:
        return tokenizer.get_wrapped_tokenizer()
    except (OSError, ImportError, InputError):
        raise
    except Exception as error:  # transformers and tokenizers raise any type
        reason = shorten(str(error), 200)
        raise InputError(
            f"{path}: its tokenizer cannot be loaded ({type(error).__name__}: {reason})"
        ) from error


class LongContextHuggingFaceClient(CachingClient):
    """Answers completions and chats with a Hugging Face model. Decoding is greedy at a temperature of 0.

    A request without `messages` is a completion: the model gets its BOS token and the prompt. A request with `messages`
    is a chat: the messages, and the prompt as the last user turn, go through the model's chat template. The list can be
    empty: `messages=[]` sends the prompt alone as a chat.

    Args:
        tokenizer: HELM's tokenizer object for a Hugging Face model.
        pretrained_model_name_or_path: hub name or folder of a model with safetensors weights, or a name of
            `packaged.MODELS`.
        revision: a commit, tag or branch on the hub, or None for the newest.
        dtype, attn_implementation: see `Weights`.
        chunk_size: number of prompt tokens that the model reads at once.
        reuse_prefix: whether the common prefix with the previous prompt is taken from the cache.
        batch: most prompts that are answered together; 1 for one after the other. Fewer are if memory lacks.
        load: further arguments of `from_pretrained`.
        adapter, remote_code: see `Weights`.
        step: the step of training. It is only kept with runs.
        quantized_cache: arguments of transformers' `QuantizedCache`, such as `{"backend": "fp8"}`, or None for a plain
            cache. A chunk is read exactly, and quantized for those that follow, so it shows in texts of several chunks.
        digest: identifies the files of a folder, whose weights can be replaced.

    Attributes:
        takes_facts: whether questions about one context should come one after the other.
        concurrency: the requests that the client wants at once.

    Raises:
        InputError: an argument is invalid, or there is no such model.
    """

    takes_facts = True
    concurrency = 1
    _has_checked_template = False
    _decoder: AnswerDecoder | None = None

    def __init__(
        self,
        cache_config: CacheConfig,
        tokenizer: Tokenizer,
        pretrained_model_name_or_path: str,
        revision: str | None = None,
        dtype: str | None = None,
        attn_implementation: str | None = None,
        chunk_size: int = CHUNK_SIZE,
        reuse_prefix: bool = False,
        batch: int = 1,
        load: Mapping[str, Any] | None = None,
        adapter: str | None = None,
        remote_code: bool = False,
        step: int | None = None,
        digest: str = "",
        quantized_cache: Mapping[str, Any] | None = None,
    ):
        super().__init__(cache_config=cache_config)
        path = find_model(pretrained_model_name_or_path)
        for name, value in (("chunk_size", chunk_size), ("batch", batch)):
            if not isinstance(value, int) or value < 1:
                raise bad_argument(path, name, value, "a whole number from 1")
        # Only HELM's tokenizer for Hugging Face gives token ids and a chat template.
        if not hasattr(tokenizer, "get_wrapped_tokenizer"):
            raise bad_argument(
                path,
                "tokenizer_name",
                type(tokenizer).__name__,
                "a HuggingFaceTokenizer",
            )
        weights = Weights.find(path, revision, dtype, attn_implementation)
        if quantized_cache is not None and "backend" not in quantized_cache:
            raise bad_argument(
                path,
                "quantized_cache",
                quantized_cache,
                "a mapping with a backend, such as fp8 or quanto",
            )
        self._weights = replace(
            weights,
            arguments=_serialize(load),
            adapter=adapter,
            remote_code=remote_code,
            quantized_cache=_serialize(quantized_cache),
            digest=digest,
        )
        ignore_broken_torchvision()
        self._tokenizer = _load_tokenizer(tokenizer, path)
        self._chunk_size = chunk_size
        self._reuse_prefix = reuse_prefix
        self.concurrency = batch
        self._gatherer: Gatherer[LocalRequest, Generation] = Gatherer(
            lambda jobs: self._weights.load().generate_all(jobs, batch), batch
        )

    def close(self) -> None:
        """Free the memory of the model."""
        self._weights.free()

    @classmethod
    def takes_sampling(cls, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the arguments of run entries about sampling, all of which `generate` takes."""
        return SAMPLING

    @classmethod
    def request_form(cls, arguments: Mapping[str, Any]) -> str:
        """Return `both`: each request says whether it is a chat."""
        return "both"

    def make_request(self, request: Request) -> RequestResult:
        """Answer a request. All completions are the same one.

        If the GPU has no memory left, the result is a failed request and the run goes on.

        Raises:
            ModelError: the client does not support a setting of the request, or the model cannot be loaded.
        """
        try:
            if isinstance(request, SpanRequest | AnswerRequest):
                return self._read(request)
            if isinstance(request, ScoringRequest):
                return self._score(request)
            return self._answer(request)
        except OutOfMemoryError as error:
            # The next request may be shorter, so the run goes on; the same one would fail again.
            return make_failure(Failure.BAD_REQUEST, str(error))

    def _answer(self, request: Request) -> RequestResult:
        for name in ("echo_prompt", "embedding"):
            if value := getattr(request, name):
                raise ModelError(
                    str(
                        bad_argument(
                            request.model_deployment, name, value, [type(value)()]
                        )
                    )
                )
        key = CachingClient.make_cache_key(self._raw_request(request), request)
        response, cached = self.cache.get(key, lambda: self._respond(request))
        tokens = []
        for text in response["tokens"]:
            tokens.append(Token(text=text, logprob=0))
        reasoning = response.get("reasoning")
        output = GeneratedOutput(
            response["text"],
            0,
            tokens,
            {"reason": response["finish_reason"]},
            thinking=None if reasoning is None else Thinking(reasoning),
        )
        usage = Usage(
            input_tokens=response["prompt_tokens"],
            cached_tokens=response["reused_tokens"],
            # The token that ended the answer counts: the model wrote it.
            output_tokens=response["output_tokens"],
        )
        return LongContextResult(
            success=True,
            embedding=[],
            completions=[output] * request.num_completions,
            cached=cached,
            request_time=response["request_time"],
            request_datetime=response["request_datetime"],
            facts=AnswerFacts(usage=usage, **response["facts"]),
        )

    gives_distributions = True
    """Whether it answers a `SpanRequest` and an `AnswerRequest`."""

    gives_key_tokens = True
    """Whether it answers a `ScoringRequest` that asks for key tokens."""

    def score_support(self) -> str:
        """Return why the model gives no log-probabilities of texts: it always does."""
        return ""

    def _read(self, request: SpanRequest | AnswerRequest) -> RequestResult:
        """Return the distributions at the tokens of parts of a prompt, or of the answer after it is written."""
        if isinstance(request, AnswerRequest):
            if request.messages is not None:
                raise InputError(
                    "a local model's answers to chats have no distributions; compare completions"
                )
            result = self._answer(request)
            tokens = []
            for token in result.completions[0].tokens:
                tokens.append(token.text)
            has_reasoning = result.completions[0].thinking is not None
            text = request.prompt + (
                "".join(tokens) if has_reasoning else result.completions[0].text
            )
            start = len(request.prompt)
            if len(text) == start:
                return add_facts(result, distributions=((),))
            request = with_fields(
                SpanRequest, request, prompt=text, spans=((start, len(text)),)
            )
        else:
            result = RequestResult(
                True, [], [GeneratedOutput("", 0, [], {"reason": "endoftext"})], False
            )
        with self._tokenizer as tokenizer:
            spans = read_spans(
                tokenizer, self._weights.load(), request, self._chunk_size
            )
            return add_facts(result, distributions=spans)

    def _score(self, request: ScoringRequest) -> RequestResult:
        with self._tokenizer as tokenizer:
            prompt = self._render(tokenizer, request)
            asked: dict[str, Any] = {
                "answers": list(request.answers),
                "context": request.context,
            }
            if request.finds_key_tokens:
                asked["key_tokens"] = list(LONGPPL_RULE)
            key = CachingClient.make_cache_key(
                {**self._raw_request(request), **asked}, request
            )
            response, cached = self.cache.get(
                key,
                lambda: respond(
                    tokenizer,
                    make_scorer(self._weights.load(), self._chunk_size),
                    request,
                    prompt,
                ),
            )
        return make_scored_result(request, response, cached)

    def _raw_request(self, request: Request) -> dict[str, Any]:
        """Return everything that the answer depends on, for the cache key. A hash replaces the prompt."""
        further = {}
        for name in _FURTHER:
            further[name] = getattr(self._weights, name, None)
        return {
            "model": self._weights.path,
            **{
                name: getattr(self._weights, name)
                for name in ("commit", "dtype", "attn_implementation")
            },
            **{name: value for name, value in further.items() if value},
            "chunk_size": self._chunk_size,
            "form": "completion" if request.messages is None else "chat",
            "sha256": digest_prompt({"messages": turns(request)}),
            "max_tokens": request.max_tokens,
            "stop_sequences": request.stop_sequences,
            **_sampling(request),
        }

    def _respond(self, request: Request) -> dict[str, Any]:
        started_at = time.time()
        start = time.perf_counter()
        prompt = self._encode(request)
        stop_ids: frozenset[int] = frozenset()
        if "\n" in request.stop_sequences:
            with self._tokenizer as tokenizer:
                # A vocabulary without a token gives the unknown token or None, at which generation must not stop.
                ids = frozenset(tokenizer.convert_tokens_to_ids([*_NEWLINES]))
                stop_ids = ids - {None, tokenizer.unk_token_id}
        stops = []
        for stop in request.stop_sequences:
            if not (stop == "\n" and stop_ids):
                stops.append(stop)
        encoded = time.perf_counter() - start
        model = self._weights.load()

        def has_stop(tokens: list[int]) -> bool:
            text = self._decode(tokens)
            return any(stop in text for stop in stops)

        is_finished = has_stop if stops else None
        sampling = _sampling(request)
        job = LocalRequest(
            prompt=prompt,
            max_tokens=request.max_tokens,
            stop_ids=stop_ids,
            is_finished=is_finished,
            chunk_size=self._chunk_size,
            reuse_prefix=self._reuse_prefix,
            sampling=sampling,
        )
        # The tokens that are drawn for a prompt would depend on the others of a batch.
        if self.concurrency == 1 or sampling:
            generation = model.generate(job)
        else:
            generation = self._gatherer(job)
        response = self._make_response(
            prompt, generation, model.end_ids, stop_ids, stops
        )
        measures = {
            "first_token_seconds": encoded + generation.first_seconds,
            "peak_memory": generation.peak_memory,
        }
        return {
            **response,
            "facts": {**response["facts"], **measures},
            "prompt_tokens": len(prompt),
            "output_tokens": len(generation.tokens),
            "reused_tokens": generation.reused,
            "request_time": encoded + generation.seconds,
            "request_datetime": int(started_at),
        }

    def _make_response(
        self,
        prompt: list[int],
        generation: Generation,
        end_ids: frozenset[int],
        stop_ids: frozenset[int],
        stops: list[str],
    ) -> dict[str, Any]:
        last = generation.tokens[-1:]
        # These are HELM's names of finish reasons.
        reason = "length"
        if end_ids.issuperset(last):
            reason = "endoftext"
        elif stop_ids.issuperset(last):
            reason = "stop"
        # The token that ended the answer is not a part of it.
        if reason == "length":
            tokens = generation.tokens
        else:
            tokens = generation.tokens[:-1]
        with self._tokenizer as tokenizer:
            self._decoder = self._decoder or AnswerDecoder(tokenizer)
            answer = self._decoder.decode(tokenizer, tokens, prompt)
            token_texts = []
            for token in tokens:
                token_texts.append(tokenizer.decode([token]))
        text = answer.text
        # The text is cut at the earliest stop sequence, because a single token can contain several of them.
        if starts := [text.index(stop) for stop in stops if stop in text]:
            text = text[: min(starts)]
            reason = "stop"
        facts = {
            "is_reasoning_open": answer.is_open,
            "is_reasoning_suspected": answer.is_suspected,
        }
        return {
            "text": text,
            "reasoning": None if answer.is_open else answer.reasoning,
            "facts": facts,
            "tokens": token_texts,
            "finish_reason": reason,
        }

    def _encode(self, request: Request) -> list[int]:
        with self._tokenizer as tokenizer:
            try:
                check_speed(tokenizer, self._weights.path)
            except InputError as error:
                raise ModelError(str(error)) from None
            # The chat template already contains the special tokens.
            return tokenizer(
                self._render(tokenizer, request),
                add_special_tokens=request.messages is None,
            )["input_ids"]

    def _render(self, tokenizer: Any, request: Request) -> str:
        """Return the text that the model reads: the prompt, or the messages in the chat template."""
        if request.messages is None:
            return request.prompt
        if not tokenizer.chat_template:
            raise ModelError(
                f"{self._weights.path} has no chat template; give style=completion"
            )
        if not self._has_checked_template:
            check_template(tokenizer, self._weights.path)
            self._has_checked_template = True
        from jinja2.exceptions import TemplateError  # a part of transformers

        try:
            text = tokenizer.apply_chat_template(
                template_messages(turns(request)),
                tokenize=False,
                add_generation_prompt=True,
            )
        except TemplateError as error:
            reason = (
                f"{self._weights.path}: the chat template refuses the turns: {error}"
            )
            raise FailureError(Failure.BAD_REQUEST, reason) from error
        return str(text)

    def _decode(self, tokens: list[int]) -> str:
        with self._tokenizer as tokenizer:
            return tokenizer.decode(tokens, skip_special_tokens=True)


def _serialize(arguments: Mapping[str, Any] | None) -> str:
    if arguments:
        return json.dumps(arguments, sort_keys=True)
    return ""


def _sampling(request: Request) -> dict[str, Any]:
    """Return how the tokens of an answer are drawn. It is empty if the most likely one is taken."""
    names = ("temperature", "top_p", "top_k", "min_p", "seed")
    if request.temperature:
        sampling = {}
        for name in names:
            sampling[name] = getattr(request, name, None)
        return sampling
    return {}
