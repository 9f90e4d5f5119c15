"""A fabricated release and functions that fetch from it, which tests of archives share."""

from __future__ import annotations

import gzip
import io
import random
import shutil
import tarfile
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest

from helm_longctx.data.release import Release, ensure_release_files
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError

SECRET = "hf_secretsecretsecret"
SETTING = "HELM_LONGCTX_HELMET_REPO"
RELEASE = Release("org/release", SETTING, folder="helmet")
UNPACKED = "org/unpacked"

NOISE = random.Random(1)
CONTENT = {
    "data/kilt/nq.jsonl": NOISE.randbytes(300_000),
    "data/alce/asqa.json": b"[]\n",
    "data/ruler/cwe/validation_8.jsonl": NOISE.randbytes(200_000) + bytes(200_000),
    "data/empty.jsonl": b"",
}
KILT = "helmet/kilt/nq.jsonl"
ALCE = "helmet/alce/asqa.json"
RULER = "helmet/ruler/cwe/validation_8.jsonl"
PROMPTS = "helmet/prompts/asqa.json"

Member = tuple[tarfile.TarInfo, bytes]


def member(name: str, content: bytes = b"hostile", **fields: object) -> Member:
    """Return a tar header with any name and kind, and its content."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tar(*members: Member) -> bytes:
    """Return a tar file of CONTENT and of further members after it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info, content in [
            *(member(name, content) for name, content in CONTENT.items()),
            *members,
        ]:
            archive.addfile(info, io.BytesIO(content) if info.size else None)
    return buffer.getvalue()


def packed(*members: Member) -> bytes:
    return gzip.compress(tar(*members), 1)


ARCHIVE = packed()


def root(tmp_path: Path, mirror: bool = False) -> DataRoot:
    (tmp_path / "data").mkdir(exist_ok=True)
    return DataRoot(tmp_path / "data", mirror)


def tree(tmp_path: Path) -> list[str]:
    """Return every file under the root, except the lock."""
    files = (
        path
        for path in (tmp_path / "data").rglob("*")
        if not path.is_dir() and path.name != ".release.lock"
    )
    return sorted(path.relative_to(tmp_path / "data").as_posix() for path in files)


def fetch(tmp_path: Path, *paths: str) -> None:
    ensure_release_files(RELEASE, paths or (KILT, RULER), root(tmp_path), "fetch it")


def fetched(tmp_path: Path, *paths: str) -> None:
    """Fetch files, and check that exactly these files are present and whole."""
    paths = paths or (KILT, RULER)
    fetch(tmp_path, *paths)
    assert tree(tmp_path) == sorted([*paths, "helmet/release.json"])
    for path in paths:
        assert (tmp_path / "data" / path).read_bytes() == CONTENT[
            path.replace("helmet/", "data/")
        ]
    assert not list((tmp_path / "data").rglob(".fetch-*"))


def refused(tmp_path: Path, *paths: str, act: Callable[..., None] = fetch) -> str:
    """Return the one line of a failing fetch, and check that no file stays and no secret is shown."""
    with pytest.raises(InputError) as caught:
        act(tmp_path, *paths)
    message = str(caught.value)
    assert "\n" not in message
    assert not [
        secret for secret in (SECRET, "signature", "?", "://") if secret in message
    ]
    assert message.endswith("; then run: fetch it")
    assert tree(tmp_path) == []
    assert not list((tmp_path / "data").rglob(".fetch-*"))
    return message


def short_of(monkeypatch: pytest.MonkeyPatch, *free: int) -> None:
    """Set the free space of the disk for each look; the last value stays."""
    usage = namedtuple("Usage", "total used free")
    left = list(free)
    monkeypatch.setattr(
        shutil,
        "disk_usage",
        lambda path: usage(0, 0, left.pop(0) if len(left) > 1 else left[0]),
    )
