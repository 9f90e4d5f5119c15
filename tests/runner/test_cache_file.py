"""Tests that an unusable request cache is named in one line, and that no paid answer is lost."""

from __future__ import annotations

import pickle
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from helm.common.cache import get_all_from_sqlite
from helm.common.key_value_store import SqliteKeyValueStore

from helm_longctx.errors import InputError
from helm_longctx.models.baselines import lexical
from helm_longctx.runner import cache
from helm_longctx.runner.cache import DigestStore
from tests.runner.making import ENTRY, CachedClient, make_run, means

ENTRY += "test/cached"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the file of the client's answers."""
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache/test.sqlite"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the waits for another process."""
    monkeypatch.setattr(cache, "WAIT", 0.1)


def connected(file: Path) -> Any:
    """Open the file as another process does."""
    return closing(sqlite3.connect(file, isolation_level=None))


def refused(folder: Path) -> str:
    """Return why a run is not made, and check that nothing was sent."""
    with pytest.raises(InputError) as told:
        make_run(folder, ENTRY)
    assert CachedClient.asked == []
    return str(told.value)


@pytest.mark.parametrize(
    "content", [b"no database" * 500, b"SQLite format 3\0" + b"\xff" * 4080]
)
def test_no_database(tmp_path: Path, file: Path, content: bytes) -> None:
    """A file that is not a database is named, with what to do."""
    file.write_bytes(content)
    why = refused(tmp_path)
    assert f"the request cache {file} cannot be used" in why
    assert "remove that file, or give helm-run --disable-cache" in why


@pytest.mark.usefixtures("impatient")
def test_another_process_writes(tmp_path: Path, file: Path) -> None:
    """A file that another process keeps locked is named."""
    with connected(file) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "(database is locked): wait until no other process uses it" in refused(
            tmp_path
        )


def test_it_breaks_while_the_run_goes_on(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the cache breaks during a run, the run ends, keeps its answers, and can go on."""
    monkeypatch.setattr(CachedClient, "asked", asked := Breaking(file))
    with pytest.raises(
        InputError,
        match=r"cache/test\.sqlite cannot be used \((unable to open|disk I/O)",
    ):
        make_run(tmp_path, ENTRY)
    assert 5 <= len(asked) < 12
    file.rmdir()
    known = len(asked)
    make_run(tmp_path, ENTRY)
    assert len(asked) == 12 == known + len(set(asked[known:]) - set(asked[:known]))


class Breaking(list[str]):
    """The list of questions, which puts a folder in the cache's place at the fifth one."""

    def __init__(self, file: Path):
        self._file = file
        self._lock = Lock()

    def append(self, prompt: str) -> None:
        """Append a question as a list does."""
        with self._lock:  # else two threads append before one of them counts
            super().append(prompt)
            if len(self) == 5:
                self._file.unlink()
                self._file.mkdir()


def test_no_room(
    tmp_path: Path,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """If the cache has no room, the answers count, and one line says that they are not cached."""
    connect = sqlite3.connect
    answer = lexical.answer

    def full(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **named)
        connection.execute(
            "PRAGMA max_page_count=4"
        )  # a table, its index, and a page or two of rows
        return connection

    monkeypatch.setattr(lexical, "answer", lambda prompt: answer(prompt) + " " * 3000)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", full)
        run = make_run(tmp_path / "full", ENTRY)
    assert caplog.text.count("answers are not cached: ") == 1
    assert "(database or disk is full): make room on its disk" in caplog.text
    assert "Traceback" not in caplog.text
    assert means(run) == means(make_run(tmp_path / "room", ENTRY))


@pytest.mark.usefixtures("impatient")
def test_a_reader_does_not_stop_a_write_for_ever(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another process that reads the file does not stop later writes, as it would with SqliteDict."""
    with DigestStore(str(file)) as store, connected(file) as other:
        store.put({"p": 1}, {"text": "one"})
        other.execute("BEGIN")
        other.execute("SELECT * FROM unnamed").fetchall()
        store.put({"p": 2}, {"text": "two"})
        assert "database is locked" in caplog.text
        assert [store.get({"p": number}) for number in (1, 2)] == [
            {"text": "one"},
            None,
        ]


def test_helms_store_and_ours_read_each_other(file: Path) -> None:
    """HELM's store and ours read each other's rows."""
    with SqliteKeyValueStore(str(file)) as theirs:
        theirs.put({"p": 1}, {"text": "one"})
    with DigestStore(str(file)) as ours:
        ours.put({"p": 2}, {"text": "two"})
        assert [value for _, value in ours.get_all()] == [
            {"text": "one"},
            {"text": "two"},
        ]
    assert [value for _, value in get_all_from_sqlite(str(file))] == [
        {"text": "one"},
        {"text": "two"},
    ]


def test_threads_share_a_connection(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads share one connection, each reads what it has written, and HELM's store reads all of it."""
    connect = sqlite3.connect
    opened = []
    monkeypatch.setattr(
        sqlite3, "connect", lambda *a, **b: opened.append(a) or connect(*a, **b)
    )

    def keep(number: int) -> bool:
        with DigestStore(str(file)) as store:
            store.put({"p": number}, {"text": str(number)})
        with DigestStore(str(file)) as store:
            return store.get({"p": number}) == {"text": str(number)}

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(keep, range(100)))
    assert len(opened) == 1
    texts = {value["text"] for _, value in get_all_from_sqlite(str(file))}
    assert texts == set(map(str, range(100)))


def test_another_file_in_its_place(file: Path) -> None:
    """After a cache was removed, answers are written to a new file."""
    with DigestStore(str(file)) as store:
        store.put({"p": 1}, {"text": "one"})
        file.unlink()
        assert store.get({"p": 1}) is None
        store.put({"p": 2}, {"text": "two"})
    assert [value for _, value in get_all_from_sqlite(str(file))] == [{"text": "two"}]


@pytest.mark.parametrize("fault", ["character", "other row"])
def test_a_changed_answer_is_asked_for_again(
    fault: str, tmp_path: Path, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An answer in the cache that was changed, or exchanged with another one, is not used by a later run."""
    first = means(make_run(tmp_path, ENTRY))
    CachedClient.asked.clear()
    with connected(file) as connection:
        rows = connection.execute("SELECT key, value FROM unnamed").fetchall()
        if fault == "character":
            position = rows[0][1].index(pickle.loads(rows[0][1])["text"].encode())
            changed = [
                (rows[0][0], rows[0][1][:position] + b"#" + rows[0][1][position + 1 :])
            ]
        else:
            changed = [(rows[0][0], rows[1][1]), (rows[1][0], rows[0][1])]
        for key, value in changed:
            connection.execute(
                "UPDATE unnamed SET value = ? WHERE key = ?", (value, key)
            )
    shutil.rmtree(tmp_path / "benchmark_output/runs")
    assert means(make_run(tmp_path, ENTRY)) == first
    assert len(CachedClient.asked) == len(changed)
    assert (
        caplog.text.count(
            f"the request cache {file}: answers were changed in it; they are asked for again"
        )
        == 1
    )


def test_rows_of_earlier_versions(tmp_path: Path, file: Path) -> None:
    """Answers of earlier versions, which have no digest, are used."""
    first = means(make_run(tmp_path, ENTRY))
    CachedClient.asked.clear()
    with connected(file) as connection:
        for key, value in connection.execute(
            "SELECT key, value FROM unnamed"
        ).fetchall():
            older = pickle.dumps(pickle.loads(value))
            assert value.startswith(older)
            connection.execute(
                "UPDATE unnamed SET value = ? WHERE key = ?", (older, key)
            )
    shutil.rmtree(tmp_path / "benchmark_output/runs")
    assert means(make_run(tmp_path, ENTRY)) == first
    assert CachedClient.asked == []
