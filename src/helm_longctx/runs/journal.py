"""Stores the answers of an unfinished run. Each answer is on disk as soon as it arrives."""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import dacite
from helm.common.request import Request, RequestResult

from helm_longctx.failures import failure_of
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runs.durable import SealedLines

NAME = "answers.jsonl"
Value = TypeVar("Value")

SHARDS = "shards"
"""Folder in a run's folder for the files of shards: locks, and a file of answers for each process."""


class Journal(SealedLines):
    """A file with one line for each answer, under the digest of its request and with a digest of the line.

    A last line that a crash cut off is dropped; another one that was changed raises an `InputError`. The answers in the
    run's other files of this kind are found, too. `advice` says how a user continues the run.

    Args:
        run_path: the run's folder. The file stays there until `finish`. As long as it exists, the run is unfinished.
        server: identifies the server, so that its answers are not used for another one (see `server_digest`).
        process: name of this process if it works on a shard, so that it writes to its own file.
    """

    advice = "run the same command again"

    def __init__(self, run_path: Path, server: str = "", process: str | None = None):
        path = run_path / SHARDS / f"{process}.jsonl" if process else run_path / NAME
        super().__init__(path, _REMEDY)
        path.touch()
        self._run_path, self._server = run_path, server
        self._answers: dict[str, RequestResult | None] = {}
        for other in answer_files(run_path):
            if other != path:
                self._answers |= read_answers(other)
        self._answers.update(_read(self))

    def __len__(self) -> int:
        return len(self._answers)

    def summary(self) -> str:
        """Say how many answers are kept and how to continue the run."""
        if not self:
            return f"there are no answers yet; {self.advice} to continue"
        return f"{len(self)} answers are kept in {self.path}; {self.advice} to continue"

    def name(self, request: Request, prompt_digest: str) -> str:
        """Return the digest of a request and its server."""
        return request_name(request, prompt_digest, self._server)

    def get(self, name: str) -> RequestResult | None:
        """Return the answer to a request; None if there is none, or if the stored result is a failure."""
        result = self._answers.get(name)
        return result if result and failure_of(result) is None else None

    def add(self, name: str, result: RequestResult) -> None:
        """Write an answer. It is on disk when this method returns."""
        self._answers[name] = result
        self.append([name, result])

    def close(self) -> None:
        """Close the file, and remove it if it is empty, because then no requests of the run were sent."""
        super().close()
        if self.path.exists() and not self.path.stat().st_size:
            self.path.unlink()

    def finish(self) -> None:
        """Remove the journal and the journals of shards, because the run's other files hold every answer now."""
        self.close()
        self.path.unlink(missing_ok=True)
        shutil.rmtree(self._run_path / SHARDS, ignore_errors=True)


def request_name(request: Request, prompt_digest: str, server: str = "") -> str:
    """Return the digest of a request."""
    messages = [] if request.messages else request.messages  # `prompt_digest` covers them
    sent = json.dumps(vars(replace(request, prompt=prompt_digest, messages=messages)), sort_keys=True, default=vars)
    return digest(f"{server}\0{sent}")


def answer_files(run_path: Path) -> list[Path]:
    """Return the files with answers of an unfinished run. A complete run has none."""
    return [*run_path.glob(NAME), *sorted((run_path / SHARDS).glob("*.jsonl"))]


def read_answers(path: Path) -> dict[str, RequestResult | None]:
    """Read the answers in a journal by request, None as in `Journal.get`, or raise an `InputError`."""
    with SealedLines(path, _REMEDY) as lines:
        return dict(_read(lines))


def _read(lines: SealedLines) -> Iterator[tuple[str, RequestResult | None]]:
    for line in lines.read():
        if not (isinstance(line, list) and [type(part) for part in line] == [str, dict]):
            raise lines.damage()
        try:
            yield line[0], parse_object(RequestResult, line[1])
        except dacite.DaciteError:  # another version of HELM has written it
            yield line[0], None


def parse_object(kind: type[Value], content: Mapping[str, Any]) -> Value:
    """Make one of HELM's objects from plain data. Raises a `DaciteError` if a field is missing."""
    # HELM's clients return whole numbers where floats are declared.
    return dacite.from_dict(kind, content, dacite.Config(check_types=False))


_REMEDY = "remove this line, and its answer is requested again"
