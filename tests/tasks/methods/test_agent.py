"""Tests of the tools of the method `agent`, whose arguments a model chooses."""

from __future__ import annotations

import json
import time

import pytest

from helm_longctx.tasks.methods.agent import _Reader
from helm_longctx.tasks.methods.method import ToolCall

CONTEXT = "İSTANBUL and ΟΔΟΣ. The KEY is 7. The key is eight."


def use(name: str, arguments: str, context: str = CONTEXT) -> str:
    """Return the result of a tool whose arguments are JSON, as servers send them."""
    reader = _Reader(context, page=10, hits=2)
    return reader.call(ToolCall(id="1", name=name, arguments=json.loads(arguments)))


@pytest.mark.parametrize(
    "position",
    ["1e999", "-1e999", "NaN", "null", '"soon"', "[1]", "{}", "true", "1e300", "-5"],
)
@pytest.mark.parametrize("name", ["open", "find_next"])
def test_a_position_can_be_anything(name: str, position: str) -> None:
    """A position that is no whole number, or lies outside of the text, has a result in words and raises nothing."""
    result = use(name, f'{{"position": {position}, "text": "key"}}')
    assert "wrong" in result or "position" in result or "no further place" in result


@pytest.mark.parametrize("position", ["1e999", "NaN", "null", '"soon"', "[1]"])
def test_a_position_that_is_no_number_is_wrong(position: str) -> None:
    """A model that gives no number as a position is told so."""
    assert use("open", f'{{"position": {position}}}').startswith("The arguments are")


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("istanbul", 0),
        ("İstanbul", 0),
        ("οδος", 13),
        ("ΟΔΟΣ", 13),
        ("οδοσ", 13),
        ("key", 23),
        ("KEY", 23),
    ],
)
def test_places_are_those_of_the_text(text: str, position: int) -> None:
    """Texts are found whatever their case, also after a letter that has two characters in lower case."""
    result = use("find_next", json.dumps({"text": text, "position": -1}))
    assert result.startswith(f"[position {position}]\n")


def test_the_next_place_is_found() -> None:
    """A search goes on after a position, and ends at the last place."""
    second = use("find_next", json.dumps({"text": "key", "position": 23}))
    assert second.startswith("[position 37]\n")
    third = use("find_next", json.dumps({"text": "key", "position": 37}))
    assert third == "There is no further place."
    assert use("find_next", '{"text": "", "position": 0}') == third


def test_a_long_text_is_found_in_linear_time() -> None:
    """A text of 10,000 equal characters that nearly stands in a context of a million of them is no long work."""
    arguments = json.dumps({"text": "a" * 10_000 + "b", "position": -1})
    start = time.process_time()
    assert use("find_next", arguments, "A" * 1_000_000) == "There is no further place."
    assert time.process_time() - start < 2
