"""Tests of what compaction's results say about compactors, with outcomes that are made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from helm_longctx.apps.compaction.compactors import Compacted, FunctionCompactor
from helm_longctx.apps.compaction.probes import Probe
from helm_longctx.apps.compaction.results import (
    CompactionResults,
    analyze,
    decide_losses,
    find_fewest_transcripts,
)
from helm_longctx.apps.compaction.scoring import Given, ScoreState
from helm_longctx.apps.compaction.sections import (
    describe_decisions,
    describe_gate,
    describe_scope,
)
from helm_longctx.apps.compaction.transcripts import Transcript
from helm_longctx.apps.compaction.trial import Arm, Compaction, Outcome
from helm_longctx.results.statistics.comparison import compare_pairs
from helm_longctx.results.statistics.noninferiority import Verdict

PROBES = 6
"""Probes of each transcript, each about a message of its own."""


def compare(kept: Sequence[np.ndarray]) -> CompactionResults:
    """Return the results of compactors that keep these probes, shape (transcripts, `PROBES`) for each of them."""
    compactions = []
    outcomes = []
    probes = []
    transcripts = [
        Transcript(str(number), "messages", ()) for number in range(len(kept[0]))
    ]
    for transcript in transcripts:
        for number in range(PROBES):
            probes.append(
                Probe(
                    id=f"{transcript.name}#{number}",
                    transcript=transcript.name,
                    kind="facts",
                    question="",
                    answer="",
                    is_exact=True,
                    message=number,
                    line=0,
                    depth=0.0,
                    quote="",
                    digest="",
                )
            )
    for index, scores in enumerate(kept):
        arm = Arm(FunctionCompactor(f"compactor-{index}", "builtins:list"))
        for transcript in transcripts:
            compactions.append(Compaction(transcript, arm, Compacted(())))
        for probe, score in zip(probes, scores.ravel(), strict=True):
            state = ScoreState.RIGHT if score else ScoreState.UNKNOWN
            outcomes.append(Outcome(probe, arm, Given("", state, float(score))))
    return analyze(compactions, outcomes, probes)


@pytest.mark.parametrize(
    ("comparisons", "transcripts"), [(0, 6), (1, 6), (2, 7), (3, 8), (12, 10)]
)
def test_as_few_transcripts_as_can_show_a_difference(
    comparisons: int, transcripts: int
) -> None:
    """With so many transcripts a difference in all of them is shown, and with one less it is not."""
    assert find_fewest_transcripts(comparisons) == transcripts
    for number, is_shown in ((transcripts, True), (transcripts - 1, False)):
        p_value = compare_pairs(np.ones(number), np.zeros(number)).p_value
        assert (p_value * max(comparisons, 1) < 0.05) == is_shown


def test_transcripts_are_the_clusters() -> None:
    """With enough transcripts, differences are tested over transcripts and not over probes that are lost together."""
    kept = [np.ones((6, PROBES)), np.ones((6, PROBES))]
    kept[1][:3] = 0
    results = compare(kept)
    (difference,) = results.differences
    groups = np.repeat(np.arange(6), PROBES).tolist()
    expected = compare_pairs(kept[0].ravel(), kept[1].ravel(), groups)
    assert difference.decision.comparison == expected
    # Over 36 messages, 18 that only one compactor keeps would be a clear difference.
    assert compare_pairs(kept[0].ravel(), kept[1].ravel()).p_value < 0.001
    assert difference.verdict == "tie"
    assert "other transcripts like these 6" in describe_scope(results)


def test_few_transcripts_say_nothing_about_others() -> None:
    """With fewer transcripts, a difference is one `here`, and the page says how many transcripts could show more."""
    kept = [np.ones((5, PROBES)), np.zeros((5, PROBES))]
    results = compare(kept)
    (difference,) = results.differences
    assert difference.verdict == "better here"
    assert (
        describe_decisions([difference])
        == "compactor-0 is better here than compactor-1."
    )
    assert "At least 6 transcripts" in describe_scope(results)


def test_more_compactors_need_more_transcripts() -> None:
    """Seven transcripts are enough for a pair of compactors, and not for three that are all compared."""
    everything = np.ones((7, PROBES))
    nothing = np.zeros((7, PROBES))
    assert compare([everything, nothing]).differences[0].verdict == "better"
    results = compare([everything, nothing, nothing])
    assert [row.verdict for row in results.differences] == [
        "better here",
        "better here",
        "tie",
    ]
    assert results.fewest == 8


@pytest.mark.parametrize(("sessions", "is_about_others"), [(10, False), (38, True)])
def test_a_gate_over_transcripts_needs_many(
    sessions: int, is_about_others: bool
) -> None:
    """A gate passes equal compactors over messages, and over transcripts as soon as so many of them could show it."""
    everything = np.ones((sessions, PROBES))
    results = compare([everything, everything])
    gate = decide_losses(results, "compactor-1", 0.1)
    assert gate.fewest == 38
    assert gate.holds_for_others == is_about_others
    assert gate.verdict is Verdict.NO_WORSE
    assert len(gate.losses) == 1


def test_a_base_without_right_answers_decides_nothing() -> None:
    """If nothing is answered rightly with the base, a compactor that keeps nothing does not pass."""
    nothing = np.zeros((38, PROBES))
    results = compare([nothing, nothing])
    gate = decide_losses(results, "compactor-1", 0.1)
    assert gate.verdict is Verdict.UNDECIDED
    assert "only 0% of the probes are answered rightly" in describe_gate(gate)


@pytest.mark.parametrize("sessions", [6, 8])
def test_equal_compactors_are_rarely_called_different(sessions: int) -> None:
    """Two compactors that forget whole sessions at random are called different in at most 5 of 100 rounds."""
    random = np.random.default_rng(sessions)
    called = 0
    for _ in range(100):
        kept = [
            np.repeat(random.random((sessions, 1)) > 0.3, PROBES, axis=1)
            for _ in range(2)
        ]
        (difference,) = compare(kept).differences
        called += difference.verdict != "tie"
    assert called <= 5
