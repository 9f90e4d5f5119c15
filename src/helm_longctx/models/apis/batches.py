"""What all batch services have in common: their interface, the results of batches line by line, and errors.

A line of the results that cannot be read costs the answer of one request at most.
"""

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple, Protocol, TypeVar

from helm_longctx.failures import Failure, FailureError, Problem
from helm_longctx.models.apis.protocol import Body
from helm_longctx.run_settings import settings_in_use

_RETRIES = 5
"""Number of times that the packages repeat a failed call that costs nothing: uploads, lists, results."""

_Value = TypeVar("_Value")
BatchReading = Body | Problem
"""A reply in the API's format, or why there is none."""

# Lines are often cut off within the reply. It comes after the name. In a text the quotes would be escaped.
_NAME = re.compile(rb'"custom_id"\s*:\s*"([^"\\]*)"')


class LostResultsError(Exception):
    """The provider does not know the batch, or does not have its results any more."""


class ResultsNotReadyError(FailureError):
    """A batch has ended and counts answers, but the provider does not give the file with them yet.

    The batch stays open, because its answers are paid for.
    """

    def __init__(self, batch: str | None):
        super().__init__(
            Failure.TEMPORARY,
            f"batch {batch} counts answers, but the provider has not stored the file with them yet",
        )


STORING = "storing"
"""The state of a batch that has ended, counts answers, and has no file with them yet."""

_LATEST_RESULTS = 86_400.0
"""Seconds after the end of a batch during which its results can still be stored. Then they are lost."""


def can_results_come(part: "BatchShare", ended: float | None) -> bool:
    """Whether the missing results of an ended batch that counts answers can still appear.

    Args:
        ended: when the batch ended, in seconds since 1970, or None if the provider does not say it.
    """
    return time.time() - (ended or part.time) < _LATEST_RESULTS


@dataclass(frozen=True)
class BatchFormat:
    """The format of a file of requests, and its limits."""

    start: bytes
    between: bytes
    end: bytes
    most_requests: int
    most_bytes: int


@dataclass(frozen=True)
class BatchProgress:
    """The progress of a batch.

    Args:
        is_ended: whether no more answers will come.
        done, total: number of requests that are done, and number of all requests.
        problem: why requests of an ended batch have no result.
    """

    state: str
    is_ended: bool
    done: int
    total: int
    problem: Problem


class BatchSearch(NamedTuple):
    """The outcome of a search for a batch: its identifier if it was found, and whether a later search is pointless."""

    batch: str | None
    is_final: bool


class UnsureError(Exception):
    """It is unknown whether a batch was created."""


class BatchLine(NamedTuple):
    """What a line says about a request. Messages name the line's location."""

    name: str | None
    reading: BatchReading
    line: str


class BatchShare(Protocol):
    """What a service has to know of the requests that are sent in one batch; see `runs.ledger.Part`."""

    @property
    def id(self) -> str:
        """Our own identifier. The provider stores it with the batch if it can."""

    @property
    def route(self) -> str:
        """The route of the API."""

    @property
    def time(self) -> float:
        """The time just before it was sent, in seconds since 1970."""

    @property
    def requests(self) -> Mapping[str, Any]:
        """The requests by their names."""

    @property
    def batch(self) -> str | None:
        """The provider's identifier; None while it is not known."""


class Service(ABC):
    """Answers batches. Errors of the packages are raised as they are.

    `progress` and `outcomes` raise `LostResultsError` if the provider does not know the batch any more.

    Attributes:
        name: stands in the record of a run's batches.
        format: the format of the file of requests.
        has_server: whether a server answers. It can also be asked directly.
    """

    name: ClassVar[str]
    format: ClassVar[BatchFormat]
    has_server: ClassVar[bool] = True

    @abstractmethod
    def __init__(self, client: Any, run_path: Path): ...

    @abstractmethod
    def line(
        self,
        name: str,
        route: str,
        body: Body,
    ) -> bytes:
        """Return a request in the format of the file."""

    @abstractmethod
    def create(self, part: BatchShare, file: IO[bytes]) -> str:
        """Create a batch and return its identifier.

        Raises:
            UnsureError: the batch may have been created. After any other error it was not created.
        """

    @abstractmethod
    def find(self, part: BatchShare, others: set[str]) -> BatchSearch:
        """Look for the batch of a part whose identifier was not stored. `others` are batches of other parts."""

    @abstractmethod
    def progress(self, part: BatchShare) -> BatchProgress:
        """Return the progress of a part's batch."""

    @abstractmethod
    def outcomes(self, part: BatchShare) -> Generator[BatchLine, None, None]:
        """Yield the outcomes in the results of an ended batch, in any order. Requests may be missing or repeated.

        Close the generator if it is not read to its end.
        """

    @abstractmethod
    def cancel(self, part: BatchShare) -> None:
        """Cancel a batch. Answers that exist can still be collected."""


def patient(library: Any) -> Any:
    """Return a copy of a package's client that repeats failed calls."""
    return library.with_options(max_retries=_RETRIES)


def read_outcomes(
    chunks: Iterable[bytes],
    source: str,
    read: Callable[[Body], BatchReading],
) -> Iterator[BatchLine]:
    """Read the lines of a results file. A line in another format is a malformed answer.

    Args:
        read: reads the outcome from the object in a line; it may raise any of `_FORMAT_ERRORS`.
    """
    for number, line in enumerate(split_lines(chunks), 1):
        if not line.strip():
            continue
        where = f"line {number} of {source}"
        row = None
        try:
            if len(line.rstrip(b"\n")) > settings_in_use().max_reply_bytes:
                raise ValueError
            # Unlike orjson, json accepts lone surrogates. Answers can contain them.
            row = json.loads(line)
            reading = read(row)
            outcome = BatchLine(
                name=check_type(row["custom_id"], str),
                reading=reading,
                line=where,
            )
        except _FORMAT_ERRORS as error:
            # The error's text could quote the answer, so only its type is named.
            reason = f"{where} cannot be read: {type(error).__name__}"
            problem = Problem(Failure.MALFORMED, reason)
            if isinstance(row, dict):
                name = row.get("custom_id")
            else:
                name = None
            if row is None and (match := _NAME.search(line)):
                name = match[1].decode("ascii", "replace")
            name = name if isinstance(name, str) else None
            outcome = BatchLine(
                name=name,
                reading=problem,
                line=where,
            )
        yield outcome


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Split bytes after each newline; the last line may have none.

    `str.splitlines` and the HTTP libraries also split at other characters, which JSON texts contain. A line can be as
    long as a reply (`RunSettings.max_reply`); of a longer one, only one byte more is in the result.
    """
    line = bytearray()
    most = settings_in_use().max_reply_bytes
    for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield bytes(line + end[: most + 1 - len(line)] + b"\n")
            line.clear()
        line += rest[: most + 1 - len(line)]
    if line:
        yield bytes(line)


_FORMAT_ERRORS = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Errors of code that reads a line in another format."""


def check_type(value: Any, kind: type[_Value]) -> _Value:
    """Return a value of a type; raise a `TypeError` if it has another one."""
    if not isinstance(value, kind):
        raise TypeError
    return value


@contextmanager
def unsure() -> Iterator[None]:
    """Raise `UnsureError` for errors after which the server may still have created the batch."""
    try:
        yield
    except Exception as error:
        status = getattr(error, "status_code", None)
        # A lost connection and a timeout have no status.
        if status is None or status >= 500:
            raise UnsureError(str(error)) from error
        raise


def retrieve(batches: Any, part: BatchShare) -> Any:
    """Return the provider's record of a batch.

    A server also answers 404 if the address is wrong. So the same client then lists the batches, which fails if the
    address or the key is wrong. A valid key of another account cannot be recognized.

    Raises:
        LostResultsError: the provider does not know the batch, but has a list of batches.
    """
    try:
        return batches.retrieve(part.batch)
    except Exception as error:
        can_list = False
        if is_missing(error):
            with suppress(Exception):  # the first error is reported
                can_list = isinstance(batches.list(limit=1).data, list)
        if can_list:
            raise LostResultsError from error
        raise


@contextmanager
def lost_if_missing() -> Iterator[None]:
    """Raise `LostResultsError` if the server answers that what the block requests does not exist."""
    try:
        yield
    except Exception as error:
        if is_missing(error):
            raise LostResultsError from error
        raise


def is_missing(error: BaseException) -> bool:
    """Whether a server answers that what was requested does not exist."""
    return getattr(error, "status_code", None) == 404
