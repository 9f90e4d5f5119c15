"""Tests of a full disk. A limit on file sizes stands for it, because that needs no root."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.runs.journal import NAME
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
    """If answers do not fit, the run ends in one line that names the place, and the same command sends only missing requests."""

    def long_answer(client: PlainClient, request: Request) -> RequestResult:
        client.asked.append(request.prompt)
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
    assert kept == 3
    asked = len(PlainClient.asked)
    assert asked < 12
    make_run(tmp_path, ENTRY + "test/plain")
    assert len(PlainClient.asked) == asked + 12 - kept


def test_prompts_do_not_fit(tmp_path: Path, limit: Limit) -> None:
    """If prompts do not fit, nothing is sent."""
    limit(100_000)
    with pytest.raises(
        InputError, match=r"runs/s/helmet_recall.* cannot be written: File too large"
    ):
        make_run(tmp_path, ENTRY + "test/plain")
    assert PlainClient.asked == []
