"""The items of a check: requests to a judge, the expected verdicts, and a table of the judge's verdicts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from helm_longctx.judging.judge import Judge, JudgeReply, JudgeRequest, ask_judges

if TYPE_CHECKING:
    import pandas as pd

_ScoreFunction = Callable[[Mapping[str, str]], float | None]
"""Computes the score, 0 to 1, from the replies by part. It is None if a reply has no verdict."""


@dataclass(frozen=True)
class KnownVerdict:
    """An answer whose correct verdict is known.

    Args:
        expected: grades of the correct verdict, by name.
        tolerance: accepted difference from an expected grade; 0 for grades that are not named.
        like: id of the item that this one varies.
        place: position of the correct part: `start`, `middle` or `end`. Items with the latter two are `like` the first.
    """

    id: str
    task: str
    kind: str
    record: Mapping[str, Any]
    expected: Mapping[str, float]
    tolerance: Mapping[str, float] = field(default_factory=dict)
    like: str | None = None
    place: str | None = None

    def accepts(self, verdict: Mapping[str, float]) -> bool:
        """Return whether every grade of a verdict is within its tolerance of the expected grade."""
        # The margin is for grades that were computed: 0.1 + 0.2 is not 0.3.
        for name, expected in self.expected.items():
            difference = abs(verdict.get(name, math.inf) - expected)
            if not difference <= self.tolerance.get(name, 0) + 1e-9:
                return False
        return True


@dataclass(frozen=True)
class Check:
    """An item with a benchmark's requests to the judge, by part, and its rule that scores replies."""

    item: KnownVerdict
    requests: Mapping[str, JudgeRequest]
    score: _ScoreFunction

    @cached_property
    def expected_score(self) -> float:
        """Score that a correct judge would give."""
        # The benchmark's own rule scores the expected grades as a judge would write them, so that both scores are
        # comparable.
        score = self.score(
            dict.fromkeys(self.requests, json.dumps(dict(self.item.expected)))
        )
        assert score is not None, self.item.id
        return score


def observe(
    checks: Sequence[Check],
    judges: Sequence[Judge],
    repeats: int,
) -> pd.DataFrame:
    """Ask every judge about every item, `repeats` times.

    Returns:
        A row for each judge, item and repetition, with the item's `id`, `task`, `kind`, `like` and `place`; `judge` and
        `repeat`; `state` (`judged`, `unreadable` or `failed`), `verdict`, `right`, `score`, `expected_score` and
        `error`. Without a verdict, `verdict`, `right` and `score` are missing values.
    """
    import pandas as pd

    requests = [check.requests for check in checks]
    rows = []
    for repeat in range(repeats):
        answers = ask_judges(judges, requests, repeat)
        for check, by_judge in zip(checks, answers, strict=True):
            for judge, replies in by_judge.items():
                rows.append({"judge": judge, "repeat": repeat, **_row(check, replies)})
    # A column in which all values are missing would else have the type object.
    return pd.DataFrame(rows).astype({"score": float, "expected_score": float})


def _row(check: Check, replies: Mapping[str, JudgeReply]) -> dict[str, Any]:
    item = check.item
    about = {}
    for name in ("id", "task", "kind", "like", "place"):
        about[name] = getattr(item, name)
    row = {
        **about,
        "state": "judged",
        "verdict": None,
        "right": None,
        "score": None,
        "expected_score": check.expected_score,
        "error": next((reply.error for reply in replies.values() if reply.error), None),
    }
    missing = [reply for reply in replies.values() if reply.verdict is None]
    # The verdicts of all parts are one. Without the verdict of a part there is none.
    if missing:
        is_failed = any(reply.text is None for reply in missing)
        row["state"] = "failed" if is_failed else "unreadable"
        return row
    verdict: dict[str, float] = {}
    for reply in replies.values():
        verdict |= reply.verdict or {}
    row["verdict"] = verdict
    row["right"] = item.accepts(verdict)
    row["score"] = check.score(
        {part: reply.text or "" for part, reply in replies.items()}
    )
    return row
