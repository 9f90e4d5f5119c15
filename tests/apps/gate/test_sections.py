"""Tests of what a gate's page says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from helm_longctx.apps.gate.answers import AnswerPair
from helm_longctx.apps.gate.gate import Gate, GateQuestion
from helm_longctx.apps.gate.sections import explain, gate_sections
from helm_longctx.documents.document import HeadlineAnswer
from helm_longctx.results.statistics.comparison import Pairs
from helm_longctx.results.statistics.noninferiority import (
    Verdict,
    decide_drops,
    visible_drop,
)
from tests.support.scores import make_score


def gate(**parts: tuple[int, int, int]) -> Gate:
    """Return a gate whose parts have so many instances on which the candidate is better, worse and equal."""
    pairs: dict[str, Sequence[Pairs]] = {}
    for name, (wins, losses, ties) in parts.items():
        a = [1] * wins + [0] * losses + [1] * ties
        b = [0] * wins + [1] * losses + [1] * ties
        pairs[name] = [Pairs(a, b, range(len(a)), 1.0)]
    drops = decide_drops(
        pairs, 0.05, 0.8, depths=[name for name in pairs if not name.startswith("8")]
    )
    # Of ten answers, one differs.
    answers = [
        AnswerPair(make_score(1.0), make_score(float(number > 0)), ("a", "a"), True)
        for number in range(10)
    ]
    return Gate(
        GateQuestion("base/m", "new/m", 0.05, 0.8, []),
        drops,
        {},
        [],
        [],
        [],
        answers,
        [],
        (),
    )


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
    report = gate(**parts)
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
        gate(**{"8k": (0, 0, 600), "beginning": (0, 0, 250), "end": (0, 0, 350)})
    )
    seen = 100 * visible_drop(250, 0.1, 2, 0.8)
    assert (
        f"A drop of {seen:.1f} points at one depth would have been found with a probability of 80%."
        in explanation
    )
    assert "depth" not in explain(gate(**{"8k": (0, 0, 600)}))
