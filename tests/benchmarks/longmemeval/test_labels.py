"""Labels in any reply of LongMemEval's judge."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.longmemeval import BENCHMARK
from helm_longctx.benchmarks.longmemeval.tasks import read_label

TASK = BENCHMARK.task("s")


@given(st.text())
def test_any_reply_is_read(reply: str) -> None:
    """Any text is a label, which is 1 only if the text contains a yes; an empty one is none."""
    label = read_label(reply)
    assert label == ({"judge_score": float("yes" in reply.lower())} if reply else {})
    assert read_label(f"{reply} Yes") == {"judge_score": 1.0}


@pytest.mark.parametrize("reply", [None, 5, {"answer": "yes"}, ""])
def test_no_reply(reply: object) -> None:
    """Without a text there is no score, also not by type."""
    assert (
        TASK.scores(
            {
                "prediction": "x",
                "references": ["y"],
                "question_type": "multi-session",
                "judge": reply,
            }
        )
        == {}
    )
