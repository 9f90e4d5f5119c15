"""Cuts a prompt in its middle, as LV-Eval and LongBench do.

Source: infinigence/LVEval at 63e7ae9, utils.py (truncate_prompt) and, for API models, prediction_gpt.py. LongBench's
code is the same; that of LongBench v2 decodes both halves at once (THUDM/LongBench at 2e00731, pred.py).

The whole formatted prompt, before any chat template, is tokenized with special tokens. The first half and the last half
of the limit are kept, and each half is decoded by itself. This has consequences, which are reproduced:

- An odd limit keeps one token less than it allows; in LongBench v2 the second half gets this token.
- Decoding drops special tokens, also where the text contains their names (`<s>`). A Llama-like tokenizer drops the
  space at the start of the second half. A character that is cut in two becomes U+FFFD.
- The question stands in the second half. It stays whole if it and the text after it have no more tokens than half the
  limit. With a smaller limit the official code cuts the question, and so does this module; a run refuses such a limit
  (`helm.truncation.Truncator`).
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from helm_longctx.errors import InputError
from helm_longctx.protocol.cutting.pieces import LongText, PieceTokenizer
from helm_longctx.protocol.prompt import FittedPrompt

RESERVED = 500
"""Tokens of a model's window that the official README leaves for the answer and the chat template."""


MiddleCutter = Callable[[str, int], FittedPrompt]
"""(prompt, limit in tokens) → the prompt to send."""

Encode = Callable[[str, int], Sequence[int]]
"""(text, n) → its tokens. For a text of more than n tokens the result may leave out tokens from the middle: it has more
than n tokens, and its first n // 2 and last n // 2 are those of the text."""

Decode = Callable[[Sequence[int]], str]


def middle_cutter(tokenizer: Any, joins: bool = False, evenly: bool = True) -> MiddleCutter:
    """Make a function that cuts prompts by a tokenizer. Several threads can call it at a time.

    Each prompt is tokenized once; with a fast tokenizer only the two ends of a prompt that is far too long.

    Args:
        tokenizer: a Hugging Face tokenizer, a `tokenizers.Tokenizer` or a `tiktoken.Encoding`.
        joins: whether the two halves are joined before they are decoded.
        evenly: whether both halves have as many tokens; if not, the second one gets the last token of an odd limit.

    Returns:
        A function that raises `InputError` for a limit below 2, which has no two halves.
    """
    encode, decode = _codec(tokenizer)

    def cut(prompt: str, max_tokens: int) -> FittedPrompt:
        if max_tokens < 2:
            raise InputError(f"a limit of {max_tokens} tokens leaves nothing of a prompt; at least 2 are needed")
        ids = encode(prompt, max_tokens + 1)  # one more than the limit, so that the longer half of an odd one is there
        if len(ids) <= max_tokens:
            return FittedPrompt(prompt, tokens=len(ids))
        # The official int(max_length / 2) for both halves: of an odd limit one token is not used (L:utils.py).
        half = max_tokens // 2
        last = half if evenly else max_tokens - half
        if joins:
            return FittedPrompt(decode([*ids[:half], *ids[-last:]]), cut=True)
        return FittedPrompt(decode(ids[:half]) + decode(ids[-last:]), cut=True)

    return cut


def token_counter(tokenizer: Any) -> Callable[[str], int]:
    """Make a function that counts the tokens of a text, special tokens included.

    Args:
        tokenizer: as for `middle_cutter`.
    """
    # A counter needs every token, so it asks for more tokens than any text has and nothing is left out of the middle.
    encode, _ = _codec(tokenizer)
    return lambda text: len(encode(text, sys.maxsize))


def _codec(tokenizer: Any) -> tuple[Encode, Decode]:
    if getattr(tokenizer, "is_fast", False):
        # The `tokenizers.Tokenizer` inside gives the same tokens. Decoding stays with the outer one, which can clean
        # up spaces.
        encode, _ = _codec(tokenizer.backend_tokenizer)
        return encode, lambda ids: tokenizer.decode(ids, skip_special_tokens=True)
    if callable(tokenizer):
        # A slow tokenizer. `verbose=False` turns off its warning that the prompt is long.
        return (
            lambda text, _: tokenizer(text, truncation=False, verbose=False)["input_ids"],
            lambda ids: tokenizer.decode(ids, skip_special_tokens=True),
        )
    if hasattr(tokenizer, "encode_ordinary"):
        # Without `disallowed_special=()` a prompt that contains the text of a special token is an error.
        return lambda text, _: tokenizer.encode(text, disallowed_special=()), tokenizer.decode
    own = PieceTokenizer(tokenizer)
    return partial(_encode_ends, own), lambda ids: own.tokenizer.decode(ids, skip_special_tokens=True)


def _encode_ends(tokenizer: PieceTokenizer, prompt: str, most: int) -> list[int]:
    """Tokens from both ends of a prompt, evenly, until there are more than `most` tokens or no text is left."""

    def read(text: LongText) -> list[int]:
        # Special tokens count towards the ends that they stand at. The tail is collected back to front.
        left = deque(text.pieces())
        head, tail, tail_size = list(tokenizer.before), [tokenizer.after], len(tokenizer.after)
        # Both conditions are needed: each half of the limit must be filled, and one token more must exist to prove that
        # the prompt is too long.
        while left and (min(len(head), tail_size) < most // 2 or len(head) + tail_size <= most):
            # The shorter end grows, so that hardly more than the limit is tokenized.
            if len(head) <= tail_size:
                head += text.ids(left.popleft())
            else:
                tail.append(text.ids(left.pop()))
                tail_size += len(tail[-1])
        return head + [id for ids in reversed(tail) for id in ids]

    return tokenizer.read(prompt, read)
