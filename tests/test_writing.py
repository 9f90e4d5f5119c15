"""Tests of the files that commands write: whole or not at all, at the place that the user named."""

from __future__ import annotations

import os
import re
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from threading import Thread

import pytest

from helm_longctx.writing import (
    replace_file,
    replace_page,
    replacing,
    write_output,
)

OLD = b"old"
NEW = b"new" * 1_000


_SOURCE = Path(str(resources.files("helm_longctx")))
_ROOMS = ("apps", "cli", "config", "documents", "evaluation", "results")
"""Rooms whose files are results for users."""

_IN_PLACE = re.compile(r"\.write_(?:text|bytes)\(")


def test_results_are_written_in_one_step() -> None:
    """No module that makes results for users writes a file in place, so that none is ever half written."""
    folders = [_SOURCE / room for room in _ROOMS]
    folders.append(_SOURCE.parent / "core_evals")
    modules = []
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if _IN_PLACE.search(path.read_text(encoding="utf-8")):
                modules.append(str(path.relative_to(_SOURCE.parent)))
    assert not modules, "use replace_file, replace_page or write_output of writing.py"


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Limit files to a thousand bytes, which stands for a full disk and needs no root."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("write", [replace_file, replace_page, write_output])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_full_disk(
    write: type[object], is_there: bool, tmp_path: Path, full_disk: None
) -> None:
    """A file that does not fit leaves the old one, or none, and the error names the file."""
    path = tmp_path / "out.json"
    if is_there:
        path.write_bytes(OLD)
    with pytest.raises(OSError, match="File too large") as raised:
        write(path, NEW)
    assert raised.value.filename == str(path)
    expected = {"out.json": OLD} if is_there else {}
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == expected


def test_a_link_and_permissions(tmp_path: Path) -> None:
    """The file behind a link of the user gets the new content, and keeps its permissions."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    file = folder / "private.json"
    file.write_bytes(OLD)
    file.chmod(0o600)
    link = tmp_path / "out.json"
    link.symlink_to(file)
    write_output(link, NEW)
    assert link.is_symlink()
    assert file.read_bytes() == NEW
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(folder.iterdir()) == [file]


def test_a_pipe(tmp_path: Path) -> None:
    """A pipe gets the content, and is still a pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        write_output(pipe, NEW)
        assert reader.stdout
        assert reader.stdout.read() == NEW
    assert pipe.is_fifo()


def test_standard_output(tmp_path: Path) -> None:
    """What a user writes to `/dev/stdout` comes out there."""
    code = (
        "from pathlib import Path; from helm_longctx.writing import write_output;"
        " write_output(Path('/dev/stdout'), b'new')"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"new"
    with (tmp_path / "log").open("wb") as file:
        subprocess.run(command, stdout=file, check=True)
    assert (tmp_path / "log").read_bytes() == b"new"


def test_a_place_where_no_file_can_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single file that a container has from outside cannot be replaced, and gets the content in place."""
    path = tmp_path / "out.json"
    path.write_bytes(OLD)

    def refuse(*paths: Path) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(os, "replace", refuse)
    write_output(path, NEW)
    assert path.read_bytes() == NEW
    with pytest.raises(OSError, match="busy"):
        write_output(tmp_path / "other.json", NEW)
    assert list(tmp_path.iterdir()) == [path]


def test_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    """If a second writer comes while the first one writes, both succeed, and the file is whole."""
    path = tmp_path / "schema.json"
    with replacing(path) as part:
        part.write_bytes(b"first")
        other = Thread(target=replace_file, args=(path, b"second"))
        other.start()
        other.join()
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
