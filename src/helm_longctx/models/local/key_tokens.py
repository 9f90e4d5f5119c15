"""The key tokens of a text, which a model can tell only from what is far back, as LongPPL has them (arXiv 2410.23771)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from helm_longctx.models.scoring import ScoreTokens
from helm_longctx.tasks.logprobs import KeyTokenRule, KeyTokens

_Span = tuple[int, int]
"""[start, end) in a text, in characters."""


class ScoredText(NamedTuple):
    """A text whose own tokens were scored.

    Args:
        logprobs: the log-probabilities of its tokens, without the first one and without
            the special tokens before it.
        key_tokens: its key tokens.
        tokens: the number of all its tokens.
    """

    logprobs: Sequence[float]
    key_tokens: KeyTokens
    tokens: int


class _BareText(NamedTuple):
    """The tokens of a text without those that the tokenizer has added."""

    ids: list[int]
    spans: list[_Span]


def score_text(
    tokenizer: Any,
    score: ScoreTokens,
    text: str,
    special: bool,
    rule: KeyTokenRule,
) -> ScoredText:
    """Return the log-probabilities of a text's tokens and of its key tokens.

    The numbers are those of the PyPI package `longppl` 0.3.0 if one model is both the
    evaluated model and the evaluator. Like the package, it finds the key tokens with the
    special tokens that the tokenizer adds, and takes their log-probabilities without
    these. That is a pass of its own only if the tokenizer adds some.

    Args:
        tokenizer: a fast tokenizer of transformers.
        score: returns the log-probabilities of tokens.
        text: has at least one token.
        special: whether the tokenizer adds its special tokens.
        rule: what makes a token a key token.
    """
    encoded = tokenizer(
        text,
        add_special_tokens=special,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
    )
    ids = encoded["input_ids"]
    spans = encoded["offset_mapping"]
    mask = encoded["special_tokens_mask"]
    (logprobs,) = score([ids], [1])
    numbers = find_key_tokens(score, ids, logprobs, rule)
    key_spans = _merge_spans([spans[number] for number in numbers])

    bare = _make_bare_text(ids, spans, mask)
    matching = _find_within(bare.spans, key_spans)
    bare_logprobs = logprobs
    if matching and len(bare.ids) < len(ids):
        (bare_logprobs,) = score([bare.ids], [1])
    key_logprobs = [bare_logprobs[number - 1] for number in matching]

    first = 1
    while first < len(ids) and spans[first][1] == 0:
        first += 1
    key_tokens = KeyTokens(logprob=math.fsum(key_logprobs), tokens=len(key_logprobs))
    return ScoredText(
        logprobs=logprobs[first - 1 :],
        key_tokens=key_tokens,
        tokens=len(ids),
    )


def find_key_tokens(
    score: ScoreTokens,
    ids: list[int],
    logprobs: Sequence[float],
    rule: KeyTokenRule,
) -> list[int]:
    """Return the numbers of the tokens that are probable given everything before them, and much less so given the
    end of it.

    Args:
        score: returns the log-probabilities of tokens.
        ids: the tokens of a text.
        logprobs: the log-probabilities of its tokens but the first one, given everything
            before them.
        rule: what makes a token a key token.
    """
    numbers = []
    for start in range(rule.short_context, len(ids), rule.step):
        end = min(start + rule.step, len(ids))
        short_text = ids[start - rule.short_context : end]
        (short_logprobs,) = score([short_text], [rule.short_context])
        for number, short in zip(range(start, end), short_logprobs, strict=True):
            whole = logprobs[number - 1]
            if whole > rule.least_logprob and whole - short > rule.least_gain:
                numbers.append(number)
    return numbers


def _make_bare_text(
    ids: Sequence[int],
    spans: Sequence[_Span],
    mask: Sequence[int],
) -> _BareText:
    bare = _BareText(ids=[], spans=[])
    for token, span, is_added in zip(ids, spans, mask, strict=True):
        if not is_added:
            bare.ids.append(token)
            bare.spans.append(span)
    return bare


def _merge_spans(spans: Sequence[_Span]) -> list[_Span]:
    """Return the spans of tokens, where those that touch are one."""
    merged: list[_Span] = []
    for start, end in spans:
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def _find_within(spans: Sequence[_Span], wider: Sequence[_Span]) -> list[int]:
    """Return the numbers of the spans that lie in one of the wider spans. Both are in the order of the text.

    Tokens that are parts of one character have the same span, so they are found together.
    """
    numbers = []
    remaining = iter(wider)
    around = next(remaining, None)
    for number, (start, end) in enumerate(spans):
        while around and start >= around[0] and end > around[1]:
            around = next(remaining, None)
        if around is None:
            break
        if start >= around[0]:
            numbers.append(number)
    return numbers
