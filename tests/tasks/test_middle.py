"""Tests of cutting prompts in the middle."""

from __future__ import annotations

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from helm_longctx.errors import InputError
from helm_longctx.helm.truncation import CHAT_BUFFER, Truncator
from helm_longctx.tasks.cutting.cutters import RESERVED, middle_cutter
from helm_longctx.tasks.prompt import FittedPrompt
from helm_longctx.tasks.sample import Sample
from tests.benchmarks.lv_eval.fabricate import tokenizers
from tests.tasks.tokenizers import KINDS, LINES, tokenizer_of

TOKENIZERS = tokenizers()
EACH = pytest.mark.parametrize("name", TOKENIZERS)
TEXT = st.text(max_size=200) | st.text("the 北京🎼é<s>", max_size=200)


CUTTERS = {name: middle_cutter(tokenizer) for name, tokenizer in TOKENIZERS.items()}
WRAPPED = {
    name: middle_cutter(PreTrainedTokenizerFast(tokenizer_object=tokenizer))
    for name, tokenizer in TOKENIZERS.items()
}


@EACH
@given(prompt=TEXT, limit=st.integers(2, 80))
def test_forms_of_a_tokenizer_agree(name: str, prompt: str, limit: int) -> None:
    """Hugging Face's wrapper and the bare tokenizer give the same text."""
    assert WRAPPED[name](prompt, limit) == CUTTERS[name](prompt, limit)


@EACH
@given(prompt=TEXT)
def test_what_fits_is_not_touched(name: str, prompt: str) -> None:
    """A prompt that fits is unchanged, and one token more than the limit, special tokens included, is cut."""
    size = max(2, len(TOKENIZERS[name].encode(prompt).ids))
    assert CUTTERS[name](prompt, size) == FittedPrompt(
        prompt, tokens=len(TOKENIZERS[name].encode(prompt).ids)
    )
    if size > 2:
        assert CUTTERS[name](prompt, size - 1).cut


@given(words=st.integers(20, 60), limit=st.integers(2, 19))
def test_both_ends_stay(words: int, limit: int) -> None:
    """Each end keeps half the limit of words, less one at the start for the token that begins every text."""
    prompt = " ".join("the" for _ in range(words))
    halves = limit // 2
    kept = " ".join(["the"] * (halves - 1)) + " ".join(["the"] * halves)
    assert CUTTERS["metaspace"](prompt, limit) == FittedPrompt(kept, cut=True)


def test_a_saved_limit_is_lifted() -> None:
    """Truncation and padding in a tokenizer's file do not change prompts."""
    tokenizer = tokenizers()["byte_level"]
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=64, pad_id=0, pad_token="<|begin|>")
    assert middle_cutter(tokenizer)("abcdefgh", 20) == FittedPrompt(
        "abcdefgh", tokens=9
    )


def test_tiktoken() -> None:
    """tiktoken's encodings cut as the official code for API models does: without special tokens, whose text is plain text."""
    encoding = tiktoken.Encoding(
        "bytes",
        pat_str=".",
        mergeable_ranks={bytes([n]): n for n in range(256)},
        special_tokens={"<|end|>": 256},
    )
    cut = middle_cutter(encoding)
    assert cut("abcdefgh", 5) == FittedPrompt("abgh", cut=True)
    assert cut("<|end|>", 7) == FittedPrompt("<|end|>", tokens=7)


@pytest.mark.parametrize("limit", [1, 0, -3])
def test_no_room(limit: int) -> None:
    """A limit below 2 is refused, because the official rule would keep the whole prompt for a limit of 1."""
    with pytest.raises(InputError, match="at least 2 are needed"):
        CUTTERS["metaspace"]("the the", limit)


@EACH
@pytest.mark.parametrize(
    ("window", "max_tokens"), [(601, 64), (700, 16), (900, 700), (10_000, 64)]
)
def test_a_deployment_s_window(name: str, window: int, max_tokens: int) -> None:
    """The adapter cuts to the window less the reserved tokens, or less a larger output, whatever the nominal length."""
    tokenizer = TOKENIZERS[name]
    prompt = "the cat sat " * 300 + "question?"
    sample = Sample("official", max_tokens, max_tokens, cut="middle")
    limit = window - max(RESERVED, max_tokens + CHAT_BUFFER)
    fitted = Truncator(window, lambda: tokenizer).fit(
        prompt, sample, max_tokens, "chat"
    )
    cut = CUTTERS[name](prompt, limit)
    assert (fitted.prompt, fitted.cut) == (cut.prompt, cut.cut)
    assert Truncator(None, lambda: tokenizer).fit(
        prompt, sample, max_tokens, "chat"
    ) == FittedPrompt(prompt)


@EACH
def test_a_question_is_never_cut(name: str) -> None:
    """A window in which the question would be cut is an error, and the smallest sufficient window keeps the question."""
    question = "Who is the king?"
    prompt = "Who is the king? " * 90 + "Who is the king?\nAnswer:"
    half = len(TOKENIZERS[name].encode(f"{question}\nAnswer:").ids)

    def fit(limit: int) -> str:
        sample = Sample("official", 64, 64, cut="middle", question=question)
        return (
            Truncator(limit + RESERVED, lambda: TOKENIZERS[name])
            .fit(prompt, sample, 64, "chat")
            .prompt
        )

    assert fit(2 * half) == CUTTERS[name](prompt, 2 * half).prompt
    assert fit(2 * half).endswith(f"{question}\nAnswer:")
    with pytest.raises(
        InputError, match=f"window of {2 * half + 499} tokens .*{half}$"
    ):
        fit(2 * half - 1)


@pytest.mark.parametrize("kind", [make.__name__ for make in KINDS])
@pytest.mark.parametrize("limit", [500, 1001, 6000, 10_000, 100_000])
def test_ends_of_long_prompts(kind: str, limit: int) -> None:
    """Long prompts keep the ends of the official rule with every kind of tokenizer."""
    tokenizer = tokenizer_of(kind)
    prompt = " ".join(LINES * 30)
    ids = tokenizer.encode(prompt).ids
    half = limit // 2
    parts = (ids[:half], ids[-half:]) if len(ids) > limit else None
    official = (
        "".join(tokenizer.decode(part, skip_special_tokens=True) for part in parts)
        if parts
        else prompt
    )
    fitted = middle_cutter(tokenizer)(prompt, limit)
    assert (fitted.prompt, fitted.cut) == (official, parts is not None)


def test_a_prompt_far_too_long_is_not_read_whole(encoded_sizes: list[int]) -> None:
    """Of a prompt that is far too long, little more than the two halves is encoded."""
    assert middle_cutter(tokenizer_of("gpt_2"))(
        "the king of the town " * 50_000, 10_000
    ).cut
    assert sum(encoded_sizes) < 100_000
