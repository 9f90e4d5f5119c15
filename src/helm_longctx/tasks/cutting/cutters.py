"""Cuts a prompt in its middle, as LV-Eval and LongBench do, or at the end of its context, as HELMET does.

**Middle.** Source: infinigence/LVEval at 63e7ae9, utils.py (truncate_prompt) and, for API models, prediction_gpt.py.
LongBench's code is the same; LongBench v2's code decodes both halves at once (THUDM/LongBench at 2e00731, pred.py).

The whole formatted prompt, before any chat template, is tokenized with special tokens. The first half and the last half
of the limit are kept, and each half is decoded by itself. This has consequences, reproduced here:

- With an odd limit, one token less than the limit is kept. In LongBench v2 the second half gets this token.
- Decoding drops special tokens, also where the text contains their names (`<s>`). A Llama-like tokenizer drops the
  space at the start of the second half. A character that is cut in two becomes U+FFFD.
- The question stands in the second half. It stays whole if it and the text after it have no more tokens than half the
  limit. With a smaller limit the official code cuts the question, and so does this module; a run refuses such a limit
  (`helm.truncation.Truncator`).

**End of the context.** Source: princeton-nlp/HELMET at 4526dfb, model_utils.py tokenize (local models) and
OpenAIModel.prepare_inputs.

If a prompt has n tokens too many, n tokens are cut from the end of its context. To find them, the context is tokenized
as a text of its own, with special tokens. A tokenizer that adds an end token gives that token the offset 0. So a prompt
that is one token too long loses its whole context, in the official code and here.

If a prompt exceeds the limit by more tokens than its context has, the official code fails with an IndexError (fast
tokenizers) or sends a prompt that is too long (slow tokenizers, tiktoken). Here this is an error with a message.
"""

import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from helm_longctx.errors import InputError
from helm_longctx.tasks.cutting.pieces import LongText, PieceTokenizer
from helm_longctx.tasks.prompt import FittedPrompt

RESERVED = 500
"""Tokens of a model's window that the official README leaves for the answer and the chat template."""


MiddleCutter = Callable[[str, int], FittedPrompt]
"""(prompt, limit in tokens) → the prompt to send."""

_Encode = Callable[[str, int], Sequence[int]]
"""(text, n) → its tokens. If the text has more than n tokens, some in the middle may be missing. The result then still
has more than n tokens, and its first n // 2 and last n // 2 tokens are the tokens of the text."""

_Decode = Callable[[Sequence[int]], str]


def middle_cutter(
    tokenizer: Any,
    joins: bool = False,
    evenly: bool = True,
) -> MiddleCutter:
    """Make a function that cuts prompts by a tokenizer. Several threads can call it at a time.

    Each prompt is tokenized once. With a fast tokenizer, only the two ends of a prompt that is far too long are.

    Args:
        joins: whether the two halves are joined before they are decoded.
        evenly: whether both halves have as many tokens. If not, the second one gets the last token of an odd limit.

    Returns:
        A function that raises `InputError` for a limit below 2: it cannot be divided into two halves.
    """
    encode, decode = _codec(tokenizer)

    def cut(prompt: str, max_tokens: int) -> FittedPrompt:
        if max_tokens < 2:
            raise InputError(
                f"a limit of {max_tokens} tokens leaves nothing of a prompt; at least 2 are needed"
            )
        # One token more than the limit is needed, for the longer half of an odd limit.
        ids = encode(prompt, max_tokens + 1)
        if len(ids) <= max_tokens:
            return FittedPrompt(prompt, tokens=len(ids))
        # The official code uses int(max_length / 2) for both halves, so an odd limit leaves one token unused
        # (utils.py).
        half = max_tokens // 2
        last = half if evenly else max_tokens - half
        if joins:
            return FittedPrompt(decode([*ids[:half], *ids[-last:]]), cut=True)
        return FittedPrompt(decode(ids[:half]) + decode(ids[-last:]), cut=True)

    return cut


def counter_with_special_tokens(tokenizer: Any) -> Callable[[str], int]:
    """Make a function that counts the tokens of a text, special tokens included."""
    # A counter needs all tokens. It asks for more tokens than any text has, so that no token in the middle is missing.
    encode, _ = _codec(tokenizer)
    return lambda text: len(encode(text, sys.maxsize))


# A run's cutter and counter share one copy of the tokenizer. It can need 100 MB.
@lru_cache(maxsize=2)
def _codec(tokenizer: Any) -> tuple[_Encode, _Decode]:
    if getattr(tokenizer, "is_fast", False):
        # The inner `tokenizers.Tokenizer` gives the same tokens. Only the outer one decodes, because it can clean up
        # spaces.
        encode, _ = _codec(tokenizer.backend_tokenizer)
        return encode, lambda ids: tokenizer.decode(ids, skip_special_tokens=True)
    if callable(tokenizer):
        # This is a slow tokenizer. `verbose=False` turns off its warning that the prompt is long.
        return (
            lambda text, _: tokenizer(text, truncation=False, verbose=False)[
                "input_ids"
            ],
            lambda ids: tokenizer.decode(ids, skip_special_tokens=True),
        )
    if hasattr(tokenizer, "encode_ordinary"):
        # Without `disallowed_special=()` a prompt that contains the text of a special token is an error.
        return lambda text, _: tokenizer.encode(
            text, disallowed_special=()
        ), tokenizer.decode
    own = PieceTokenizer(tokenizer)

    def decode(ids: Sequence[int]) -> str:
        return own.tokenizer.decode(ids, skip_special_tokens=True)

    return partial(_encode_ends, own), decode


def _encode_ends(tokenizer: PieceTokenizer, prompt: str, most: int) -> list[int]:
    """Return tokens from both ends of a prompt in equal parts: more than `most` tokens, or all tokens."""

    def read(text: LongText) -> list[int]:
        # A special token counts as a part of its end. The tail is collected from back to front.
        left = deque(text.pieces())
        head = list(tokenizer.before)
        tail = [tokenizer.after]
        tail_size = len(tokenizer.after)
        # Each end must fill half of the limit, and there must be one more token to prove that the prompt is too long.
        while left and (
            min(len(head), tail_size) < most // 2 or len(head) + tail_size <= most
        ):
            # The next piece is added to the shorter end, so that hardly more than the limit is tokenized.
            if len(head) <= tail_size:
                head += text.ids(left.popleft())
            else:
                tail.append(text.ids(left.pop()))
                tail_size += len(tail[-1])
        ids: list[int] = head
        for piece_ids in reversed(tail):
            ids += piece_ids
        return ids

    return tokenizer.read(prompt, read)


ContextCutter = Callable[[str, Sequence[int], int], FittedPrompt]
"""(prompt, [start, end) of its context in characters, limit in tokens) → the prompt to send."""


class NoRoomError(InputError):
    """A prompt does not fit, even without its context."""

    def __init__(self, tokens: int, limit: int):
        super().__init__(
            f"the prompt has {tokens} tokens without its context, but only {limit} fit;"
            " choose a longer length, fewer shots or a deployment with a larger window"
        )


def context_cutter(tokenizer: Any) -> ContextCutter:
    """Make a function that cuts prompts by a tokenizer. Several threads can call it at a time.

    With a fast tokenizer, the function tokenizes only the part of a prompt that fits, and the prompt's end.

    Args:
        tokenizer: a Hugging Face tokenizer, a `tokenizers.Tokenizer` or a `tiktoken.Encoding`.

    Returns:
        A function that raises `NoRoomError` for a prompt that is too long even without its context.
    """
    # The kind is recognized by the object's attributes, so that neither tiktoken nor transformers must be imported.
    if hasattr(tokenizer, "encode_ordinary"):
        return partial(_cut_by_tiktoken, tokenizer)
    # Only Hugging Face's own tokenizer classes are callable; a `tokenizers.Tokenizer` is not.
    if callable(tokenizer) and not tokenizer.is_fast:
        return partial(_refuse_to_cut, tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    return partial(_cut_by_pieces, PieceTokenizer(backend))


def _cut_by_pieces(
    tokenizer: PieceTokenizer,
    prompt: str,
    span: Sequence[int],
    limit: int,
) -> FittedPrompt:
    start, end = span
    special = len(tokenizer.before) + len(tokenizer.after)

    def cut(text: LongText) -> FittedPrompt:
        pieces = text.pieces()
        tokens = special
        for piece in pieces:
            tokens += text.size(piece)
            if tokens > limit:
                break  # the rest of the prompt need not be tokenized
        else:
            return FittedPrompt(prompt, tokens=tokens)
        # This is tokens(prompt) - tokens(context). Most pieces are in both lists, cancel out and need not be tokenized.
        # The number can differ from the number of the text outside the context, because tokens can join at its ends.
        context = text.pieces(start, end)
        only_prompt = sum(map(text.size, set(pieces) - set(context)))
        only_context = sum(map(text.size, set(context) - set(pieces)))
        outside = only_prompt - only_context
        if limit < outside + special:
            raise NoRoomError(outside + special, limit)
        # HELMET cuts at the offset of the token with number -n of the context, where n = tokens(prompt) - limit. The
        # context has tokens(prompt) - outside tokens, special ones included; so that token has the number limit -
        # outside.
        position, _ = text.span(context, limit - outside)
        return FittedPrompt(prompt[:position] + prompt[end:], cut=True)

    return tokenizer.read(prompt, cut)


def _cut_by_tiktoken(
    encoding: Any,
    prompt: str,
    span: Sequence[int],
    limit: int,
) -> FittedPrompt:
    start, end = span
    # Without `disallowed_special=()` a prompt that contains the text of a special token is an error.
    tokens = len(encoding.encode(prompt, disallowed_special=()))
    if tokens <= limit:
        return FittedPrompt(prompt, tokens=tokens)
    context = encoding.encode(prompt[start:end], disallowed_special=())
    # Here the official code would send a prompt that is too long, because the slice below would be empty.
    if tokens - limit > len(context):
        raise NoRoomError(tokens - len(context), limit)
    # Tiktoken has no offsets, so the remaining tokens are decoded, as in the official code.
    rest = context[: limit - tokens]
    return FittedPrompt(prompt[:start] + encoding.decode(rest) + prompt[end:], cut=True)


def _refuse_to_cut(
    tokenizer: Any,
    prompt: str,
    span: Sequence[int],
    limit: int,
) -> FittedPrompt:
    """Count with a slow tokenizer (it has no offsets), and raise an error if the prompt is too long."""
    tokens = len(tokenizer(prompt, truncation=False, verbose=False)["input_ids"])
    if tokens > limit:
        raise InputError(
            f"a prompt has {tokens} tokens, {limit} fit, and a slow tokenizer cannot"
            " cut it; use a fast one"
        )
    return FittedPrompt(prompt, tokens=tokens)
