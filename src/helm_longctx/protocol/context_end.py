"""Cutting a prompt at the end of its context, as HELMET does.

Source: princeton-nlp/HELMET at 4526dfb, model_utils.py tokenize (local models) and OpenAIModel.prepare_inputs. As many
tokens as the prompt has too many are taken from the end of its context, which is tokenized for that as a text of its
own, special tokens included: a tokenizer that puts one at the end of every text gives it place 0, so that a prompt
which has no more tokens too many than that loses its whole context, there and here.

Where the prompt has more tokens too many than its context has, the official code fails with an IndexError (fast
tokenizers) or sends a prompt that is too long (slow ones, tiktoken). Here that is an error that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from helm_longctx.errors import InputError
from helm_longctx.protocol.fitted import Fitted
from helm_longctx.protocol.pieces import LongText, PieceTokenizer

Cut = Callable[[str, Sequence[int], int], Fitted]
"""(prompt, [start, end) of its context in characters, most tokens) → the prompt that is sent."""


class NoRoomError(InputError):
    """A prompt does not fit, even without its context.

    Args:
        tokens: of the prompt without its context.
        limit: the most that fit.
    """

    def __init__(self, tokens: int, limit: int):
        super().__init__(
            f"its prompt has {tokens} tokens without its context, and {limit} fit; choose a longer length, fewer shots"
            " or a deployment with a larger window"
        )


def context_cutter(tokenizer: Any) -> Cut:
    """Cuts prompts by a tokenizer, also in several threads at a time.

    A fast tokenizer reads no more of a prompt than fits, and its end.

    Args:
        tokenizer: a Hugging Face tokenizer, a `tokenizers.Tokenizer` or a `tiktoken.Encoding`.

    Returns:
        A function that raises `NoRoomError` for a prompt that is too long even without its context.
    """
    if hasattr(tokenizer, "encode_ordinary"):
        return partial(_by_tiktoken, tokenizer)
    if callable(tokenizer) and not tokenizer.is_fast:
        return partial(_by_slow, tokenizer)
    return partial(_by_pieces, PieceTokenizer(getattr(tokenizer, "backend_tokenizer", tokenizer)))


def _by_pieces(tokenizer: PieceTokenizer, prompt: str, span: Sequence[int], limit: int) -> Fitted:
    start, end = span

    def read(text: LongText) -> Fitted:
        pieces, tokens = text.pieces(), len(tokenizer.before) + len(tokenizer.after)
        for piece in pieces:
            tokens += text.size(piece)
            if tokens > limit:
                break
        else:
            return Fitted(prompt, tokens=tokens)
        # Where prompt and context share their pieces, they need not be read to know how many tokens are outside.
        context = text.pieces(start, end)
        outside = sum(map(text.size, set(pieces) - set(context))) - sum(map(text.size, set(context) - set(pieces)))
        if limit < outside + len(tokenizer.before) + len(tokenizer.after):
            raise NoRoomError(outside + len(tokenizer.before) + len(tokenizer.after), limit)
        place, _ = text.span(context, limit - outside)
        return Fitted(prompt[:place] + prompt[end:], cut=True)

    return tokenizer.read(prompt, read)


def _by_tiktoken(encoding: Any, prompt: str, span: Sequence[int], limit: int) -> Fitted:
    start, end = span
    tokens = len(encoding.encode(prompt, disallowed_special=()))
    if tokens <= limit:
        return Fitted(prompt, tokens=tokens)
    context = encoding.encode(prompt[start:end], disallowed_special=())
    if tokens - limit > len(context):
        raise NoRoomError(tokens - len(context), limit)
    kept = context[: limit - tokens]
    return Fitted(prompt[:start] + encoding.decode(kept) + prompt[end:], cut=True)


def _by_slow(tokenizer: Any, prompt: str, span: Sequence[int], limit: int) -> Fitted:
    tokens = len(tokenizer(prompt, truncation=False, verbose=False)["input_ids"])
    if tokens > limit:
        raise InputError(f"a prompt has {tokens} tokens, {limit} fit, and this tokenizer has no fast form to cut it by")
    return Fitted(prompt, tokens=tokens)
