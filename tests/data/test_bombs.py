"""Tests of small files that unpack to more than a disk holds, or that keep a reader busy for ever."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from helm_longctx.data import hub, release
from helm_longctx.data import unpack as unpacking
from helm_longctx.data.unpack import unpack
from helm_longctx.errors import InputError
from tests.data.release_server import ReleaseHub
from tests.data.releases import PROMPTS, refused, root

ZEROS = gzip.compress(bytes(4 << 20))
WANTED = {"data/x": "helmet/x"}


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return the header of a member that claims this size."""
    info = tarfile.TarInfo(name)
    info.size = size
    info.type = kind
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("name", ["data/x", "data/other"])
def test_a_gzip_bomb(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gzip bomb is refused soon after the allowed size, whether the member is wanted or not."""
    monkeypatch.setattr(unpacking, "_ROOM", 8 << 20)
    bomb = gzip.compress(header(name, 10**9)) + ZEROS * 100
    with pytest.raises(
        InputError, match=r"data\.tar\.gz unpacks to more than 200 times its size"
    ):
        unpack(io.BytesIO(bomb), "data.tar.gz", WANTED, tmp_path)
    # Python 3.12 and later read 128 kB of packed data at a time, of which 200 times the size is allowed.
    assert sum(path.stat().st_size for path in tmp_path.rglob("x")) < 64 << 20


def test_repeated_text_is_no_bomb(tmp_path: Path) -> None:
    """Repeated text within the room that every archive has is accepted, however well it is packed."""
    data = gzip.compress(header("data/x", 4 << 20)) + ZEROS + gzip.compress(bytes(1024))
    assert (
        unpack(io.BytesIO(data), "data.tar.gz", WANTED, tmp_path)["helmet/x"]["size"]
        == 4 << 20
    )


def test_a_member_that_never_ends(tmp_path: Path) -> None:
    """A member that claims 2**60 bytes is refused, although tarfile would read on for weeks."""
    data = gzip.compress(header("data/other", 2**60) + bytes(2048))
    with pytest.raises(InputError, match=r"not a complete tar\.gz file"):
        unpack(io.BytesIO(data), "data.tar.gz", WANTED, tmp_path)


@pytest.mark.parametrize(
    "kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE]
)
def test_a_name_that_fills_memory(kind: bytes, tmp_path: Path) -> None:
    """A member with a huge name is refused, although tarfile would read the name whole."""
    data = gzip.compress(header("x", 2 << 20, kind) + bytes(2 << 20))
    with pytest.raises(InputError, match=r"not a complete tar\.gz file"):
        unpack(io.BytesIO(data), "data.tar.gz", WANTED, tmp_path)


def test_a_zip_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zip bomb is refused by the sizes in its table, and never unpacks to more than that."""
    monkeypatch.setattr(unpacking, "_ROOM", 1 << 20)
    with zipfile.ZipFile(tmp_path / "set.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("set/a.jsonl", bytes(32 << 20))
    with pytest.raises(
        InputError, match=r"set/a\.jsonl unpacks to more than 200 times its size"
    ):
        unpacking.unzip(tmp_path / "set.zip", "set/a.jsonl", tmp_path / "a.jsonl")
    assert not (tmp_path / "a.jsonl").exists()


def test_a_parquet_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parquet file that repeats a text is refused soon after the allowed size, and rows too many are not written."""
    monkeypatch.setattr(unpacking, "_ROOM", 1 << 20)
    path = tmp_path / "bomb.parquet"
    rows = pyarrow.table({"text": ["x" * (1 << 20)] * 40})
    parquet.write_table(rows, path, compression="zstd")
    packed = path.stat().st_size
    out = tmp_path / "out.jsonl"
    with pytest.raises(
        InputError, match="the split unpacks to more than 200 times its size"
    ):
        hub._write_rows(out, hub._read_files([path], None), 40, packed, "the split")
    assert out.stat().st_size < 8 << 20
    small = ({"text": str(number)} for number in range(10**9))
    with pytest.raises(InputError, match="the split has more than 3 rows, expected 3"):
        hub._write_rows(out, small, 3, packed, "the split")


def test_a_pinned_file_without_end(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pinned file that is larger than any real one is not written."""
    monkeypatch.setattr(release, "_MOST_PINNED", 1000)
    served.files["asqa"] = bytes(1_000_000)
    file = release.PinnedFile(PROMPTS, f"{served.url}/files/asqa", "0" * 64)
    message = refused(tmp_path, act=lambda path: file.ensure(root(path), "fetch it"))
    assert "larger than 1000 bytes" in message
