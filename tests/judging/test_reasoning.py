"""Tests that a judge's verdict is read from its answer, whatever family's marks are around its reasoning."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helm.common.request import GeneratedOutput, RequestResult, Thinking

from helm_longctx.judging.judge import reply_text
from helm_longctx.tasks.reasoning import TABLE
from tests.support.reasoning import outputs

VERDICT = "CORRECT"
GUESS = "It may be INCORRECT. Let me see."


def replied(text: str, reason: str = "stop") -> RequestResult:
    return RequestResult(
        True, [], [GeneratedOutput(text, 0, [], {"reason": reason})], False
    )


@pytest.mark.parametrize("name", outputs(VERDICT, GUESS))
def test_replies(name: str) -> None:
    """A verdict is not read from the reasoning before it."""
    text, _ = reply_text(replied(outputs(VERDICT, GUESS)[name]))
    assert text == VERDICT


def test_reasoning_in_a_field() -> None:
    """A verdict after reasoning in a field of its own has no white space before it."""
    result = replied(f"\n\n{VERDICT}")
    thinking = [replace(result.completions[0], thinking=Thinking(GUESS))]
    assert reply_text(replace(result, completions=thinking))[0] == VERDICT


@pytest.mark.parametrize("reason", ["stop", "length"])
@pytest.mark.parametrize(
    "opening", [row.opening for row in TABLE if row.opening.startswith("<")]
)
def test_reasoning_without_an_end(opening: str, reason: str) -> None:
    """A reply that ends within its reasoning has no verdict."""
    is_reasoning = any(
        row.opening == opening and row.part == "reasoning" for row in TABLE
    )
    text, error = reply_text(replied(f"{opening}{GUESS}", reason))
    assert (text is None) == is_reasoning
    assert ("within its reasoning" in error) == is_reasoning
