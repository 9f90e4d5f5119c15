"""Tests that threads that write at the same time share one write, and that each waits until its own part is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from helm_longctx.runs.journal import DurableLines, GroupWriter

THREADS = 8


class Disk:
    """A disk that takes groups as soon as it is free."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.busy = Event()
        self.is_free = Event()

    def write(self, group: Sequence[int]) -> None:
        """Wait until the disk is free, and keep a group."""
        self.busy.set()
        assert self.is_free.wait(60)
        self.groups.append(list(group))


def add_while_busy(
    add: Callable[[int], None], disk: Disk, gathered: Callable[[], int]
) -> list[BaseException | None]:
    """Add 0 and, while the disk is busy with it, 1 to THREADS at the same time; return what each of them raised."""
    with ThreadPoolExecutor(THREADS + 1) as pool:
        first = pool.submit(add, 0)
        assert disk.busy.wait(60)
        others = [pool.submit(add, number) for number in range(1, THREADS + 1)]
        while gathered() < THREADS:
            assert not any(other.done() for other in others)
        disk.is_free.set()
        return [path.exception(60) for path in (first, *others)]


def test_what_waits_is_written_together() -> None:
    """The first value is written alone, and all values that arrive meanwhile are written together."""
    disk = Disk()
    writer = GroupWriter(disk.write)
    assert add_while_busy(writer.add, disk, lambda: len(writer._gathering[0])) == [
        None
    ] * (THREADS + 1)
    assert disk.groups[0] == [0]
    assert [sorted(group) for group in disk.groups[1:]] == [list(range(1, THREADS + 1))]


def test_an_error_reaches_all_of_its_group() -> None:
    """An error of a group reaches every thread of this group and no other thread, and the next group is written."""
    disk = Disk()
    error = OSError("no room")

    def write(group: Sequence[int]) -> None:
        disk.write(group)
        if 1 in group:
            raise error

    writer = GroupWriter(write)
    raised = add_while_busy(writer.add, disk, lambda: len(writer._gathering[0]))
    assert raised == [None] + [error] * THREADS
    writer.add(THREADS + 1)
    assert disk.groups[-1] == [THREADS + 1]


def test_lines_of_threads_are_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread continues only after the system was told to write its line, and every line is in the file once and whole."""
    path = tmp_path / "lines"
    synced = [b""]
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(path.read_bytes()))
    with DurableLines(path, "") as lines, ThreadPoolExecutor(THREADS) as pool:

        def append(number: int) -> bool:
            lines.append([number, "x" * 5000])
            return b"[%d, " % number in synced[-1]

        assert all(pool.map(append, range(200)))
        assert sorted(line[0] for line in lines.read()) == list(range(200))
