"""Mutated files of results of batches: each good line gives its answer, and other lines give a failure or an error."""

from __future__ import annotations

import atexit
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from unittest import mock

from helm_longctx.errors import InputError
from helm_longctx.models.apis import batches
from helm_longctx.runner.batches import submission
from helm_longctx.runner.batches.collection import Batches
from helm_longctx.runs.journal import Journal
from helm_longctx.runs.ledger import Ledger
from tests.fuzz.cases import check_line
from tests.fuzz.mutate import dumped, mutated, mutated_bytes
from tests.support.batches import ENTRY, Folder, register
from tests.support.servers.batches import (
    BatchServer,
    _anthropic_line,
    _BatchHandler,
    _openai_line,
)
from tests.support.servers.llm import run as running
from tests.support.servers.protocols import Body

ANSWERS = (
    "Paris",
    "",
    "line\u2028separator\u0085 and\x0bothers\x1c",
    "文 😀",
    '{"custom_id": "x"}',
    "=1+1",
)
"""Texts of answers, among them characters at which Python divides lines and JSON does not."""

_stack = ExitStack()
atexit.register(_stack.close)


class ResultServer(BatchServer):
    """A server with batches, which sends given bytes as their results.

    Attributes:
        content: the file of results.
    """

    content = b""

    def __init__(self, answer: Callable[[str], str]):
        super().__init__(answer)
        self.http.RequestHandlerClass = type(
            "Handler", (_ResultHandler,), {"service": self}
        )


class _ResultHandler(_BatchHandler):
    service: ResultServer

    def do_GET(self) -> None:  # noqa: N802
        if not self.path.endswith(("/content", "/results")):
            return super().do_GET()
        content = b"" if "/error-" in self.path else self.service.content
        self.send_response(200)
        self.send_header("Content-Type", "application/x-jsonl")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return self.wfile.write(content) and None


@dataclass(frozen=True)
class Submitted:
    """A run whose requests are in a batch.

    Args:
        lines: the results that the provider would send, by the request's name.
    """

    server: ResultServer
    folder: Path
    run: Path
    lines: dict[str, Body]


@cache
def _submitted(protocol: str) -> Submitted:
    """Return a run that was submitted once; cases collect copies of it."""
    folder = Path(
        _stack.enter_context(tempfile.TemporaryDirectory(prefix="fuzz-batch-"))
    )
    texts = iter(ANSWERS * 10)
    server = _stack.enter_context(running(ResultServer(lambda prompt: next(texts))))
    run = Folder(folder, ENTRY + register(protocol, server))
    with mock.patch.object(submission, "_SETTLE", 0):
        run.submit()
    write = _openai_line if protocol == "openai" else _anthropic_line
    (batch,) = server.batches.values()
    return Submitted(
        server,
        folder,
        run.run,
        {name: write(name, row) for name, row in batch.rows.items()},
    )


def run(protocol: str, rng: random.Random) -> None:
    """Collect a batch whose results are mutated, and check that no answer of a good line is missing afterwards."""
    submitted = _submitted(protocol)
    submitted.server.content = content = _mutated_results(
        list(submitted.lines.values()), rng
    )
    with tempfile.TemporaryDirectory(prefix="fuzz-collect-") as folder:
        path = Path(folder) / submitted.run.name
        shutil.copytree(submitted.run, path)
        with (
            mock.patch.object(batches, "_RETRIES", 0),
            redirect_stdout(StringIO()),
        ):  # HELM prints the folder
            try:
                Batches(submitted.folder, [path]).collect()
            except InputError as error:
                check_line(error)
        _check_journal(path, _good_names(content, submitted.lines))


def _mutated_results(rows: list[Body], rng: random.Random) -> bytes:
    """Return lines in any order, of which some are changed, lost, repeated or of other requests."""
    rng.shuffle(rows)
    lines = [_line(row) for row in rows]
    for _ in range(rng.choice((1, 1, 2, 5))):
        position = rng.randrange(len(lines))
        lines[position] = dumped(mutated(rows[position], rng), rng)
    kind = rng.randrange(6)
    position = rng.randrange(len(lines))
    if kind == 0:
        del lines[position]
    elif kind == 1:
        lines.insert(position, rng.choice(lines))
    elif kind == 2:
        lines.insert(
            position,
            rng.choice(
                (b"", b"null", b"[]", b"{}", b'{"custom_id": "other"}', b"\xff", b"{")
            ),
        )
    content = b"".join(line + b"\n" for line in lines)
    return mutated_bytes(content, rng) if rng.random() < 0.1 else content


def _line(row: Body) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode()


def _good_names(content: bytes, rows: dict[str, Body]) -> set[str]:
    """Return the names of the requests whose line is unchanged, and is the only line that names them."""
    lines = content.split(b"\n")
    return {
        name
        for name, row in rows.items()
        if _line(row) in lines and content.count(name.encode()) == 1
    }


def _check_journal(run: Path, good: set[str]) -> None:
    with Journal(run) as journal:
        missing = [name for name in good if journal.get(name) is None]
        assert not missing, (
            f"{len(missing)} of {len(good)} answers that are paid for are lost"
        )
        answered = sum(journal.get(name) is not None for name in _names(run))
    with Ledger(run) as ledger:
        for part in ledger.parts:
            if part.failures is not None:
                assert answered + sum(part.failures.values()) == len(part.requests), (
                    "a request is not counted"
                )


def _names(run: Path) -> list[str]:
    with Ledger(run) as ledger:
        return [name for part in ledger.parts for name in part.requests]
