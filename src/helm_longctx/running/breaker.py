"""Failures of a run: told by kind instead of one by one, and too many in a row end the run."""

from __future__ import annotations

from collections import Counter

from helm.common.hierarchical_logger import hwarn
from helm.common.request import RequestResult

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of

GIVE_UP = 10
"""Failures in a row after which a run ends: the server is gone, and every further request would wait for it in vain."""

_OF_PROMPT = (Failure.TOO_LONG, Failure.REFUSED)
"""They say nothing of the other requests once one was answered."""


class Breaker:
    """Counts failures by kind, and logs the first of each.

    Args:
        total: requests of the run.
        has_answers: whether some were answered before.
    """

    def __init__(self, total: int, has_answers: bool):
        self._limit, self._has_answers = min(GIVE_UP, total), has_answers
        self._kinds: Counter[Failure] = Counter()
        self._in_a_row = 0

    def add(self, name: str | None, result: RequestResult, weight: int = 1) -> None:
        """Count the result of a request, and what its failure weighs.

        Raises:
            InputError: there is no use in asking for more.
        """
        kind = failure_of(result)
        if kind is None:
            self._in_a_row, self._has_answers = 0, True
            return
        self._kinds[kind] += 1
        error = " ".join((result.error or "").split())
        if kind.ends_run:
            raise InputError(f"the model cannot be asked: {error}")
        self._in_a_row += 0 if kind in _OF_PROMPT and self._has_answers else weight
        if self._in_a_row >= self._limit:
            raise InputError(f"{self._kinds.total()} requests failed, the last ones in a row: {error}")
        if self._kinds[kind] == 1:
            hwarn(f"request for {name} failed: {error}; others that fail as {kind.value} are only counted")

    def finish(self) -> int:
        """Log how many requests failed and why; their number."""
        if self._kinds:
            hwarn("failed: " + ", ".join(f"{number} {kind.value}" for kind, number in self._kinds.most_common()))
        return self._kinds.total()
