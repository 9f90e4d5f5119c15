"""Tests that tokens counted by parts are as many as the tokens of the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from helm_longctx.tasks.counting import _WordCounter, make_counter, remember_counts
from tests.benchmarks.mrcr.fabricate import encoding
from tests.tasks import tokenizers

KINDS = {
    name: getattr(tokenizers, name)()
    for name in ("gpt_2", "claude", "llama_3", "deepseek", "llama_2", "roberta")
}
COUNTERS = {name: make_counter(tokenizer) for name, tokenizer in KINDS.items()}
WORDS = [
    "king",
    "It's",
    " ",
    "  ",
    "\n",
    ".",
    "1987",
    "ad-hoc",
    "ad-hoc's",
    "1234567.\nOne",
    "8f3ab12-40c9e",
    "12\u00b245-678901",
    " \t\n 5550",
    "(see 12%)",
    "école et",
    "北京，",
    "é",
    "<s>",
    "</s>",
    "<|end of turn|>",
    "<|end",
    "of turn|>",
    ",",
    "\t",
    "a",
    "B",
    "\n\n",
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join) | st.text(
    "ab .,:\n12é-'", max_size=80
)


@pytest.mark.parametrize("kind", KINDS)
@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
def test_counts(kind: str, texts: list[str]) -> None:
    """Every common kind of tokenizer counts the tokens of any text, whole or in parts between spaces."""
    tokenizer: Tokenizer = KINDS[kind]
    text = " ".join(texts)
    assert (
        COUNTERS[kind](*texts)
        == COUNTERS[kind](text)
        == len(tokenizer.encode(text, add_special_tokens=False).ids)
    )


@given(text=TEXTS)
def test_counts_of_tiktoken(text: str) -> None:
    """An encoding of tiktoken counts the tokens of any text."""
    assert TIKTOKEN(text) == len(ENCODING.encode_ordinary(text))


ENCODING = encoding()
TIKTOKEN = make_counter(ENCODING)


def test_most_tokenizers_are_counted_by_parts() -> None:
    """Most kinds of tokenizers are counted by parts, which `test_counts` alone would not notice."""
    counters = [
        getattr(count, "__self__", None) for count in (*COUNTERS.values(), TIKTOKEN)
    ]
    assert sum(isinstance(counter, _WordCounter) for counter in counters) == 7


def test_groups_of_digits() -> None:
    """Numbers are counted by their lengths only if a tokenizer makes each group of digits one token."""
    groups = {
        kind: getattr(count, "__self__", None)._group
        for kind, count in COUNTERS.items()
    }
    assert groups == {**dict.fromkeys(KINDS, 0), "deepseek": 3}


def test_equal_texts_are_counted_once() -> None:
    """A counter that remembers counts asks once for texts that are equal when joined, and returns the same numbers."""
    asked = []

    def count(*texts: str) -> int:
        asked.append(texts)
        return len(" ".join(texts))

    counter = remember_counts(count)
    assert [counter("a b", "c"), counter("a", "b c"), counter("a b  c")] == [5, 5, 6]
    assert asked == [("a b", "c"), ("a b  c",)]
