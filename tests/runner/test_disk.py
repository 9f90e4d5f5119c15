"""A full disk is named, and what was answered is not lost. A limit on file sizes stands for it: it needs no root."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.runs.journal import NAME
from tests.running.making import ENTRY, PlainClient, answered, make_run

Limit = Callable[[int], None]


@pytest.fixture
def limit() -> Iterator[Limit]:
    """Files of this process can have so many bytes, until the test ends."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_answers_do_not_fit(tmp_path: Path, limit: Limit, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends in one line that names the place; the same command again asks only for what is not kept."""

    def long_answer(client: PlainClient, request: Request) -> RequestResult:
        client.asked.append(request.prompt)
        return answered("x" * 400_000, cached=False)

    monkeypatch.setattr(PlainClient, "make_request", long_answer)
    limit(1_500_000)
    with pytest.raises(
        InputError, match=r"cannot be written: File too large; the answers are kept in .*answers\.jsonl"
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
    """Nothing is asked then."""
    limit(100_000)
    with pytest.raises(InputError, match=r"runs/s/helmet_recall.* cannot be written: File too large"):
        make_run(tmp_path, ENTRY + "test/plain")
    assert PlainClient.asked == []
