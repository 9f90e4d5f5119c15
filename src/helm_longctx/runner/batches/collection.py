"""Collects the answers of batches into the journals of their runs, shows the state of batches, and cancels them."""

import logging
import time
from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from helm_longctx.errors import InputError
from helm_longctx.failures import (
    UNKNOWN_PROBLEM,
    Failure,
    FailureError,
    Problem,
    failure_of_error,
)
from helm_longctx.helm_api import (
    RequestResult,
)
from helm_longctx.interruptions import stoppable
from helm_longctx.locks import lock_run
from helm_longctx.models.apis.batches import (
    BatchLine,
    LostResultsError,
    ResultsNotReadyError,
    Service,
    is_missing,
)
from helm_longctx.models.apis.calls import call_all
from helm_longctx.models.apis.protocol import Body
from helm_longctx.models.results import failure_of
from helm_longctx.redaction.abbreviation import abbreviate
from helm_longctx.redaction.text import redact
from helm_longctx.runner.batches.submission import (
    JudgeClients,
    ProviderError,
    find_service,
    reply_store,
    settle,
    wrap_provider_errors,
)
from helm_longctx.runner.sending import find_client, make_context
from helm_longctx.runs.journal import Journal
from helm_longctx.runs.ledger import NAME, BatchPart, Ledger
from helm_longctx.writing import explain_full_disk

_log = logging.getLogger(__name__)

_POLL = 30.0
"""Seconds between two looks at the batches."""

_LONGEST_POLL = 600.0
"""Most seconds between two looks. The wait doubles while the provider says nothing about any batch."""

_LOOKS = 8
"""How many batches are looked at at the same time."""

_LOOK_LIMIT = 300.0
"""Seconds that a look at a batch may take, with the attempts of the provider's package."""

_Keep = Callable[[str, Body, RequestResult], None]
"""Stores an answer: the request's name, the reply, and the result that was read from it."""

_NAMED_LINES = 5


@dataclass(frozen=True)
class _BatchState:
    """The state of a batch.

    Args:
        state: the provider's name of the state; or `collected`; `gone` if the provider does not know the batch;
            `unknown` if the batch's identifier is not known; `error` if the provider cannot be asked.
        is_ended: whether no more answers will come.
    """

    run: Path
    part: BatchPart
    state: str
    done: int = 0
    is_ended: bool = False
    problem: Problem = UNKNOWN_PROBLEM


class _Look(NamedTuple):
    """A batch whose state the provider is asked for, and the service that asks."""

    run: Path
    part: BatchPart
    service: Service


class _Problems:
    """The errors of single batches and runs, by a part's identifier or a run's name. The other work goes on."""

    def __init__(self) -> None:
        self.errors: dict[str, InputError] = {}

    @contextmanager
    def catch(self, run: Path, parts: Sequence[BatchPart] = ()) -> Iterator[None]:
        """Store an error of the block. It is about these parts of a run, or about the whole run."""
        names = [part.id for part in parts] or [run.name]
        try:
            with explain_full_disk(run, "the answers can be collected again"):
                yield
        except InputError as error:
            self.errors |= dict.fromkeys(names, error)
        except OSError as error:
            self.errors |= dict.fromkeys(
                names, InputError(f"{error.filename or run}: {error.strerror or error}")
            )

    def concern(self, run: Path, part: BatchPart) -> bool:
        """Whether there is an error about a part or its run."""
        return bool({run.name, part.id} & self.errors.keys())

    def pop_passing(self, kept: Collection[str]) -> list[InputError]:
        """Remove and return the errors after which waiting can help, except those with the names `kept`."""
        # An InputError without a cause is a mistake of the user, so waiting does not help.
        causes = {}
        for name, error in self.errors.items():
            if name not in kept:
                causes[name] = error.__cause__
        passing = {}
        for name, cause in causes.items():
            if (
                cause is not None
                and not is_missing(cause)
                and failure_of_error(cause) in _PASSING
            ):
                passing[name] = self.errors[name]
        self.errors = {
            name: error for name, error in self.errors.items() if name not in passing
        }
        return list(dict.fromkeys(passing.values()))

    def report(self, suite: str) -> None:
        """Raise all errors as one. Raises an `InputError` if there are errors."""
        if self.errors:
            texts = list(dict.fromkeys(map(str, self.errors.values())))
            if any(map(_is_final, self.errors.values())):
                command = f"helm-longctx batch cancel --suite {suite} --forget"
                texts.append(
                    f"check base_url and the key, or give up these answers with: {command}"
                )
            raise InputError("; ".join(texts))


class Batches:
    """The batches in the folders of a suite's runs. An error of one is raised only after the work on the others."""

    def __init__(self, local_path: Path, runs: Sequence[Path]):
        # There is no cache, because results of batches are read from the provider and stored in the journals.
        self._context = make_context(local_path)
        self._judges = JudgeClients(local_path, self._context.client.credentials)
        self._all_runs = runs
        self._suite = runs[0].parent.name if runs else ""

    def states(self) -> Iterator[_BatchState]:
        """Yield the states of all created batches. Raises an `InputError` at the end if a provider or record fails."""
        problems = _Problems()
        states = self._look(problems)
        for run, part in self._parts(problems):
            if part.failures is not None:
                yield _describe_end(run, part, part.failures)
            elif not part.is_absent:
                yield states.get(part.id, _BatchState(run, part, "error"))
        problems.report(self._suite)

    def collect(self, forget: bool = False) -> None:
        """Put the answers of ended batches into the journals. `forget` gives up those that are not found or readable.

        Raises an `InputError` at the end if a provider cannot be asked, results cannot be read, another process uses
        a run, or the disk is full.
        """
        problems = _Problems()
        self._collect(problems, forget)
        problems.report(self._suite)

    def wait(self, has_programs: bool = False) -> bool:
        """Collect until every batch has ended, with a progress bar. Raises what `collect` raises.

        After the first collection, temporary errors of the provider are only logged. Returns whether it is worth
        sending requests again: some were answered, and others failed temporarily or follow from the answers.

        Args:
            has_programs: whether requests can follow from the answers.
        """
        problems = _Problems()
        waiting = {}
        for _, part in self._open_parts(problems):
            waiting[part.id] = len(part.requests)
        with stoppable(
            lambda: "what was collected is kept; run the same command again to continue"
        ):
            known = self._collect(problems)
            seconds = _POLL
            first = set(problems.errors)
            with tqdm(
                total=sum(waiting.values()),
                unit="request",
                disable=None,
            ) as bar:
                while open_parts := self._open_parts(problems):
                    _show_progress(bar, open_parts, known)
                    time.sleep(seconds)
                    seen = self._collect(problems)
                    known |= seen
                    seconds = _POLL if seen else min(2 * seconds, _LONGEST_POLL)
                    for error in problems.pop_passing(first):
                        _log.warning("%s; asking again in %g seconds", error, seconds)
        ended = []
        for _, part in self._parts(problems):
            if part.id in waiting:
                ended.append(part)
        problems.report(self._suite)
        failures = Counter[str]()
        for part in ended:
            failures.update(part.failures or {})
        if failures.total() == sum(waiting.values()):
            return False
        return has_programs or any(Failure(kind).is_retriable for kind in failures)

    @property
    def are_open(self) -> bool:
        """Whether a batch was not collected. Raises an `InputError` if the record of a run is damaged."""
        problems = _Problems()
        parts = self._open_parts(problems)
        problems.report(self._suite)
        return bool(parts)

    def cancel(self) -> int:
        """Cancel batches that have not ended, and return their number. Raises an `InputError` if one is refused."""
        problems = _Problems()
        number = 0
        states = self._look(problems)
        for run, part in self._open_parts(problems):
            with problems.catch(run, [part]):
                if part.batch and not states[part.id].is_ended:
                    with wrap_provider_errors(
                        f"batch {part.batch} cannot be cancelled"
                    ):
                        self._service(run, part).cancel(part)
                    _log.info("batch %s is cancelled", part.batch)
                    number += 1
        problems.report(self._suite)
        return number

    def _parts(self, problems: _Problems) -> Iterator[tuple[Path, BatchPart]]:
        for run in self._all_runs:
            if (run / NAME).is_file():
                parts: list[BatchPart] = []
                with problems.catch(run), Ledger(run) as ledger:
                    parts = ledger.parts
                yield from ((run, part) for part in parts)

    def _open_parts(self, problems: _Problems) -> list[tuple[Path, BatchPart]]:
        parts = []
        for run, part in self._parts(problems):
            if part.is_open and not problems.concern(run, part):
                parts.append((run, part))
        return parts

    def _service(self, run: Path, part: BatchPart) -> Service:
        return find_service(part.service, self._client(part), run)

    def _client(self, part: BatchPart) -> Any:
        if part.is_judging:
            return self._judges.client(part.deployment)
        return find_client(self._context, part.deployment)

    def _look(self, problems: _Problems) -> dict[str, _BatchState]:
        """Return the states of the open batches by the parts' identifiers, without those that cannot be asked for.

        Several are asked for at the same time, and each has a limit: a suite can have hundreds, and they can be with
        several providers, of which one may hang.
        """
        states = {}
        looks = []
        for run, part in self._open_parts(problems):
            if part.batch is None:
                states[part.id] = _BatchState(run, part, "unknown")
                continue
            # Clients are made here and not in the threads, because HELM's context keeps one for each deployment.
            with problems.catch(run, [part]):
                looks.append(_Look(run, part, self._service(run, part)))
        outcomes = call_all(
            _ask_or_fail,
            looks,
            _LOOKS,
            limit=_LOOK_LIMIT,
            late=_describe_late,
        )
        for look, outcome in zip(looks, outcomes, strict=True):
            with problems.catch(look.run, [look.part]):
                if isinstance(outcome, Exception):
                    raise outcome
                states[look.part.id] = outcome
        return states

    def _collect(
        self,
        problems: _Problems,
        forget: bool = False,
    ) -> dict[str, _BatchState]:
        """Collect what has ended. Returns the states that are known, by the parts' identifiers."""
        runs = dict.fromkeys(run for run, _ in self._open_parts(problems))
        states = self._look(problems)
        for run in runs:
            with problems.catch(run), lock_run(run), Ledger(run) as ledger:
                self._collect_run(run, ledger, states, problems)
                for part in ledger.open_parts if forget else ():
                    if (error := problems.errors.get(part.id)) and _is_final(error):
                        ledger.set_collected(
                            part, {Failure.UNREACHABLE.value: len(part.requests)}
                        )
                        del problems.errors[part.id]
                        lost = f"{len(part.requests)} answers are given up, and their requests can be sent again"
                        _log.warning(f"{error}; {lost}")
        return states

    def _collect_run(
        self,
        run: Path,
        ledger: Ledger,
        states: Mapping[str, _BatchState],
        problems: _Problems,
    ) -> None:
        parts = []
        for part in ledger.open_parts:
            if not problems.concern(run, part):
                parts.append(part)
        for receiver in dict.fromkeys(
            part.receiver for part in parts if part.batch is None
        ):
            doubtful = ledger.doubtful_parts(receiver)
            with problems.catch(run, doubtful):
                settle(ledger, receiver, self._service(run, doubtful[0]))
        for part in ledger.open_parts:
            if problems.concern(run, part) or part.batch is None:
                continue
            with problems.catch(run, [part]):
                state = states.get(part.id)
                if state is None or state.part.batch is None:
                    # Its identifier was only found now.
                    state = _ask_state(_Look(run, part, self._service(run, part)))
                if state.is_ended:
                    self._collect_part(run, part, state, ledger)

    def _collect_part(
        self,
        run: Path,
        part: BatchPart,
        state: _BatchState,
        ledger: Ledger,
    ) -> None:
        what = f"the results of batch {part.batch} of {part.deployment} cannot be read"
        with self._keep(run, part) as keep, wrap_provider_errors(what):
            tally = _Tally(part, self._client(part), keep)
            with closing(self._service(run, part).outcomes(part)) as outcomes:
                failures = tally.count(outcomes, state.problem)
        # This is recorded last, so that an interrupted collection is repeated. Stored answers are then skipped.
        ledger.set_collected(part, failures)

    @contextmanager
    def _keep(self, run: Path, part: BatchPart) -> Iterator[_Keep]:
        """Yield the function that stores an answer: in the run's journal, or a judge's reply in the request cache."""
        if part.is_judging:
            store = reply_store(self._client(part))
            yield lambda name, reply, result: store.add(name, reply)
            return
        with Journal(run) as journal:
            # `helm-run` can have answered the request in the meantime. The first answer stays.
            yield (
                lambda name, reply, result: (
                    None if journal.get(name) else journal.add(name, result)
                )
            )


def _describe_end(
    run: Path,
    part: BatchPart,
    failures: Mapping[str, int],
) -> _BatchState:
    return _BatchState(
        run=run,
        part=part,
        state="collected",
        done=len(part.requests) - sum(failures.values()),
        is_ended=True,
    )


def _ask_state(look: _Look) -> _BatchState:
    """Ask the provider for the state of a batch.

    Raises:
        InputError: it cannot be asked.
        OSError: a file of requests cannot be read.
    """
    run, part, service = look
    with wrap_provider_errors(_name_batch(part)):
        try:
            progress = service.progress(part)
        except LostResultsError:
            return _BatchState(
                run=run,
                part=part,
                state="gone",
                done=0,
                is_ended=True,
            )
    return _BatchState(
        run=run,
        part=part,
        state=progress.state,
        done=progress.done,
        is_ended=progress.is_ended,
        problem=progress.problem,
    )


def _ask_or_fail(look: _Look) -> _BatchState | Exception:
    """Ask for a state, and return an error, because it must not end the looks at other batches."""
    try:
        return _ask_state(look)
    except (InputError, OSError) as error:
        return error


def _describe_late(look: _Look) -> ProviderError:
    """Return the error for a look that took too long."""
    error = ProviderError(
        f"{_name_batch(look.part)}: no reply within {_LOOK_LIMIT:g} seconds"
    )
    error.__cause__ = FailureError(Failure.TEMPORARY, "no reply")
    return error


def _name_batch(part: BatchPart) -> str:
    return f"batch {part.batch} of {part.deployment}"


def _show_progress(
    bar: Any,
    parts: Sequence[tuple[Path, BatchPart]],
    states: Mapping[str, _BatchState],
) -> None:
    """Show how many requests are done, and how many open batches are in which state."""
    undone = 0
    counts = Counter[str]()
    for _, part in parts:
        state = states.get(part.id)
        undone += len(part.requests) - (state.done if state else 0)
        counts[state.state if state else "error"] += 1
    bar.n = bar.total - undone
    bar.set_postfix_str(
        ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    )
    # There is no bar if standard error is not a terminal.
    if bar.disable:
        _log.info(
            "%d of %d requests done, %d batches have not ended",
            bar.n,
            bar.total,
            len(parts),
        )


_PASSING = (Failure.TEMPORARY, Failure.UNREACHABLE)
"""Failures of a provider after which the command continues to wait."""

_REPAIRABLE = (*_PASSING, Failure.BAD_KEY, Failure.QUOTA, Failure.MISSING_PACKAGE)
"""Failures after which answers can still be collected, now or when the user has repaired something."""


def _is_final(error: InputError) -> bool:
    cause = error.__cause__
    if cause is None or not isinstance(error, ProviderError):
        return False
    if isinstance(cause, ResultsNotReadyError):
        return True
    return is_missing(cause) or failure_of_error(cause) not in _REPAIRABLE


class _Tally:
    """Stores the answers in the results of a batch, and counts the requests without one."""

    def __init__(
        self,
        part: BatchPart,
        client: Any,
        keep: _Keep,
    ):
        self._part = part
        self._client = client
        self._keep = keep
        self._answered: set[str] = set()
        self._problems: dict[str, Problem] = {}
        self._strays = list[str]()
        self._stray_count = 0

    def count(self, outcomes: Iterable[BatchLine], problem: Problem) -> Counter[str]:
        """Return how many requests have no answer, by kind of failure.

        Args:
            problem: why requests without an outcome have no answer.

        Raises:
            ValueError: all outcomes are of no request. It is then not the batch's file.
        """
        try:
            for outcome in outcomes:
                self._add(outcome)
        except LostResultsError:
            lost = f"the provider does not have the results of batch {self._part.batch} any more"
            problem = Problem(Failure.UNREACHABLE, lost)
        if self._stray_count:
            if self._stray_count > len(self._strays):
                more = ", …"
            else:
                more = ""
            lines = f"{self._stray_count} ({', '.join(self._strays)}{more})"
            if not (self._answered or self._problems):
                raise ValueError(
                    f"no line names a request of the batch; lines that were read: {lines}"
                )
            about = "lines that cannot be read, name no request, or repeat an answer"
            _log.warning(f"batch {self._part.batch}: {about}: {lines}")
        counts = Counter[str]()
        for name in self._part.requests.keys() - self._answered:
            # The results of a batch that failed or was cancelled can lack requests. The batch's own reason then holds
            # for them.
            own = self._problems.get(name, problem)
            kind = own.kind.value
            counts[kind] += 1
            if counts[kind] == 1:
                _log.warning(
                    f"a request has no answer: {own}; further {kind} failures are only counted"
                )
        return counts

    def _add(self, outcome: BatchLine) -> None:
        name = outcome.name
        if name not in self._part.requests or name in self._answered:
            self._stray_count += 1
            if self._stray_count <= _NAMED_LINES:
                self._strays.append(outcome.line)
            return
        if isinstance(outcome.reading, Problem):
            reason = abbreviate(redact(outcome.reading.reason))
            self._problems.setdefault(name, Problem(outcome.reading.kind, reason))
            return
        # The client of this process has not learned which parameters the model refuses.
        reply = {**outcome.reading, "sent": self._part.request_fields(name)}
        result = self._client.result(self._part.request(name), reply)
        if kind := failure_of(result):
            self._problems.setdefault(name, Problem(kind, str(result.error)))
            return
        self._keep(name, reply, result)
        self._answered.add(name)
