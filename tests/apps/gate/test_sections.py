"""Tests of what a gate's page says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.apps.gate.sections import explain, gate_sections
from helm_longctx.documents.document import HeadlineAnswer
from helm_longctx.results.statistics.noninferiority import (
    Verdict,
    visible_drop,
)
from tests.support.gates import describe_gates, make_gate


@pytest.mark.parametrize(
    ("parts", "verdict", "words"),
    [
        ({"8k": (0, 0, 600)}, Verdict.NO_WORSE, "No worse: at each length"),
        (
            {"8k": (0, 200, 400)},
            Verdict.WORSE,
            "Worse: the drop is larger than 5 points at 8k.",
        ),
        (
            {"8k": (0, 0, 20)},
            Verdict.UNDECIDED,
            "Cannot tell whether the drop is smaller than 5 points",
        ),
    ],
)
def test_only_a_gate_that_passes_is_shown_as_sure(
    parts: dict[str, tuple[int, int, int]], verdict: Verdict, words: str
) -> None:
    """The first answer of the page has the verdict in words, and only "no worse" is marked as sure."""
    report = make_gate(**parts)
    (first,) = gate_sections(report)[0].blocks
    assert isinstance(first, HeadlineAnswer)
    assert (report.verdict, first.is_sure) == (verdict, verdict is Verdict.NO_WORSE)
    assert first.verdict == explain(report)
    assert first.verdict.startswith(words)
    assert first.certainty == "10.0 % of the scores differ between both."


def test_a_gate_that_passes_names_the_drop_at_a_depth_that_it_would_have_found() -> (
    None
):
    """The text names the drop that the smallest depth shows with the wanted power, and no depth if there is none."""
    explanation = explain(
        make_gate(**{"8k": (0, 0, 600), "beginning": (0, 0, 250), "end": (0, 0, 350)})
    )
    seen = 100 * visible_drop(250, 0.1, 2, 0.8)
    assert (
        f"A drop of {seen:.1f} points at one depth would have been found with a probability of 80%."
        in explanation
    )
    assert "depth" not in explain(make_gate(**{"8k": (0, 0, 600)}))


def test_what_the_pages_of_gates_say() -> None:
    """The verdicts, sentences, tables and plots of gates with known results are those of the file.

    `python -m tests.golden_makers gates` rewrites it after a change that is meant.
    """
    path = Path(__file__).with_name("sections.json")
    expected = json.loads(path.read_text(encoding="utf-8"))
    described = json.loads(json.dumps(describe_gates()))
    assert described.keys() == expected.keys()
    for name, gates in described.items():
        assert gates == expected[name]
