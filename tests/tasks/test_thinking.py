"""Tests that reasoning is not scored."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.tasks.prompt import remove_thinking


@given(st.lists(st.sampled_from(["<think>", "</think>", " a\n", "b "]), max_size=9).map("".join))
def test_as_the_official_expression(output: str) -> None:
    """The output keeps what the official expression in HELMET eval.py:105 keeps."""
    match = re.search(r"(.*</think>)(.*)", output, flags=re.DOTALL)
    assert remove_thinking(output) == (match[2].strip() if match else output)
