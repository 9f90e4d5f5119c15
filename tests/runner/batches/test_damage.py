"""Results that are damaged or lost, over real loopback servers: the other answers and batches are collected."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from helm_longctx.errors import InputError
from helm_longctx.run_settings import MAX_REPLY
from helm_longctx.runs.ledger import Ledger
from tests.support.batches import ENTRY, Folder, direct, register
from tests.support.servers.batches import BatchServer

Spoil = Callable[[list[bytes]], list[bytes]]


def rename(line: bytes, name: object) -> bytes:
    """Return the line with another `custom_id`, or without one if the name is None."""
    row = json.loads(line)
    del row["custom_id"]
    return json.dumps(row if name is None else {**row, "custom_id": name}).encode()


def retype(line: bytes) -> bytes:
    """Return the line with a list in the place of the reply."""
    row = json.loads(line)
    return json.dumps(
        {"custom_id": row["custom_id"], "response": [1], "result": [1]}
    ).encode()


MALFORMED = {"malformed": 1}
TEMPORARY = {"temporary": 1}

LINES: dict[str, tuple[Spoil, dict[str, int]]] = {
    "no JSON": (lambda lines: [lines[0][:-9], *lines[1:]], MALFORMED),
    "no object": (lambda lines: [b"[1]", *lines[1:]], TEMPORARY),
    "no name": (lambda lines: [rename(lines[0], None), *lines[1:]], TEMPORARY),
    "a number as the name": (
        lambda lines: [rename(lines[0], 7), *lines[1:]],
        TEMPORARY,
    ),
    "an unknown name": (lambda lines: [rename(lines[0], "x"), *lines[1:]], TEMPORARY),
    "another type": (lambda lines: [retype(lines[0]), *lines[1:]], MALFORMED),
    "not UTF-8": (
        lambda lines: [lines[0][:-9] + b"\xff" + lines[0][-9:], *lines[1:]],
        MALFORMED,
    ),
    "a huge line": (
        lambda lines: [lines[0][:-1] + b" " * 2_000_000 + b"}", *lines[1:]],
        MALFORMED,
    ),
    "a cut last line": (
        lambda lines: [*lines[:-1], lines[-1][: len(lines[-1]) // 2]],
        MALFORMED,
    ),
    "a repeated line": (lambda lines: [*lines, lines[0]], {}),
    "a spoiled line before a good one": (lambda lines: [lines[3][:-9], *lines], {}),
}


@pytest.mark.parametrize("name", LINES)
def test_a_bad_line(
    folder: Folder,
    server: BatchServer,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bad line costs one answer. `helm-run` asks for this answer, and has all others."""
    monkeypatch.setenv(MAX_REPLY, "1")
    spoil, failures = LINES[name]
    server.spoil = lambda batch, data: (
        b"\n".join(spoil(data.splitlines())) if data else data
    )
    folder.submit()
    folder.batches.collect()
    assert folder.failures == failures
    folder.make()
    assert len(direct(folder, server)) == sum(failures.values())


def test_lines_of_no_request(
    folder: Folder,
    server: BatchServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Lines that belong to no request are counted and named by their number."""
    server.spoil = lambda batch, data: (
        b"\n".join([b"{", *data.splitlines(), b"<html>"]) if data else data
    )
    folder.submit()
    folder.batches.collect()
    assert folder.failures == {}
    (text,) = (text for text in caplog.messages if "name no request" in text)
    assert "batch_0" in text
    assert "repeat an answer: 2 (line 1 of " in text
    assert "line 14 of" in text


@pytest.fixture
def parts(folder: Folder, server: BatchServer) -> Folder:
    """A run with three batches of four requests."""
    folder.submit(batch_size=4)
    return folder


def states(folder: Folder) -> list[str]:
    """Return the states of all batches, also if asking for them ends with an error."""
    all_states: list[str] = []
    with suppress(InputError):
        all_states.extend(state.state for state in folder.batches.states())
    return all_states


def html(batch: str, data: bytes) -> bytes:
    """Send an HTML page in the place of the results of the first batch."""
    return b"<html>\n<p>Please log in\n</html>\n" if batch.endswith("batch_0") else data


@pytest.mark.parametrize("wait", [False, True])
def test_a_page_instead_of_results(
    parts: Folder, server: BatchServer, wait: bool
) -> None:
    """The batch stays open, because its answers may come later. The other batches are collected, and an error names it."""
    server.spoil = html
    with pytest.raises(
        InputError,
        match=r"batch_0.* no line names a request of the batch; .*; check .*--suite s --forget$",
    ):
        parts.batches.wait() if wait else parts.batches.collect()
    assert states(parts)[1:] == ["collected"] * 2
    server.spoil = lambda batch, data: data
    parts.batches.collect()
    assert parts.failures == {}
    parts.make()
    assert direct(parts, server) == []


def test_forgetting(
    parts: Folder, server: BatchServer, caplog: pytest.LogCaptureFixture
) -> None:
    """`--forget` ends the batches that cannot be collected, and their requests are sent again. Other batches stay open."""
    server.spoil = html
    server.batches["batch_1"].polls, server.batches["batch_1"].state = 9, "in_progress"
    parts.batches.collect(forget=True)
    assert "4 answers are given up" in caplog.text
    assert states(parts) == ["collected", "in_progress", "collected"]
    assert parts.failures == {"unreachable": 4}
    parts.submit()
    assert [batch.total for batch in server.batches.values()] == [4, 4, 4, 4]


def test_a_lost_batch(
    parts: Folder, server: BatchServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A batch that the provider does not know has ended without results. One line says so, and its requests are sent again."""
    server.gone = {"batch_0"}
    assert states(parts)[0] == "gone"
    assert parts.batches.cancel() == 0
    for _ in range(2):
        parts.batches.collect()
    assert (
        caplog.text.count(
            "the provider does not have the results of batch batch_0 any more"
        )
        == 1
    )
    assert states(parts) == ["collected"] * 3
    assert parts.failures == {"unreachable": 4}
    parts.make()
    assert len(direct(parts, server)) == 4


def test_waiting_with_a_lost_batch(parts: Folder, server: BatchServer) -> None:
    """Waiting ends, and it does not send the requests again."""
    server.gone = {"batch_0"}
    assert not parts.batches.wait()
    assert states(parts) == ["collected"] * 3


def test_lost_results(parts: Folder, server: BatchServer) -> None:
    """The provider knows the batch, but has deleted its results, some time after it has ended."""
    server.gone = {"output-batch_0", "error-batch_0", "results"}
    if parts._entry.endswith("anthropic"):
        server.gone = {"results_url"}
    server.ended = datetime.now(timezone.utc) - timedelta(days=2)
    parts.batches.collect()
    assert states(parts) == ["collected"] * 3
    assert parts.failures["unreachable"] >= 4
    assert "temporary" not in parts.failures


def test_results_that_are_not_there_yet(parts: Folder, server: BatchServer) -> None:
    """A batch that counts answers stays open while its file is missing, and nothing is paid for twice."""
    server.gone = {"output-batch_0", "error-batch_0", "results"}
    with suppress(InputError):
        parts.batches.collect()
    assert states(parts)[0] in ("completed", "ended")
    parts.submit()
    assert len(server.batches) == 3
    server.gone = set()
    parts.batches.collect()
    assert states(parts) == ["collected"] * 3
    assert parts.failures == {}


def test_waiting_for_the_names_of_files(parts: Folder, server: BatchServer) -> None:
    """A completed batch whose files have no names yet has not ended. Waiting collects it as soon as they have."""
    server.unnamed = 1
    assert "storing" in states(parts)
    server.unnamed = 1
    parts.batches.collect()
    assert states(parts) != ["collected"] * 3
    parts.batches.collect()
    assert states(parts) == ["collected"] * 3
    assert parts.failures == {}
    assert max(server.paid.values()) == 1


def test_a_wrong_address(parts: Folder, server: BatchServer) -> None:
    """A wrong address answers with status 404, which says nothing about batches. They stay open until the user gives them up."""

    class Elsewhere:
        openai = f"{server.openai}/wrong"
        address = f"{server.address}/wrong"

    protocol = parts._entry.rpartition("/")[2]
    register(protocol, Elsewhere)
    for act in (parts.batches.collect, parts.batches.cancel, parts.batches.wait):
        with pytest.raises(InputError, match=r"batch_0.*404.*batch_1.*--forget"):
            act()
    assert states(parts) == ["error"] * 3
    register(protocol, server)
    parts.batches.collect()
    assert parts.failures == {}


def test_errors_that_can_be_repaired(parts: Folder, server: BatchServer) -> None:
    """A wrong key, or a server that is down, makes no batch hopeless."""
    server.moment = lambda moment: (_ for _ in ()).throw(ConnectionError)
    with pytest.raises(InputError, match=r"batch_0.*batch_1.*batch_2") as raised:
        parts.batches.collect(forget=True)
    assert "--forget" not in str(raised.value)
    server.moment = lambda moment: None
    parts.batches.collect()
    assert parts.failures == {}


def test_a_damaged_record(tmp_path: Path, server: BatchServer) -> None:
    """The other runs of the suite are collected if the record of one is damaged."""
    deployment = register("openai", server)
    damaged = Folder(tmp_path, ENTRY + deployment)
    other = Folder(tmp_path, ENTRY.replace("4k", "5k") + deployment)
    for folder in (damaged, other):
        folder.submit()
    (damaged.run / "batches.jsonl").write_text("7\n")
    both = type(damaged.batches)(tmp_path, [damaged.run, other.run])
    with pytest.raises(InputError, match=r"batches\.jsonl is damaged"):
        both.collect()
    assert states(other) == ["collected"]


def test_a_step_back(tmp_path: Path, server: BatchServer) -> None:
    """If the last line about a batch in `batches.jsonl` is deleted, as docs/scale.md says, the batch is collected again."""
    folder = Folder(tmp_path, ENTRY + register("openai", server))
    folder.submit()
    server.gone = {"batch_0"}
    folder.batches.collect()
    server.gone = set()
    path = folder.run / "batches.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    folder.batches.collect()
    assert folder.failures == {}


def test_files_for_vllm(tmp_path: Path, server: BatchServer) -> None:
    """The good lines of a damaged result file are collected."""
    folder = Folder(tmp_path, ENTRY + register("openai", server, model="llama"))
    folder.submit(as_files=True)
    (path,) = (folder.run / "batches").iterdir()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    batch = server.create(
        [(row["custom_id"], row["url"], row["body"]) for row in rows], "", {}
    )
    lines = [
        json.dumps(
            {
                "custom_id": name,
                "response": {"status_code": 200, "body": row["body"]},
                "error": None,
            }
        )
        for name, row in server.results(batch)
    ]
    results_path = path.with_suffix(".results.jsonl")
    results_path.write_text(
        "\n".join([lines[0][:-9], "null", *lines[2:-1], lines[-1][:-9]])
    )
    assert folder.batches.cancel() == 1
    folder.batches.collect()
    with Ledger(folder.run) as ledger:
        assert ledger.parts[0].failures == {"malformed": 2, "temporary": 1}


def test_answers_that_do_not_fit(
    parts: Folder, server: BatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches whose answers do not fit on the disk stay open, and are collected when there is room."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, before[1]))
    try:
        with pytest.raises(InputError, match="cannot be written: File too large"):
            parts.batches.collect()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert parts.batches.are_open
    parts.batches.collect()
    assert states(parts) == ["collected"] * 3
    assert parts.failures == {}
    assert set(server.paid.values()) == {1}
