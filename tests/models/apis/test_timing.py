"""Tests that the first piece of a streamed answer is found in the events of each protocol."""

from __future__ import annotations

import time
from typing import Any

import pytest

from helm_longctx.models.apis.protocol import TimedEvents

ROLE = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
START = {"type": "message_start", "message": {"role": "assistant"}}


@pytest.mark.parametrize(
    "first",
    [
        {"choices": [{"delta": {"content": "a"}}]},
        {"choices": [{"delta": {"reasoning_content": "a"}}]},
        {"choices": [{"text": "a"}]},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
        {
            "type": "content_block_delta",
            "delta": {"type": "thinking_delta", "thinking": "a"},
        },
    ],
)
def test_the_first_event_with_text_counts(first: Any) -> None:
    """Events without text, with a role alone or of any other form come before the first piece."""
    events = TimedEvents(
        [
            ROLE,
            START,
            {"choices": []},
            {"choices": "x"},
            [],
            None,
            {"type": "ping"},
            first,
            ROLE,
        ],
        0.0,
    )
    seconds = [(event, events.seconds) for event in events]
    assert [known for _, known in seconds[:7]] == [None] * 7
    assert seconds[7][0] is first
    assert seconds[7][1] is not None
    assert 0 < seconds[7][1] <= time.monotonic()
    assert seconds[8][1] == seconds[7][1]
