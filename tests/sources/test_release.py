"""An archive's files over a real local HTTP server that cuts, refuses and lies."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import logging
import os
import random
import shutil
import sys
import tarfile
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import huggingface_hub.constants
import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helm_longctx.errors import InputError
from helm_longctx.sources import download, hub, unpack
from helm_longctx.sources import release as sources_release
from helm_longctx.sources.download import ResumingStream
from helm_longctx.sources.release import PinnedFile, Release, ReleaseFile, ensure, ensure_pinned
from helm_longctx.sources.root import DataRoot
from tests.sources.hub_server import COMMIT
from tests.sources.release_server import Fault, ReleaseHub, serve

SECRET = "hf_secretsecretsecret"
SETTING = "HELM_LONGCTX_HELMET_REPO"
RELEASE = Release("org/release", SETTING)
UNPACKED = "org/unpacked"

NOISE = random.Random(1)
CONTENT = {
    "data/kilt/nq.jsonl": NOISE.randbytes(300_000),
    "data/alce/asqa.json": b"[]\n",
    "data/ruler/cwe/validation_8.jsonl": NOISE.randbytes(200_000) + bytes(200_000),
    "data/empty.jsonl": b"",
}
KILT, ALCE, RULER = "helmet/kilt/nq.jsonl", "helmet/alce/asqa.json", "helmet/ruler/cwe/validation_8.jsonl"

Member = tuple[tarfile.TarInfo, bytes]


def member(name: str, content: bytes = b"hostile", **fields: object) -> Member:
    """A tar header with any name and kind, and its content."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tar(*members: Member) -> bytes:
    """A tar file of CONTENT and of further members after it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info, content in [*(member(name, content) for name, content in CONTENT.items()), *members]:
            archive.addfile(info, io.BytesIO(content) if info.size else None)
    return buffer.getvalue()


def packed(*members: Member) -> bytes:
    return gzip.compress(tar(*members), 1)


ARCHIVE = packed()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for a network to recover."""
    monkeypatch.setattr(download, "WAIT", 0.001)
    monkeypatch.setattr(download, "ATTEMPTS", 4)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ReleaseHub]:
    """A hub with the release, and huggingface_hub pointed at it."""
    monkeypatch.setenv("HF_TOKEN", SECRET)
    monkeypatch.delenv(SETTING, raising=False)
    with serve(ReleaseHub({"org/release": {"README.md": b"", "data.tar.gz": ARCHIVE}})) as running:
        constants = huggingface_hub.constants
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", running.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True, raising=False)
        yield running


def root(tmp_path: Path, mirror: bool = False) -> DataRoot:
    (tmp_path / "data").mkdir(exist_ok=True)
    return DataRoot(tmp_path / "data", mirror)


def tree(tmp_path: Path) -> list[str]:
    """Every file under the root, but the lock."""
    files = (path for path in (tmp_path / "data").rglob("*") if not path.is_dir() and path.name != ".release.lock")
    return sorted(path.relative_to(tmp_path / "data").as_posix() for path in files)


def fetch(tmp_path: Path, *paths: str) -> None:
    ensure(RELEASE, paths or (KILT, RULER), root(tmp_path), "fetch it")


def fetched(tmp_path: Path, *paths: str) -> None:
    """Fetch, and see that exactly that is there, whole."""
    paths = paths or (KILT, RULER)
    fetch(tmp_path, *paths)
    assert tree(tmp_path) == sorted([*paths, "helmet/release.json"])
    for path in paths:
        assert (tmp_path / "data" / path).read_bytes() == CONTENT[path.replace("helmet/", "data/")]
    assert not list((tmp_path / "data").rglob(".fetch-*"))


def refused(tmp_path: Path, *paths: str, act: Callable[..., None] = fetch) -> str:
    """The one line that a failing fetch ends in; nothing may stay, and nothing secret may show."""
    with pytest.raises(InputError) as caught:
        act(tmp_path, *paths)
    message = str(caught.value)
    assert "\n" not in message
    assert not [secret for secret in (SECRET, "signature", "?", "://") if secret in message]
    assert message.endswith("; then run: fetch it")
    assert tree(tmp_path) == []
    assert not list((tmp_path / "data").rglob(".fetch-*"))
    return message


# What is kept


def test_only_what_was_asked_for_is_kept(served: ReleaseHub, tmp_path: Path) -> None:
    """Of the archive the wanted files are kept, under the folder's names, and nothing of the rest."""
    fetched(tmp_path)
    assert served.downloads == [""]


def test_the_record_says_where_files_came_from(served: ReleaseHub, tmp_path: Path) -> None:
    """`release.json` has size, digests and commit of every file, of earlier fetches too."""
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
    """A record that is no JSON object is written anew, with a warning."""
    (root(tmp_path).path / "helmet").mkdir()
    (tmp_path / "data/helmet/release.json").write_text(text, encoding="latin-1")
    fetched(tmp_path)
    assert sorted(json.loads((tmp_path / "data/helmet/release.json").read_text())) == [KILT, RULER]
    assert "written anew" in caplog.text


def test_what_is_there_is_not_asked_for_again(served: ReleaseHub, tmp_path: Path) -> None:
    """Without an absent file there is no request; with one, those that are there stay as they are."""
    (root(tmp_path) / "helmet/kilt").mkdir(parents=True)
    (tmp_path / "data" / KILT).write_bytes(b"mine")
    fetch(tmp_path, KILT)
    assert served.requests == []
    fetch(tmp_path, KILT, ALCE)
    assert (tmp_path / "data" / KILT).read_bytes() == b"mine"
    assert tree(tmp_path) == sorted([KILT, ALCE, "helmet/release.json"])


def test_an_empty_file_is_kept(served: ReleaseHub, tmp_path: Path) -> None:
    """A file without content is a file."""
    fetched(tmp_path, "helmet/empty.jsonl")


def test_the_same_path_twice(served: ReleaseHub, tmp_path: Path) -> None:
    """Two tasks may want one file."""
    fetch(tmp_path, ALCE, ALCE)
    assert tree(tmp_path) == [ALCE, "helmet/release.json"]


def test_a_mirror_is_never_filled(served: ReleaseHub, tmp_path: Path) -> None:
    """With a mirror folder the error names files and command, and nothing is asked of the hub."""
    with pytest.raises(InputError, match=r"lacks helmet/kilt/nq.jsonl; get it with: fetch it"):
        ensure(RELEASE, [KILT], root(tmp_path, mirror=True), "fetch it")
    assert served.requests == []


@pytest.mark.parametrize("path", ["hub/x", "helmet/../x", "helmet//x", "/helmet/x", "helmet/a\\b", "helmet/"])
def test_paths_outside_the_folder(served: ReleaseHub, tmp_path: Path, path: str) -> None:
    """Only plain paths in the release's folder can be asked for."""
    with pytest.raises(InputError, match="no file of the release org/release"):
        ensure(RELEASE, [path], root(tmp_path), "fetch it")
    assert served.requests == []


def test_the_start_is_told(served: ReleaseHub, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One line says how much is downloaded and what of it is kept; without a terminal there is no bar."""
    with caplog.at_level(logging.WARNING):
        fetch(tmp_path, ALCE)
    told = [record.getMessage() for record in caplog.records if record.name == sources_release.__name__]
    assert told == [
        "fetching data.tar.gz of org/release: 0.0 GB are downloaded; of them only this is kept: data/alce/asqa.json"
    ]


def test_progress_on_a_terminal(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A terminal shows a bar of the bytes downloaded, a redirected output nothing."""
    fetch(tmp_path, ALCE)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    fetch(tmp_path, KILT)
    assert "data.tar.gz: 100%" in capsys.readouterr().err


def test_one_file_of_a_release() -> None:
    """Sources give their paths under the root."""
    assert ReleaseFile(RELEASE, KILT).paths == [KILT]
    assert PinnedFile("helmet/prompts/x.json", "", "").paths == ["helmet/prompts/x.json"]


# Bad networks


@pytest.mark.parametrize("seed", range(3))
def test_cut_connections_are_taken_up_again(served: ReleaseHub, tmp_path: Path, seed: int) -> None:
    """Every cut costs one more request, which starts at the byte where the last one stopped."""
    noise = random.Random(seed)
    served.faults = [Fault(cut=noise.randrange(1, 90_000)) for _ in range(5)]
    starts = [0]
    for fault in served.faults:
        assert fault
        assert fault.cut
        starts.append(starts[-1] + fault.cut)
    fetched(tmp_path)
    assert served.downloads == ["", *(f"bytes={start}-" for start in starts[1:])]


def test_a_server_without_ranges(served: ReleaseHub, tmp_path: Path) -> None:
    """Where a server sends everything again, what is known is skipped; a cut in that part too is survived."""
    cuts = (200_000, 250_000, 100_000, None)
    served.faults = [Fault(cut=cut, whole=True) for cut in cuts]
    fetched(tmp_path)
    assert len(served.downloads) == 4


@pytest.mark.parametrize(
    "header",
    [
        "bytes 5-9/10",
        "bytes 1000-2000/2001",
        f"bytes 999-{len(ARCHIVE) - 1}/{len(ARCHIVE)}",
        "",
        "bytes */9",
        "bytes 1000-",
    ],
)
def test_another_range_than_asked_for(served: ReleaseHub, tmp_path: Path, header: str) -> None:
    """An answer with other bytes than those that follow is refused."""
    served.faults = [Fault(cut=1000), Fault(headers={"Content-Range": header})]
    assert "another part of the file than byte 1000 on" in refused(tmp_path)


def test_a_range_of_unknown_total(served: ReleaseHub, tmp_path: Path) -> None:
    """A server need not repeat the size."""
    served.faults = [Fault(cut=1000), Fault(headers={"Content-Range": f"bytes 1000-{len(ARCHIVE) - 1}/*"})]
    fetched(tmp_path)


@pytest.mark.parametrize("size", [len(ARCHIVE) - 1, len(ARCHIVE) + 1, 10])
def test_another_size_than_announced(served: ReleaseHub, tmp_path: Path, size: int) -> None:
    """A file that is longer or shorter than announced is refused before anything is read."""
    served.size = size
    assert f"has {len(ARCHIVE)} bytes, but {size} were announced" in refused(tmp_path)


def test_an_end_before_the_announced_size(served: ReleaseHub, tmp_path: Path) -> None:
    """A file that ends early, though its answer claims the announced size, is refused."""
    served.size = len(ARCHIVE) + 5
    served.faults = [Fault(headers={"Content-Length": str(len(ARCHIVE) + 5)}, cut=len(ARCHIVE))]
    assert f"no byte {len(ARCHIVE)}, but {len(ARCHIVE) + 5} bytes were announced" in refused(tmp_path)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_passing_refusals(served: ReleaseHub, tmp_path: Path, status: int) -> None:
    """A server that is busy, at first or in the middle, is asked again."""
    served.faults = [Fault(status=status), Fault(cut=1000), Fault(status=status), Fault(status=status)]
    fetched(tmp_path)
    assert served.downloads == ["", "", "bytes=1000-", "bytes=1000-", "bytes=1000-"]


def test_a_refusal_that_stays(served: ReleaseHub, tmp_path: Path) -> None:
    """After a number of attempts in a row that brought nothing it is over."""
    served.faults = [Fault(cut=1000), *([Fault(status=503)] * 9)]
    assert "the server answered 503; wait" in refused(tmp_path)
    assert len(served.downloads) == 1 + 3  # the first cut is the first of four attempts


def test_any_progress_counts(served: ReleaseHub, tmp_path: Path) -> None:
    """Attempts that brought a byte do not add up."""
    served.faults = [Fault(cut=1) for _ in range(20)]
    fetched(tmp_path)
    assert len(served.downloads) == 21


def test_connections_that_bring_nothing(served: ReleaseHub, tmp_path: Path) -> None:
    """A server that always hangs up is given up."""
    served.faults = [Fault(cut=0) for _ in range(20)]
    assert "check the network" in refused(tmp_path)
    assert len(served.downloads) == 4


def test_a_silent_server(served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence in the middle of a file is a broken connection."""
    monkeypatch.setattr(download, "TIMEOUTS", (5.0, 0.2))
    served.faults = [Fault(cut=1000, hang=True)]
    fetched(tmp_path)
    assert len(served.downloads) == 2


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        pytest.param("7", 7, id="seconds"),
        pytest.param("100000", 300, id="too long"),
        pytest.param("soon", 0.001, id="no number"),
        pytest.param("Wed, 21 Oct 2015 07:28:00 GMT", 0.001, id="past"),
        pytest.param("Wed, 21 Oct 2215 07:28:00 -0000", 0.001, id="no zone"),
        pytest.param(format_datetime(datetime.now(timezone.utc) + timedelta(days=1)), 300, id="date"),
    ],
)
def test_the_wait_that_a_server_asks_for(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, waited: float
) -> None:
    """`Retry-After` is honoured, within bounds."""
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    served.faults = [Fault(status=429, headers={"Retry-After": asked})]
    fetch(tmp_path)
    assert waits == [waited]


def test_waits_grow(served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wait is twice the one before, up to a bound."""
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(download, "WAIT", 25.0)
    served.faults = [Fault(status=500)] * 3
    fetch(tmp_path)
    assert waits == [25, 50, 60]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_no_access_to_the_archive(served: ReleaseHub, tmp_path: Path, status: int) -> None:
    """A refusal is told at once, with the way to log in."""
    served.faults = [Fault(status=status)]
    message = refused(tmp_path)
    assert f"not for this login ({status}); set HF_TOKEN" in message
    assert message.startswith("release org/release: ")
    assert len(served.downloads) == 1


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500])
def test_a_hub_that_refuses(served: ReleaseHub, tmp_path: Path, status: int) -> None:
    """So is a refusal of the hub itself; passing ones are asked about again."""
    served.status = status
    assert f"{status}" in refused(tmp_path)
    assert len(served.requests) == (4 if status > 404 else 1)


@pytest.mark.parametrize("status", [204, 206, 304, 416])
def test_strange_answers(served: ReleaseHub, tmp_path: Path, status: int) -> None:
    """What is no answer to a download is not taken for one."""
    served.faults = [Fault(status=status)]
    assert f"the server answered {status}" in refused(tmp_path)


def test_no_archive_in_the_repository(served: ReleaseHub, tmp_path: Path) -> None:
    """A repository that lost its archive is told."""
    del served.repos["org/release"]["data.tar.gz"]
    assert "it is not there, or not for this login (404)" in refused(tmp_path)


def test_no_hub_at_all(served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network the error offers a mirror folder."""
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    assert "HELM_LONGCTX_DATA" in refused(tmp_path)


@pytest.mark.parametrize("sha", ["null", '""'])
def test_a_hub_without_commits(served: ReleaseHub, tmp_path: Path, sha: str) -> None:
    """Without a commit nothing can be pinned."""
    served.info = (200, {"Content-Type": "application/json"}, b'{"id": "org/release", "sha": %s}' % sha.encode())
    assert "names no commit of main" in refused(tmp_path)
    assert SETTING not in os.environ


def test_a_hub_without_digests(served: ReleaseHub, tmp_path: Path) -> None:
    """Without a SHA-256 nothing can be checked, so nothing is downloaded."""
    served.etag = "0" * 40
    assert "no size and SHA-256" in refused(tmp_path)
    assert served.downloads == []


def test_a_repeated_certificate_failure_is_not_a_passing_one() -> None:
    """A certificate does not get better by waiting; a reset connection may."""
    assert not download._passing(requests.exceptions.SSLError())
    assert download._passing(ConnectionResetError())


def test_the_token_stays_with_the_hub(served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token goes to the hub's host, whatever `.netrc` says, and not to the host that it redirects to."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password mine\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serve(ReleaseHub({}, files={"signed": ARCHIVE}, faults=[Fault(cut=1000)])) as elsewhere:
        served.elsewhere = elsewhere.url.replace("127.0.0.1", "localhost") + "/files/signed?signature=secret"
        fetched(tmp_path)
        assert elsewhere.logins == [None, None]
        assert elsewhere.downloads == ["", "bytes=1000-"]
    assert served.logins == [f"Bearer {SECRET}"] * 2


def test_no_token(served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who is not logged in downloads without."""
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    fetched(tmp_path)
    assert served.logins == [None]


# Bad archives


def test_wrong_content_is_refused(served: ReleaseHub, tmp_path: Path) -> None:
    """Of an archive with another digest nothing is kept, and the next attempt downloads again."""
    served.etag = "0" * 64
    assert "SHA-256" in refused(tmp_path)
    served.etag = None
    fetched(tmp_path)


def rehashed(served: ReleaseHub, content: bytes) -> None:
    """Let the hub have, and announce rightly, another archive."""
    served.repos["org/release"]["data.tar.gz"] = content


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(ARCHIVE[:-100], id="cut"),
        pytest.param(ARCHIVE[: len(ARCHIVE) // 3], id="cut early"),
        pytest.param(ARCHIVE[:100_000] + bytes(50_000) + ARCHIVE[150_000:], id="overwritten"),
        pytest.param(gzip.compress(tar()[:-300_000]), id="cut tar"),
        pytest.param(gzip.compress(b"not a tar file" * 100), id="gzip of something"),
        pytest.param(tar(), id="not compressed"),
        pytest.param(b"<html>log in</html>", id="a web page"),
        pytest.param(gzip.compress(b""), id="gzip of nothing"),
    ],
)
def test_malformed_archives(served: ReleaseHub, tmp_path: Path, content: bytes) -> None:
    """What is no whole archive is refused, even with the right digest."""
    rehashed(served, content)
    assert "not a whole gzip-compressed tar file" in refused(tmp_path, RULER)


def test_several_gzip_members(served: ReleaseHub, tmp_path: Path) -> None:
    """Parallel compressors write a gzip file in pieces."""
    plain = tar()
    rehashed(served, b"".join(gzip.compress(plain[at : at + 100_000]) for at in range(0, len(plain), 100_000)))
    fetched(tmp_path)


def test_what_follows_the_last_member(served: ReleaseHub, tmp_path: Path) -> None:
    """An archive is read to its end, whatever is there: the digest is of all of it."""
    rehashed(served, gzip.compress(tar() + NOISE.randbytes(4_000_000), 1) + bytes(512))
    fetched(tmp_path)


def test_missing_members(served: ReleaseHub, tmp_path: Path) -> None:
    """Files that the archive lacks are named, and the others are not kept."""
    message = refused(tmp_path, KILT, "helmet/kilt/none.jsonl", "helmet/none")
    assert "has no data/kilt/none.jsonl, data/none: not the benchmark's release" in message


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
    """Names that lead elsewhere, links and devices among the others touch nothing."""
    rehashed(served, packed(*HOSTILE))
    fetched(tmp_path)
    assert not (tmp_path / "outside").exists()


def test_members_behind_a_link(served: ReleaseHub, tmp_path: Path) -> None:
    """A file behind a link of the archive is written where we choose."""
    (tmp_path / "outside").mkdir()
    link = member("data/linked", b"", type=tarfile.SYMTYPE, linkname=str(tmp_path / "outside"))
    rehashed(served, packed(link, member("data/linked/x.jsonl", b"content")))
    fetch(tmp_path, "helmet/linked/x.jsonl")
    assert (tmp_path / "data/helmet/linked/x.jsonl").read_bytes() == b"content"
    assert not list((tmp_path / "outside").iterdir())


def test_names_with_dots(served: ReleaseHub, tmp_path: Path) -> None:
    """Archives made in the folder itself start every name with `./`."""
    rehashed(served, packed(member("./data/./dotted//x.jsonl", b"content")))
    fetch(tmp_path, "helmet/dotted/x.jsonl")
    assert (tmp_path / "data/helmet/dotted/x.jsonl").read_bytes() == b"content"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, id="symlink"),
        pytest.param({"type": tarfile.LNKTYPE, "linkname": "data/kilt/nq.jsonl"}, id="link"),
        pytest.param({"type": tarfile.DIRTYPE}, id="directory"),
        pytest.param({"type": tarfile.CHRTYPE}, id="device"),
        pytest.param({"type": tarfile.FIFOTYPE}, id="pipe"),
        pytest.param({"type": tarfile.GNUTYPE_SPARSE}, id="sparse file"),
    ],
)
def test_wanted_members_must_be_files(served: ReleaseHub, tmp_path: Path, fields: dict[str, object]) -> None:
    """A wanted name that is something else than a file is refused."""
    rehashed(served, packed(member("data/odd", b"", **fields)))
    assert "data.tar.gz: data/odd is not a plain file" in refused(tmp_path, KILT, "helmet/odd")


@pytest.mark.parametrize("name", ["data/kilt/nq.jsonl", "./data/kilt//nq.jsonl"])
def test_wanted_members_must_be_there_once(served: ReleaseHub, tmp_path: Path, name: str) -> None:
    """Two files of one wanted name are refused."""
    rehashed(served, packed(member(name)))
    assert "has data/kilt/nq.jsonl twice" in refused(tmp_path)


# Disks


def short_of(monkeypatch: pytest.MonkeyPatch, *free: int) -> None:
    """Let the disk have as much free space at each look, the last for ever."""
    usage, left = namedtuple("Usage", "total used free"), list(free)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, left.pop(0) if len(left) > 1 else left[0]))


def test_full_from_the_start(served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk no download starts."""
    short_of(monkeypatch, 100_000_000)
    assert "helmet needs 0.27 GB of free disk space and has 0.10 GB; make room" in refused(tmp_path)
    assert served.requests == []


def test_no_room_for_a_file(served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that does not fit is not written, and those before it are not kept."""
    short_of(monkeypatch, 10**12, 10**12, download.SPACE_MARGIN + 399_999)
    assert "of free disk space" in refused(tmp_path)


def test_no_room_for_what_a_header_claims(served: ReleaseHub, tmp_path: Path) -> None:
    """A member that claims to be huge is refused before it is written."""
    header = member("data/huge", b"")[0]
    header.size = 1 << 60
    rehashed(served, gzip.compress(header.tobuf() + bytes(10_000)))
    assert "of free disk space" in refused(tmp_path, "helmet/huge")


def test_a_disk_that_fills(served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that another process fills meanwhile is told as that."""

    def full(content: object, target: Path) -> None:
        target.write_bytes(b"part")
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(unpack, "_copy", full)
    assert "No space left on device; check space" in refused(tmp_path)


def test_a_file_where_a_folder_must_be(served: ReleaseHub, tmp_path: Path) -> None:
    """A root that cannot be written to is told."""
    (root(tmp_path).path / "helmet").write_text("")
    with pytest.raises(InputError, match="File exists; check space and rights"):
        fetch(tmp_path)


def test_a_disk_without_locks(served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that has no locks does not cost the download."""
    (root(tmp_path).path / "helmet/.release.lock").mkdir(parents=True)
    monkeypatch.setattr(hub, "TIMEOUT", 0.2)
    fetched(tmp_path)


# Interruptions


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, MemoryError])
def test_interrupted_in_the_middle(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]
) -> None:
    """An interruption passes, and leaves nothing."""
    read = download._read

    def interrupted(response: requests.Response, count: int) -> bytes:
        if response.raw.tell() > 350_000:
            raise interruption
        return read(response, count)

    monkeypatch.setattr(download, "_read", interrupted)
    with pytest.raises(InputError if issubclass(interruption, Exception) else interruption):
        fetch(tmp_path)
    assert tree(tmp_path) == []
    assert not list((tmp_path / "data").rglob(".fetch-*"))
    monkeypatch.setattr(download, "_read", read)
    fetched(tmp_path)


def test_what_a_killed_process_left(served: ReleaseHub, tmp_path: Path) -> None:
    """A killed process's folder of parts is in nobody's way."""
    stale = root(tmp_path) / "helmet/.fetch-stale" / KILT
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"part")
    fetch(tmp_path)
    assert (tmp_path / "data" / KILT).read_bytes() == CONTENT["data/kilt/nq.jsonl"]


def test_several_at_once(served: ReleaseHub, tmp_path: Path) -> None:
    """Fetches of the same and of other files at one time all end with whole files and a whole record."""
    wanted = [(KILT, RULER), (RULER, ALCE), (ALCE,), (KILT, "helmet/empty.jsonl")]
    threads = [threading.Thread(target=fetch, args=(tmp_path, *paths)) for paths in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fetched(tmp_path, KILT, RULER, ALCE, "helmet/empty.jsonl")
    record = json.loads((tmp_path / "data/helmet/release.json").read_text())
    assert sorted(record) == sorted({path for paths in wanted for path in paths})


# The release unpacked


@pytest.fixture
def unpacked(served: ReleaseHub, monkeypatch: pytest.MonkeyPatch) -> ReleaseHub:
    """A repository that has the release unpacked, one file at its top, one under `data/`."""
    served.repos[UNPACKED] = {
        "kilt/nq.jsonl": CONTENT["data/kilt/nq.jsonl"],
        "data/ruler/cwe/validation_8.jsonl": CONTENT["data/ruler/cwe/validation_8.jsonl"],
        "other": b"not for us",
    }
    monkeypatch.setenv(SETTING, UNPACKED)
    return served


@pytest.mark.parametrize("revision", ["", "@main", "@refs/pr/3"])
def test_an_unpacked_repository(
    unpacked: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revision: str
) -> None:
    """Single files come from the repository that the setting names, in either layout."""
    monkeypatch.setenv(SETTING, UNPACKED + revision)
    fetched(tmp_path)
    record = json.loads((tmp_path / "data/helmet/release.json").read_text())
    digest = hashlib.sha256(CONTENT["data/kilt/nq.jsonl"]).hexdigest()
    assert record[KILT] == {"size": 300_000, "sha256": digest, "repo": UNPACKED, "commit": COMMIT}
    assert unpacked.requests[0].endswith(f"/revision/{(revision or '@main')[1:].replace('/', '%2F')}")
    assert not [request for request in unpacked.requests if "data.tar.gz" in request or "other" in request]


def test_an_unpacked_repository_on_another_disk(
    unpacked: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the cache cannot be linked to, files are copied."""

    def no_link(*paths: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_link)
    fetched(tmp_path)


def test_an_unpacked_repository_that_lacks_files(unpacked: ReleaseHub, tmp_path: Path) -> None:
    """Files that it lacks are named; nothing is kept."""
    message = refused(tmp_path, KILT, ALCE)
    assert message.startswith(f"the repository that {SETTING} names: it has no data/alce/asqa.json")


def test_an_unpacked_repository_with_wrong_content(unpacked: ReleaseHub, tmp_path: Path) -> None:
    """Files with another digest than the hub's are not kept."""
    unpacked.etag = "0" * 64
    assert "SHA-256" in refused(tmp_path)


@pytest.mark.parametrize(
    "value", ["nonsense", "a/b/c", "https://user:hf_secretsecretsecret@hub/x?y", "a/b@", "a/b@c d"]
)
def test_settings_that_name_no_repository(
    unpacked: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """What is no repository's name is refused, and not repeated."""
    monkeypatch.setenv(SETTING, value)
    assert "org/name or org/name@revision" in refused(tmp_path)


def test_an_unpacked_repository_that_is_not_there(
    unpacked: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository that the hub does not show is told, with the way to log in."""
    monkeypatch.setenv(SETTING, "org/none")
    assert "set HF_TOKEN" in refused(tmp_path)


def test_an_unpacked_repository_without_commits(unpacked: ReleaseHub, tmp_path: Path) -> None:
    """Without a commit nothing can be pinned."""
    unpacked.info = (200, {"Content-Type": "application/json"}, b'{"id": "org/unpacked", "sha": null}')
    assert "names no commit of main" in refused(tmp_path)


# Pinned files

PROMPT = b'{"demos": []}' * 1000
PROMPTS = "helmet/prompts/asqa.json"


def pinned(tmp_path: Path, served: ReleaseHub, sha256: str = "", mirror: bool = False, name: str = "asqa") -> None:
    digest = sha256 or hashlib.sha256(PROMPT).hexdigest()
    file = PinnedFile(PROMPTS, f"{served.url}/files/{name}?signature=x", digest)
    ensure_pinned([file, file], root(tmp_path, mirror), "fetch it")


@pytest.fixture
def web(served: ReleaseHub) -> ReleaseHub:
    """A server with a prompt file."""
    served.files["asqa"] = PROMPT
    return served


def test_a_pinned_file(web: ReleaseHub, tmp_path: Path) -> None:
    """A pinned file is downloaded once, without the hub's token, through cuts and refusals."""
    web.faults = [Fault(status=503), Fault(cut=1000), Fault(cut=100, whole=True)]
    pinned(tmp_path, web)
    pinned(tmp_path, web)
    assert tree(tmp_path) == [PROMPTS]
    assert (tmp_path / "data" / PROMPTS).read_bytes() == PROMPT
    assert web.downloads == ["", "", "bytes=1000-", "bytes=1000-"]
    assert web.logins == [None] * 4


def test_a_pinned_file_of_unknown_size(web: ReleaseHub, tmp_path: Path) -> None:
    """A server need not say the size of a pinned file; its digest tells whether it is whole."""
    web.faults = [
        Fault(headers={"Content-Length": ""}, cut=500),
        Fault(headers={"Content-Length": ""}, cut=len(PROMPT)),
    ]
    message = refused(tmp_path, act=lambda path: pinned(path, web))
    assert "SHA-256" in message
    pinned(tmp_path, web)


def test_another_pinned_content(web: ReleaseHub, tmp_path: Path) -> None:
    """A pinned file with another digest is not kept."""
    message = refused(tmp_path, act=lambda path: pinned(path, web, sha256="0" * 64))
    assert f"has SHA-256 {hashlib.sha256(PROMPT).hexdigest()}, expected {'0' * 64}" in message
    assert PROMPTS in message


def test_no_pinned_file(web: ReleaseHub, tmp_path: Path) -> None:
    """A pinned file that is gone is told at once."""
    assert "404" in refused(tmp_path, act=lambda path: pinned(path, web, name="none"))
    assert len(web.downloads) == 1


def test_pinned_files_in_a_mirror(web: ReleaseHub, tmp_path: Path) -> None:
    """A mirror is not filled with pinned files either."""
    with pytest.raises(InputError, match=r"lacks helmet/prompts/asqa.json; get it with: fetch it"):
        pinned(tmp_path, web, mirror=True)
    assert web.requests == []


def test_no_room_for_pinned_files(web: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk nothing is downloaded."""
    short_of(monkeypatch, 1000)
    assert "of free disk space" in refused(tmp_path, act=lambda path: pinned(path, web))
    assert web.requests == []


# The reader by itself


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    size=st.integers(0, 200_000),
    faults=st.lists(
        st.one_of(
            st.builds(Fault, cut=st.integers(1, 100_000), whole=st.booleans()),
            st.builds(Fault, status=st.sampled_from([429, 500])),
            st.none(),
        ),
        max_size=12,
    ),
    piece=st.integers(1, 100_000),
    known=st.booleans(),
)
def test_whatever_is_cut_the_bytes_are_the_files(
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    faults: list[Fault | None],
    piece: int,
    known: bool,
) -> None:
    """Wherever connections break, what is read is the file, and its digest the file's."""
    monkeypatch.setattr(download, "ATTEMPTS", 20)
    monkeypatch.setattr(download, "WAIT_MOST", 0.001)
    content = random.Random(size).randbytes(size)
    with (
        serve(ReleaseHub({}, files={"file": content}, faults=list(faults))) as web,
        ResumingStream(f"{web.url}/files/file", size if known else None) as stream,
    ):
        told: list[int] = []
        stream.progress = told.append
        buffered = io.BufferedReader(stream, 1 << 14)
        assert b"".join(iter(lambda: buffered.read(piece), b"")) == content
        assert stream.digest.hexdigest() == hashlib.sha256(content).hexdigest()
        assert sum(told) == stream.position == size
