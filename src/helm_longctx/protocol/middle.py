"""Cutting a prompt in its middle, as LV-Eval does.

Source: infinigence/LVEval at 63e7ae9, utils.py (truncate_prompt) and, for API models, prediction_gpt.py. The whole
formatted prompt, before any chat template, is tokenized with special tokens; the first and the last half of the limit
are kept and decoded one by one. What follows from that, and is kept:

- an odd limit keeps one token less than it allows;
- decoding drops special tokens, also those that stand in the text as such (`<s>`), and a Llama-like tokenizer drops
  the space at the start of the second half; a character cut in two becomes U+FFFD;
- the question stands in the second half, so it is whole as long as it and what follows it have no more tokens than
  half the limit. With a smaller limit the official code cuts it, and so does this; a run refuses (`Truncator`).
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from helm_longctx.errors import InputError
from helm_longctx.protocol.fitted import Fitted
from helm_longctx.protocol.pieces import LongText, PieceTokenizer

RESERVED = 500
"""Tokens of a model's window that the official README leaves for the answer and the chat template."""


Cut = Callable[[str, int], Fitted]
"""(prompt, most tokens) → the prompt that is sent."""

Encode = Callable[[str, int], Sequence[int]]
"""(text, n) → its tokens; of a text of more than n, more than n, of which the first and the last n // 2 are its own."""
Decode = Callable[[Sequence[int]], str]


def middle_cutter(tokenizer: Any) -> Cut:
    """Cuts prompts by a tokenizer, each tokenized once; prompts can be cut in several threads at a time.

    A fast tokenizer reads no more than the two ends of a prompt that is far too long.

    Args:
        tokenizer: a Hugging Face tokenizer, a `tokenizers.Tokenizer` or a `tiktoken.Encoding`.

    Returns:
        A function that raises `InputError` for a limit under 2, for which the official rule has no meaning.
    """
    encode, decode = _codec(tokenizer)

    def cut(prompt: str, max_tokens: int) -> Fitted:
        if max_tokens < 2:
            raise InputError(f"a limit of {max_tokens} tokens leaves nothing of a prompt; at least 2 are needed")
        ids = encode(prompt, max_tokens)
        if len(ids) <= max_tokens:
            return Fitted(prompt, tokens=len(ids))
        half = max_tokens // 2
        return Fitted(decode(ids[:half]) + decode(ids[-half:]), cut=True)

    return cut


def token_counter(tokenizer: Any) -> Callable[[str], int]:
    """Counts the tokens of texts, special ones included, by the same kinds of tokenizers."""
    encode, _ = _codec(tokenizer)
    return lambda text: len(encode(text, sys.maxsize))


def _codec(tokenizer: Any) -> tuple[Encode, Decode]:
    if getattr(tokenizer, "is_fast", False):  # Hugging Face; what stands beneath it gives the same, without offsets
        encode, _ = _codec(tokenizer.backend_tokenizer)
        return encode, lambda ids: tokenizer.decode(ids, skip_special_tokens=True)
    if callable(tokenizer):  # a slow one; without `verbose` it warns that a prompt is long
        return (
            lambda text, _: tokenizer(text, truncation=False, verbose=False)["input_ids"],
            lambda ids: tokenizer.decode(ids, skip_special_tokens=True),
        )
    if hasattr(tokenizer, "encode_ordinary"):  # tiktoken; without the argument, special tokens in a text are errors
        return lambda text, _: tokenizer.encode(text, disallowed_special=()), tokenizer.decode
    own = PieceTokenizer(tokenizer)
    return partial(_ends, own), lambda ids: own.tokenizer.decode(ids, skip_special_tokens=True)


def _ends(tokenizer: PieceTokenizer, prompt: str, most: int) -> list[int]:
    """Tokens from both ends, as many from each, until there are more than `most` or no others."""

    def read(text: LongText) -> list[int]:
        left = deque(text.pieces())
        head, tail, tail_size = list(tokenizer.before), [tokenizer.after], len(tokenizer.after)
        while left and (min(len(head), tail_size) < most // 2 or len(head) + tail_size <= most):
            if len(head) <= tail_size:
                head += text.ids(left.popleft())
            else:
                tail.append(text.ids(left.pop()))
                tail_size += len(tail[-1])
        return head + [id for ids in reversed(tail) for id in ids]

    return tokenizer.read(prompt, read)
