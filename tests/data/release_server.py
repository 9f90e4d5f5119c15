"""The local hub of `hub_server`, with downloads that fail in every way in which networks fail."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.data import hub_server
from tests.data.hub_server import COMMIT, Hub
from tests.support.servers.threads import serve_in_thread


@dataclass
class Fault:
    """What happens to one request for content.

    Args:
        cut: send as many bytes of the answer's body, then close the connection.
        status: answer with this status.
        headers: and these headers, which replace the usual ones.
        whole: answer 200 with the whole file, whatever was asked for.
        hang: before closing, be silent until the test is over.
    """

    cut: int | None = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    whole: bool = False
    hang: bool = False


@dataclass
class ReleaseHub(Hub):
    """A hub, and what happens to its downloads in turn; after the last fault all goes well.

    Args:
        faults: for each request for a file's content, None where it goes well.
        size: announce this size instead of the right one.
        elsewhere: send downloads on to this server, as the hub does for large files.
        files: path on this server to content, for downloads from no hub.
    """

    faults: list[Fault | None] = field(default_factory=list)
    size: int | None = None
    elsewhere: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    logins: list[str | None] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def downloads(self) -> list[str]:
        """Return where each request for content wanted to start, "" for the start."""
        requests = [
            re.fullmatch(r"GET /(?:datasets|files)/\S+ ?(.*)", request)
            for request in self.requests
        ]
        return [match[1] for match in requests if match]


@contextmanager
def serve(hub: ReleaseHub) -> Iterator[ReleaseHub]:
    """Serve on a free loopback port."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    with serve_in_thread(server) as hub.url:
        try:
            yield hub
        finally:
            hub.over.set()


class _Handler(hub_server._Handler):
    hub: ReleaseHub

    def _answer(self, body: bool) -> None:
        path = urlsplit(self.path).path
        if path.startswith("/files/"):
            self.hub.requests.append(
                f"{self.command} {self.path} {self.headers.get('Range', '')}".strip()
            )
            self._file(self.hub.files.get(path.removeprefix("/files/")), body)
        else:
            super()._answer(body)

    def _file(self, content: bytes | None, body: bool, commit: str = COMMIT) -> None:
        if body:
            self.hub.logins.append(self.headers.get("Authorization"))
        if content is None:
            super()._file(content, body, commit)
        elif not body:
            self._announce(content)
        elif self.hub.elsewhere:
            self._send(302, b"", {"Location": self.hub.elsewhere}, body)
        else:
            self._download(
                content,
                (self.hub.faults.pop(0) if self.hub.faults else None) or Fault(),
            )

    def _announce(self, content: bytes) -> None:
        """Announce digest and size, and a signed address on another host, as the hub does for large files."""
        digest = hashlib.sha256(content).hexdigest()
        self.hub.files[digest] = content
        headers = {
            "X-Linked-ETag": f'"{self.hub.etag or digest}"',
            "X-Linked-Size": str(self.hub.size or len(content)),
            "X-Repo-Commit": COMMIT,
            "ETag": '"of no use"',
            "Location": f"{self.hub.url.replace('127.0.0.1', 'localhost')}/files/{digest}?signature=secret",
        }
        self._send(302, b"", headers, False)

    def _download(self, content: bytes, fault: Fault) -> None:
        match = re.match(r"bytes=(\d+)-", self.headers.get("Range") or "")
        start = int(match[1]) if match and not fault.whole else 0
        status = fault.status or (
            416 if start >= len(content) > 0 else 206 if start else 200
        )
        body = content[start:] if status in (200, 206) else b""
        headers = {"Content-Length": str(len(body))}
        if status == 206:
            headers["Content-Range"] = (
                f"bytes {start}-{len(content) - 1}/{len(content)}"
            )
        self.send_response(status)
        for name, value in {**headers, **fault.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: fault.cut])
        if fault.hang:
            self.hub.over.wait(10)
        self.close_connection = fault != Fault()
