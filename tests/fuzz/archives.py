"""Hostile and damaged archives: each gives whole files or one line, nothing outside the folder, and no more than the allowed disk."""

from __future__ import annotations

import gzip
import io
import random
import re
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from unittest import mock

import huggingface_hub.constants

from helm_longctx.data import download, release
from helm_longctx.data import unpack as unpacking
from helm_longctx.data.root import DataRoot
from helm_longctx.data.unpack import unpack
from helm_longctx.errors import InputError
from tests.data.release_server import Fault, ReleaseHub, serve
from tests.data.releases import (
    ALCE,
    ARCHIVE,
    CONTENT,
    KILT,
    RELEASE,
    RULER,
    SETTING,
    Member,
    member,
    tar,
)
from tests.fuzz.cases import Kind, check_line
from tests.fuzz.mutate import ODD_BYTES, ODD_TEXTS, mutated_bytes

WANTED = {f"data/{path.removeprefix('helmet/')}": path for path in (KILT, ALCE, RULER)}
ROOM = 8 << 20
"""Bytes that a packed file may unpack to here, so that bombs are small."""
TYPES = (*tarfile.SUPPORTED_TYPES, b"V", b"?", b"\xff")
NAMES = (
    *WANTED, "../../outside", "/tmp/fuzz-outside", "data/../../outside", "data/kilt/../../../outside", "data\\kilt\\nq.jsonl", "data",
    "data/kilt", "helmet", ".", "", "./data//kilt/./nq.jsonl", "/data/kilt/nq.jsonl", "x" * 300, *ODD_TEXTS[:12],
)  # fmt: skip


def _members(rng: random.Random) -> Iterator[Member]:
    """Return members with any names, kinds and attributes. The size in a header can differ from the real size."""
    for _ in range(rng.randint(1, 5)):
        content = rng.choice(
            (
                b"",
                b"x",
                bytes(3000),
                rng.randbytes(2000),
                b"5\n0\n1\n9\n" * 64,
                *ODD_BYTES[:8],
            )
        )
        linked = rng.choice(("", "/etc/passwd", "../../outside", "data/kilt/nq.jsonl"))
        attributes = {
            rng.choice(
                ("path", "size", "GNU.sparse.major", "GNU.sparse.realsize", "x")
            ): rng.choice(("1", "-1", *NAMES))
        }
        info, content = member(
            rng.choice(NAMES), content, type=rng.choice(TYPES), linkname=linked, mode=rng.choice((0, 0o777, 0o4755)),
            pax_headers={name: value.replace("\ud83d", "") for name, value in attributes.items()} if rng.random() < 0.3 else {},
        )  # fmt: skip
        yield info, content


def _tar(rng: random.Random) -> bytes:
    """Return a tar file with such members before or after the wanted ones, and sometimes with a header of any size."""
    buffer = io.BytesIO()
    for info, content in [*_members(rng)]:
        size = rng.choice(
            (info.size, info.size, info.size, 10**12, 2**60, -1 & 0xFFFF, 0)
        )
        info.size = size
        header = info.tobuf(
            rng.choice((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)),
            "utf-8",
            "surrogateescape",
        )
        buffer.write(header + content + bytes(-len(content) % 512))
    return rng.choice(
        (
            buffer.getvalue() + tar(),
            tar()[:-1024] + buffer.getvalue() + bytes(1024),
            buffer.getvalue(),
        )
    )


@cache
def _zeros(members: int) -> bytes:
    """Return gzip data that unpacks to 8 MB of zeros, several times."""
    return gzip.compress(bytes(8 << 20)) * members


def _bomb(rng: random.Random) -> bytes:
    """Return a small file that unpacks to gigabytes, in a member that is wanted or not, in a header, or outside members."""
    kind = rng.choice((tarfile.REGTYPE, tarfile.REGTYPE, *TYPES))
    info, _ = member(rng.choice(NAMES), b"", type=kind, pax_headers={})
    info.size = rng.choice((10**9, 10**10, 2**40, 2**60))
    header = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    return rng.choice((gzip.compress(header), gzip.compress(tar()), b"")) + _zeros(
        rng.choice((10, 100, 500))
    )


@contextmanager
def _watched() -> Iterator[Path]:
    """Yield a folder for the members. Afterwards, check that nothing is outside it, and that its size is allowed."""
    outside = Path("/tmp/fuzz-outside")
    assert not outside.exists(), f"{outside} is there already; remove it"
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-archive-") as name,
        mock.patch.object(unpacking, "_ROOM", ROOM),
    ):
        folder = Path(name) / "a/b/c"
        folder.mkdir(parents=True)
        yield folder
        paths = {
            path
            for path in Path(name).rglob("*")
            if folder not in (path, *path.parents)
        }
        assert paths <= set(folder.parents), f"written outside: {paths}"
        assert not outside.exists(), "written outside"
        assert not any(path.is_symlink() for path in folder.rglob("*")), (
            "a link was made"
        )
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        assert size < 8 * ROOM, f"{size} bytes were written"


def _unpack(data: bytes) -> None:
    with _watched() as folder:
        try:
            records = unpack(io.BytesIO(data), "data.tar.gz", WANTED, folder)
        except InputError as error:
            check_line(error)
            return
        assert set(records) <= set(WANTED.values())
        for path, record in records.items():
            assert (folder / path).stat().st_size == record["size"]


def _run_tar(rng: random.Random) -> None:
    _unpack(gzip.compress(_tar(rng), 1))


def _run_damaged(rng: random.Random) -> None:
    data = rng.choice((ARCHIVE, gzip.compress(_tar(rng), 1)))
    _unpack(
        mutated_bytes(data, rng)
        if rng.random() < 0.7
        else gzip.compress(mutated_bytes(zlib.decompress(data, 31), rng), 1)
    )


def _run_bomb(rng: random.Random) -> None:
    _unpack(_bomb(rng))


def _zip(rng: random.Random) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(
        buffer,
        "w",
        rng.choice(
            (
                zipfile.ZIP_STORED,
                zipfile.ZIP_DEFLATED,
                zipfile.ZIP_BZIP2,
                zipfile.ZIP_LZMA,
            )
        ),
    ) as file:
        for _ in range(rng.randint(0, 3)):
            name = rng.choice(
                ("set/a.jsonl", "a.jsonl", "../a.jsonl", "/a.jsonl", "set/", *NAMES)
            )
            name = re.sub("[\0\ud83d]", "", name) or "x"
            content = rng.choice((b"{}\n", b"", rng.randbytes(1000), bytes(20 << 20)))
            if name not in file.namelist():
                file.writestr(name, content)
    return buffer.getvalue()


def _run_zip(rng: random.Random) -> None:
    data = _zip(rng)
    data = mutated_bytes(data, rng) if rng.random() < 0.5 else data
    with _watched() as folder:
        (folder / "set.zip").write_bytes(data)
        try:
            unpacking.unzip(folder / "set.zip", "set/a.jsonl", folder / "a.jsonl")
        except InputError as error:
            check_line(error)


def _run_server(rng: random.Random) -> None:
    """Fetch data from a server that ends connections early and sends other content than it announced."""
    data = rng.choice(
        (ARCHIVE, mutated_bytes(ARCHIVE, rng), gzip.compress(_tar(rng), 1))
    )
    etag = rng.choice((None, None, "0" * 64))
    faults = [
        Fault(
            cut=rng.choice((None, 0, 1000)),
            status=rng.choice((None, None, 503, 416, 302, 404)),
            whole=rng.random() < 0.2,
        )
        for _ in range(rng.randint(0, 3))
    ]
    repos = {"org/release": {"README.md": b"", "data.tar.gz": data}}
    with (
        _watched() as folder,
        serve(ReleaseHub(repos)) as running,
        _pointed_at(running.url, folder),
    ):
        running.etag = etag
        running.faults = faults
        try:
            release.ensure_release_files(
                RELEASE,
                [KILT, RULER],
                DataRoot(folder / "data", mirror=False),
                "fetch it",
            )
        except InputError as error:
            check_line(error)
            kept = [
                path.name
                for path in (folder / "data").rglob("*")
                if path.is_file() and path.name != ".release.lock"
            ]
            assert kept == [], f"kept after an error: {kept}"
            return
        assert etag is None, "another checksum was accepted"
        for path in (KILT, RULER) if data == ARCHIVE else ():
            assert (folder / "data" / path).read_bytes() == CONTENT[
                path.replace("helmet/", "data/")
            ]


@contextmanager
def _pointed_at(url: str, folder: Path) -> Iterator[None]:
    """Let huggingface_hub ask this server, and do not wait for a network to recover."""
    constants = {
        "ENDPOINT": url,
        "HUGGINGFACE_CO_URL_TEMPLATE": url + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_CACHE": str(folder / "hub-cache"),
    }
    with (
        mock.patch.multiple(huggingface_hub.constants, **constants),
        mock.patch.multiple(download, WAIT=0.001, _ATTEMPTS=4),
        mock.patch.dict("os.environ", {SETTING: "", "HF_TOKEN": "hf_none"}),
    ):
        yield


_MAKERS = {
    "tar": _run_tar,
    "damaged": _run_damaged,
    "bomb": _run_bomb,
    "zip": _run_zip,
    "server": _run_server,
}
KIND = Kind("archives", tuple(_MAKERS), 200, lambda target, rng: _MAKERS[target](rng))
