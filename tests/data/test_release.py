"""Tests of what is kept of an archive, with a real local HTTP server, and of bad archives."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import os
import shutil
import sys
import tarfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from helm_longctx.data import download, hub, unpack
from helm_longctx.data import release as sources_release
from helm_longctx.data.release import PinnedFile, ReleaseFile, ensure_release_files
from helm_longctx.errors import InputError
from tests.data.hub_server import COMMIT
from tests.data.release_server import ReleaseHub
from tests.data.releases import (
    ALCE,
    ARCHIVE,
    CONTENT,
    KILT,
    NOISE,
    RELEASE,
    RULER,
    fetch,
    fetched,
    member,
    packed,
    refused,
    root,
    short_of,
    tar,
    tree,
)

# What is kept


def test_only_what_was_asked_for_is_kept(served: ReleaseHub, tmp_path: Path) -> None:
    """Only the requested files of an archive are kept, under the folder's names."""
    fetched(tmp_path)
    assert served.downloads == [""]


def test_the_record_says_where_files_came_from(
    served: ReleaseHub, tmp_path: Path
) -> None:
    """`release.json` has size, digests and commit of every file, also of earlier fetches."""
    fetch(tmp_path, ALCE)
    fetch(tmp_path, KILT)
    record = json.loads((tmp_path / "data/helmet/release.json").read_text())
    assert sorted(record) == [ALCE, KILT]
    assert record[KILT] == {
        "size": 300_000,
        "sha256": hashlib.sha256(CONTENT["data/kilt/nq.jsonl"]).hexdigest(),
        "repo": "org/release",
        "commit": COMMIT,
        "archive_sha256": hashlib.sha256(ARCHIVE).hexdigest(),
    }


@pytest.mark.parametrize("text", ["", "[1]", "{", "\xff"])
def test_a_damaged_record_costs_no_download(
    served: ReleaseHub, tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A record that is not a JSON object is written anew with a warning, and nothing is downloaded for it."""
    (root(tmp_path).path / "helmet").mkdir()
    (tmp_path / "data/helmet/release.json").write_text(text, encoding="latin-1")
    fetched(tmp_path)
    assert sorted(json.loads((tmp_path / "data/helmet/release.json").read_text())) == [
        KILT,
        RULER,
    ]
    assert "is replaced" in caplog.text


def test_what_is_there_is_not_asked_for_again(
    served: ReleaseHub, tmp_path: Path
) -> None:
    """Without a missing file there is no request, and existing files stay unchanged."""
    (root(tmp_path) / "helmet/kilt").mkdir(parents=True)
    (tmp_path / "data" / KILT).write_bytes(b"mine")
    fetch(tmp_path, KILT)
    assert served.requests == []
    fetch(tmp_path, KILT, ALCE)
    assert (tmp_path / "data" / KILT).read_bytes() == b"mine"
    assert tree(tmp_path) == sorted([KILT, ALCE, "helmet/release.json"])


def test_an_empty_file_is_kept(served: ReleaseHub, tmp_path: Path) -> None:
    """A file without content is kept."""
    fetched(tmp_path, "helmet/empty.jsonl")


def test_the_same_path_twice(served: ReleaseHub, tmp_path: Path) -> None:
    """The same path can be requested twice, because two tasks can need one file."""
    fetch(tmp_path, ALCE, ALCE)
    assert tree(tmp_path) == [ALCE, "helmet/release.json"]


def test_a_mirror_is_never_filled(served: ReleaseHub, tmp_path: Path) -> None:
    """With a mirror folder the error names files and command, and the hub is not asked."""
    with pytest.raises(
        InputError, match=r"lacks helmet/kilt/nq.jsonl; get it with: fetch it"
    ):
        ensure_release_files(RELEASE, [KILT], root(tmp_path, mirror=True), "fetch it")
    assert served.requests == []


@pytest.mark.parametrize(
    "path", ["hub/x", "helmet/../x", "helmet//x", "/helmet/x", "helmet/a\\b", "helmet/"]
)
def test_paths_outside_the_folder(
    served: ReleaseHub, tmp_path: Path, path: str
) -> None:
    """Only plain paths in the release's folder can be requested."""
    with pytest.raises(InputError, match="not a file of the release org/release"):
        ensure_release_files(RELEASE, [path], root(tmp_path), "fetch it")
    assert served.requests == []


def test_the_start_is_told(
    served: ReleaseHub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line says how much is downloaded and kept, and without a terminal there is no bar."""
    with caplog.at_level(logging.WARNING):
        fetch(tmp_path, ALCE)
    told = [
        record.getMessage()
        for record in caplog.records
        if record.name == sources_release.__name__
    ]
    assert told == [
        "fetching data.tar.gz of org/release: 0.0 GB are downloaded; only these files are kept: data/alce/asqa.json"
    ]


def test_progress_on_a_terminal(
    served: ReleaseHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A terminal shows a bar of the downloaded bytes, and a redirected output shows nothing."""
    fetch(tmp_path, ALCE)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    fetch(tmp_path, KILT)
    assert "data.tar.gz: 100%" in capsys.readouterr().err


def test_one_file_of_a_release() -> None:
    """A source gives its paths under the root."""
    assert ReleaseFile(RELEASE, KILT).paths == [KILT]
    assert PinnedFile("helmet/prompts/x.json", "", "").paths == [
        "helmet/prompts/x.json"
    ]


# Bad archives


def test_wrong_content_is_refused(served: ReleaseHub, tmp_path: Path) -> None:
    """Nothing of an archive with another digest is kept, and the next attempt downloads again."""
    served.etag = "0" * 64
    assert "SHA-256" in refused(tmp_path)
    served.etag = None
    fetched(tmp_path)


def test_a_pinned_archive(served: ReleaseHub, tmp_path: Path) -> None:
    """An archive with the pinned commit and digest is fetched; another one is refused before anything is downloaded."""
    pinned = replace(RELEASE, commit=COMMIT, sha256=hashlib.sha256(ARCHIVE).hexdigest())
    served.requests.clear()
    ensure_release_files(pinned, [ALCE], root(tmp_path), "fetch it")
    assert any(f"/revision/{COMMIT}" in request for request in served.requests)
    assert not any("/revision/main" in request for request in served.requests)
    pin = ReleaseFile(pinned, KILT).pin
    assert (pin.commit, pin.digests) == (COMMIT, {"data.tar.gz": pinned.sha256})
    shutil.rmtree(tmp_path / "data")
    served.requests.clear()
    other = replace(pinned, sha256="1" * 64)

    def fetch_other(tmp_path: Path) -> None:
        ensure_release_files(other, [KILT], root(tmp_path), "fetch it")

    message = refused(tmp_path, act=fetch_other)
    assert (
        f"has data.tar.gz with SHA-256 {pinned.sha256}, expected {other.sha256}"
        in message
    )
    assert served.downloads == []


def rehashed(served: ReleaseHub, content: bytes) -> None:
    """Let the hub have another archive, and announce its right digest."""
    served.repos["org/release"]["data.tar.gz"] = content


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(ARCHIVE[:-100], id="cut"),
        pytest.param(ARCHIVE[: len(ARCHIVE) // 3], id="cut early"),
        pytest.param(
            ARCHIVE[:100_000] + bytes(50_000) + ARCHIVE[150_000:], id="overwritten"
        ),
        pytest.param(gzip.compress(tar()[:-300_000]), id="cut tar"),
        pytest.param(gzip.compress(b"not a tar file" * 100), id="gzip of something"),
        pytest.param(tar(), id="not compressed"),
        pytest.param(b"<html>log in</html>", id="a web page"),
        pytest.param(gzip.compress(b""), id="gzip of nothing"),
    ],
)
def test_malformed_archives(served: ReleaseHub, tmp_path: Path, content: bytes) -> None:
    """A file that is not a whole archive is refused, even with the right digest."""
    rehashed(served, content)
    assert "not a complete tar.gz file" in refused(tmp_path, RULER)


def test_several_gzip_members(served: ReleaseHub, tmp_path: Path) -> None:
    """A gzip file in several pieces, which parallel compressors write, is read."""
    plain = tar()
    rehashed(
        served,
        b"".join(
            gzip.compress(plain[at : at + 100_000])
            for at in range(0, len(plain), 100_000)
        ),
    )
    fetched(tmp_path)


def test_what_follows_the_last_member(served: ReleaseHub, tmp_path: Path) -> None:
    """An archive is read to its end, whatever follows the last member, because the digest is of all of it."""
    rehashed(served, gzip.compress(tar() + NOISE.randbytes(4_000_000), 1) + bytes(512))
    fetched(tmp_path)


def test_missing_members(served: ReleaseHub, tmp_path: Path) -> None:
    """Files that the archive lacks are named, and the others are not kept."""
    message = refused(tmp_path, KILT, "helmet/kilt/none.jsonl", "helmet/none")
    assert (
        "has no data/kilt/none.jsonl, data/none: it is not the release that the benchmark used"
        in message
    )


HOSTILE = [
    member("../../outside"),
    member("/tmp/outside"),
    member("data/../../outside"),
    member("data/..//kilt/nq.jsonl"),
    member("data\\kilt\\nq.jsonl"),
    member("/data/kilt/nq.jsonl"),
    member("data/kilt/nq.jsonl\\"),
    member("data/kilt/nq.jsonl.exe"),
    member("kilt/nq.jsonl"),
    member("data/kilt/device", b"", type=tarfile.CHRTYPE),
    member("data/kilt/link", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    member("data", b"", type=tarfile.SYMTYPE, linkname="/tmp"),
    member("helmet", b"", type=tarfile.SYMTYPE, linkname="../outside"),
    member("helmet/kilt/nq.jsonl"),
    member("x" * 300 + "/\u202e\udcff"),
    member("data/kilt/nul", pax_headers={"path": "data/kilt/nq.jsonl\0x"}),
]


def test_hostile_members_are_passed_over(served: ReleaseHub, tmp_path: Path) -> None:
    """Links, devices and names that lead elsewhere touch nothing."""
    rehashed(served, packed(*HOSTILE))
    fetched(tmp_path)
    assert not (tmp_path / "outside").exists()


def test_members_behind_a_link(served: ReleaseHub, tmp_path: Path) -> None:
    """A file behind a link of the archive is written to the place that this package chooses."""
    (tmp_path / "outside").mkdir()
    link = member(
        "data/linked", b"", type=tarfile.SYMTYPE, linkname=str(tmp_path / "outside")
    )
    rehashed(served, packed(link, member("data/linked/x.jsonl", b"content")))
    fetch(tmp_path, "helmet/linked/x.jsonl")
    assert (tmp_path / "data/helmet/linked/x.jsonl").read_bytes() == b"content"
    assert not list((tmp_path / "outside").iterdir())


def test_names_with_dots(served: ReleaseHub, tmp_path: Path) -> None:
    """Names that start with `./` are read, which archives made in the folder itself have."""
    rehashed(served, packed(member("./data/./dotted//x.jsonl", b"content")))
    fetch(tmp_path, "helmet/dotted/x.jsonl")
    assert (tmp_path / "data/helmet/dotted/x.jsonl").read_bytes() == b"content"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, id="symlink"
        ),
        pytest.param(
            {"type": tarfile.LNKTYPE, "linkname": "data/kilt/nq.jsonl"}, id="link"
        ),
        pytest.param({"type": tarfile.DIRTYPE}, id="directory"),
        pytest.param({"type": tarfile.CHRTYPE}, id="device"),
        pytest.param({"type": tarfile.FIFOTYPE}, id="pipe"),
        pytest.param({"type": tarfile.GNUTYPE_SPARSE}, id="sparse file"),
    ],
)
def test_wanted_members_must_be_files(
    served: ReleaseHub, tmp_path: Path, fields: dict[str, object]
) -> None:
    """A wanted name that is not a file is refused."""
    rehashed(served, packed(member("data/odd", b"", **fields)))
    assert "data.tar.gz: data/odd is not a regular file" in refused(
        tmp_path, KILT, "helmet/odd"
    )


@pytest.mark.parametrize("name", ["data/kilt/nq.jsonl", "./data/kilt//nq.jsonl"])
def test_wanted_members_must_be_there_once(
    served: ReleaseHub, tmp_path: Path, name: str
) -> None:
    """Two files with one wanted name are refused."""
    rehashed(served, packed(member(name)))
    assert "has data/kilt/nq.jsonl twice" in refused(tmp_path)


# Disks


def test_full_from_the_start(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk no download starts."""
    short_of(monkeypatch, 100_000_000)
    assert (
        "helmet needs 0.27 GB of free disk space and has 0.10 GB; free some space"
        in refused(tmp_path)
    )
    assert served.requests == []


def test_no_room_for_a_file(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that does not fit is not written, and the files before it are not kept."""
    short_of(monkeypatch, 10**12, 10**12, download.SPACE_MARGIN + 399_999)
    assert "of free disk space" in refused(tmp_path)


def test_no_room_for_what_a_header_claims(served: ReleaseHub, tmp_path: Path) -> None:
    """A member that claims to be huge is refused before it is written."""
    header = member("data/huge", b"")[0]
    header.size = 1 << 60
    rehashed(served, gzip.compress(header.tobuf() + bytes(10_000)))
    assert "of free disk space" in refused(tmp_path, "helmet/huge")


def test_a_disk_that_fills(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that another process fills meanwhile is reported as full."""

    def full(members: object, member: object, archive: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"part")
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(unpack, "_write_member", full)
    assert "No space left on device; check free space" in refused(tmp_path)


def test_a_file_where_a_folder_must_be(served: ReleaseHub, tmp_path: Path) -> None:
    """A root that cannot be written to is reported."""
    (root(tmp_path).path / "helmet").write_text("")
    with pytest.raises(
        InputError, match="File exists; check free space and permissions"
    ):
        fetch(tmp_path)


def test_a_disk_without_locks(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk without locks does not prevent the download."""
    (root(tmp_path).path / "helmet/.release.lock").mkdir(parents=True)
    monkeypatch.setattr(hub, "LOCK_TIMEOUT", 0.2)
    fetched(tmp_path)


# Interruptions


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, MemoryError])
def test_interrupted_in_the_middle(
    served: ReleaseHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    interruption: type[BaseException],
) -> None:
    """An interruption is passed on and leaves no file."""
    read = download._read_raw

    def interrupted(response: requests.Response, count: int) -> bytes:
        if response.raw.tell() > 350_000:
            raise interruption
        return read(response, count)

    monkeypatch.setattr(download, "_read_raw", interrupted)
    with pytest.raises(
        InputError if issubclass(interruption, Exception) else interruption
    ):
        fetch(tmp_path)
    assert tree(tmp_path) == []
    assert not list((tmp_path / "data").rglob(".fetch-*"))
    monkeypatch.setattr(download, "_read_raw", read)
    fetched(tmp_path)


def test_what_a_killed_process_left(served: ReleaseHub, tmp_path: Path) -> None:
    """A killed process's folder of parts does not disturb the next fetch."""
    stale = root(tmp_path) / "helmet/.fetch-stale" / KILT
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"part")
    fetch(tmp_path)
    assert (tmp_path / "data" / KILT).read_bytes() == CONTENT["data/kilt/nq.jsonl"]


def test_several_at_once(served: ReleaseHub, tmp_path: Path) -> None:
    """Simultaneous fetches of the same and of other files all end with whole files and a whole record."""
    wanted = [(KILT, RULER), (RULER, ALCE), (ALCE,), (KILT, "helmet/empty.jsonl")]
    threads = [
        threading.Thread(target=fetch, args=(tmp_path, *paths)) for paths in wanted
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fetched(tmp_path, KILT, RULER, ALCE, "helmet/empty.jsonl")
    record = json.loads((tmp_path / "data/helmet/release.json").read_text())
    assert sorted(record) == sorted({path for paths in wanted for path in paths})
