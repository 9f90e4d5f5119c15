"""Log-probabilities of given tokens by a local model, read in chunks as prompts are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from helm_longctx.models.local.key_tokens import score_text
from helm_longctx.models.local.model import (
    LocalModel,
    ModelError,
    check_length,
    is_croppable,
)
from helm_longctx.models.results import LongContextResult
from helm_longctx.models.scoring import (
    ScoreTokens,
    ScoringRequest,
    SpanRequest,
    scored_output,
    scored_texts,
    windows_output,
)
from helm_longctx.tasks.answer import AnswerFacts, Usage
from helm_longctx.tasks.logprobs import (
    LONGPPL_RULE,
    Distribution,
    KeyTokens,
    Window,
    split_windows,
)

_TAIL = 2000
"""Characters at a prompt's end that are tokenized again with each answer, if the prompt is longer."""


class Scored(NamedTuple):
    """The distribution of a model at one token of a text.

    Args:
        logprob: the log-probability of the token that follows in the text.
        top: ids and log-probabilities of the most likely tokens, the most likely first.
    """

    logprob: float
    top: tuple[tuple[int, float], ...] = ()


def score_tokens(
    local: LocalModel,
    texts: Sequence[Sequence[int]],
    starts: Sequence[int],
    chunk_size: int,
    top: int = 0,
) -> list[list[Scored]]:
    """Return the log-probabilities of the tokens of texts, each given the tokens before it.

    What texts that follow each other have in common is read once.

    Args:
        texts: token ids, special tokens included.
        starts: for each text the number of the first token that is scored, from 1.
        chunk_size: number of tokens that the model reads at once.
        top: number of the most likely tokens that are returned with each.

    Raises:
        ModelError: a text has tokens that the model does not have, or more than it has positions.
        OutOfMemoryError: the GPU has no memory left.
    """
    for ids in texts:
        local.check(ids)
    # How many first tokens of a text the next one shares, before the tokens that either of them scores.
    shared = []
    for (one, other), both_starts in zip(
        pairwise(texts), pairwise(starts), strict=True
    ):
        limit = min(both_starts) - 1
        shared.append(next((at for at in range(limit) if one[at] != other[at]), limit))

    def score() -> list[list[Scored]]:
        reader = _Reader(local, chunk_size)
        rows = zip(texts, starts, [*shared, 0], strict=True)
        scores = []
        for ids, start, keep in rows:
            scores.append(reader.score(list(ids), start, keep, top))
        return scores

    return local.work(score, f"a text of {max(map(len, texts), default=0)} tokens")


class _Reader:
    """Reads texts with a cache of the beginning that they share."""

    def __init__(self, local: LocalModel, chunk_size: int):
        self._model = local._model
        self._chunk = chunk_size
        self._make_cache = local.make_cache
        self._cache: Any = self._make_cache()
        self._length = 0

    def score(
        self,
        ids: list[int],
        start: int,
        keep: int,
        top: int,
    ) -> list[Scored]:
        """Return the log-probabilities of the tokens from `start`.

        Args:
            keep: number of first tokens that the next text shares. They stay in the cache, if it can be cropped.
        """
        import torch

        device = self._model.device
        ends = sorted(
            {*range(self._chunk, start - 1, self._chunk), keep, start - 1} - {0}
        )
        for end in ends:
            if end > self._length:
                self._read(
                    torch.tensor([ids[self._length : end]], device=device), head=False
                )
        scored: list[Scored] = []
        at = start - 1
        while at < len(ids) - 1:
            end = min(at + self._chunk, len(ids) - 1)
            logits = self._read(torch.tensor([ids[at:end]], device=device), head=True)[
                0
            ]
            scored += _score_tokens(logits, ids[at + 1 : end + 1], top)
            at = end
        if keep and is_croppable(self._cache):
            self._cache.crop(keep - self._length)
            self._length = keep
        else:
            self._cache = self._make_cache()
            self._length = 0
        return scored

    def _read(self, chunk: Any, head: bool) -> Any:
        if self._cache is not None:
            so_far = {"past_key_values": self._cache}
        else:
            so_far = {}
        # `base_model` is the model without its head, whose logits would need gigabytes.
        model = self._model if head else self._model.base_model
        output = model(input_ids=chunk, use_cache=True, **so_far)
        self._cache = getattr(output, "past_key_values", None)
        if self._cache is None:
            raise ModelError(
                f"{self._model.config.name_or_path or 'the model'} has no cache, so it"
                " scores no texts"
            )
        self._length += chunk.shape[1]
        check_length(self._cache, self._length)
        return output.logits if head else None


def _score_tokens(logits: Any, targets: Sequence[int], top: int) -> list[Scored]:
    import torch

    # The numbers equal transformers' own loss. It is computed in float32.
    logprobs = torch.log_softmax(logits.float(), dim=-1)
    wanted = torch.tensor(targets, device=logits.device)[:, None]
    values = logprobs.gather(1, wanted)[:, 0].tolist()
    if not top:
        return [Scored(value) for value in values]
    best = logprobs.topk(top, dim=-1)
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    tokens = []
    for value, (names, numbers) in zip(values, pairs, strict=True):
        tokens.append(Scored(value, tuple(zip(names, numbers, strict=True))))
    return tokens


def make_scorer(local: LocalModel, chunk_size: int) -> ScoreTokens:
    """Return the function of a local model for `respond`; see `score_tokens`."""

    def score(
        texts: Sequence[Sequence[int]],
        starts: Sequence[int],
    ) -> list[list[float]]:
        rows = score_tokens(local, texts, starts, chunk_size)
        values = []
        for row in rows:
            values.append([scored.logprob for scored in row])
        return values

    return score


def respond(
    tokenizer: Any,
    score: ScoreTokens,
    request: ScoringRequest,
    prompt: str,
) -> dict[str, Any]:
    """Return the log-probabilities that a request asks for, as a response that the request cache can keep.

    Args:
        tokenizer: a fast tokenizer of transformers.
        prompt: the prompt as the model reads it. A chat template has the special tokens already.
    """
    started_at = time.time()
    start = time.perf_counter()
    special = request.messages is None
    if request.finds_key_tokens:
        text = score_text(tokenizer, score, prompt, special, LONGPPL_RULE)
        return {
            "scored": [[list(window) for window in split_windows(text.logprobs)]],
            "key_tokens": list(text.key_tokens),
            "prompt_tokens": text.tokens,
            "request_time": time.perf_counter() - start,
            "request_datetime": int(started_at),
        }
    encoded = _encode(tokenizer, list(scored_texts(request, prompt)), special)
    scored = score([ids for ids, _ in encoded], [first for _, first in encoded])
    rows = []
    for (ids, first), values in zip(encoded, scored, strict=True):
        if request.answers:
            rows.append(
                [
                    [tokenizer.decode([token]), value]
                    for token, value in zip(ids[first:], values, strict=True)
                ]
            )
        else:
            rows.append([list(window) for window in split_windows(values)])
    return {
        "scored": rows,
        "prompt_tokens": encoded[0][1] if request.answers else len(encoded[0][0]),
        "request_time": time.perf_counter() - start,
        "request_datetime": int(started_at),
    }


def make_scored_result(
    request: ScoringRequest,
    response: dict[str, Any],
    cached: bool,
) -> LongContextResult:
    """Return the result of a response of `respond`."""
    rows = response["scored"]
    key_tokens = None
    if "key_tokens" in response:
        key_tokens = KeyTokens._make(response["key_tokens"])
    if request.answers:
        # The answers after the whole prompt come first, then the same answers after the rest.
        answers = request.answers * (len(rows) // len(request.answers))
        outputs = [
            scored_output(answer, row)
            for answer, row in zip(answers, rows, strict=True)
        ]
        windows = None
    else:
        (row,) = rows
        windows = tuple(map(Window._make, row))
        outputs = [windows_output(windows)]
    return LongContextResult(
        success=True,
        embedding=[],
        completions=outputs,
        cached=cached,
        request_time=response["request_time"],
        request_datetime=response["request_datetime"],
        facts=AnswerFacts(
            usage=Usage(response["prompt_tokens"]),
            windows=windows,
            key_tokens=key_tokens,
        ),
    )


def _encode(
    tokenizer: Any,
    texts: Sequence[tuple[str, str]],
    special: bool,
) -> list[tuple[list[int], int]]:
    """Return the token ids of each text, and the number of the first one that has a character of the scored part."""
    prompts: dict[str, tuple[list[int], str, int]] = {}
    encodings = []
    for prompt, answer in texts:
        if prompt not in prompts:
            prompts[prompt] = _split_tail(tokenizer, prompt, special)
        ids, tail, before = prompts[prompt]
        encoded = tokenizer(
            tail + answer,
            add_special_tokens=special and not before,
            return_offsets_mapping=True,
        )
        ends = [end for _, end in encoded["offset_mapping"]]
        first = next(
            (number for number, end in enumerate(ends) if end > len(tail)), len(ends)
        )
        # The first token of a text has no log-probability.
        encodings.append((ids[:before] + encoded["input_ids"], max(before + first, 1)))
    return encodings


def _split_tail(
    tokenizer: Any,
    prompt: str,
    special: bool,
) -> tuple[list[int], str, int]:
    """Return a prompt's token ids, its end that is tokenized with each answer, and the number of tokens before that.

    The end's tokens must be the same alone. Otherwise the whole prompt is tokenized with each answer.
    """
    if len(prompt) > 2 * _TAIL:
        encoded = tokenizer(
            prompt, add_special_tokens=special, return_offsets_mapping=True
        )
        ids = encoded["input_ids"]
        starts = []
        for start, _ in encoded["offset_mapping"]:
            starts.append(start)
        first = next(
            number
            for number, start in enumerate(starts)
            if start >= len(prompt) - _TAIL
        )
        for number in range(first, min(first + 20, len(ids))):
            tail = prompt[starts[number] :]
            if tokenizer(tail, add_special_tokens=False)["input_ids"] == ids[number:]:
                return ids, tail, number
    return [], prompt, 0


def read_spans(
    tokenizer: Any,
    local: LocalModel,
    request: SpanRequest,
    chunk_size: int,
) -> tuple[tuple[Distribution, ...], ...]:
    """Return the distributions at the tokens of each part of a prompt; see `score_tokens`."""
    encoded = tokenizer(request.prompt, return_offsets_mapping=True)
    ids = encoded["input_ids"]
    parts = []
    for first, last in request.spans:
        part = []
        for number, (start, end) in enumerate(encoded["offset_mapping"]):
            if number and max(first, start) < min(last, end):
                part.append(number)
        parts.append(part)
    scored = score_tokens(
        local,
        [ids[: part[-1] + 1] for part in parts],
        [part[0] for part in parts],
        chunk_size,
        request.top,
    )
    distributions = []
    for part, row in zip(parts, scored, strict=True):
        of_part = []
        for number, token in zip(part, row, strict=True):
            top = {}
            for other, value in reversed(token.top):
                top[_name(tokenizer, other)] = value
            text = _name(tokenizer, ids[number])
            of_part.append(
                Distribution(
                    text=text,
                    logprob=token.logprob,
                    top=top,
                )
            )
        distributions.append(tuple(of_part))
    return tuple(distributions)


def _name(tokenizer: Any, token: int) -> str:
    """Return the text of a token. Parts of characters all have the same one, so their numbers tell them apart."""
    text = str(tokenizer.decode([token]))
    if "\ufffd" in text or not text:
        return f"{text}{token}"
    return text
