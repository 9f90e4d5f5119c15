"""Collects the answers of batches into the journals of their runs, shows the state of batches, and cancels them."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from helm.common.cache_backend_config import BlackHoleCacheBackendConfig
from helm.common.local_context import LocalContext
from helm.common.request import RequestResult
from tqdm import tqdm

from helm_longctx.apis.parameters import Body
from helm_longctx.batching.judges import JudgeClients, reply_store
from helm_longctx.batching.services import Outcome, Progress, Service, find_service
from helm_longctx.batching.submission import name_errors, settle
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of, failure_of_error, failure_of_text, label_error
from helm_longctx.locks import lock_run
from helm_longctx.redaction.abbreviation import abbreviate
from helm_longctx.redaction.text import redact
from helm_longctx.running.interruptions import name_full_disk, stoppable
from helm_longctx.running.sending import find_client
from helm_longctx.runs.journal import Journal
from helm_longctx.runs.ledger import NAME, Ledger, Part

Result = TypeVar("Result")
Keep = Callable[[str, Body, RequestResult], None]

_log = logging.getLogger(__name__)

POLL = 30.0
"""Seconds between two checks of the batches' states."""


@dataclass(frozen=True)
class BatchState:
    """The state of a batch.

    Args:
        run: folder of its run.
        part: the requests in it.
        state: the provider's name of the state; `collected`; or `unknown` if the batch's identifier is not known.
        done: how many requests are done.
        is_ended: whether no more answers will come.
        reason: why requests of an ended batch have no result.
    """

    run: Path
    part: Part
    state: str
    done: int = 0
    is_ended: bool = False
    reason: str = ""


class Batches:
    """The batches of several runs.

    Args:
        local_path: HELM's folder of credentials.
        runs: the runs' folders; those without batches are left out.
    """

    def __init__(self, local_path: Path, runs: Sequence[Path]):
        # There is no cache, because results of batches are read from the provider and stored in the journals.
        self._context = LocalContext(str(local_path), BlackHoleCacheBackendConfig())
        self._judges = JudgeClients(local_path, self._context.client.credentials)
        self._all_runs = runs

    @property
    def _runs(self) -> list[Path]:
        return [run for run in self._all_runs if (run / NAME).is_file()]

    def states(self) -> Iterator[BatchState]:
        """Yield the states of all batches. Batches that were not created are left out.

        Raises:
            InputError: a provider cannot be asked.
        """
        for run in self._runs:
            yield from (self._state(run, part) for part in _parts(run) if not part.is_absent)

    def collect(self) -> None:
        """Put the answers of ended batches into the journals.

        Raises:
            InputError: a provider cannot be asked, another process uses a run, or the disk is full.
        """
        for run in self._runs:
            if not any(part.is_open for part in _parts(run)):
                continue
            with lock_run(run), name_full_disk(run, "the answers can be collected again"), Ledger(run) as ledger:
                self._collect_run(run, ledger)

    def wait(self) -> bool:
        """Collect until every batch has ended, with a progress bar.

        Returns:
            Whether it is worthwhile to send requests again: some were answered, and others failed temporarily.

        Raises:
            InputError: see `collect`. After the first collection, temporary errors of the provider are only logged.
        """
        waiting = {part.id: len(part.requests) for part in self._open_parts()}
        with stoppable(lambda: "what was collected is kept; give the same command again to continue"):
            self.collect()
            with tqdm(total=sum(waiting.values()), unit="request", disable=None) as bar:
                while open_parts := self._open_parts():
                    self._show(bar, len(open_parts))
                    time.sleep(POLL)
                    self._try(self.collect)
        ended = [part for run in self._runs for part in _parts(run) if part.id in waiting]
        failures = sum((Counter(part.failures) for part in ended), Counter[str]())
        return failures.total() < sum(waiting.values()) and any(Failure(kind).is_retriable for kind in failures)

    def cancel(self) -> int:
        """Cancel all batches that have not ended, and return their number. Their answers can still be collected.

        Raises:
            InputError: a provider refuses it.
        """
        running = [state for state in self.states() if state.part.batch and state.part.is_open and not state.is_ended]
        for state in running:
            with name_errors(f"batch {state.part.batch} cannot be cancelled"):
                self._service(state.run, state.part).cancel(state.part)
        return len(running)

    def _service(self, run: Path, part: Part) -> Service:
        return find_service(part.service, self._client(part), run)

    def _client(self, part: Part) -> Any:
        return self._judges.client(part.deployment) if part.is_judging else find_client(self._context, part.deployment)

    def _state(self, run: Path, part: Part) -> BatchState:
        if part.failures is not None:
            answered = len(part.requests) - sum(part.failures.values())
            return BatchState(run, part, "collected", answered, True)
        if part.batch is None:
            return BatchState(run, part, "unknown")
        with name_errors(f"batch {part.batch} of {part.deployment}"):
            progress: Progress = self._service(run, part).progress(part)
        return BatchState(run, part, progress.state, progress.done, progress.is_ended, progress.reason)

    def _open_parts(self) -> list[Part]:
        return [part for run in self._runs for part in _parts(run) if part.is_open]

    def _show(self, bar: Any, batches: int) -> None:
        states = self._try(lambda: [state for state in self.states() if state.part.is_open])
        if states is not None:
            bar.n = bar.total - sum(len(state.part.requests) - state.done for state in states)
            counts = Counter(state.state for state in states)
            bar.set_postfix_str(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
            # There is no bar if standard error is not a terminal.
            if bar.disable:
                _log.info("%d of %d requests done, %d batches have not ended", bar.n, bar.total, batches)

    def _try(self, action: Callable[[], Result]) -> Result | None:
        try:
            return action()
        except InputError as error:
            # An InputError without a cause is a mistake of the user, so waiting does not help.
            if error.__cause__ is None or failure_of_error(error.__cause__) not in _PASSING:
                raise
            _log.warning("%s; asking again in %g seconds", error, POLL)
            return None

    def _collect_run(self, run: Path, ledger: Ledger) -> None:
        for part in {part.receiver: part for part in ledger.open_parts if part.batch is None}.values():
            settle(ledger, part.receiver, self._service(run, part))
        for part in ledger.open_parts:
            state = self._state(run, part)
            if state.is_ended:
                with (
                    self._keep(run, part) as keep,
                    name_errors(f"the results of batch {part.batch} cannot be read"),
                    closing(self._service(run, part).outcomes(part)) as outcomes,
                ):
                    failures = self._collect_part(state, outcomes, keep)
                # This is recorded last, so that an interrupted collection is repeated. Stored answers are then skipped.
                ledger.set_collected(part, failures)

    @contextmanager
    def _keep(self, run: Path, part: Part) -> Iterator[Keep]:
        """Yield the function that stores an answer: in the run's journal, or a judge's reply in the request cache."""
        if part.is_judging:
            store = reply_store(self._client(part))
            yield lambda name, reply, result: store.add(name, reply)
            return
        with Journal(run) as journal:
            # `helm-run` can have answered the request in the meantime. The first answer stays.
            yield lambda name, reply, result: None if journal.get(name) else journal.add(name, result)

    def _collect_part(self, state: BatchState, outcomes: Iterable[Outcome], keep: Keep) -> Counter[str]:
        """Store a batch's answers, and count the requests without an answer by kind."""
        part, client = state.part, self._client(state.part)
        missing, failures = set(part.requests), Counter[str]()
        for outcome in outcomes:
            if outcome.name not in missing:
                continue  # a line that was read already
            missing.remove(outcome.name)
            # The client of this process has not learned which parameters the model refuses.
            reply = {**(outcome.reply or {}), "sent": part.sent(outcome.name)}
            result = (
                _failure_result(outcome) if outcome.reply is None else client.result(part.request(outcome.name), reply)
            )
            if kind := failure_of(result):
                _count(failures, kind, str(result.error))
            else:
                keep(outcome.name, reply, result)
        # The results of a batch that failed or was cancelled can lack requests. The batch's own reason then holds for
        # them.
        for _ in missing:
            _count(failures, failure_of_text(state.reason), state.reason)
        return failures


_PASSING = (Failure.TEMPORARY, Failure.UNREACHABLE)
"""Failures of a provider after which the command continues to wait."""


def _failure_result(outcome: Outcome) -> RequestResult:
    error = label_error(failure_of_text(outcome.error or ""), abbreviate(redact(outcome.error or "")))
    return RequestResult(False, [], [], False, error=error)


def _count(failures: Counter[str], kind: Failure, error: str) -> None:
    """Count a failure; log the first of its kind."""
    failures[kind.value] += 1
    if failures[kind.value] == 1:
        _log.warning(f"a request has no answer: {error}; further {kind.value} failures are only counted")


def _parts(run: Path) -> list[Part]:
    with Ledger(run) as ledger:
        return ledger.parts
