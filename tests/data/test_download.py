"""Tests of downloads over bad networks: interrupted connections, refusals, silence, and the reader by itself."""

from __future__ import annotations

import hashlib
import io
import os
import random
import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import huggingface_hub.constants
import pytest
import requests
from huggingface_hub.errors import OfflineModeIsEnabled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helm_longctx.data import download
from helm_longctx.data.download import ResumingStream
from tests.data.release_server import Fault, ReleaseHub, serve
from tests.data.releases import ARCHIVE, SECRET, SETTING, fetch, fetched, refused
from tests.support.servers.closed import closed_address

# Bad networks


@pytest.mark.parametrize("seed", range(3))
def test_cut_connections_are_taken_up_again(
    served: ReleaseHub, tmp_path: Path, seed: int
) -> None:
    """Each interrupted connection costs one more request, which starts at the byte where the last one stopped."""
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
    """If a server sends the whole file again, known bytes are skipped, also after an interruption in that part."""
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
def test_another_range_than_asked_for(
    served: ReleaseHub, tmp_path: Path, header: str
) -> None:
    """An answer with other bytes than the requested range is refused."""
    served.faults = [Fault(cut=1000), Fault(headers={"Content-Range": header})]
    assert "a part of the file that does not begin at byte 1000" in refused(tmp_path)


def test_a_range_of_unknown_total(served: ReleaseHub, tmp_path: Path) -> None:
    """An answer for a range is accepted without the total size."""
    served.faults = [
        Fault(cut=1000),
        Fault(headers={"Content-Range": f"bytes 1000-{len(ARCHIVE) - 1}/*"}),
    ]
    fetched(tmp_path)


@pytest.mark.parametrize("size", [len(ARCHIVE) - 1, len(ARCHIVE) + 1, 10])
def test_another_size_than_announced(
    served: ReleaseHub, tmp_path: Path, size: int
) -> None:
    """A file that is longer or shorter than announced is refused before anything is read."""
    served.size = size
    assert f"has {len(ARCHIVE)} bytes, but {size} were announced" in refused(tmp_path)


def test_an_end_before_the_announced_size(served: ReleaseHub, tmp_path: Path) -> None:
    """A file that ends early is refused, even if its answer claims the announced size."""
    served.size = len(ARCHIVE) + 5
    served.faults = [
        Fault(headers={"Content-Length": str(len(ARCHIVE) + 5)}, cut=len(ARCHIVE))
    ]
    assert (
        f"the file ends before byte {len(ARCHIVE)}, but {len(ARCHIVE) + 5} bytes were announced"
        in refused(tmp_path)
    )


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_passing_refusals(served: ReleaseHub, tmp_path: Path, status: int) -> None:
    """A busy server is asked again, at the start and in the middle of a file."""
    served.faults = [
        Fault(status=status),
        Fault(cut=1000),
        Fault(status=status),
        Fault(status=status),
    ]
    fetched(tmp_path)
    assert served.downloads == ["", "", "bytes=1000-", "bytes=1000-", "bytes=1000-"]


def test_a_refusal_that_stays(served: ReleaseHub, tmp_path: Path) -> None:
    """After several attempts in a row without progress the download fails."""
    served.faults = [Fault(cut=1000), *([Fault(status=503)] * 9)]
    assert "the server answered with status 503; wait" in refused(tmp_path)
    assert len(served.downloads) == 1 + 3  # the first cut is the first of four attempts


def test_any_progress_counts(served: ReleaseHub, tmp_path: Path) -> None:
    """Attempts that brought at least a byte do not add up to a failure."""
    served.faults = [Fault(cut=1) for _ in range(20)]
    fetched(tmp_path)
    assert len(served.downloads) == 21


def test_connections_that_bring_nothing(served: ReleaseHub, tmp_path: Path) -> None:
    """A server that always closes the connection is given up."""
    served.faults = [Fault(cut=0) for _ in range(20)]
    assert "check the network" in refused(tmp_path)
    assert len(served.downloads) == 4


def test_a_silent_server(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silence in the middle of a file counts as a broken connection."""
    monkeypatch.setattr(download, "TIMEOUTS", (5.0, 1.0))
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
        pytest.param("Wed, 21 Oct 2215 07:28:00 -0000", 300, id="UTC without a zone"),
        pytest.param(
            format_datetime(datetime.now(timezone.utc) + timedelta(days=1)),
            300,
            id="date",
        ),
    ],
)
def test_the_wait_that_a_server_asks_for(
    served: ReleaseHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: str,
    waited: float,
) -> None:
    """`Retry-After` is obeyed within bounds."""
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    served.faults = [Fault(status=429, headers={"Retry-After": asked})]
    fetch(tmp_path)
    assert waits == [waited]


def test_waits_grow(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each wait is twice as long as the one before, up to a bound."""
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(download, "WAIT", 25.0)
    served.faults = [Fault(status=500)] * 3
    fetch(tmp_path)
    assert waits == [25, 50, 60]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_no_access_to_the_archive(
    served: ReleaseHub, tmp_path: Path, status: int
) -> None:
    """A refused archive is reported at once, with the way to log in."""
    served.faults = [Fault(status=status)]
    message = refused(tmp_path)
    assert f"your login has no access to it ({status}); set HF_TOKEN" in message
    assert message.startswith("release org/release: ")
    assert len(served.downloads) == 1


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500])
def test_a_hub_that_refuses(served: ReleaseHub, tmp_path: Path, status: int) -> None:
    """A refusal of the hub is reported, and a temporary one is tried again."""
    served.status = status
    assert f"{status}" in refused(tmp_path)
    assert len(served.requests) == (4 if status > 404 else 1)


@pytest.mark.parametrize("status", [204, 206, 304, 416])
def test_strange_answers(served: ReleaseHub, tmp_path: Path, status: int) -> None:
    """A status that does not belong to a download is an error."""
    served.faults = [Fault(status=status)]
    assert f"the server answered with status {status}" in refused(tmp_path)


def test_no_archive_in_the_repository(served: ReleaseHub, tmp_path: Path) -> None:
    """A repository without its archive is reported."""
    del served.repos["org/release"]["data.tar.gz"]
    assert "it does not exist, or your login has no access to it (404)" in refused(
        tmp_path
    )


def test_no_hub_at_all(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a network the error suggests a mirror folder."""
    with closed_address() as address:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
        assert "HELM_LONGCTX_DATA" in refused(tmp_path)


@pytest.mark.parametrize("sha", ["null", '""'])
def test_a_hub_without_commits(served: ReleaseHub, tmp_path: Path, sha: str) -> None:
    """A hub that names no commit is an error, because nothing can be pinned."""
    served.info = (
        200,
        {"Content-Type": "application/json"},
        b'{"id": "org/release", "sha": %s}' % sha.encode(),
    )
    assert "names no commit of main" in refused(tmp_path)
    assert SETTING not in os.environ


def test_a_hub_without_digests(served: ReleaseHub, tmp_path: Path) -> None:
    """A hub without a SHA-256 is an error before any download, because nothing can be checked."""
    served.etag = "0" * 40
    assert "no size and SHA-256" in refused(tmp_path)
    assert served.downloads == []


def test_a_repeated_certificate_failure_is_not_a_passing_one() -> None:
    """A failed certificate is not tried again, and a reset connection is."""
    assert not download._is_temporary(requests.exceptions.SSLError())
    assert not download._is_temporary(OfflineModeIsEnabled("HF_HUB_OFFLINE=1"))
    assert download._is_temporary(ConnectionResetError())


def test_the_token_stays_with_the_hub(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token is sent to the hub's host only, whatever `.netrc` says, and not to the host of a redirect."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password mine\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serve(
        ReleaseHub({}, files={"signed": ARCHIVE}, faults=[Fault(cut=1000)])
    ) as elsewhere:
        served.elsewhere = (
            elsewhere.url.replace("127.0.0.1", "localhost")
            + "/files/signed?signature=secret"
        )
        fetched(tmp_path)
        assert elsewhere.logins == [None, None]
        assert elsewhere.downloads == ["", "bytes=1000-"]
    assert served.logins == [f"Bearer {SECRET}"] * 2


def test_no_token(
    served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who is not logged in downloads without a token."""
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(
        huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "none")
    )
    fetched(tmp_path)
    assert served.logins == [None]


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
    """Wherever connections break, the read bytes and their digest are the file's."""
    monkeypatch.setattr(download, "_ATTEMPTS", 20)
    monkeypatch.setattr(download, "_WAIT_MOST", 0.001)
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
