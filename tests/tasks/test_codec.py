"""Tests of codecs against Hugging Face's tokenizers and tiktoken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from helm_longctx.tasks.counting import make_codec
from tests.benchmarks.lv_eval.fabricate import tokenizers
from tests.benchmarks.mrcr.fabricate import encoding

TOKENIZERS = tokenizers()
TEXTS = st.lists(
    st.sampled_from(["the", " ", "\n", "a .", "北京", "é", "<s>", "<|begin|>", "x,y"])
).map("".join)


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(text=TEXTS, count=st.integers(0, 30))
def test_files_and_loaded_tokenizers_agree(kind: str, text: str, count: int) -> None:
    """A tokenizer from a file and a loaded one give the tokens and the cut text of `encode` and `decode`."""
    loaded = PreTrainedTokenizerFast(
        tokenizer_object=TOKENIZERS[kind], clean_up_tokenization_spaces=False
    )
    tokens = loaded.encode(text)
    for codec in (make_codec(TOKENIZERS[kind]), make_codec(loaded)):
        assert list(codec.encode(text)) == tokens
        assert codec.decode(tokens[:count]) == loaded.decode(tokens[:count])
    assert loaded.decode(tokens[:1]) in ("<s>", "<|begin|>")


def test_tiktoken_takes_names_of_special_tokens_as_text() -> None:
    codec = make_codec(encoding())
    assert codec.decode(codec.encode("a <|endoftext|> b")) == "a <|endoftext|> b"
