"""Tests that one of the requests that share a beginning is sent alone, and that other requests do not wait for it."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.runner.prefixes import (
    SMALLEST,
    STEP,
    Schedule,
    SharedPrefix,
    prefix_keys,
    shared_beginnings,
)

groups = st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=30)


@given(groups, st.integers(1, 8), st.randoms(use_true_random=False))
def test_followers_wait_for_an_answer(
    groups: list[int | None], width: int, chance: random.Random
) -> None:
    """Each request is sent once, and followers find a cache, whatever fails and in whatever order answers arrive."""
    schedule = Schedule(groups, range(len(groups)))
    flying = set()
    sent = []
    warm = set()
    while schedule or flying:
        while len(flying) < width and (number := schedule.peek()) is not None:
            assert schedule.take() == number
            group = groups[number]
            assert (
                group is None
                or group in warm
                or all(groups[other] != group for other in flying)
            )
            flying.add(number)
            sent.append(number)
        assert flying
        number = chance.choice(sorted(flying))
        flying.remove(number)
        is_answered = chance.random() < 0.7
        warm |= {groups[number]} if is_answered else set()
        schedule.finish(number, is_answered)
    assert sorted(sent) == list(range(len(groups)))


def test_others_keep_the_threads_busy() -> None:
    """While a beginning is read for the first time, other requests are sent, and its followers come before the rest."""
    schedule = Schedule([0, 0, 1, 1, None], range(5))
    assert [schedule.take() for _ in range(3)] == [0, 2, 4]
    assert schedule.peek() is None
    schedule.finish(2, True)
    assert [schedule.take(), schedule.peek()] == [3, None]


def test_what_prompts_share() -> None:
    """Prompts share the longest common beginning, unless it is short or ends within a longer one."""
    book = "x" * (3 * STEP)
    prompts = [
        book + "1",
        book + "2",
        "x" * (2 * STEP) + "y",
        "z" * STEP + "1",
        "z" * STEP + "2",
        "alone" * STEP,
    ]
    shared = SharedPrefix(0, 3 * STEP)
    assert shared_beginnings(prefix_keys(prompts)) == [
        shared,
        shared,
        None,
        None,
        None,
        None,
    ]
    twice = shared_beginnings(
        prefix_keys(["w" * (SMALLEST - 1)] * 2 + ["w" * (SMALLEST + 1)] * 2)
    )
    assert [entry and entry.characters for entry in twice] == [
        SMALLEST,
        SMALLEST,
        SMALLEST + STEP,
        SMALLEST + STEP,
    ]
