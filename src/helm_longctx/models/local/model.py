"""Runs a causal language model: reads prompts in chunks, and decodes greedily, one request at a time or in batches."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from helm_longctx.errors import InputError
from helm_longctx.helm_api import NonRetriableException
from helm_longctx.helm_log import helm_log
from helm_longctx.models.local import attention, batches

_Found = TypeVar("_Found")

_GREEDY = {
    "do_sample": False,
    "temperature": None,
    "top_p": None,
    "top_k": None,
}
"""Arguments of `generate`. The sampling settings are unset, because transformers warns in each request if a model's
generation config has them."""

_ROTARY = ("rope_parameters", "rope_theta", "rope_scaling")
"""Config fields of models with rotary positions, in newer and older versions of transformers."""


class ModelError(InputError, NonRetriableException):
    """Bad input that is only found when the model is used. HELM does not retry the request."""


class OutOfMemoryError(Exception):
    """The GPU has no memory left for a request. The memory of the request has been freed."""


@dataclass(frozen=True)
class LocalRequest:
    """A request to a model.

    Args:
        prompt: token ids, special tokens included.
        max_tokens: most tokens to generate.
        stop_ids: tokens that end the answer, in addition to the model's own end tokens.
        is_finished: takes the tokens generated so far and returns whether to stop. Without it, only end tokens stop.
        chunk_size: number of prompt tokens that the model reads at once.
        reuse_prefix: whether to reuse the cache of the last prompt for a common prefix, and to keep this prompt's.
        sampling: `temperature`, `top_p`, `top_k`, `min_p` and `seed`, or empty for the most likely token.
    """

    prompt: list[int]
    max_tokens: int
    stop_ids: frozenset[int]
    is_finished: Callable[[list[int]], bool] | None
    chunk_size: int
    reuse_prefix: bool
    sampling: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Generation:
    """The output of a model.

    Args:
        tokens: the token ids, including the one that ended the answer.
        reused: number of prompt tokens that were taken from the cache.
        seconds: time that the model worked, without waiting for other requests.
        first_seconds: the part of this time until the first token of the answer.
        peak_memory: GiB of memory that were used at most: of the GPU in this request, or of this process so far.
    """

    tokens: list[int]
    reused: int
    seconds: float
    first_seconds: float
    peak_memory: float


@dataclass
class _CachedPrefix:
    """The key-value cache of the first tokens of a prompt, in whole chunks.

    Only whole chunks are kept, because then each prompt is computed by the same operations, whether or not a prefix is
    reused. So answers do not depend on the order of requests.

    Args:
        tokens: the token ids.
        cache: the cache object of transformers, with one position for each token.
        chunk_size: number of tokens in a chunk.
    """

    tokens: list[int]
    cache: Any
    chunk_size: int

    @staticmethod
    def of(prompt: Sequence[int], cache: Any, chunk_size: int) -> _CachedPrefix:
        """Keep the whole chunks of a prompt. The cache has all tokens of the prompt; it may lack the last one."""
        # The last token is not in the cache: `generate` reads it.
        tokens = [*prompt[: (len(prompt) - 1) // chunk_size * chunk_size]]
        _crop(cache, len(tokens))
        return _CachedPrefix(
            tokens=tokens,
            cache=cache,
            chunk_size=chunk_size,
        )

    def crop_to(self, prompt: Sequence[int], chunk_size: int) -> int:
        """Crop the cache to the chunks with which another prompt starts. Return their number of tokens."""
        if chunk_size != self.chunk_size:
            return 0
        end = 0
        # At least one token must be left to compute, because its logits give the first token of the answer.
        for start in range(
            0, min(len(self.tokens), len(prompt) - 1) - chunk_size + 1, chunk_size
        ):
            if [*prompt[start : start + chunk_size]] != self.tokens[
                start : start + chunk_size
            ]:
                break
            end = start + chunk_size
        _crop(self.cache, end)
        return end


def is_croppable(cache: Any) -> bool:
    """Return whether every layer keeps all positions. Layers with a sliding window or a recurrent state do not."""
    # Exact types are compared, because subclasses have state that is not cropped. Caches of older versions of
    # transformers have no layer objects.
    layers = getattr(cache, "layers", [])
    return type(cache).__name__ == "DynamicCache" and all(
        type(layer).__name__ == "DynamicLayer" for layer in layers
    )


def check_length(cache: Any, length: int) -> None:
    """Check that a cache has all tokens that were read. A method that drops some would get wrong positions.

    Raises a `ModelError` if it has others.
    """
    if is_croppable(cache) and (kept := cache.get_seq_length()) != length:
        raise ModelError(
            f"the model's cache has {kept} of the {length} tokens that were read, so"
            " later ones would get wrong positions; give a function that calls"
            " model.generate"
        )


def _copy_cache(cache: Any) -> Any:
    """Return a cache that shares its tensors with another one. They are never changed."""
    copied = copy(cache)
    copied.layers = [copy(layer) for layer in cache.layers]
    return copied


def _is_memory(error: BaseException) -> bool:
    """Whether an error says that memory is exhausted. On a processor PyTorch raises a plain RuntimeError."""
    import torch

    text = str(error)
    return (
        isinstance(error, MemoryError | torch.cuda.OutOfMemoryError)
        or "can't allocate memory" in text
    )


def _crop(cache: Any, length: int) -> None:
    # A negative argument is the number of positions to remove, in all versions of transformers. A positive one is the
    # new length only in some.
    if excess := cache.get_seq_length() - length:
        cache.crop(-excess)


class LocalModel:
    """A loaded model, with the key-value cache of at most one prompt.

    Args:
        model: a causal language model of transformers.
        keeps_attention: whether its attention stays as it is; otherwise our own reads chunks faster on processors.
        quantized_cache: arguments of transformers' `QuantizedCache`. Without them, the cache is a plain one.

    Raises:
        ModelError: there is no such quantized cache for the model, or its package is not installed.
    """

    def __init__(
        self,
        model: Any,
        keeps_attention: bool = False,
        quantized_cache: Mapping[str, Any] | None = None,
    ):
        ends = model.generation_config.eos_token_id
        self.end_ids = frozenset([ends] if isinstance(ends, int) else ends or [])
        # Some models use a cache of fixed size. It cannot be filled in chunks.
        model.generation_config.cache_implementation = None
        if not keeps_attention:
            attention.use_in(model)
        self._model = model
        self._vocabulary = model.get_input_embeddings().num_embeddings
        self._lock = threading.Lock()
        self._prefix: _CachedPrefix | None = None
        self._per_token: int | None = None
        self._reads_chunks = True
        self._warned: set[str] = set()
        self._quantized = quantized_cache
        try:
            self.make_cache()
        except (ImportError, TypeError, ValueError) as error:
            raise ModelError(
                f"{self._name}: quantized_cache={quantized_cache}: {error}"
            ) from error

    def make_cache(self) -> Any:
        """Return an empty quantized cache. Returns None for a plain one: the model makes it itself."""
        if self._quantized is None:
            return None
        from transformers import QuantizedCache

        return QuantizedCache(config=self._model.config, **self._quantized)

    def generate(self, job: LocalRequest) -> Generation:
        """Generate the same tokens as `model.generate`, with `do_sample` if the job has a sampling.

        Raises:
            ModelError: the prompt has tokens that the model does not have, or more tokens than the model has positions.
            OutOfMemoryError: the GPU has no memory left.
        """
        self.check(job.prompt, job.max_tokens)
        return self.work(
            lambda: self._generate(job), f"a prompt of {len(job.prompt)} tokens"
        )

    def work(self, work: Callable[[], _Found], what: str) -> _Found:
        """Do what no other thread may do at the same time, without gradients.

        Raises:
            OutOfMemoryError: the GPU has no memory left. `what` it was for stands in the message.
        """
        import torch

        with self._lock:
            try:
                with torch.inference_mode():
                    return work()
            except torch.cuda.OutOfMemoryError:
                self._prefix = None
            # This is after the except block, because inside it the traceback still holds tensors.
            torch.cuda.empty_cache()
        raise OutOfMemoryError(f"the GPU has no memory left for {what}")

    def generate_all(
        self,
        jobs: Sequence[LocalRequest],
        most: int,
    ) -> list[Generation | Exception]:
        """Generate the tokens of several jobs together, in the largest batches that fit into the memory.

        A beginning that a prompt shares with the one before is read once, to its last token. If the memory is
        nevertheless too small, the batch is halved.

        Args:
            most: most jobs of a batch.

        Returns:
            For each job its tokens, or a `ModelError` or an `OutOfMemoryError`. `seconds` are a job's share.
        """
        import torch

        outcomes: dict[int, Generation | Exception] = {}
        for number, job in enumerate(jobs):
            try:
                self.check(job.prompt, job.max_tokens)
            except ModelError as error:
                outcomes[number] = error
        with self._lock, torch.inference_mode():
            left = []
            for number in range(len(jobs)):
                if number not in outcomes:
                    left.append(number)
            waiting = []
            for planned in self._plan([jobs[number] for number in left], most):
                waiting.append([left[index] for index in planned])
            while waiting:
                batch = waiting.pop(0)
                try:
                    generations = self._generate_batch(
                        [jobs[number] for number in batch]
                    )
                    outcomes |= dict(zip(batch, generations, strict=True))
                    continue
                except (
                    torch.cuda.OutOfMemoryError,
                    MemoryError,
                    RuntimeError,
                ) as error:
                    if not _is_memory(error):
                        raise
                    self._prefix = None
                # This is after the except block, because inside it the traceback still holds tensors.
                torch.cuda.empty_cache()
                if len(batch) > 1:
                    half = len(batch) // 2
                    waiting[:0] = [batch[:half], batch[half:]]
                else:
                    size = len(jobs[batch[0]].prompt)
                    outcomes[batch[0]] = OutOfMemoryError(
                        f"there is no memory left for a prompt of {size} tokens"
                    )
        return [outcomes[number] for number in range(len(jobs))]

    def _plan(self, jobs: Sequence[LocalRequest], most: int) -> list[list[int]]:
        if self._per_token is None and jobs:
            # The cache of two tokens shows the size of the cache.
            ids = self._tensor([jobs[0].prompt[:1] * 2])
            cache = self._read_prompt(ids, None, 0, 1)
            is_plain = cache is not None and is_croppable(cache)
            has_rule = bool(
                getattr(self._model.generation_config, "no_repeat_ngram_size", None)
            )
            if is_plain and not has_rule:
                self._per_token = batches.bytes_per_token(cache)
            else:
                self._per_token = 0
        if not self._per_token:
            return [[number] for number in range(len(jobs))]
        return list(
            batches.fitting(
                jobs, self._per_token, batches.free_bytes(self._model.device), most
            )
        )

    def _generate_batch(self, jobs: Sequence[LocalRequest]) -> list[Generation]:
        if not self._per_token:
            outputs = []
            for job in jobs:
                outputs.append(self._generate(replace(job, reuse_prefix=True)))
            return outputs
        start = time.perf_counter()
        caches = []
        reused = []
        for job in jobs:
            prefix = self._prefix
            self._prefix = None
            reused.append(prefix.crop_to(job.prompt, 1) if prefix else 0)
            ids = self._tensor([job.prompt])
            if prefix and reused[-1]:
                cache = _copy_cache(prefix.cache)
            else:
                cache = None
            cache = self._read_prompt(ids, cache, reused[-1], job.chunk_size)
            caches.append(cache)
            if cache is not None:  # a prompt of a single token has none
                self._prefix = _CachedPrefix(
                    tokens=job.prompt[:-1],
                    cache=_copy_cache(cache),
                    chunk_size=1,
                )
        length = max(len(job.prompt) for job in jobs)
        # The rows are padded with a token that they have, so that penalties for repeated tokens stay the same.
        rows = []
        for job in jobs:
            rows.append([job.prompt[0]] * (length - len(job.prompt)) + job.prompt)
        mask = []
        for job in jobs:
            mask.append([0] * (length - len(job.prompt)) + [1] * len(job.prompt))
        ids = self._tensor(rows)
        seen = self._tensor(mask)
        kept = [cache for cache in caches if cache is not None]
        cache = caches[0]
        if len(jobs) > 1:
            cache = None
            if len(kept) == len(jobs):
                cache = batches.merge(kept, max(job.max_tokens for job in jobs))
        answers, first = self._write(ids, seen, cache, jobs)
        seconds = time.perf_counter() - start
        peak = self._peak_memory()
        outputs = []
        for answer, count in zip(answers, reused, strict=True):
            outputs.append(
                Generation(
                    tokens=answer,
                    reused=count,
                    seconds=seconds / len(jobs),
                    first_seconds=(first - start) / len(jobs),
                    peak_memory=peak,
                )
            )
        return outputs

    def check(self, ids: Sequence[int], more: int = 0) -> None:
        """Check that the model has tokens, and positions for them and for `more` tokens, or raise a `ModelError`.

        Rotary positions have no upper limit, but the model was not trained for large ones, so they get a warning. Other
        models have a table of positions and fail beyond its end.
        """
        # On a GPU an unknown token is an error that makes this request and all later ones fail.
        if max(ids) >= self._vocabulary:
            raise ModelError(
                f"the tokenizer gives token {max(ids)} and the model has only {self._vocabulary}:"
                " the deployment's tokenizer_name belongs to another model"
            )
        config = self._model.config
        needed = len(ids) + more
        positions = getattr(config, "max_position_embeddings", None) or needed
        if needed <= positions:
            return
        advice = f"set max_sequence_length: {positions} in its deployment, so that prompts are cut by the task's rule"
        if not any(getattr(config, name, None) for name in _ROTARY):
            raise ModelError(
                f"{self._name} has {positions} positions, {needed} are needed; {advice}"
            )
        self._warn_once(
            f"was trained for {positions} positions, and prompts with their answers"
            f" need more; {advice}"
        )

    def _tensor(self, rows: Sequence[Sequence[int]]) -> Any:
        import torch

        return torch.tensor(rows, device=self._model.device)

    def _generate(self, job: LocalRequest) -> Generation:
        import torch

        start = time.perf_counter()
        on_gpu = self._model.device.type == "cuda"
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(self._model.device)
        ids = self._tensor([job.prompt])
        # The prefix is removed first: `generate` extends its cache in place, so after an error it fits no prompt.
        prefix = self._prefix
        self._prefix = None
        if prefix and job.reuse_prefix:
            reused = prefix.crop_to(job.prompt, job.chunk_size)
        else:
            reused = 0
        cache = prefix.cache if prefix and reused else None
        cache = self._read_prompt(ids, cache, reused, job.chunk_size)
        # Without a mask transformers warns that it cannot tell padding from the end token.
        (tokens,), first = self._write(ids, torch.ones_like(ids), cache, [job])
        if job.reuse_prefix and cache is not None:
            if is_croppable(cache):
                self._prefix = _CachedPrefix.of(job.prompt, cache, job.chunk_size)
            else:
                why = "layers that do not keep all tokens (a sliding window or a recurrent state)"
                self._warn_once(f"has {why}: no prefix is reused")
        return Generation(
            tokens=tokens,
            reused=reused,
            seconds=time.perf_counter() - start,
            first_seconds=first - start,
            peak_memory=self._peak_memory(),
        )

    def _peak_memory(self) -> float:
        """Return the GiB of memory that were used at most: of the GPU, or of this process; 0 if that is unknown."""
        import torch

        if self._model.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self._model.device) / (1 << 30)
        try:
            import resource
        except ImportError:  # on Windows
            return 0.0
        unit = 1 if sys.platform == "darwin" else 1 << 10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / (1 << 30)

    def _read_prompt(
        self,
        ids: Any,
        cache: Any,
        start: int,
        chunk_size: int,
    ) -> Any:
        """Fill the cache with all prompt tokens except the last. Returns None if the model has no cache.

        Only the logits of the last token are needed, and `generate` computes those.
        """
        # `base_model` is the model without its head. For a long prompt the head would compute gigabytes of logits.
        end = ids.shape[1] - 1
        cache = self.make_cache() if cache is None else cache
        for first in range(start, end if self._reads_chunks else start, chunk_size):
            chunk = ids[:, first : min(first + chunk_size, end)]
            # The first call omits the argument, because models without a cache do not accept it.
            if cache is not None:
                so_far = {"past_key_values": cache}
            else:
                so_far = {}
            cache = getattr(
                self._model.base_model(input_ids=chunk, use_cache=True, **so_far),
                "past_key_values",
                None,
            )
            if cache is None:
                self._reads_chunks = False
                self._warn_once(
                    "has no key-value cache: prompts are not read in chunks"
                )
                break
        if cache is not None:
            check_length(cache, end)
        return cache

    def _write(
        self,
        ids: Any,
        mask: Any,
        cache: Any,
        jobs: Sequence[LocalRequest],
    ) -> tuple[list[list[int]], float]:
        """Return the tokens of the answers, and the time of the first one.

        Args:
            ids: the prompts' tokens, padded on the left: jobs × tokens.
            mask: 0 for padding, and 1 for tokens: jobs × tokens.
            cache: the cache of all tokens but the last one, if there is one.
        """
        import torch
        from transformers import StoppingCriteriaList

        length = ids.shape[1]
        times: list[float] = []
        ends: dict[int, int] = {}
        always = self.end_ids | frozenset.intersection(*(job.stop_ids for job in jobs))

        def is_finished(answer: Any, scores: Any) -> Any:
            if not times:
                times.append(time.perf_counter())
            for number, (job, tokens) in enumerate(
                zip(jobs, answer[:, length:].tolist(), strict=True)
            ):
                is_at_end = (
                    len(tokens) == job.max_tokens
                    or tokens[-1] in self.end_ids | job.stop_ids
                )
                if number not in ends and (
                    is_at_end
                    or (job.is_finished is not None and job.is_finished(tokens))
                ):
                    ends[number] = len(tokens)
            return torch.tensor(
                [number in ends for number in range(len(jobs))], device=answer.device
            )

        # Only a job that is alone in its batch has a sampling.
        drawn = dict(jobs[0].sampling)
        seed = drawn.pop("seed", None)
        with _seed_random_numbers(seed, ids.device):
            output = self._model.generate(
                ids,
                attention_mask=mask,
                past_key_values=cache,
                use_cache=True,
                max_new_tokens=max(job.max_tokens for job in jobs),
                **({"do_sample": True, **drawn} if drawn else _GREEDY),
                eos_token_id=sorted(always) or None,
                pad_token_id=min(
                    always, default=0
                ),  # what follows the end of an answer is dropped
                stopping_criteria=StoppingCriteriaList([is_finished]),
            )
        answers: list[list[int]] = output[:, length:].tolist()
        times.append(time.perf_counter())
        return [
            tokens[: ends.get(number)] for number, tokens in enumerate(answers)
        ], times[0]

    def _warn_once(self, message: str) -> None:
        if message not in self._warned:
            helm_log.warning(f"{self._name} {message}")
        self._warned.add(message)

    @property
    def _name(self) -> str:
        return self._model.config.name_or_path or "the model"


@contextmanager
def _seed_random_numbers(seed: int | None, device: Any) -> Iterator[None]:
    """Let PyTorch draw from a seed in the block. A program that trains a model goes on with its own random numbers."""
    if seed is None:
        yield
        return
    import torch

    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield
