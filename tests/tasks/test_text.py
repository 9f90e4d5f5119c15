"""Tests of token counts without and with a tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from helm_longctx.errors import InputError
from helm_longctx.tasks.counting import (
    ESTIMATE,
    estimate_llama2_tokens,
    read_token_counter,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 1),
        ("the", 2),
        ("morning", 3),
        ("12345", 6),
        ("a-b.", 5),
        ("a\nb", 4),
        ("文", 2),
    ],
)
def test_estimate(text: str, tokens: int) -> None:
    """The estimate counts digits, marks, newlines, groups of six letters, and the beginning as one token each."""
    assert estimate_llama2_tokens(text) == tokens


@given(st.text(), st.text())
def test_estimate_adds_up(left: str, right: str) -> None:
    """The estimate of two texts that a newline separates is their sum plus the newline."""
    assert estimate_llama2_tokens(f"{left}\n{right}") == estimate_llama2_tokens(
        left
    ) + estimate_llama2_tokens(right)


def test_tokenizer_counts(tmp_path: Path) -> None:
    """A saved tokenizer counts tokens by itself."""
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    counter = read_token_counter("org/words", tmp_path / "tokenizer.json")
    assert counter.name == "org/words"
    assert counter.count(["a b c", ""]) == [3, 0]
    assert ESTIMATE.count(["a b c"]) == [4]


def test_not_a_tokenizer(tmp_path: Path) -> None:
    """A file that is not a tokenizer is named in the error."""
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="not a fast tokenizer file"):
        read_token_counter("x", tmp_path / "tokenizer.json")
