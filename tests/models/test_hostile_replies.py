"""Tests of hostile answers of models: what reads them takes linear time, and its results are those of the official patterns."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from helm_longctx.benchmarks.beam.tasks import find_fenced, find_part, read_item
from helm_longctx.benchmarks.graphwalks.tasks import score as score_graph
from helm_longctx.benchmarks.helmet.verdicts import _object as read_object
from helm_longctx.benchmarks.leval.tasks import find_letters
from helm_longctx.benchmarks.longbench_write.tasks import read_grades
from helm_longctx.benchmarks.longcodebench.tasks import _unwrap as unwrap
from helm_longctx.benchmarks.longcodebench.tasks import find_boxed_letter
from helm_longctx.benchmarks.longproc.travel import find_flight, read_plan
from helm_longctx.benchmarks.oneruler.tasks import find_answer
from helm_longctx.benchmarks.oolong.tasks import find_box, read_plainly, read_real
from helm_longctx.benchmarks.ruler2.tasks import drop_copied_documents
from helm_longctx.benchmarks.scbench.tasks import find_blocks as find_code
from helm_longctx.tasks.methods.agent import _Reader
from helm_longctx.tasks.methods.method import ToolCall
from helm_longctx.tasks.methods.recursive import find_blocks

OFFICIAL = re.compile(r"```repl\s*\n(.*?)\n```", re.DOTALL)
FLIGHT = re.compile(r".*Day (\d+).*from (\w+) to (\w+)")

READERS: dict[str, tuple[Callable[[str], Any], tuple[str, ...]]] = {
    "blocks": (
        lambda text: [*find_blocks(text)],
        ("\n", "```repl\n", "```repl", "\n```", " "),
    ),
    "letters": (lambda text: find_letters(text, True), ("\n", " ", "A", "A.", "a")),
    "flights": (
        find_flight,
        ("1", "Day 1", "Day 1 from a", "from a to b ", "from ", " "),
    ),
    "plans": (read_plan, ("1", "Day 1", "1-", "from a to b ", "\n")),
    "boxes": (find_box, ("\\boxed{", "\\boxed{\\text{", "{", "}")),
    "lists": (
        lambda text: score_graph({"prediction": text, "references": ["a"]}),
        (
            "[",
            "]",
            "Final Answer: [",
            "Final Answer:",
            "Final Answer: ",
            "final answer",
        ),
    ),
    "verdicts": (read_item, ("{", "[", "```[", "```json\n{", "]", "] ", "```")),
    "objects": (
        lambda text: read_object(text, fenced=True),
        ("{", "}", "```json", "```", "{}"),
    ),
    "grades": (read_grades, ("```json\n", "```json\nx", "{", "\n```", "[")),
    "boxed letters": (
        find_boxed_letter,
        ("\\boxed{", "\\boxed{\\text{", "\\text{", "\n", "A", ":", "}"),
    ),
    "tagged answers": (find_answer, ("<Answer>", "</Answer>", "<Answer>\n", "\n")),
    "values": (read_real, ("\\boxed{", "{", ",", "1")),
    "labels": (
        read_plainly,
        ("\n", " ", " (", " ()", "() ", "answer: ", "label:", "(a) "),
    ),
    "copied documents": (
        drop_copied_documents,
        ("Document 1:\n", "Document 1:", "1", "\n"),
    ),
    "blocks of code": (
        lambda text: [*find_code(text)],
        ("```", "```\n", "\n```", "\n", "```python\n", "```\n\n", "```a b\n"),
    ),
}
"""What reads a text of a model, and its worst parts."""


STARTS = {
    "blocks": "```repl",
    "blocks of code": "```",
    "boxed letters": "\\boxed{\\text{",
}
"""What begins a text, so that its reader does not stop at once."""

PATTERNS: dict[str, tuple[Callable[[str], Any], re.Pattern[str], tuple[str, ...]]] = {
    "verdicts in fences": (
        find_fenced,
        re.compile(r"```(?:json)?\s*(\[.*\]|\{.*\})\s*```", re.DOTALL),
        ("```", "json", "[", "]", "{", "}", "\n", " ", "a", "`"),
    ),
    "verdicts": (
        find_part,
        re.compile(r"(\{.*?\}|\[.*?\])", re.DOTALL),
        ("[", "]", "{", "}", "\n", "a"),
    ),
    "tagged answers": (
        find_answer,
        re.compile(r"(<Answer>.*?</Answer>)"),
        ("<Answer>", "</Answer>", "\n", "a", "\r"),
    ),
}
"""What finds a text, the official pattern, and parts of texts."""


@pytest.mark.parametrize("name", PATTERNS)
def test_texts_are_the_official_ones(name: str) -> None:
    """What is found in random replies is what the official pattern finds."""
    find, official, parts = PATTERNS[name]
    generator = random.Random(1)
    for _ in range(20_000):
        text = "".join(generator.choices(parts, k=generator.randint(1, 12)))
        match = official.search(text)
        assert find(text) == (match[1] if match else ""), repr(text)


def test_grades_are_the_official_ones() -> None:
    """The grades of random replies are read from the block that the official pattern finds."""
    fields = ["Relevance", "Accuracy", "Coherence", "Clarity"]
    grades = {
        **dict.fromkeys(fields, 3),
        "Breadth and Depth": 3,
        "Reading Experience": 3,
    }
    official = re.compile(r"```json\n(.*?)\n```", re.DOTALL)
    generator = random.Random(1)
    parts = ("```json\n", "\n```", json.dumps(grades), "a", "```")
    for _ in range(5_000):
        text = "".join(generator.choices(parts, k=generator.randint(1, 6)))
        blocks = official.findall(text)
        expected = (
            read_grades(blocks[0]) if blocks and "```json" not in blocks[0] else None
        )
        if expected is not None:
            assert read_grades(text) == expected, repr(text)
        elif not blocks and "```json" in text:
            assert read_grades(text) == {}, repr(text)


def test_blocks_of_code_are_the_official_ones() -> None:
    """The blocks of code of random outputs are those that the official pattern finds."""
    official = re.compile(
        r"^```(?:\w+)?\s*\n(.*?)(?=^```)```", re.DOTALL | re.MULTILINE
    )
    generator = random.Random(1)
    parts = ("```", "```python\n", "\n", " ", "x", "\n```", "`", "\x1c", "\r")
    for _ in range(20_000):
        text = "".join(generator.choices(parts, k=generator.randint(1, 12)))
        assert [*find_code(text)] == official.findall(text), repr(text)


def test_copied_documents_are_the_official_ones() -> None:
    """What is left of random outputs is what the official pattern leaves."""
    official = re.compile(r"Document \d+:(?:.*\n)+?\n")
    generator = random.Random(1)
    parts = ("Document 1:", "Document 23:\n", "Document", "\n", "\n\n", "x", " ", "7:")
    for _ in range(20_000):
        text = "".join(generator.choices(parts, k=generator.randint(1, 12)))
        assert drop_copied_documents(text) == official.sub("", text), repr(text)


def test_boxed_letters_are_the_official_ones() -> None:
    """The letter of random outputs is the one that the official pattern finds."""
    in_text = re.compile(r"\\text\{\s*(.*?)\s*\}", re.DOTALL)
    generator = random.Random(1)
    parts = ("\\text{", "}", "A", "B.", " ", "\n", "{", "x", "(C)")
    for _ in range(20_000):
        inner = "".join(generator.choices(parts, k=generator.randint(1, 9)))
        text = inner.strip()
        while wrapped := in_text.fullmatch(text):
            text = wrapped[1]
        assert unwrap(inner) == text, repr(inner)


@pytest.mark.parametrize("name", READERS)
def test_a_million_bad_characters(name: str) -> None:
    """A text of 1 MB takes less than seconds, whatever part it repeats."""
    read, parts = READERS[name]
    for part in parts:
        text = part * (1_000_000 // len(part)) + "\x01"
        start = time.process_time()
        read(STARTS.get(name, "") + text)
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
    parts = (
        "\\boxed{",
        "\\boxed{\\text{",
        "\\boxed",
        "\\text{",
        "{",
        "}",
        "}}",
        "a",
        "\n",
    )
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
    for position in (float("inf"), float("nan"), "x"):
        call = ToolCall("1", "open", {"position": position})
        assert reader.call(call).startswith("The arguments are wrong")
