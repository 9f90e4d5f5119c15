"""A local server with the part of the hub's protocol that huggingface_hub needs: repository data and downloads."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import huggingface_hub.constants
import pyarrow
import pyarrow.parquet
import pytest

from tests.data.releases import SECRET
from tests.support.servers.hostile import Act
from tests.support.servers.threads import serve_in_thread

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PARQUET_REVISION = "refs/convert/parquet"
CONVERTED = "c" * 40
"""The commit of the conversion to parquet, where a repository has files of its own for it."""


def to_parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    """Return a parquet file with rows."""
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([*rows]), buffer)
    return buffer.getvalue()


@dataclass
class Hub:
    """What the server has, and how it misbehaves.

    Args:
        repos: repository to file name to content; `REPOSITORY@REVISION` has what a revision has instead.
        commits: the commits of a repository, the newest first; by default COMMIT alone.
        moved: new names of repositories, to which requests are redirected.
        gated: repositories that need a login.
        status: answer everything with this status.
        cut: how many downloads to cut in the middle.
        etag: give this digest instead of the right one.
        info: answer questions about a repository with this status, headers and text.
        acts: what sends the reply instead, by a pattern of `METHOD path`.
    """

    repos: dict[str, dict[str, bytes]]
    status: int | None = None
    cut: int = 0
    etag: str | None = None
    info: tuple[int, dict[str, str], bytes] | None = None
    commits: dict[str, list[str]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)
    acts: dict[str, Act] = field(default_factory=dict)
    url: str = ""

    def files_at(self, repo: str, revision: str | None) -> dict[str, bytes] | None:
        """Return the files of a revision, by default the newest one; None if there is no such repository."""
        revision = PARQUET_REVISION if revision == CONVERTED else revision
        return self.repos.get(f"{repo}@{revision}", self.repos.get(repo))

    def commit_of(self, repo: str, revision: str | None) -> str:
        """Return the commit of a revision."""
        if revision and re.fullmatch("[0-9a-f]{40}", revision):
            return revision
        return CONVERTED if f"{repo}@{revision}" in self.repos else self.head(repo)

    def head(self, repo: str) -> str:
        """Return the newest commit."""
        return self.commits.get(repo, [COMMIT])[0]


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    """Serve on a free loopback port."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = _Server(("127.0.0.1", 0), handler)
    with serve_in_thread(server) as hub.url:
        yield hub


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: clients cut connections on purpose."""


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        if self.path == "/api/agent-harnesses":
            # What huggingface_hub asks for itself, once in a process: whichever test is the first must not count it.
            self._send(404, b"{}", {}, body)
            return
        self.hub.requests.append(
            f"{self.command} {self.path} {self.headers.get('Range', '')}".strip()
        )
        for pattern, act in self.hub.acts.items():
            if re.search(pattern, f"{self.command} {self.path}"):
                self.close_connection = True
                with suppress(ConnectionError):  # the client has had enough
                    act(self)
                return
        if self.hub.status:
            self._send(
                self.hub.status,
                b"{}",
                {"X-Error-Code": "RepoNotFound"} if self.hub.status == 401 else {},
                body,
            )
            return
        path = unquote(self.path.split("?")[0])
        for old, new in self.hub.moved.items():
            if f"/{old}" in path and f"/{new}" not in path:
                self._send(307, b"", {"Location": self.path.replace(old, new, 1)}, body)
                return
        for repo in self.hub.gated:
            # The hub describes a gated repository to everyone, but serves its files only to those with access.
            if f"/{repo}/resolve/" in path:
                self._send(403, b"", {"X-Error-Code": "GatedRepo"}, body)
                return
        if match := re.fullmatch(r"/api/models/(.+)/tree/[^/]+", path):
            files = self.hub.repos.get(match[1], {})
            rows = [
                {"type": "file", "path": name, "size": len(data), "oid": "1"}
                for name, data in files.items()
            ]
            self._send(
                200,
                json.dumps(rows).encode(),
                {"Content-Type": "application/json"},
                body,
            )
        elif re.fullmatch(
            r"/api/(?:datasets|models)/.+/tree/.+", path
        ):  # of folders, which no repository here has
            self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"}, body)
        elif match := re.fullmatch(
            r"/api/(?:datasets|models)/(.+?)/commits/[^/]+", path
        ):
            rows = [
                {
                    "id": commit,
                    "authors": [],
                    "date": "2026-01-01T00:00:00.000Z",
                    "title": "",
                    "message": "",
                }
                for commit in self.hub.commits.get(match[1], [COMMIT])
            ]
            self._send(
                200,
                json.dumps(rows).encode(),
                {"Content-Type": "application/json"},
                body,
            )
        elif match := re.fullmatch(
            r"/api/(?:datasets|models)/(.+?)(?:/revision/(.+))?", path
        ):
            self._info(match[1], match[2])
        elif match := re.fullmatch(
            r"(?:/datasets)?/(.+?)/resolve/(refs/convert/parquet|[^/]+)/(.+)", path
        ):
            files = self.hub.files_at(match[1], match[2]) or {}
            self._file(
                files.get(match[3]), body, self.hub.commit_of(match[1], match[2])
            )
        else:
            self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"}, body)

    def _info(self, repo: str, revision: str | None) -> None:
        if self.hub.info:
            status, headers, text = self.hub.info
            self._send(status, text, headers, True)
            return
        files = self.hub.files_at(repo, revision)
        if files is None:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"}, True)
            return
        siblings = [
            {
                "rfilename": name,
                "blobId": hashlib.sha1(data).hexdigest(),
                "size": len(data),
            }
            for name, data in files.items()
        ]
        info = {
            "id": repo,
            "_id": "1",
            "sha": self.hub.commit_of(repo, revision),
            "gated": "auto" if repo in self.hub.gated else False,
            "siblings": siblings,
            "private": False,
            "disabled": False,
        }
        self._send(
            200, json.dumps(info).encode(), {"Content-Type": "application/json"}, True
        )

    def _file(self, content: bytes | None, body: bool, commit: str = COMMIT) -> None:
        if content is None:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"}, body)
            return
        digest = self.hub.etag or hashlib.sha256(content).hexdigest()
        headers = {
            "ETag": f'"{digest}"',
            "X-Repo-Commit": commit,
            "Accept-Ranges": "bytes",
        }
        start = 0
        if match := re.match(r"bytes=(\d+)-", self.headers.get("Range") or ""):
            start = int(match[1])
            headers["Content-Range"] = (
                f"bytes {start}-{len(content) - 1}/{len(content)}"
            )
        self._send(
            206 if start else 200,
            content[start:],
            headers,
            body,
            cut=body and self._cuts(),
        )

    def _cuts(self) -> bool:
        self.hub.cut -= 1
        return self.hub.cut >= 0

    def _send(
        self,
        status: int,
        content: bytes,
        headers: dict[str, str],
        body: bool,
        cut: bool = False,
    ) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content[: len(content) // 2] if cut else content)
        if cut:
            self.close_connection = True
            self.connection.close()


def point_at(monkeypatch: pytest.MonkeyPatch, url: str, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", url)
    monkeypatch.setattr(
        huggingface_hub.constants,
        "HUGGINGFACE_CO_URL_TEMPLATE",
        url + "/{repo_id}/resolve/{revision}/{filename}",
    )
    monkeypatch.setattr(
        huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache")
    )
    monkeypatch.setattr(
        huggingface_hub.constants, "HF_HUB_DISABLE_XET", True, raising=False
    )
