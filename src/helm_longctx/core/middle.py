"""Cutting a prompt in its middle, as LV-Eval does.

Source: infinigence/LVEval at 63e7ae9, utils.py (truncate_prompt) and, for API models, prediction_gpt.py. The whole
formatted prompt, before any chat template, is tokenized with special tokens; the first and the last half of the limit
are kept and decoded one by one. What follows from that, and is kept:

- an odd limit keeps one token less than it allows;
- decoding drops special tokens, also those that stand in the text as such (`<s>`), and a Llama-like tokenizer drops
  the space at the start of the second half; a character cut in two becomes U+FFFD;
- the question stands in the second half, so it is whole as long as it and the instruction after it have no more
  tokens than half the limit. With a smaller window the official code cuts the question, and so does this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from helm_longctx.errors import InputError

RESERVED = 500
"""Tokens of a model's window that the official README leaves for the answer and the chat template."""


Cut = Callable[[str, int], tuple[str, bool]]
"""(prompt, most tokens) → the prompt, and whether it was cut."""

Encode = Callable[[str], Sequence[int]]
Decode = Callable[[Sequence[int]], str]


def middle_cutter(tokenizer: Any) -> Cut:
    """Cuts prompts by a tokenizer, each tokenized once; prompts can be cut in several threads at a time.

    Args:
        tokenizer: a Hugging Face tokenizer, a `tokenizers.Tokenizer` or a `tiktoken.Encoding`.
    """
    encode, decode = _codec(tokenizer)

    def cut(prompt: str, max_tokens: int) -> tuple[str, bool]:
        if max_tokens < 2:
            raise InputError(f"a limit of {max_tokens} tokens leaves nothing of a prompt; at least 2 are needed")
        ids = encode(prompt)
        if len(ids) <= max_tokens:
            return prompt, False
        half = max_tokens // 2
        return decode(ids[:half]) + decode(ids[-half:]), True

    return cut


def cut_middle(tokenizer: Any, prompt: str, max_tokens: int) -> tuple[str, bool]:
    """One prompt in at most `max_tokens` tokens, and whether it was cut.

    Raises:
        InputError: `max_tokens` is under 2, for which the official rule has no meaning.
    """
    return middle_cutter(tokenizer)(prompt, max_tokens)


def _codec(tokenizer: Any) -> tuple[Encode, Decode]:
    if getattr(tokenizer, "is_fast", False):  # Hugging Face; what stands beneath it gives the same, without offsets
        encode, _ = _codec(tokenizer.backend_tokenizer)
        return encode, lambda ids: tokenizer.decode(ids, skip_special_tokens=True)
    if callable(tokenizer):  # a slow one; without `verbose` it warns that a prompt is long
        return (
            lambda text: tokenizer(text, truncation=False, verbose=False)["input_ids"],
            lambda ids: tokenizer.decode(ids, skip_special_tokens=True),
        )
    if hasattr(tokenizer, "encode_ordinary"):  # tiktoken; without the argument, special tokens in a text are errors
        return lambda text: tokenizer.encode(text, disallowed_special=()), tokenizer.decode
    # A copy: the settings of the original can change while other threads use it.
    own = type(tokenizer).from_str(tokenizer.to_str())
    own.no_truncation()  # which a saved tokenizer may have set
    own.no_padding()
    return (
        lambda text: own.encode_batch_fast([text])[0].ids,
        lambda ids: own.decode(ids, skip_special_tokens=True),
    )
