"""Tests of hostile answers of models: what reads them takes linear time, and its results are those of the official patterns."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from helm_longctx.benchmarks.graphwalks.tasks import score as score_graph
from helm_longctx.benchmarks.leval.tasks import find_letters
from helm_longctx.benchmarks.longproc.travel import find_flight, read_plan
from helm_longctx.benchmarks.oolong.tasks import find_box
from helm_longctx.tasks.methods.agent import _Reader
from helm_longctx.tasks.methods.method import ToolCall
from helm_longctx.tasks.methods.recursive import find_blocks

OFFICIAL = re.compile(r"```repl\s*\n(.*?)\n```", re.DOTALL)
FLIGHT = re.compile(r".*Day (\d+).*from (\w+) to (\w+)")

READERS: dict[str, tuple[Callable[[str], Any], tuple[str, ...]]] = {
    "blocks": (lambda text: [*find_blocks(text)], ("\n", "```repl\n", "```repl", "\n```", " ")),
    "letters": (lambda text: find_letters(text, True), ("\n", " ", "A", "A.", "a")),
    "flights": (find_flight, ("1", "Day 1", "Day 1 from a", "from a to b ", "from ", " ")),
    "plans": (read_plan, ("1", "Day 1", "1-", "from a to b ", "\n")),
    "boxes": (find_box, ("\\boxed{", "\\boxed{\\text{", "{", "}")),
    "lists": (
        lambda text: score_graph({"prediction": text, "references": ["a"]}),
        ("[", "]", "Final Answer: [", "Final Answer:", "Final Answer: ", "final answer"),
    ),
}
"""What reads a text of a model, and its worst parts."""


@pytest.mark.parametrize("name", READERS)
def test_a_million_bad_characters(name: str) -> None:
    """A text of 1 MB takes less than seconds, whatever part it repeats."""
    read, parts = READERS[name]
    for part in parts:
        text = part * (1_000_000 // len(part)) + "\x01"
        start = time.process_time()
        read(text if name != "blocks" else "```repl" + text)
        assert time.process_time() - start < 3, part


def test_blocks_are_the_official_ones() -> None:
    """The blocks of random replies are those that the official pattern finds."""
    generator = random.Random(1)
    parts = ("```repl", "```", "\n", " ", "x", "\n```", "```repl\n")
    for _ in range(20_000):
        text = "".join(generator.choices(parts, k=generator.randint(1, 12)))
        assert [*find_blocks(text)] == OFFICIAL.findall(text), repr(text)


def test_boxes_are_the_official_ones() -> None:
    """The box of random replies is the one that the official patterns find."""
    text_box = re.compile(r"\\boxed\{\\text\{([^}]*)\}\}")
    plain_box = re.compile(r"\\boxed[\{]+([^}]*)[\}]+")
    generator = random.Random(1)
    parts = ("\\boxed{", "\\boxed{\\text{", "\\boxed", "\\text{", "{", "}", "}}", "a", "\n")
    for _ in range(20_000):
        text = "".join(generator.choices(parts, k=generator.randint(1, 9)))
        match = text_box.search(text) or plain_box.search(text)
        assert find_box(text) == (match[1] if match else None), repr(text)


def test_flights_are_the_official_ones() -> None:
    """The flight of random lines is the one that the official pattern finds."""
    generator = random.Random(1)
    parts = ("Day 1", "Day 23", "from ", "A", "B", " to ", " ", "from A to B", "to")
    for _ in range(20_000):
        text = "".join(generator.choices(parts, k=generator.randint(1, 10)))
        match = FLIGHT.match(text)
        assert find_flight(text) == (match.groups() if match else None), repr(text)


def test_places_and_numbers_of_tools() -> None:
    """Places are those of the text, also where its lower case is longer; an infinite place is a wrong argument."""
    reader = _Reader("İİİ Key here", 100, 2)
    call = ToolCall("1", "find_next", {"text": "key", "position": -1})
    assert reader.call(call).startswith("[position 4]")
    for place in (float("inf"), float("nan"), "x"):
        call = ToolCall("1", "open", {"position": place})
        assert reader.call(call).startswith("The arguments are wrong")
