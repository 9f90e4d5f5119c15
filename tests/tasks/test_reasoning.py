"""Tests that reasoning is not scored: the table of its marks, and the split of outputs."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.tasks.reasoning import (
    BARE_HARMONY,
    ENDS,
    TABLE,
    Marks,
    SplitOutput,
    may_contain_reasoning,
    remove_reasoning,
    split_reasoning,
)
from tests.support.reasoning import REASONING, outputs

ANSWER = "AB12CD34 is it, isn't it?"

OPENINGS = [
    marks for marks in TABLE if marks.part == "reasoning" and marks is not BARE_HARMONY
]


@given(
    st.lists(st.sampled_from(["<think>", "</think>", " a\n", "b "]), max_size=9).map(
        "".join
    )
)
def test_as_the_official_expression(output: str) -> None:
    """The output keeps what the official expression in HELMET eval.py:105 keeps."""
    match = re.search(r"(.*</think>)(.*)", output, flags=re.DOTALL)
    assert remove_reasoning(output) == (match[2].strip() if match else output)


@pytest.mark.parametrize("name", outputs(ANSWER))
def test_all_marks(name: str) -> None:
    """Of an output in the marks of each family, the answer is left, and the reasoning is known."""
    output = outputs(ANSWER)[name]
    split = split_reasoning(output)
    assert split.answer == ANSWER
    assert split.reasoning is not None
    assert not split.is_open
    assert (REASONING in split.reasoning) == (REASONING in output)
    assert not may_contain_reasoning(output)


@pytest.mark.parametrize("marks", OPENINGS, ids=lambda marks: marks.opening)
def test_open_reasoning(marks: Marks) -> None:
    """Reasoning that never ends is known to be open, and the output is left as it is, as in the official code."""
    for output in (f"{marks.opening}{REASONING}", f" {marks.opening}\n{REASONING}\n"):
        split = split_reasoning(output)
        assert split.is_open
        assert split.answer == output
        assert not may_contain_reasoning(output)


def test_open_bare_channels() -> None:
    """What is left of an open channel of gpt-oss begins with its name, glued to the reasoning."""
    assert split_reasoning("analysisWe need to look for it.").is_open
    assert split_reasoning("<|channel|>analysis").is_open


def test_rows() -> None:
    """Each row has a source, and no two rows have the same marks."""
    assert all(marks.family and marks.source for marks in TABLE)
    pairs = [(marks.opening, marks.closing) for marks in TABLE]
    assert len({*pairs}) == len(pairs)


PLAIN = [
    "",
    " AB12 \n",
    "analysis",
    "analysis2",
    "analysis of the text shows AB12.",
    "Analysis: AB12",
    "analysis: the word assistantfinal is a mark",
    "The word analysis, and then assistantfinal.",
    "final answer: AB12",
    "commentary on the text",
    "AB12 (the model wrote [THINK]x[/THINK] here)",
    "The tag <thinking> opens and </thinking> closes.",
    "It ends at the mark [/THINK] there.",
    "A closing `</reasoning>` ends it.",
    'It sends "<|channel|>final<|message|>" and then the answer.',
    "<answer>AB12</answer>",
    "Here is my response: AB12",
    "[INST] is a mark of Llama 2.",
    "<p>AB12</p>",
    "<TSV>a\tb</TSV>",
    "The <|end|>",
]


@pytest.mark.parametrize("output", PLAIN)
def test_plain_answers(output: str) -> None:
    """A plain answer that has a word of the marks, or quotes them within a sentence, stays as it is."""
    assert split_reasoning(output) == SplitOutput(output)
    assert not may_contain_reasoning(output)


WORDS = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=8)
QUOTED = st.sampled_from(
    [
        mark
        for marks in TABLE
        for mark in (marks.opening, marks.closing)
        # The last `</think>` counts wherever it is, as in the official code.
        if mark not in ("</think>", "analysis", "/think\n")
    ]
)


@given(st.lists(WORDS, min_size=1, max_size=4), QUOTED, st.lists(WORDS, max_size=4))
def test_quoted_marks(before: list[str], mark: str, after: list[str]) -> None:
    """A mark in the middle of a sentence does not change a plain answer."""
    for quoted in (mark, f"`{mark}`", f"({mark})", f'"{mark}",'):
        output = " ".join(["It", *before, quoted, *after])
        assert remove_reasoning(output) == output


@given(st.text(max_size=60))
def test_any_answer_after_reasoning(answer: str) -> None:
    """An answer of any characters is found after reasoning, without white space at its ends."""
    marked = any(mark in answer for mark in ("[/THINK]", *ENDS, "</think>"))
    begins = answer.lstrip().startswith(tuple(marks.opening for marks in TABLE))
    if not (marked or begins):
        assert remove_reasoning(f"[THINK]{REASONING}[/THINK]{answer}") == answer.strip()


UNKNOWN = {
    "<ponder>Hm.</ponder>AB12": True,
    "<zxcvb>Hm.</zxcvb>\nAB12": True,
    "<scratchpad>Hm. AB12": True,
    "<my_thinking>Hm.": True,
    "[REFLECT]Hm.[/REFLECT]AB12": True,
    "<|musing|>Hm.AB12": True,
    "<|musing>Hm.<musing|>AB12": True,
    "<｜musing｜>Hm.AB12": True,
    "◁ponder▷Hm.◁/ponder▷AB12": True,
    "thought\nHm. AB12": True,
    "<zxcvb>AB12</zxcvb>": False,
    "<summary>AB12</summary> and more": False,
    "AB12 <ponder>Hm.</ponder>": False,
    "[1] AB12": False,
}


@pytest.mark.parametrize("output", UNKNOWN)
def test_unknown_marks(output: str) -> None:
    """A tag or a channel at the beginning that no row knows is suspected, unless the right answer begins with it."""
    assert may_contain_reasoning(output) == UNKNOWN[output]
    assert not may_contain_reasoning(output, [output])
    assert remove_reasoning(output) == output


UNITS = [
    *(
        "<",
        "<|",
        " ",
        "\n",
        "a",
        "A ",
        "<|start|>",
        "<|message|>",
        "<|channel|>",
        "<|channel|>final",
    ),
    *(
        "<think>",
        "</think>",
        "[THINK]",
        "[THINK][/THINK]",
        "analysis",
        "assistantfinal",
    ),
    " assistantfinal ",
    "<answer>",
    "</s>",
    "<|end|>",
    "<|return|> ",
]


@pytest.mark.parametrize("unit", UNITS)
def test_linear_time(unit: str) -> None:
    """A megabyte of the worst text takes less than seconds."""
    for before in (
        "",
        "analysis",
        "analysis ",
        "[THINK]x[/THINK]",
        "<|channel|>analysis",
        "<a>",
    ):
        output = before + unit * (1_000_000 // len(unit))
        start = time.process_time()
        split_reasoning(output)
        may_contain_reasoning(output)
        assert time.process_time() - start < 5
