"""Encodes and decodes texts as official codes do that call a tokenizer's `encode` and `decode`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Codec(NamedTuple):
    """The two directions of a tokenizer.

    Args:
        encode: (text) → its tokens. Tokenizers of Hugging Face add special tokens, such as one for the beginning.
        decode: (tokens) → their text, in which special tokens have their names.
    """

    encode: Callable[[str], Sequence[int]]
    decode: Callable[[Sequence[int]], str]


def make_codec(tokenizer: Any) -> Codec:
    """Make the codec of a tokenizer.

    Args:
        tokenizer: a Hugging Face tokenizer, a `tokenizers.Tokenizer` or a `tiktoken.Encoding`.
    """
    # `tiktoken.Encoding.encode` refuses texts that contain the name of a special token.
    if hasattr(tokenizer, "encode_ordinary"):
        return Codec(tokenizer.encode_ordinary, tokenizer.decode)
    if callable(tokenizer):
        return Codec(tokenizer.encode, tokenizer.decode)
    return Codec(
        lambda text: tokenizer.encode(text).ids, lambda tokens: tokenizer.decode(tokens, skip_special_tokens=False)
    )
