"""Tests of files of web servers without published checksums, with a real local HTTP server."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from helm_longctx.data import download
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.data.web import WebFile
from helm_longctx.errors import InputError
from tests.support.servers.closed import closed_address
from tests.support.servers.threads import serve_in_thread

CONTENT = b'[{"a": 1}]\n' * 1000
BLOB = "77a634d3a861ea6efff7bd35201ef72701285409"
"""What `git hash-object` prints for the content."""


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the address of a served file."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "x.json").write_bytes(CONTENT)
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder))
    )
    monkeypatch.setattr(download, "WAIT", 0.001)
    with serve_in_thread(server) as address:
        yield f"{address}/x.json"


def test_a_file_is_fetched_once_and_recorded(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file is fetched once, with a record of the download and a line that says that it cannot be checked."""
    root = DataRoot(tmp_path / "cache", mirror=False)
    file = WebFile(url, "folder/x.json")
    with caplog.at_level(logging.WARNING):
        ensure([file], root, "fetch x")
    assert (root / file.path).read_bytes() == CONTENT
    record = json.loads(
        (root / "folder/x.json.source.json").read_text(encoding="utf-8")
    )
    assert record == {
        "url": url,
        "stored": {
            "x.json": {
                "size": len(CONTENT),
                "sha256": hashlib.sha256(CONTENT).hexdigest(),
            }
        },
    }
    assert "no checksum was published" in caplog.text
    caplog.clear()
    ensure([file], root, "fetch x")
    assert caplog.text == ""


def test_a_known_content_is_checked(url: str, tmp_path: Path) -> None:
    """A file with a known git id is checked, and another content is refused and leaves nothing."""
    source = tmp_path / "served/x.json"
    root = DataRoot(tmp_path / "cache", mirror=False)
    ensure([WebFile(url, "a/x.json", BLOB)], root, "fetch x")
    source.write_bytes(CONTENT[:-1])
    with pytest.raises(
        InputError,
        match=rf"x\.json: the downloaded file has the git id \w+, expected {BLOB}.*fetch x",
    ):
        ensure([WebFile(url, "b/x.json", BLOB)], root, "fetch x")
    assert list((root / "b").iterdir()) == []


def test_absent_files_are_one_line(url: str, tmp_path: Path) -> None:
    """A file that is absent on the server or in a mirror ends in one line, and a mirror is never filled."""
    with pytest.raises(InputError, match=r"y: it does not exist.*\(404\).*fetch x"):
        ensure(
            [WebFile(f"{url}y", "y.json")],
            DataRoot(tmp_path / "cache", mirror=False),
            "fetch x",
        )
    with pytest.raises(InputError, match=r"lacks folder/x.json"):
        ensure(
            [WebFile(url, "folder/x.json")], DataRoot(tmp_path, mirror=True), "fetch x"
        )


def test_a_server_that_cannot_be_reached_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that cannot be reached is asked once, and no line mentions a broken download."""
    monkeypatch.setattr(download, "WAIT", 0.001)
    with closed_address() as address:
        file = WebFile(f"{address}/x.json", "a/x.json")
        with pytest.raises(
            InputError, match="the server cannot be reached; check the network, or put"
        ):
            ensure([file], DataRoot(tmp_path, mirror=False), "fetch x")
    assert "attempt" not in caplog.text
    assert list(tmp_path.rglob("*.json")) == []
