"""Instructions of HelloBench, and replies of its judge."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.benchmarks.hellobench import BENCHMARK
from helm_longctx.benchmarks.hellobench.tasks import score_reply
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.hellobench.fabricate import (
    CATEGORIES,
    SCORES,
    build_hellobench,
    make_reply,
    make_rows,
    odd_replies,
)
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)
TASK = BENCHMARK.task("chat")


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    root = build_hellobench(tmp_path_factory.mktemp("hellobench"))
    return list(load_examples(TASK, Settings(None), DataRoot(root, mirror=True)))


def test_instructions_are_sent_unchanged(examples: list[Example]) -> None:
    """A prompt is the instruction alone, in file order."""
    rows = make_rows("chat")
    assert [TASK.prompt(example).user_turn for example in examples] == [
        row["instruction"] for row in rows
    ]
    assert [example.id for example in examples] == [row["id"] for row in rows]


def test_odd_replies() -> None:
    """A reply has no score if the official code asks for another, leaves the answer out, or ends with an error.

    Items without readable numbers are read here, because the official score does not look at their numbers.
    """
    for reply, expected in zip(odd_replies(), GOLDEN["odd"], strict=True):
        score = score_reply(CATEGORIES["Science"], reply)
        is_unnumbered = (
            expected in ("KeyError", "ValueError")
            and "evaluation_score" in reply
            and "high" not in reply
        )
        if isinstance(expected, float):
            assert 100 * score["judge_score"] == expected, reply
        else:
            assert bool(score) == is_unnumbered, reply


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(SCORES), min_size=1, max_size=9),
    st.randoms(use_true_random=False),
)
def test_a_score_is_within_its_bounds(scores: list[float], rng: random.Random) -> None:
    """A reply with allowed scores has a score from 0 to 1, and 1 if all of them are 1."""
    shares = [rng.random() + 0.1 for _ in scores]
    weights = [100 * share / sum(shares) for share in shares]
    score = score_reply(weights, make_reply(*scores))["judge_score"]
    assert -1e-12 <= score <= 1 + 1e-12
    assert (score > 1 - 1e-12) == (set(scores) == {1})


@settings(max_examples=40)
@given(st.text())
def test_any_text_is_read(reply: str) -> None:
    """Any text has a score or none, and a text that is no list of items has none."""
    assert score_reply([50.0, 50.0], reply) == {}
    assert score_reply([50.0, 50.0], json.dumps(reply)) == {}


@pytest.mark.parametrize(
    "record",
    [{}, {"weights": [100]}, {"judge": "[]"}, {"weights": [100], "judge": None}],
)
def test_a_record_without_a_judgement(record: dict[str, object]) -> None:
    """A record without weights or without a reply has only the number of words."""
    assert TASK.scores({"prediction": "Two words.", **record}) == {"output_words": 3.0}
