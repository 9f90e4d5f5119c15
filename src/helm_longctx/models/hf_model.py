"""A causal language model that reads prompts in chunks and writes greedily, one request at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from helm.common.hierarchical_logger import hwarn
from helm.proxy.retry import NonRetriableException

from helm_longctx.errors import InputError
from helm_longctx.models.hf_cache import CachedPrefix, is_croppable

GREEDY = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
"""Settings of `generate`; those of sampling would be warned of in each request where a model comes with them."""


ROTARY = ("rope_parameters", "rope_theta", "rope_scaling")
"""Settings that a model with rotary positions has, in newer and older versions of transformers."""


class ModelError(InputError, NonRetriableException):
    """Bad input that only the model shows; HELM need not try again."""


class OutOfMemoryError(Exception):
    """The GPU has no room for a request; what the request held is freed."""


@dataclass(frozen=True)
class Job:
    """A prompt, and how it is read and answered.

    Args:
        prompt: token ids, special ones among them.
        max_tokens: to write at most.
        stop_ids: tokens that end the answer beside the model's own.
        is_finished: whether an answer's ids so far are all that is wanted.
        chunk_size: tokens of the prompt that are read at once.
        reuse_prefix: do not read again the whole chunks that the prompt begins with as the last one did; and keep this
            one's for the next.
    """

    prompt: list[int]
    max_tokens: int
    stop_ids: frozenset[int]
    is_finished: Callable[[list[int]], bool] | None
    chunk_size: int
    reuse_prefix: bool


@dataclass(frozen=True)
class Generation:
    """What a model wrote.

    Args:
        tokens: ids, with the one that ended it.
        reused: tokens of the prompt that were not read again.
        seconds: of the model's work, without waiting for it.
    """

    tokens: list[int]
    reused: int
    seconds: float


class LocalModel:
    """A loaded model. It keeps the key-value cache of one prompt at most.

    Args:
        model: a causal language model of transformers.
    """

    def __init__(self, model: Any):
        ends = model.generation_config.eos_token_id
        self.end_ids = frozenset([ends] if isinstance(ends, int) else ends or [])
        # Some models ask for a cache of fixed size, which could not be filled by chunks.
        model.generation_config.cache_implementation = None
        self._model, self._vocabulary = model, model.get_input_embeddings().num_embeddings
        self._lock = threading.Lock()
        self._prefix: CachedPrefix | None = None
        self._reads_chunks = True
        self._told: set[str] = set()

    def generate(self, job: Job) -> Generation:
        """The tokens that `model.generate(do_sample=False)` gives.

        Raises:
            ModelError: the prompt's tokens are not this model's, or more than it has positions for.
            OutOfMemoryError: the GPU has no room.
        """
        import torch

        # On a GPU such a token would be an error of this request and of all that come after it.
        if max(job.prompt) >= self._vocabulary:
            raise ModelError(
                f"the tokenizer gives token {max(job.prompt)} and the model has only {self._vocabulary}:"
                " the deployment's tokenizer_name is that of another model"
            )
        self._check_positions(len(job.prompt) + job.max_tokens)
        with self._lock:
            try:
                with torch.inference_mode():
                    return self._generate(job)
            except torch.cuda.OutOfMemoryError:
                self._prefix = None
            # Not before: the traceback holds tensors.
            torch.cuda.empty_cache()
        raise OutOfMemoryError(f"the GPU has no room for a prompt of {len(job.prompt)} tokens")

    def _generate(self, job: Job) -> Generation:
        import torch

        start = time.perf_counter()
        ids = torch.tensor([job.prompt], device=self._model.device)
        cache, reused = self._take_prefix(job)
        cache = self._read_prompt(ids, cache, reused, job.chunk_size)
        tokens = self._write(ids, cache, job)
        if job.reuse_prefix:
            self._keep(job, cache)
        return Generation(tokens, reused, time.perf_counter() - start)

    def _read_prompt(self, ids: Any, cache: Any, start: int, chunk_size: int) -> Any:
        """The cache of all tokens but the last, whose logits are all that is needed; None if the model has no cache."""
        # The model without its head: for a whole prompt the head would give gigabytes of logits.
        end = ids.shape[1] - 1
        for first in range(start, end if self._reads_chunks else start, chunk_size):
            chunk = ids[:, first : min(first + chunk_size, end)]
            # No name of a cache before there is one: models without have no such argument.
            so_far = {"past_key_values": cache} if cache is not None else {}
            cache = getattr(self._model.base_model(input_ids=chunk, use_cache=True, **so_far), "past_key_values", None)
            if cache is None:
                self._reads_chunks = False
                self._tell("keeps no key-value cache: prompts are read at once")
                break
        return cache

    def _write(self, ids: Any, cache: Any, job: Job) -> list[int]:
        import torch
        from transformers import StoppingCriteriaList

        length = ids.shape[1]

        def is_finished(written: Any, scores: Any) -> Any:
            done = job.is_finished is not None and job.is_finished(written[0, length:].tolist())
            return torch.tensor([done], device=written.device)

        ends = sorted(self.end_ids | job.stop_ids)
        output = self._model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            past_key_values=cache,
            use_cache=True,
            max_new_tokens=job.max_tokens,
            **GREEDY,
            eos_token_id=ends or None,
            pad_token_id=ends[0] if ends else 0,  # of batches, which there are none of; else transformers warns
            stopping_criteria=StoppingCriteriaList([is_finished] if job.is_finished else []),
        )
        written: list[int] = output[0, length:].tolist()
        return written

    def _take_prefix(self, job: Job) -> tuple[Any, int]:
        kept, self._prefix = self._prefix, None
        reused = kept.crop_to(job.prompt, job.chunk_size) if kept and job.reuse_prefix else 0
        return (kept.cache, reused) if kept and reused else (None, 0)

    def _keep(self, job: Job, cache: Any) -> None:
        if cache is None:
            return
        if is_croppable(cache):
            self._prefix = CachedPrefix.of(job.prompt, cache, job.chunk_size)
        else:
            self._tell("has layers that do not keep all tokens (a sliding window, a state): no prefix is reused")

    def _check_positions(self, needed: int) -> None:
        """Rotary positions go on for ever, though the model was not trained on them; of others there is a table."""
        config = self._model.config
        positions = getattr(config, "max_position_embeddings", None) or needed
        if needed <= positions:
            return
        advice = f"give its deployment max_sequence_length: {positions}, so that prompts are cut by the task's rule"
        if not any(getattr(config, name, None) for name in ROTARY):
            raise ModelError(f"{self._name} has {positions} positions, {needed} are needed; {advice}")
        self._tell(f"was made for {positions} positions, and prompts with their answers need more; {advice}")

    def _tell(self, what: str) -> None:
        if what not in self._told:
            hwarn(f"{self._name} {what}")
        self._told.add(what)

    @property
    def _name(self) -> str:
        return self._model.config.name_or_path or "the model"
