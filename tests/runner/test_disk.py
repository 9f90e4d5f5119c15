"""Tests of a full disk. A limit on file sizes stands for it, because that needs no root."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.runs.journal import NAME, SealedLines
from tests.runner.making import ENTRY, PlainClient, answered, make_run

Limit = Callable[[int], None]


@pytest.fixture
def limit() -> Iterator[Limit]:
    """Limit the size of files of this process until the test ends."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_answers_do_not_fit(
    tmp_path: Path, limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If answers do not fit, the run ends in one line that names the place, and the same command sends only missing requests.

    The run waits for the answers in flight, and keeps those that fit.
    """

    def long_answer(client: PlainClient, request: Request) -> RequestResult:
        client.asked.append(request.prompt)
        if len(client.asked) == 2:
            # This answer comes when the disk is full, and is short enough for it.
            time.sleep(0.5)
            return answered("x" * 1_000, cached=False)
        return answered("x" * 400_000, cached=False)

    monkeypatch.setattr(PlainClient, "make_request", long_answer)
    limit(1_500_000)
    with pytest.raises(
        InputError,
        match=r"cannot be written: File too large; the answers are kept in .*answers\.jsonl",
    ):
        make_run(tmp_path, ENTRY + "test/plain")
    limit(resource.RLIM_INFINITY)
    (journal,) = tmp_path.rglob(NAME)
    kept = journal.read_bytes().count(b"\n")
    assert kept == 4
    asked = len(PlainClient.asked)
    assert asked < 12
    make_run(tmp_path, ENTRY + "test/plain")
    assert len(PlainClient.asked) == asked + 12 - kept


def test_lines_after_a_line_that_did_not_fit(tmp_path: Path, limit: Limit) -> None:
    """If the disk is full for a while, the file has the lines that fit then and those that came later, each whole."""
    path = tmp_path / NAME
    with SealedLines(path, "remove it") as lines:
        limit(1_000)
        lines.append(["a", "x" * 300])
        with pytest.raises(OSError, match="File too large"):
            lines.append(["b", "x" * 900])
        lines.append(["c", "x" * 300])
        limit(resource.RLIM_INFINITY)
        lines.append(["d", "x" * 900])
    names = [name for name, _ in SealedLines(path, "remove it").read()]
    assert names == ["a", "c", "d"]


def test_prompts_do_not_fit(tmp_path: Path, limit: Limit) -> None:
    """If prompts do not fit, nothing is sent."""
    limit(100_000)
    with pytest.raises(
        InputError, match=r"runs/s/helmet_recall.* cannot be written: File too large"
    ):
        make_run(tmp_path, ENTRY + "test/plain")
    assert PlainClient.asked == []
