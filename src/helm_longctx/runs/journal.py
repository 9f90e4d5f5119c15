"""Answers of a run that is not finished, on disk as they come."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

import dacite
from helm.common.general import asdict_without_nones
from helm.common.key_value_store import request_to_key
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.failures import failure_of
from helm_longctx.redaction.abbreviation import digest

NAME = "answers.jsonl"


class Journal:
    """One line an answer, by the digest of its request. An end that a crash tore is dropped.

    Args:
        run_path: the run's folder. The file stays there until `finish`, and tells that the run is not finished.
        server: tells answers of one server from those of another (see `server_digest`).

    Raises:
        InputError: the file is damaged elsewhere than at its end.
    """

    def __init__(self, run_path: Path, server: str = ""):
        self._path, self._server = run_path / NAME, server
        self._file = self._path.open("a+b")
        self._lock = Lock()
        self._answers: dict[str, dict[str, Any]] = {}
        self._file.seek(0)
        whole = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            name, result = self._parsed(line)
            self._answers[name] = result
            whole += len(line)
        self._file.truncate(whole)

    def _parsed(self, line: bytes) -> tuple[str, dict[str, Any]]:
        try:
            name, result = json.loads(line)
            if not (isinstance(name, str) and isinstance(result, dict)):
                raise ValueError("no answer")
        except (ValueError, TypeError) as error:
            raise InputError(f"{self._path} is damaged; without it, its answers are asked for again") from error
        return name, result

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._answers)

    def summary(self) -> str:
        """What a run that ends early leaves behind, and how to go on."""
        return f"{len(self)} answers are kept in {self._path}, and the same command goes on from there"

    def name(self, request: Request, prompt_digest: str) -> str:
        """A digest of all that is sent, and where; the prompt, which may be elided in the request, by its own."""
        messages = [] if request.messages else request.messages  # the digest is theirs
        sent = request_to_key(asdict(replace(request, prompt=prompt_digest, messages=messages)))
        return digest(f"{self._server}\0{sent}")

    def get(self, name: str) -> RequestResult | None:
        """The answer to a request; None if there is none yet, or what stands there is none."""
        try:
            # HELM's clients give whole numbers where floats are declared.
            found = dacite.from_dict(RequestResult, self._answers[name], dacite.Config(check_types=False))
        except (KeyError, dacite.DaciteError):
            return None
        return found if failure_of(found) is None else None

    def add(self, name: str, result: RequestResult) -> None:
        """Keep an answer; it is on disk when this returns."""
        answer = asdict_without_nones(result)
        with self._lock:
            self._answers[name] = answer
            self._file.write(json.dumps([name, answer]).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def finish(self) -> None:
        """The run's files hold every answer now."""
        self._file.close()
        self._path.unlink()
