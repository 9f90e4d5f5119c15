"""Records the batches of a run, their requests and their outcomes.

Each step that can cost money is recorded before and after it. So after a crash at any moment it is known which batches
exist, and for which one the provider must be asked.
"""

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from helm_longctx.errors import InputError
from helm_longctx.helm_api import Request, asdict_without_nones
from helm_longctx.runs.journal import DurableLines, parse_object

NAME = "batches.jsonl"


class Receiver(NamedTuple):
    """The receiver of a batch's requests; see `BatchPart`. The same deployment can have another key as a judge."""

    deployment: str
    service: str
    is_judging: bool = False


@dataclass(frozen=True)
class BatchPart:
    """Requests of a run that are sent in one batch.

    Args:
        id: our own identifier, which the provider stores with the batch if it can.
        requests: the requests by their names in the journal, or for a judge in the request cache. Each has the
            `request` without its prompt, and the other data that was `sent`.
        batch: the provider's identifier; None while it is unknown whether the batch was created.
        failures: number of requests without an answer, by kind; None until the batch was collected.
        is_absent: whether it is certain that no batch was created.
        is_judging: whether the deployment is asked as a judge.
    """

    id: str
    deployment: str
    service: str
    route: str
    time: float
    requests: dict[str, dict[str, Any]] = field(repr=False)
    batch: str | None = None
    failures: dict[str, int] | None = None
    is_absent: bool = False
    is_judging: bool = False

    @property
    def receiver(self) -> Receiver:
        """The receiver of the requests."""
        return Receiver(self.deployment, self.service, self.is_judging)

    @property
    def is_open(self) -> bool:
        """Whether there may be requests that wait at the provider, or answers that were not collected."""
        return self.failures is None and not self.is_absent

    def request(self, name: str) -> Request:
        """Return a request. Its prompt is empty."""
        return parse_object(Request, self.requests[name]["request"])

    def request_fields(self, name: str) -> dict[str, Any]:
        """Return the data that was sent in addition to a request's prompt."""
        sent: dict[str, Any] = self.requests[name]["sent"]
        return sent


class Ledger(DurableLines):
    """A file with one line for each step of a batch. Damage before its last line raises an `InputError`."""

    def __init__(self, run_path: Path):
        super().__init__(
            run_path / NAME,
            "the batches of this run are listed on the provider's pages",
        )
        self._parts: dict[str, BatchPart] = {}
        for line in self.read():
            try:
                self._apply(line)
            except (LookupError, TypeError, AttributeError) as error:
                raise self.damage() from error

    @property
    def parts(self) -> list[BatchPart]:
        """All parts, in the order in which they were sent."""
        return list(self._parts.values())

    @property
    def open_parts(self) -> list[BatchPart]:
        """The parts that were sent, or may have been sent, and were not collected."""
        return [part for part in self._parts.values() if part.is_open]

    def doubtful_parts(self, receiver: Receiver) -> list[BatchPart]:
        """Return the parts of which it is unknown whether the receiver has created a batch."""
        return [
            part
            for part in self.open_parts
            if part.batch is None and part.receiver == receiver
        ]

    def announce(
        self,
        receiver: Receiver,
        route: str,
        requests: Mapping[str, tuple[Request, Mapping[str, Any]]],
    ) -> BatchPart:
        """Record that a batch is about to be created."""
        identifier = uuid.uuid4().hex
        stored = {}
        for name, (request, sent) in requests.items():
            bare = replace(
                request, prompt="", messages=None if request.messages is None else []
            )
            stored[name] = {"request": asdict_without_nones(bare), "sent": dict(sent)}
        about = {**receiver._asdict(), "route": route, "time": time.time()}
        self._record({"part": identifier, **about, "requests": stored})
        return self._parts[identifier]

    def set_batch(self, part: BatchPart, batch: str) -> None:
        """Record that a batch was created."""
        self._record({"part": part.id, "batch": batch})

    def set_absent(self, part: BatchPart) -> None:
        """Record that no batch was created."""
        self._record({"part": part.id, "is_absent": True})

    def set_collected(self, part: BatchPart, failures: Mapping[str, int]) -> None:
        """Record that all answers of a batch are in the journal."""
        self._record({"part": part.id, "failures": dict(failures)})

    def _record(self, step: dict[str, Any]) -> None:
        self.append(step)
        self._apply(step)

    def _apply(self, step: dict[str, Any]) -> None:
        values = {}
        for name, value in step.items():
            if name != "part":
                values[name] = value
        # Only the first step of a part has its requests.
        if "requests" in step:
            self._parts[step["part"]] = BatchPart(step["part"], **values)
        else:
            self._parts[step["part"]] = replace(self._parts[step["part"]], **values)


def ledgers(runs: Iterable[Path]) -> Iterator[Ledger]:
    """Open the ledgers of those runs that have one, one at a time."""
    for run in runs:
        if (run / NAME).is_file():
            with Ledger(run) as ledger:
                yield ledger


def check_nothing_in_batches(run_path: Path) -> None:
    """Raise an `InputError` if a request is in an open batch, because it would be paid for twice."""
    for ledger in ledgers([run_path]):
        count = sum(len(part.requests) for part in ledger.open_parts)
        if count:
            raise InputError(
                f"{count} requests of this run are in batches that were not collected;"
                " give `helm-longctx run` with --batch wait first, or `helm-longctx"
                f" batch cancel --suite {run_path.parent.name}`"
            )
