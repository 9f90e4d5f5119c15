"""The services that answer batches: OpenAI's and Anthropic's batch APIs, and `vllm run-batch` with files.

Limits: https://platform.openai.com/docs/guides/batch and
https://platform.claude.com/docs/en/build-with-claude/batch-processing, read in November 2026.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import orjson
from helm.clients.client import Client

from helm_longctx.apis import AnthropicClient, OpenAIClient
from helm_longctx.apis.client import ProviderClient
from helm_longctx.apis.openai_client import CHAT
from helm_longctx.apis.parameters import Body
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of_text, label_error
from helm_longctx.runs.ledger import Part

TAG = "helm_longctx"
"""Name of the field in the metadata of OpenAI's batches that holds our identifier of the part."""

RETRIES = 5
"""Number of times that the packages repeat a failed call that costs nothing: uploads, lists, results."""

CLOCK_ERROR = 600
"""Largest difference in seconds between this computer's clock and the provider's."""

MANY = 10**9


@dataclass(frozen=True)
class Format:
    """The format of a file of requests, and its limits.

    Args:
        start, between, end: the bytes before, between and after the requests.
        most_requests, most_bytes: limits of a file.
    """

    start: bytes
    between: bytes
    end: bytes
    most_requests: int
    most_bytes: int


@dataclass(frozen=True)
class Progress:
    """The progress of a batch.

    Args:
        state: the provider's name of the state.
        is_ended: whether no more answers will come.
        done, total: number of requests that are done, and number of all requests.
        reason: the kind of failure, and why requests of an ended batch have no result.
    """

    state: str
    is_ended: bool
    done: int
    total: int
    reason: str


@dataclass(frozen=True)
class Outcome:
    """The outcome of a request: a reply in the API's format, or an error."""

    name: str
    reply: Body | None
    error: str | None


@dataclass(frozen=True)
class Search:
    """The outcome of a search for a batch: its identifier if it was found, and whether a later search is pointless."""

    batch: str | None
    is_final: bool


class UnsureError(Exception):
    """It is unknown whether a batch was created."""


class Service(Protocol):
    """Answers batches. Errors of the packages are raised as they are."""

    name: str
    format: Format

    def line(self, name: str, route: str, body: Body) -> bytes:
        """Return a request in the format of the file."""
        ...

    def create(self, part: Part, file: IO[bytes]) -> str:
        """Create a batch and return its identifier.

        Raises:
            UnsureError: the batch may have been created. After any other error it was not created.
        """
        ...

    def find(self, part: Part, others: set[str]) -> Search:
        """Look for the batch of a part whose identifier was not stored. `others` are batches of other parts."""
        ...

    def progress(self, part: Part) -> Progress:
        """Return the progress of a part's batch."""
        ...

    def outcomes(self, part: Part) -> Generator[Outcome, None, None]:
        """Yield the outcomes of the requests in an ended batch, in any order. Some may be missing.

        Close the generator if it is not read to its end.
        """
        ...

    def cancel(self, part: Part) -> None:
        """Cancel a batch. Answers that exist can still be collected."""
        ...


_LINES = Format(b"", b"\n", b"\n", 50_000, 200_000_000)


class OpenAIBatches:
    """OpenAI's batch API, of OpenAI or of a compatible server."""

    name, format = "openai", _LINES

    def __init__(self, client: ProviderClient):
        self._client, self._patient = client.client, client.client.with_options(max_retries=RETRIES)

    def line(self, name: str, route: str, body: Body) -> bytes:
        """Return a line of an input file."""
        return _openai_line(name, route, body)

    def create(self, part: Part, file: IO[bytes]) -> str:
        """Upload the file and create the batch. A file without a batch costs nothing and expires after 30 days."""
        uploaded = self._patient.files.create(file=(f"helm-longctx-{part.id}.jsonl", file), purpose="batch")
        with _unsure():
            # The call is not repeated, because a second batch would cost as much as the first one.
            batch = self._client.batches.create(
                completion_window="24h",
                endpoint=part.route,
                input_file_id=uploaded.id,
                metadata={TAG: part.id},
            )
        return str(batch.id)

    def find(self, part: Part, others: set[str]) -> Search:
        """Look for the batch that has the part's identifier in its metadata."""
        batches = self._patient.batches.list(limit=100)
        return Search(next((batch.id for batch in batches if (batch.metadata or {}).get(TAG) == part.id), None), True)

    def progress(self, part: Part) -> Progress:
        """Return the batch's status."""
        batch = self._patient.batches.retrieve(part.batch)
        counts, status = batch.request_counts, batch.status
        done = counts.completed + counts.failed if counts else 0
        reason = label_error(Failure.TEMPORARY, f"the batch ended ({status}) before this request was answered")
        if errors := [error.message for error in (batch.errors and batch.errors.data) or [] if error.message]:
            reason = label_error(failure_of_text(errors[0]), f"the batch has failed: {errors[0]}")
        is_ended = status in ("completed", "failed", "expired", "cancelled")
        return Progress(status, is_ended, done, len(part.requests), reason)

    def outcomes(self, part: Part) -> Generator[Outcome, None, None]:
        """Read the file of answers and the file of errors."""
        batch = self._patient.batches.retrieve(part.batch)
        for file in filter(None, (batch.output_file_id, batch.error_file_id)):
            with self._patient.files.with_streaming_response.content(file) as response:
                yield from map(_openai_outcome, filter(None, response.iter_lines()))

    def cancel(self, part: Part) -> None:
        """Cancel the batch."""
        self._patient.batches.cancel(part.batch)


class AnthropicBatches:
    """Anthropic's message batches."""

    name = "anthropic"
    format = Format(b'{"requests":[', b",\n", b"]}", 100_000, 256_000_000)

    def __init__(self, client: ProviderClient):
        self._client, self._patient = client.client, client.client.with_options(max_retries=RETRIES)

    def line(self, name: str, route: str, body: Body) -> bytes:
        """Return an element of the list of requests."""
        return orjson.dumps({"custom_id": name, "params": body})

    def create(self, part: Part, file: IO[bytes]) -> str:
        """Create the batch. The package's own method would hold all requests in memory, several times."""
        from anthropic.types.messages import MessageBatch

        with _unsure():
            batch = self._client.post("/v1/messages/batches", cast_to=MessageBatch, content=file)
        return str(batch.id)

    def find(self, part: Part, others: set[str]) -> Search:
        """Look for a batch of the same time and size. When it has ended, its results show whether it is the part's.

        Anthropic stores no metadata with a batch.
        """
        is_final = True
        for batch in self._patient.messages.batches.list(limit=100):
            if batch.created_at.timestamp() < part.time - CLOCK_ERROR:
                break  # the newest come first
            # The sum over all states of requests is the batch's size.
            if batch.id in others or sum(batch.request_counts.to_dict().values()) != len(part.requests):
                continue
            if batch.processing_status != "ended":
                is_final = False
                continue
            with closing(self._results(batch.id)) as results:
                first = next(results, None)
            # Names are digests of requests, so a single common name proves that the batch is the part's.
            if first and first.name in part.requests:
                return Search(batch.id, True)
        return Search(None, is_final)

    def progress(self, part: Part) -> Progress:
        """Return the batch's status. Anthropic counts the requests only when the batch has ended."""
        batch = self._patient.messages.batches.retrieve(part.batch)
        total = len(part.requests)
        reason = label_error(Failure.TEMPORARY, "the batch ended before this request was answered")
        status = batch.processing_status
        return Progress(status, status == "ended", total - batch.request_counts.processing, total, reason)

    def outcomes(self, part: Part) -> Generator[Outcome, None, None]:
        """Read the results."""
        assert part.batch
        return self._results(part.batch)

    def cancel(self, part: Part) -> None:
        """Cancel the batch."""
        self._patient.messages.batches.cancel(part.batch)

    def _results(self, batch: str) -> Generator[Outcome, None, None]:
        # The response is closed here. The garbage collector could close it while httpcore holds the lock that closing
        # needs, and httpcore would be blocked forever.
        with closing(self._patient.messages.batches.results(batch)) as rows:
            for row in rows:
                yield _anthropic_outcome(row.to_dict(mode="json"))


class BatchFiles:
    """Files in OpenAI's format, which the user gives to `vllm run-batch`. A batch is identified by its file's name.

    Args:
        run_path: the run's folder; the files stand in its folder `batches`.
    """

    name = "files"
    # A file has no limits, unlike a provider's batch.
    format = Format(b"", b"\n", b"\n", MANY, MANY * MANY)

    def __init__(self, run_path: Path):
        self._folder = run_path / "batches"

    def line(self, name: str, route: str, body: Body) -> bytes:
        """Return a line of an input file.

        Raises:
            InputError: the request is not a chat.
        """
        if route != CHAT:
            raise InputError(f"`vllm run-batch` answers no requests to {route}; set form: chat in the deployment")
        return _openai_line(name, route, body)

    def create(self, part: Part, file: IO[bytes]) -> str:
        """Write the file."""
        path = self._folder / _file_name(part)
        path.parent.mkdir(exist_ok=True)
        # The file first has another name, so that `vllm run-batch` never reads an incomplete file.
        with path.with_suffix(".part").open("wb") as target:
            shutil.copyfileobj(file, target)
        path.with_suffix(".part").replace(path)
        return path.name

    def find(self, part: Part, others: set[str]) -> Search:
        """Look for the file."""
        name = _file_name(part)
        return Search(name if (self._folder / name).exists() else None, True)

    def progress(self, part: Part) -> Progress:
        """Count the lines of the result file."""
        path, results = self.paths(part)
        done, total = sum(1 for _ in _whole_lines(results)), len(part.requests)
        reason = label_error(Failure.TEMPORARY, f"{results} has no line for the request")
        if not path.exists():
            return Progress("cancelled", True, done, total, reason)
        return Progress("completed" if done >= total else "written", done >= total, done, total, reason)

    def outcomes(self, part: Part) -> Generator[Outcome, None, None]:
        """Read the result file."""
        yield from map(_openai_outcome, _whole_lines(self.paths(part)[1]))

    def cancel(self, part: Part) -> None:
        """Remove the file."""
        self.paths(part)[0].unlink(missing_ok=True)

    def paths(self, part: Part) -> tuple[Path, Path]:
        """Return the input file and the result file of a part."""
        path = self._folder / (part.batch or _file_name(part))
        return path, path.with_suffix(".results.jsonl")


def find_service(name: str, client: ProviderClient, run_path: Path) -> Service:
    """Return the service of a part."""
    if name == BatchFiles.name:
        return BatchFiles(run_path)
    return OpenAIBatches(client) if name == OpenAIBatches.name else AnthropicBatches(client)


def service_name(client: Client, deployment: str, as_files: bool) -> str:
    """Return the name of the service that answers batches of a deployment.

    Raises:
        InputError: the deployment has none.
    """
    if isinstance(client, AnthropicClient) and not as_files:
        return AnthropicBatches.name
    if isinstance(client, OpenAIClient):
        return BatchFiles.name if as_files else OpenAIBatches.name
    allowed = "OpenAIClient" if as_files else "OpenAIClient and AnthropicClient"
    raise InputError(
        f"{deployment} has no batches; allowed: deployments with the clients {allowed} of helm_longctx.apis"
    )


@contextmanager
def _unsure() -> Iterator[None]:
    """Raise `UnsureError` for errors after which the server may still have created the batch."""
    try:
        yield
    except Exception as error:
        status = getattr(error, "status_code", None)
        # A lost connection and a timeout have no status.
        if status is None or status >= 500:
            raise UnsureError(str(error)) from error
        raise


def _file_name(part: Part) -> str:
    return f"batch-{part.id[:12]}.jsonl"


def _openai_line(name: str, route: str, body: Body) -> bytes:
    return orjson.dumps({"custom_id": name, "method": "POST", "url": route, "body": body})


def _openai_outcome(line: str | bytes) -> Outcome:
    row = orjson.loads(line)
    name, response, error = row["custom_id"], row.get("response"), row.get("error")
    if not response:
        return Outcome(name, None, f"{error}")
    status, body = response.get("status_code", 200), response.get("body")
    if status == 200 and not error and isinstance(body, dict):
        return Outcome(name, body, None)
    # This is the wording of the package openai, which `failures` classifies by the status.
    return Outcome(name, None, f"Error code: {status} - {error or body}")


def _anthropic_outcome(row: Body) -> Outcome:
    name, result = row["custom_id"], row["result"]
    if result["type"] == "succeeded":
        return Outcome(name, result["message"], None)
    if result["type"] == "errored":
        # The result holds the body of an error response, in which the error is nested once more.
        return Outcome(name, None, str(result["error"].get("error", result["error"])))
    return Outcome(name, None, label_error(Failure.TEMPORARY, f"the request is {result['type']}"))


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the complete lines of a file; none if there is no file yet."""
    if path.exists():
        with path.open("rb") as file:
            # vLLM may still be writing the last line.
            yield from (line for line in file if line.endswith(b"\n") and line.strip())
