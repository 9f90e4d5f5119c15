"""Tests of estimated tokens against counts by o200k_base."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.tasks.token_estimate import (
    estimate_fewest_tokens,
    estimate_tokens,
    splits_digits,
)

COUNTED = [
    (
        "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of"
        " a wife.\n",
        26,
    ),
    (
        '{"070c3616-66b3-d47e-b9d4-d26f19276ab7": "a6331b6c-ab4d-f09a-4410-bf16d71eb989"}',
        48,
    ),
    (
        "长江是亚洲第一长河和世界第三长河，也是世界上完全在一国境内的最长河流，全长约6300公里。",
        32,
    ),
    (
        "... ... ... lrqovn ... ... xpnvid njlntd ckvrxl ... ... sxhibq ckvrxl lrqovn ... dpuuxq wonpxy ... gvlcmd ",
        41,
    ),
    (
        "Document [12] (Title: The Lake): Its depth is 1,234 metres, measured in 1998.\n\n",
        25,
    ),
]


@pytest.mark.parametrize(("text", "tokens"), COUNTED)
def test_is_near_what_is_counted(text: str, tokens: int) -> None:
    """The estimate is near the count for prose, hexadecimal keys, Chinese, random letters (RULER's fwe) and numbers."""
    assert estimate_tokens(text * 50) == pytest.approx(50 * tokens, rel=0.15)


@pytest.mark.parametrize(("text", "tokens"), COUNTED)
def test_fewest_tokens(text: str, tokens: int) -> None:
    """The fewest tokens of a text are about half of what is counted, and fewer in other scripts, however long it is."""
    for times in (1, 50, 3000):
        fewest = estimate_fewest_tokens([text * times, text * times])
        assert 0.1 * 2 * times * tokens <= fewest <= 0.65 * 2 * times * tokens
    assert (
        estimate_fewest_tokens(
            ["", "Все счастливые семьи похожи друг на друга. " * 100]
        )
        < 100 * 12 / 1.5
    )


MIXED = (
    "The river rises in the hills above the town, and it is said that nobody has found where it begins. ",
    "长江是亚洲第一长河和世界第三长河。",
    "Все счастливые семьи похожи друг на друга. ",
    '"070c3616-66b3-d47e-b9d4-d26f19276ab7": "a6331b6c-ab4d-f09a-4410-bf16d71eb989", ',
    "word" + " " * 60 + "\n",
)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(MIXED), st.integers(200, 200_000)),
        min_size=2,
        max_size=9,
    )
)
def test_fewest_tokens_of_a_long_mixture(blocks: list[tuple[str, int]]) -> None:
    """The fewest tokens of a megabyte of several languages are below the tokens of its parts."""
    parts = [(text * (size // len(text) + 1))[:size] for text, size in blocks]
    times = 1_000_000 // sum(map(len, parts)) + 1
    # The estimate of scripts without a weight of their own can be several times too high.
    tokens = sum(
        estimate_tokens(" ".join(part.split())) / (1 if part.isascii() else 3)
        for part in parts
    )
    assert estimate_fewest_tokens(["".join(parts * times)]) < 0.95 * times * tokens


@pytest.mark.parametrize("documents", [16, 32, 64, 160])
def test_fewest_tokens_of_equal_documents(documents: int) -> None:
    """The samples of documents of equal size are not all their dense beginnings."""
    start = MIXED[3] * 7
    sentence = MIXED[0]
    rest = (sentence * 1000)[: 1_000_000 // documents - len(start)]
    tokens = documents * (estimate_tokens(start) + estimate_tokens(rest))
    assert estimate_fewest_tokens([(start + rest) * documents]) == pytest.approx(
        tokens / 2, rel=0.2
    )


def test_digits_can_be_tokens() -> None:
    """Digits count as single tokens for models whose name shows that they split numbers."""
    assert estimate_tokens("123456" * 100, single_digits=True) == 600
    assert splits_digits("qwen/qwen2.5-7b-instruct")
    assert not splits_digits("openai/gpt-4.1")


@given(st.text(), st.text())
def test_longer_texts_have_no_fewer_tokens(text: str, more: str) -> None:
    """A longer text has no fewer estimated tokens, except for one where two parts join."""
    assert (
        estimate_tokens(text + more)
        >= max(estimate_tokens(text), estimate_tokens(more)) - 1
    )
    assert (estimate_tokens(text) == 0) == (text == "")
