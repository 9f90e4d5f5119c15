"""Tests of commands whose server answers each request in a wrong way: a part of what `python -m tests.attacks` tries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.servers import find_fault

SOME = [
    ("run", "spaces that never end"),
    ("run", "cached tokens that are a text"),
    ("doctor", "429 and a wait of ages"),
    ("doctor", "a content that is a number"),
    ("certify", "no choices"),
    ("certify", "a negative count of cached tokens"),
    ("gate", "a bomb"),
    ("gate --logprobs", "log-probabilities that sum above one"),
    ("gate --logprobs", "a token that is named twice"),
    ("cache-check", "a huge count of cached tokens"),
    ("cache-check", "JSON that is deep"),
]


@pytest.mark.parametrize(("command", "action"), SOME)
def test_a_hostile_server(command: str, action: str, tmp_path: Path) -> None:
    """A command ends in time, with a status, without a traceback, and passes no server that does not answer."""
    assert not find_fault(command, action, tmp_path)
