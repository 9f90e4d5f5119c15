"""Tests of `fetch` and `fetch --check` with servers that answer in a wrong way: a part of what `python -m tests.attacks` tries."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

from helm_longctx.data import download
from helm_longctx.data.download import copy_stream, fetch_description, run_within
from helm_longctx.errors import InputError
from tests.attacks import hubs
from tests.support.servers.hostile import attack, redirect, send


@pytest.mark.parametrize(
    "name",
    [
        "a description without end",
        "a description byte by byte",
        "a description that is deep",
        "files that are numbers",
        "names that control the terminal",
        "pages of commits without end",
        "a negative size",
        "a file of blanks without end",
        "a row that is deep",
    ],
)
def test_a_hostile_hub(name: str, tmp_path: Path) -> None:
    """A check ends in time, with the status of what is wrong, in lines that control no terminal."""
    assert not hubs.check_file(name, tmp_path)


@pytest.mark.parametrize("name", ["fewer rows", "an end larger than the file"])
def test_a_table_that_lies(name: str, tmp_path: Path) -> None:
    """Other numbers of rows are a difference, and a table that cannot be read is not the same."""
    assert not hubs.check_table(name, tmp_path)


def test_archives_of_folders(tmp_path: Path) -> None:
    """No archive of a repository fills the disk, leads out of the folder or leaves a file."""
    assert [name for name, held in hubs.attack_folders(tmp_path) if not held] == []


def test_files_of_a_hub_without_end(tmp_path: Path) -> None:
    """A hub that sends more than it announced, or never stops, is refused in one line before the disk is full."""
    assert [name for name, held in hubs.attack_hub_files(tmp_path) if not held] == []


def test_the_token_stays_with_the_hub() -> None:
    """A description is read after a redirect to another host, which does not get the token."""
    with attack(send({"a": 1})) as other:
        address = other.address.replace("127.0.0.1", "localhost")
        with attack(redirect(f"{address}/x")) as hub:
            assert fetch_description(f"{hub.address}/y", "secret").content == {"a": 1}
    assert "secret" in hub.seen[0]
    assert "secret" not in other.seen[0]


def test_time_is_limited() -> None:
    """A function that needs too long is left alone, and errors of others are raised as they are."""
    never = threading.Event()
    with pytest.raises(InputError, match="needed more than 0 seconds"):
        run_within(0.05, partial(never.wait, 5))
    with pytest.raises(ZeroDivisionError):
        run_within(5, partial(divmod, 1, 0))
    assert run_within(5, partial(divmod, 7, 2)) == (3, 1)


def test_a_download_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A download of unknown size ends before the disk is full."""
    monkeypatch.setattr(download, "_BLOCKS_PER_CHECK", 2)
    monkeypatch.setattr(download, "SPACE_MARGIN", 1 << 60)
    with (
        attack(hubs.pour(b"0")) as server,
        (tmp_path / "x").open("wb") as out,
        download.ResumingStream(server.address) as stream,
        pytest.raises(InputError, match="free some space"),
    ):
        copy_stream(stream, out, tmp_path)
    assert (tmp_path / "x").stat().st_size <= 2 << 20
