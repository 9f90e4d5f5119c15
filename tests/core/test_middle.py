"""Cutting prompts in the middle."""

from __future__ import annotations

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from helm_longctx.core.middle import RESERVED, cut_middle
from helm_longctx.core.truncation import CHAT_BUFFER, CutTokenizer, Truncator
from helm_longctx.errors import InputError
from tests.lv_eval.fabricate import tokenizers

TOKENIZERS = tokenizers()
EACH = pytest.mark.parametrize("name", TOKENIZERS)
TEXT = st.text(max_size=200) | st.text("the 北京🎼é<s>", max_size=200)


@EACH
@given(prompt=TEXT, limit=st.integers(2, 80))
def test_forms_of_a_tokenizer_agree(name: str, prompt: str, limit: int) -> None:
    """Hugging Face's wrapper and the bare tokenizer give the same text."""
    wrapped = PreTrainedTokenizerFast(tokenizer_object=TOKENIZERS[name])
    assert cut_middle(wrapped, prompt, limit) == cut_middle(TOKENIZERS[name], prompt, limit)


@EACH
@given(prompt=TEXT)
def test_what_fits_is_not_touched(name: str, prompt: str) -> None:
    """Special tokens count; one token more than the limit is too much."""
    size = max(2, len(TOKENIZERS[name].encode(prompt).ids))
    assert cut_middle(TOKENIZERS[name], prompt, size) == (prompt, False)
    if size > 2:
        assert cut_middle(TOKENIZERS[name], prompt, size - 1)[1]


@given(words=st.integers(20, 60), limit=st.integers(2, 19))
def test_both_ends_stay(words: int, limit: int) -> None:
    """As many words at each end as half the limit, one less at the start for the token that begins every text."""
    prompt = " ".join("the" for _ in range(words))
    halves = limit // 2
    cut, was_cut = cut_middle(TOKENIZERS["metaspace"], prompt, limit)
    assert was_cut
    assert cut == " ".join(["the"] * (halves - 1)) + " ".join(["the"] * halves)


def test_a_saved_limit_is_lifted() -> None:
    """A tokenizer file may say that texts are cut or padded; prompts are not."""
    tokenizer = tokenizers()["byte_level"]
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=64, pad_id=0, pad_token="<|begin|>")
    assert cut_middle(tokenizer, "abcdefgh", 20) == ("abcdefgh", False)


def test_tiktoken() -> None:
    """The official way for API models: no special tokens, and a special token's text is text."""
    encoding = tiktoken.Encoding(
        "bytes", pat_str=".", mergeable_ranks={bytes([n]): n for n in range(256)}, special_tokens={"<|end|>": 256}
    )
    assert cut_middle(encoding, "abcdefgh", 5) == ("abgh", True)
    assert cut_middle(encoding, "<|end|>", 7) == ("<|end|>", False)


@pytest.mark.parametrize("limit", [1, 0, -3])
def test_no_room(limit: int) -> None:
    """The official rule would keep the whole prompt for a limit of 1."""
    with pytest.raises(InputError, match="at least 2 are needed"):
        cut_middle(TOKENIZERS["metaspace"], "the the", limit)


@EACH
@pytest.mark.parametrize(("window", "max_tokens"), [(601, 64), (700, 16), (900, 700), (10_000, 64)])
def test_a_deployment_s_window(name: str, window: int, max_tokens: int) -> None:
    """The adapter cuts to the window less what is reserved, or less a larger output, whatever the nominal length."""
    tokenizer, prompt = TOKENIZERS[name], "the cat sat " * 300 + "question?"
    cutting = CutTokenizer(lambda text: 0, lambda text, n: text, lambda text, n: cut_middle(tokenizer, text, n))
    extra = {"cut": "middle", "length": 16384, "context_span": [0, 9]}
    limit = window - max(RESERVED, max_tokens + CHAT_BUFFER)
    assert Truncator(window, lambda: cutting).fit(prompt, extra, max_tokens, "chat") == cut_middle(
        tokenizer, prompt, limit
    )
    assert Truncator(None, lambda: cutting).fit(prompt, extra, max_tokens, "chat") == (prompt, False)
