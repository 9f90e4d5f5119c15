"""Tests of a full disk. A limit on file sizes stands for it, because that needs no root."""

from __future__ import annotations

import json
import resource
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from helm.common.request import Request, RequestResult

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.judging.entailment import CachedEntailment, Pair
from helm_longctx.models.apis.availability import PROMPT
from helm_longctx.run_settings import JUDGE_PARALLEL, MIRROR
from helm_longctx.runner import programs
from helm_longctx.runner.cache import DigestStore, _CacheFile, open_cache_file
from helm_longctx.runner.spool import Spool, StoredRequest
from helm_longctx.runs.journal import (
    NAME,
    DurableLines,
    GroupWriter,
    Journal,
    SealedLines,
    read_answers,
)
from helm_longctx.runs.ledger import Ledger, Receiver
from helm_longctx.tasks.methods.method import Step
from helm_longctx.writing import replace_file
from tests.judging.grades import grade
from tests.runner.making import ENTRY, PlainClient, answered, make_run
from tests.runner.scripted_runs import METHODS, make, scores, serving
from tests.support.deployments import register_server
from tests.support.servers.llm import serve

Limit = Callable[[int], None]


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Limit]:
    """Limit the size of files of this process until the test ends."""
    # Python would write cut modules, which later processes cannot import.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
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


class Store(NamedTuple):
    """Something that keeps values under names in a file.

    Args:
        add: keeps a value, or raises an error if there is no room for it.
        read: returns the values by their names, as a new process reads them.
    """

    add: Callable[[str, str], object]
    read: Callable[[], Mapping[str, str]]


def read_lines(lines: DurableLines) -> dict[str, str]:
    with lines:
        return {value[0]: value[1] for value in lines.read()}


def open_lines(folder: Path) -> Store:
    """Lines without a digest, as in `cache-check`."""
    path = folder / "lines.jsonl"
    lines = DurableLines(path, "remove it")
    return Store(
        add=lambda name, value: lines.append([name, value]),
        read=lambda: read_lines(DurableLines(path, "remove it")),
    )


def open_sealed_lines(folder: Path) -> Store:
    """Return a store of lines with a digest, as `compaction` and `gate --logprobs` write them."""
    path = folder / "sealed.jsonl"
    lines = SealedLines(path, "remove it")
    return Store(
        add=lambda name, value: lines.append([name, value]),
        read=lambda: read_lines(SealedLines(path, "remove it")),
    )


def open_journal(folder: Path) -> Store:
    """Return a store that adds answers to the journal of a run."""
    journal = Journal(folder)

    def read() -> dict[str, str]:
        answers = {}
        for name, answer in read_answers(folder / NAME).items():
            assert answer
            answers[name] = answer.completions[0].text
        assert len(journal) == len(answers)
        return answers

    return Store(
        add=lambda name, value: journal.add(name, answered(value, cached=False)),
        read=read,
    )


def open_ledger(folder: Path) -> Store:
    """Return a store that announces batches in the ledger."""
    ledger = Ledger(folder)
    receiver = Receiver("corp/m", "openai")

    def add(name: str, value: str) -> None:
        sent = {"value": value}
        ledger.announce(receiver, "chat", {name: (Request(model="corp/m"), sent)})

    def read() -> dict[str, str]:
        values = {}
        for part in Ledger(folder).parts:
            (name,) = part.requests
            values[name] = part.request_fields(name)["value"]
        assert len(ledger.parts) == len(values)
        return values

    return Store(add=add, read=read)


def open_cache(folder: Path) -> Store:
    """Return a store that adds replies to the request cache, which must keep judges' replies of batches."""
    path = str(folder / "cache.sqlite")
    DigestStore(path).add("first", {"value": ""})

    def read() -> dict[str, str]:
        values = {}
        for key, value in _CacheFile(path).items():
            values[json.loads(key)["sha256"]] = value["value"]
        values.pop("first")
        return values

    return Store(
        add=lambda name, value: DigestStore(path).add(name, {"value": value}), read=read
    )


def open_verdicts(folder: Path) -> Store:
    """Return a store of entailment verdicts, which are used even if they are not kept."""

    class Judge:
        name = official = "judge"

        def entails(self, pairs: Sequence[Pair]) -> list[bool | None]:
            return [True] * len(pairs)

    path = folder / "verdicts.sqlite"
    judge: Any = Judge()
    verdicts = CachedEntailment(judge, path)
    names: dict[int, dict[str, str]] = {}

    def add(name: str, value: str) -> None:
        before = count_verdicts(path)
        # A verdict takes little room, so each value is as many verdicts as it has characters.
        pairs = [(name, str(number)) for number in range(len(value))]
        assert verdicts.entails(pairs) == [True] * len(value)
        if count_verdicts(path) == before:
            raise OSError
        names[count_verdicts(path)] = {**names.get(before, {}), name: value}

    return Store(add=add, read=lambda: names[count_verdicts(path)])


def count_verdicts(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (count,) = database.execute("SELECT count(*) FROM verdicts").fetchone()
    return int(count)


def open_spool(folder: Path) -> Store:
    """The prompts of a run that is being made."""
    spool = Spool(folder)
    places: dict[str, str] = {}

    def add(name: str, value: str) -> None:
        places[name] = spool.add(f"{name} {value}")

    def read() -> dict[str, str]:
        texts = {}
        for name, spooled in places.items():
            texts[name] = spool.get(spooled).removeprefix(f"{name} ")
        return texts

    return Store(add=add, read=read)


def open_files(folder: Path) -> Store:
    """Whole files, of which a full disk leaves the old ones or none, and no parts."""

    def read() -> dict[str, str]:
        return {path.name: path.read_text() for path in folder.iterdir()}

    return Store(
        add=lambda name, value: replace_file(folder / name, value.encode() * 9),
        read=lambda: {name: text[: len(text) // 9] for name, text in read().items()},
    )


STORES = (
    open_lines,
    open_sealed_lines,
    open_journal,
    open_ledger,
    open_cache,
    open_verdicts,
    open_spool,
    open_files,
)


@pytest.mark.parametrize("make", STORES, ids=lambda make: make.__name__)
def test_what_fits_is_kept(
    make: Callable[[Path], Store], tmp_path: Path, limit: Limit
) -> None:
    """Of values on a full disk those are kept that fit, each whole, and so are small ones after it and all when there is room."""
    random = Random(7)

    def make_value(size: int) -> str:
        return "".join(random.choices("abcdefgh", k=size))

    store = make(tmp_path)
    expected = {}
    refused = 0
    limit(32_000)
    # The last ones come when there is room again.
    for number, size in enumerate([3_000] * 12 + [200] * 6 + [3_000] * 3):
        name = f"v{number}"
        value = make_value(size * 3 if number == 3 else size)
        if number == 18:
            limit(resource.RLIM_INFINITY)
        try:
            store.add(name, value)
        except (OSError, InputError):
            assert number < 18
            refused += 1
        else:
            expected[name] = value
    assert refused
    assert store.read() == expected


@pytest.mark.parametrize("lost", [1, 100, 70_000])
def test_a_line_after_a_torn_one(tmp_path: Path, lost: int) -> None:
    """A process that was killed while it wrote leaves a part of a line, which the next line takes the place of."""
    path = tmp_path / NAME
    with SealedLines(path, "remove it") as lines:
        lines.append(["a", "x"])
        lines.append(["b", "x" * 100_000])
    path.write_bytes(path.read_bytes()[:-lost])
    with SealedLines(path, "remove it") as lines:
        lines.append(["c", "y"])
    assert read_lines(SealedLines(path, "remove it")) == {"a": "x", "c": "y"}


def test_an_interrupted_writer_leaves_the_others(tmp_path: Path) -> None:
    """If Ctrl-C ends a thread that waits for its turn to write, those that wait with it get the error, and others write."""
    written: list[int] = []
    writer = GroupWriter(written.extend)
    main = threading.main_thread().ident

    def interrupt() -> None:
        while not writer._gathering[0]:
            time.sleep(0.001)
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)

    with writer._writing:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            writer.add(1)
        thread.join()
    writer.add(2)
    assert written == [2]


def test_a_reply_that_waits_with_one_that_does_not_fit(
    tmp_path: Path, limit: Limit
) -> None:
    """Of replies that are written to the request cache together those are kept that fit."""
    path = str(tmp_path / "cache.sqlite")
    store = DigestStore(path)
    store.add("first", {"value": ""})
    writer = open_cache_file(path)._durable_writer
    sizes = (1_000, 200_000, 2_000, 3_000)

    def add(size: int) -> None:
        with suppress(InputError):
            store.add(f"v{size}", {"value": "x" * size})

    limit(60_000)
    with ThreadPoolExecutor() as pool:
        with writer._writing:
            adding = [pool.submit(add, size) for size in sizes]
            while len(writer._gathering[0]) < len(sizes):
                time.sleep(0.001)
        for added in adding:
            added.result()
    limit(resource.RLIM_INFINITY)
    kept = [len(value["value"]) for _, value in _CacheFile(path).items()]
    assert sorted(kept) == [0, 1_000, 2_000, 3_000]


def test_a_program_on_a_full_disk(
    tmp_path: Path, limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request of a program that cannot be stored ends the run in one line. It is no failure of the question."""
    store = programs._store_step
    room = [100]

    def store_or_fail(asked: StoredRequest, step: Step, spool: Spool) -> StoredRequest:
        if room and len(server.calls) == 2:
            limit(room.pop())
        return store(asked, step, spool)

    monkeypatch.setattr(programs, "_store_step", store_or_fail)
    with serving() as server:
        with pytest.raises(InputError, match=r"cannot be written: File too large"):
            make(tmp_path, METHODS["refine"])
        limit(resource.RLIM_INFINITY)
        run = make(tmp_path, METHODS["refine"])
    assert set(scores(run).values()) == {1.0}


def test_prompts_do_not_fit(tmp_path: Path, limit: Limit) -> None:
    """If prompts do not fit, nothing is sent."""
    limit(100_000)
    with pytest.raises(
        InputError, match=r"runs/s/helmet_recall.* cannot be written: File too large"
    ):
        make_run(tmp_path, ENTRY + "test/plain")
    assert PlainClient.asked == []


def test_replies_of_judges_do_not_fit(
    tmp_path: Path, limit: Limit, mirror: DataRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a judge's reply does not fit, no other one is paid for, and the same command asks only for what was not kept."""
    monkeypatch.setenv(MIRROR, str(mirror.path))
    monkeypatch.setenv(JUDGE_PARALLEL, "1")

    def reply(prompt: str) -> str:
        return f"{'x' * 150_000}\n{grade(prompt)}"

    entry = "helmet_longqa:task=narrativeqa,length=8k,num_samples=8,judge=corp/judge,model=longctx/lexical"
    with serve(reply) as server:
        register_server("corp/judge", server.address)
        limit(700_000)
        with pytest.raises(
            InputError, match=r"the request cache .* cannot be used .*make room"
        ) as raised:
            make_run(tmp_path, entry)
        limit(resource.RLIM_INFINITY)
        assert len(str(raised.value)) < 1_000
        asked = Counter(call.question for call in server.calls if call.prompt != PROMPT)
        assert 2 < len(asked) < 8
        make_run(tmp_path, entry)
        asked = Counter(call.question for call in server.calls if call.prompt != PROMPT)
    # Only the reply that did not fit is requested twice.
    assert sorted(asked.values()) == [1] * 7 + [2]
