"""Tests of cutting prompts at the end of their context."""

from __future__ import annotations

from functools import cache

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from helm_longctx.errors import InputError
from helm_longctx.tasks.cutting.cutters import (
    ContextCutter,
    NoRoomError,
    _cut_by_pieces,
    context_cutter,
)
from helm_longctx.tasks.cutting.pieces import PieceTokenizer
from helm_longctx.tasks.prompt import FittedPrompt
from tests.tasks.tokenizers import EACH, LINES, PARTS, tokenizer_of

TEXT = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


def official(
    tokenizer: Tokenizer, prompt: str, span: tuple[int, int], limit: int
) -> str | None:
    """Cut a prompt as HELMET's model_utils.py does.

    The result is None if the prompt is too long without its context.
    """
    start, end = span
    excess = len(tokenizer.encode(prompt).ids) - limit
    context = tokenizer.encode(prompt[start:end])
    if excess <= 0:
        return prompt
    if excess > len(context.ids) - tokenizer.num_special_tokens_to_add(is_pair=False):
        return None
    return (
        prompt[:start] + prompt[start:end][: context.offsets[-excess][0]] + prompt[end:]
    )


@cache
def cutter(kind: str, size: int) -> PieceTokenizer:
    return PieceTokenizer(tokenizer_of(kind), size)


@EACH
@settings(max_examples=50)
@given(TEXT, TEXT, TEXT, st.integers(0, 250), st.sampled_from([20, 60]))
def test_the_official_rule(
    kind: str, before: str, context: str, after: str, limit: int, size: int
) -> None:
    """The same characters are cut as by the official rule, wherever the context is and whatever the pieces are."""
    prompt = before + context + after
    span = (len(before), len(before + context))
    tokens = len(tokenizer_of(kind).encode(prompt).ids)
    expected = official(tokenizer_of(kind), prompt, span, limit)
    if expected is None:
        with pytest.raises(
            NoRoomError, match=f" tokens without its context, .*{limit} fit"
        ):
            _cut_by_pieces(cutter(kind, size), prompt, span, limit)
        return
    fitted = _cut_by_pieces(cutter(kind, size), prompt, span, limit)
    assert fitted.prompt == expected
    assert fitted.cut == (tokens > limit)
    assert fitted.tokens == (None if fitted.cut else tokens)


@EACH
def test_long_prompts(kind: str) -> None:
    """Prompts of the size that is used are cut as by the official rule, from one token too many to many times too long."""
    tokenizer = tokenizer_of(kind)
    cut = context_cutter(tokenizer_of(kind))
    before = "Read this.\n\n"
    context = " ".join(LINES * 40)
    after = "\n\nWhat was built in 1987?"
    prompt = before + context + after
    span = (len(before), len(before + context))
    tokens = len(tokenizer.encode(prompt).ids)
    for limit in (
        100,
        2000,
        3000,
        tokens - 40,
        tokens - 2,
        tokens - 1,
        tokens,
        tokens + 1,
    ):
        expected = official(tokenizer, prompt, span, limit)
        if expected is not None:
            assert cut(prompt, span, limit).prompt == expected


def test_a_prompt_far_too_long_is_not_read_whole(encoded_sizes: list[int]) -> None:
    """Of a prompt that is far too long, only windows at the start and a few more are encoded."""
    prompt = "q " + "the king of the town " * 50_000 + " q"
    assert context_cutter(tokenizer_of("gpt_2"))(
        prompt, (2, len(prompt) - 2), 10_000
    ).cut
    assert sum(encoded_sizes) < 100_000


def test_wrapped() -> None:
    """Hugging Face's wrapper and the tokenizer inside it cut alike."""
    for kind in ("llama_3", "llama_2", "t5"):
        wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer_of(kind))
        prompt = " ".join(LINES)
        cuts: list[ContextCutter] = [
            context_cutter(wrapped),
            context_cutter(tokenizer_of(kind)),
        ]
        assert cuts[0](prompt, (5, 900), 600) == cuts[1](prompt, (5, 900), 600)
        assert cuts[0](prompt, (5, 300), 10**4).tokens == len(
            wrapped(prompt)["input_ids"]
        )


def test_tiktoken() -> None:
    """tiktoken's encodings cut as the official code for API models does."""
    encoding = tiktoken.Encoding(
        "bytes",
        pat_str=".",
        mergeable_ranks={bytes([n]): n for n in range(256)},
        special_tokens={"<|end|>": 256},
    )
    cut = context_cutter(encoding)
    assert cut("ab<|end|>yz", (2, 9), 8) == FittedPrompt("ab<|enyz", cut=True)
    assert cut("ab<|end|>yz", (2, 9), 11) == FittedPrompt("ab<|end|>yz", tokens=11)
    assert cut("abcyz", (2, 3), 4) == FittedPrompt("abyz", cut=True)
    with pytest.raises(NoRoomError, match=r"4 tokens without its context, .*3 fit"):
        cut("abcyz", (2, 3), 3)


def test_a_slow_tokenizer_cannot_cut() -> None:
    """A slow tokenizer, which has no offsets, cannot cut a prompt, but counts a prompt that fits."""

    class Slow:
        is_fast = False

        def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
            return {"input_ids": [0] * len(text)}

    cut = context_cutter(Slow())
    assert cut("abc", (0, 1), 3) == FittedPrompt("abc", tokens=3)
    with pytest.raises(InputError, match=r"3 tokens, 2 fit, .*slow tokenizer"):
        cut("abc", (0, 1), 2)
