"""Tests of the division of prompts into shards."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.runner.machines.shards import SPLIT, select_shard
from helm_longctx.runner.prefixes import STEP
from helm_longctx.runs.journal import Shard


def divide(prompts: list[str], total: int) -> list[list[int]]:
    return [
        select_shard(prompts, Shard(number, total)) for number in range(1, total + 1)
    ]


@given(st.lists(st.text("ab", min_size=1, max_size=6), max_size=30), st.integers(1, 7))
def test_each_prompt_is_in_one_shard(texts: list[str], total: int) -> None:
    """Every prompt is in exactly one shard, whatever the prompts share."""
    prompts = ["".join(letter * STEP for letter in text) for text in texts]
    shards = divide(prompts, total)
    assert sorted(number for shard in shards for number in shard) == list(
        range(len(prompts))
    )
    assert all(shard == sorted(shard) for shard in shards)


@settings(max_examples=20)
@given(st.integers(2, 8), st.integers(2, 6), st.integers(2, 5))
def test_contexts_stay_together(contexts: int, questions: int, total: int) -> None:
    """Questions about one book are in one shard, although all prompts begin with the same instruction."""
    prompts = [
        "i" * STEP + chr(97 + context) * 5 * STEP + f"question {question}"
        for question in range(questions)
        for context in range(contexts)
    ]
    for context in range(contexts):
        numbers = set(range(context, len(prompts), contexts))
        assert sum(bool(numbers & set(shard)) for shard in divide(prompts, total)) == 1


def test_shards_are_even() -> None:
    """Shards have equal numbers of characters and not of prompts."""
    prompts = [chr(97 + number) * STEP for number in range(8)] + ["z" * 8 * STEP]
    assert sorted(map(len, divide(prompts, 2))) == [1, 8]


def test_a_large_context_is_divided() -> None:
    """A book that is the whole run is divided, because reading it once for each shard costs little."""
    prompts = ["b" * 4 * STEP + f"question {number}" for number in range(3 * SPLIT)]
    assert sorted(map(len, divide(prompts, 4))) == [0, SPLIT, SPLIT, SPLIT]
