"""Stores the answers in the results of a batch, and counts the requests that have none."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from helm.common.request import RequestResult

from helm_longctx.failures import Failure, failure_of, failure_of_text, label_error
from helm_longctx.models.apis.batches import LostResultsError, Outcome
from helm_longctx.models.apis.protocol import Body
from helm_longctx.redaction.abbreviation import abbreviate
from helm_longctx.redaction.text import redact
from helm_longctx.runs.ledger import BatchPart

Keep = Callable[[str, Body, RequestResult], None]
"""Stores an answer: the request's name, the reply, and the result that was read from it."""

_log = logging.getLogger(__name__)

_NAMED_LINES = 5
"""Lines that a message names."""


class Tally:
    """Stores the answers in the results of a batch, and counts the requests without one.

    Args:
        part: the batch's requests.
        client: the client of its deployment.
        keep: stores an answer.
    """

    def __init__(self, part: BatchPart, client: Any, keep: Keep):
        self._part, self._client, self._keep = part, client, keep
        self._answered: set[str] = set()
        self._failures: dict[str, tuple[Failure, str]] = {}
        self._strays, self._stray_count = list[str](), 0

    def count(self, outcomes: Iterable[Outcome], reason: str) -> Counter[str]:
        """Return the number of requests without an answer, by kind of failure.

        Args:
            reason: why requests may have no outcome.

        Raises:
            ValueError: there are outcomes, but of no request. It is then not the batch's file, so nothing is settled.
        """
        try:
            for outcome in outcomes:
                self._add(outcome)
        except LostResultsError:
            reason = label_error(
                Failure.UNREACHABLE, f"the provider does not have the results of batch {self._part.batch} any more"
            )
        if self._stray_count:
            self._report_strays()
        counts = Counter[str]()
        for name in self._part.requests.keys() - self._answered:
            # The results of a batch that failed or was cancelled can lack requests. The batch's own reason then holds
            # for them.
            _count(counts, *self._failures.get(name, (failure_of_text(reason), reason)))
        return counts

    def _add(self, outcome: Outcome) -> None:
        name = outcome.name
        if name not in self._part.requests or name in self._answered:
            self._stray_count += 1
            if self._stray_count <= _NAMED_LINES:
                self._strays.append(outcome.line)
            return
        # The client of this process has not learned which parameters the model refuses.
        reply = {**(outcome.reply or {}), "sent": self._part.sent(name)}
        is_reply = outcome.reply is not None
        result = self._client.result(self._part.request(name), reply) if is_reply else _failure_result(outcome)
        if kind := failure_of(result):
            self._failures.setdefault(name, (kind, str(result.error)))
        else:
            self._keep(name, reply, result)
            self._answered.add(name)

    def _report_strays(self) -> None:
        more = ", …" if self._stray_count > len(self._strays) else ""
        lines = f"{self._stray_count} ({', '.join(self._strays)}{more})"
        if not (self._answered or self._failures):
            raise ValueError(f"no line names a request of the batch; lines that were read: {lines}")
        _log.warning(
            f"batch {self._part.batch}: lines that cannot be read, name no request, or repeat an answer: {lines}"
        )


def _failure_result(outcome: Outcome) -> RequestResult:
    error = label_error(failure_of_text(outcome.error or ""), abbreviate(redact(outcome.error or "")))
    return RequestResult(False, [], [], False, error=error)


def _count(failures: Counter[str], kind: Failure, error: str) -> None:
    """Count a failure; log the first of its kind."""
    failures[kind.value] += 1
    if failures[kind.value] == 1:
        _log.warning(f"a request has no answer: {error}; further {kind.value} failures are only counted")
