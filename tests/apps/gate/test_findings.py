"""Tests of what is found in the requests of a gate, and of the agreement of answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.apps.gate.answers import AnswerPair, agreements
from helm_longctx.apps.gate.findings import find_differences
from helm_longctx.runs.scores import Score
from tests.support.scores import make_score


def answer(
    score: float | None = 1.0,
    billed: int | None = None,
    failure: str = "",
    expected: int | None = None,
) -> Score:
    """Return an answer whose server counts `billed` tokens of a prompt with `expected` tokens."""
    counts = {"billed_prompt_tokens": billed, "prompt_tokens": expected}
    values = {name: float(count) for name, count in counts.items() if count is not None}
    return make_score(score, length=8192, failure=failure, values=values)


def pair(
    base: Score,
    candidate: Score,
    texts: tuple[str | None, str | None] = ("a", "a"),
) -> AnswerPair:
    return AnswerPair(base, candidate, texts, is_base_first=True)


def kinds(pairs: list[AnswerPair]) -> list[tuple[str, int]]:
    return [
        (difference.kind, difference.requests) for difference in find_differences(pairs)
    ]


def counted(*counts: tuple[int, int]) -> list[AnswerPair]:
    return [
        pair(answer(billed=base), answer(billed=candidate))
        for base, candidate in counts
    ]


def test_equal_counts_are_no_finding() -> None:
    """Equal counts of tokens are not mentioned."""
    assert kinds(counted((4000, 4000), (8000, 8000))) == []


def test_long_prompts_that_are_cut_are_found() -> None:
    """A candidate whose counts stop at a limit cuts prompts silently, which decides."""
    differences = find_differences(
        counted((2000, 2000), (3900, 3900), (8000, 4096), (7900, 4096))
    )
    assert [
        (difference.kind, difference.requests, difference.decides_worse)
        for difference in differences
    ] == [
        ("cut", 2, True),
        ("counts", 2, False),
    ]


def test_all_prompts_cut_are_found() -> None:
    """Prompts are also known to be cut if no prompt is short."""
    assert kinds(counted((8000, 4096), (7900, 4096))) == [("cut", 2), ("counts", 2)]


def test_a_base_that_cuts_is_a_note() -> None:
    """A base that cuts prompts is mentioned and does not make the candidate worse."""
    differences = find_differences(counted((2000, 2000), (4096, 8000)))
    assert [
        (difference.kind, difference.decides_worse) for difference in differences
    ] == [
        ("base cut", False),
        ("counts", False),
    ]


def test_another_template_is_a_note() -> None:
    """A template with other tokens changes all counts by the same number, which the text says."""
    (difference,) = find_differences(counted((2000, 2012), (8000, 8012)))
    assert (difference.kind, difference.requests) == ("counts", 2)
    assert "by +12 tokens in the median and from +12 to +12" in difference.text


@given(
    st.floats(0.8, 1.25), st.lists(st.integers(1000, 100_000), min_size=1, max_size=20)
)
def test_another_tokenizer_is_no_cut(ratio: float, sizes: list[int]) -> None:
    """Counts with about the same ratio for all prompts are not taken for cuts."""
    assert not any(
        kind == "cut"
        for kind, _ in kinds(counted(*((size, round(size * ratio)) for size in sizes)))
    )


def test_prompts_that_both_cut_are_found() -> None:
    """If both servers count far fewer tokens than the tokenizer, both cut."""
    short = answer(billed=4096, expected=8000)
    assert kinds([pair(short, short)]) == [("both cut", 1)]


def test_requests_without_an_answer() -> None:
    """A prompt that only the candidate refuses as too long decides, and other failures of one arm leave it open."""
    too_long = pair(
        answer(billed=10), answer(None, failure="request_too_long"), ("a", None)
    )
    failed = pair(
        answer(None, failure="request_failed"), answer(billed=10), (None, "a")
    )
    both = pair(
        answer(None, failure="request_failed"),
        answer(None, failure="request_failed"),
        (None, None),
    )
    assert kinds([too_long, failed, both]) == [("refused", 1), ("unanswered", 1)]


def test_servers_without_counts() -> None:
    """Answers without counts are mentioned, because cuts cannot be seen."""
    assert kinds([pair(answer(), answer())]) == [("uncounted", 1)]


@pytest.mark.parametrize(
    ("texts", "share"),
    [
        (("a b c d", "a b x d"), 0.5),
        (("", ""), 1.0),
        (("a", "a b"), 0.5),
        (("x", "y"), 0.0),
    ],
)
def test_equal_tokens(texts: tuple[str, str], share: float) -> None:
    """The share of equal tokens ends at the first difference, and is of the longer answer."""
    assert pair(answer(), answer(), texts).equal_tokens == share


def test_agreement() -> None:
    """Agreements count texts, scores and differences by length and by order, without requests that lack an answer."""
    pairs = [
        pair(answer(1.0), answer(1.0)),
        AnswerPair(answer(1.0), answer(0.0), ("a b", "a c"), is_base_first=False),
        pair(answer(1.0), answer(None), ("a", None)),
    ]
    (length,), orders = agreements(pairs)
    assert (length.part, length.answers, length.equal, length.equal_tokens) == (
        "8k",
        2,
        0.5,
        0.75,
    )
    assert (length.equal_scores, length.difference) == (0.5, -0.5)
    assert [(order.part, order.answers, order.difference) for order in orders] == [
        ("base first", 1, 0.0),
        ("candidate first", 1, -1.0),
    ]
