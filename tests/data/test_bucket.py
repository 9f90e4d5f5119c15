"""Tests of files of a public bucket, with a real local HTTP server."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from helm_longctx.data import download, web
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.data.web import BucketFile
from helm_longctx.errors import InputError
from tests.support.servers.threads import serve_in_thread

FILE = BucketFile("b", "in_(1,2) x.csv", "folder/x.csv")
CONTENT = b"a,b\n" * 1000


class Handler(BaseHTTPRequestHandler):
    """A handler of the bucket's protocol."""

    about: ClassVar[dict[str, Any]] = {}
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """Send what is known about the file, or its content."""
        self.asked.append(self.path)
        body = CONTENT if "alt=media" in self.path else json.dumps(self.about).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start a server with the file."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    monkeypatch.setattr(web, "_API", f"http://127.0.0.1:{server.server_port}/b")
    monkeypatch.setattr(download, "WAIT", 0.001)
    md5 = base64.b64encode(hashlib.md5(CONTENT).digest()).decode()
    Handler.about = {"size": str(len(CONTENT)), "generation": "7", "md5Hash": md5}
    Handler.asked.clear()
    with serve_in_thread(server):
        yield


def test_a_file_is_fetched_once(tmp_path: Path) -> None:
    """A file is fetched once, with its content and a record of its origin."""
    root = DataRoot(tmp_path / "cache", mirror=False)
    for _ in range(2):
        ensure([FILE], root, "fetch x")
    assert (root / FILE.path).read_bytes() == CONTENT
    record = json.loads((root / (FILE.path + ".source.json")).read_text())
    assert record == {
        "bucket": "b",
        "name": FILE.name,
        "generation": "7",
        "md5": hashlib.md5(CONTENT).hexdigest(),
        "stored": {
            "x.csv": {
                "size": len(CONTENT),
                "sha256": hashlib.sha256(CONTENT).hexdigest(),
            }
        },
    }
    assert Handler.asked == [
        "/b/b/o/in_%281%2C2%29%20x.csv",
        "/b/b/o/in_%281%2C2%29%20x.csv?alt=media&generation=7",
    ]


def test_another_content_is_refused(tmp_path: Path) -> None:
    """A file with another content is refused and leaves nothing, and a mirror is never filled."""
    Handler.about["md5Hash"] = base64.b64encode(b"x" * 16).decode()
    root = DataRoot(tmp_path / "cache", mirror=False)
    with pytest.raises(
        InputError, match=r"has MD5 \w+, not the announced one.*fetch x"
    ):
        ensure([FILE], root, "fetch x")
    assert list((root / "folder").iterdir()) == []
    with pytest.raises(InputError, match=r"lacks folder/x.csv"):
        ensure([FILE], DataRoot(tmp_path, mirror=True), "fetch x")
