"""What a judge is asked in a check, what it should say, and what it said."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from helm_longctx.judging.judge import Judge, JudgeRequest, Reply, Verdict
from helm_longctx.judging.jury import ask_judges

if TYPE_CHECKING:
    import pandas as pd

Worth = Callable[[Mapping[str, str]], float | None]
"""From replies by part to the score, 0 to 1; None if one has no verdict."""


@dataclass(frozen=True)
class Item:
    """An answer whose verdict is known.

    Args:
        id: unique in its set.
        task: whose rubric it is judged by.
        kind: what is the matter with it: `right`, `wrong`, `injection`, …
        record: what the rubric takes.
        expected: the verdict's numbers by name.
        tolerance: how far a number may be from the expected one; 0 if it is not named.
        like: the item of which this is a variation.
        place: where the right part stands: `start`, `middle` or `end`; the latter two are `like` the first.
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
        """Whether every number is as expected, within its tolerance."""
        return all(
            abs(verdict.get(name, math.inf) - value) <= self.tolerance.get(name, 0) + 1e-9
            for name, value in self.expected.items()
        )


@dataclass(frozen=True)
class Check:
    """An item as a benchmark's rubric asks about it.

    Args:
        questions: by part.
        worth: the benchmark's arithmetic.
    """

    item: Item
    questions: Mapping[str, JudgeRequest]
    worth: Worth

    @cached_property
    def expected_score(self) -> float:
        """What a judge that is right would give."""
        score = self.worth(dict.fromkeys(self.questions, json.dumps(dict(self.item.expected))))
        assert score is not None, self.item.id
        return score


def observe(checks: Sequence[Check], judges: Sequence[Judge], repeats: int) -> pd.DataFrame:
    """Ask every judge about every item, several times.

    Returns:
        A row for each judge, item and time: the item's `id`, `task`, `kind`, `like`, `place`; `judge`, `repeat`;
        `state` (`judged`, `unreadable`, `failed`), `verdict`, `right`, `score`, `expected_score`, `error`. What a judge
        did not say is missing.
    """
    import pandas as pd

    rows = [
        {"judge": judge, "repeat": repeat, **_row(check, replies)}
        for repeat in range(repeats)
        for check, by_judge in zip(checks, ask_judges(judges, [c.questions for c in checks], repeat), strict=True)
        for judge, replies in by_judge.items()
    ]
    return pd.DataFrame(rows).astype({"score": float, "expected_score": float})


def _row(check: Check, replies: Mapping[str, Reply]) -> dict[str, Any]:
    item, verdict = check.item, _merge_verdicts(replies.values())
    about = {name: value for name, value in asdict(item).items() if name in ("id", "task", "kind", "like", "place")}
    return {
        **about,
        "state": _state(replies.values()),
        "verdict": verdict,
        "right": None if verdict is None else item.accepts(verdict),
        "score": None if verdict is None else check.worth({part: reply.text or "" for part, reply in replies.items()}),
        "expected_score": check.expected_score,
        "error": next((reply.error for reply in replies.values() if reply.error), None),
    }


def _merge_verdicts(replies: Iterable[Reply]) -> Verdict | None:
    """The numbers of all parts; None if one is missing."""
    numbers: dict[str, Any] = {}
    for reply in replies:
        if reply.verdict is None:
            return None
        numbers |= reply.verdict
    return numbers


def _state(replies: Iterable[Reply]) -> str:
    missing = [reply for reply in replies if reply.verdict is None]
    if not missing:
        return "judged"
    return "failed" if any(reply.text is None for reply in missing) else "unreadable"
