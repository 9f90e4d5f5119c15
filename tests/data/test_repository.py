"""Tests of a folder of a repository, from an archive that a local server sends."""

from __future__ import annotations

import gzip
import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from helm_longctx.data import web
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.data.web import RepositoryFolder, object_id, tree_id
from helm_longctx.errors import InputError
from tests.data.release_server import Fault, ReleaseHub

FILES = {
    "data/a/rows.json": b"[]",
    "data/a/pages/1.html": b"<p>\r\n" * 2000,
    "data/a-b/x.txt": b"",
    "data/a.txt": "é".encode(),
    "data/ü.txt": b"u",
    "README.md": b"not wanted",
}


def write_tree(folder: Path) -> Path:
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder / "data"


def archive(files: dict[str, bytes]) -> bytes:
    """Return an archive as GitHub makes it: everything is in one folder, and a header names the commit."""
    buffer = io.BytesIO()
    with tarfile.open(
        fileobj=buffer,
        mode="w:gz",
        format=tarfile.PAX_FORMAT,
        pax_headers={"comment": "c0ffee"},
    ) as tar:
        for name, content in {**files, "../outside": b"no"}.items():
            member = tarfile.TarInfo(f"name-c0ffee/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("name-c0ffee/data/link")
        link.type = tarfile.SYMTYPE
        link.linkname = "/etc/passwd"
        tar.addfile(link)
    return buffer.getvalue()


@pytest.fixture
def folder(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> RepositoryFolder:
    """Return a folder whose archive is served."""
    monkeypatch.setattr(web, "_ARCHIVES", f"{served.url}/files")
    served.files["owner/name/tar.gz/c0ffee"] = archive(FILES)
    tree = tree_id(write_tree(tmp_path / "expected"))
    return RepositoryFolder(
        "owner/name", "c0ffee", "data", tree, "suite", ("a/rows.json", "a.txt")
    )


def fetch(tmp_path: Path, *folders: RepositoryFolder, mirror: bool = False) -> None:
    ensure(folders, DataRoot(tmp_path / "data", mirror), "fetch it")


def error_of(tmp_path: Path, folder: RepositoryFolder) -> str:
    with pytest.raises(InputError) as caught:
        fetch(tmp_path, folder)
    assert "\n" not in str(caught.value)
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    return str(caught.value)


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_tree_ids_are_those_of_git(tmp_path: Path) -> None:
    """Tree ids equal git's, which sorts folders with a slash after their names."""
    data = write_tree(tmp_path)
    for command in (["init", "-q"], ["-c", "core.autocrlf=false", "add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    done = subprocess.run(
        ["git", "write-tree", "--prefix=data/"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert tree_id(data) == done.stdout.strip()
    # A folder without some of its files has the same id, if theirs are known.
    absent = {}
    for path in [*data.rglob("*")][::2]:
        if path.is_file():
            name = str(path.relative_to(data))
            absent[name] = object_id("blob", path.read_bytes())
            path.unlink()
    assert absent
    assert tree_id(data, absent) == done.stdout.strip() != tree_id(data)


def test_a_folder(folder: RepositoryFolder, served: ReleaseHub, tmp_path: Path) -> None:
    """Exactly the plain files of the folder are kept, despite an interruption, and one download serves all tasks."""
    served.faults = [Fault(cut=100), Fault(status=503)]
    other = RepositoryFolder(
        "owner/name", "c0ffee", "data", folder.tree, "suite", ("a-b/x.txt",)
    )
    fetch(tmp_path, folder, other)
    fetch(tmp_path, folder)
    contents = {
        p.relative_to(tmp_path / "data").as_posix(): p.read_bytes()
        for p in (tmp_path / "data").rglob("*")
        if p.is_file()
    }
    assert contents == {
        name.replace("data/", "suite/", 1): content
        for name, content in FILES.items()
        if name != "README.md"
    }
    assert served.downloads == ["", "bytes=100-", "bytes=100-"]
    assert not list((tmp_path / "data").rglob(".fetch-*"))


@pytest.mark.parametrize(
    "change", [{"data/a.txt": b"e"}, {"data/new": b""}, {"data/a/rows.json": b"[ ]"}]
)
def test_another_content(
    folder: RepositoryFolder,
    served: ReleaseHub,
    tmp_path: Path,
    change: dict[str, bytes],
) -> None:
    """A folder with another file, or a file with another content, is not kept."""
    served.files["owner/name/tar.gz/c0ffee"] = archive({**FILES, **change})
    assert "data of the repository owner/name: it has the git tree id " in error_of(
        tmp_path, folder
    )


@pytest.mark.parametrize(
    "broken", [b"", b"plain", gzip.compress(b"no tar", mtime=0), archive(FILES)[:200]]
)
def test_broken_archives(
    folder: RepositoryFolder, served: ReleaseHub, tmp_path: Path, broken: bytes
) -> None:
    """A file that is not a whole archive ends in one line."""
    served.files["owner/name/tar.gz/c0ffee"] = broken
    assert "it is not a complete tar.gz archive" in error_of(tmp_path, folder)


def test_no_such_repository(
    folder: RepositoryFolder, served: ReleaseHub, tmp_path: Path
) -> None:
    """A server that does not have the repository is reported with its status."""
    served.files.clear()
    assert "the server answered with status 404 for http://127.0.0.1:" in error_of(
        tmp_path, folder
    )


def test_a_mirror_is_not_filled(
    folder: RepositoryFolder, served: ReleaseHub, tmp_path: Path
) -> None:
    """In a mirror nothing is downloaded."""
    with pytest.raises(
        InputError, match=r"lacks suite/a/rows.json, suite/a.txt; get it with: fetch it"
    ):
        fetch(tmp_path, folder, mirror=True)
    assert served.requests == []
