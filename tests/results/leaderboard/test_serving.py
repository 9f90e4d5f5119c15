"""Tests of attacks over sockets on a real `helm-longctx serve`."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.browser import served
from tests.support.commands import Command

SECRET = "the answer of a model, which only this machine may read"
PAGE = "/benchmark_output/runs/s/groups.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a suite, HELM's link `latest`, links out of the output folder, and a file outside it."""
    folder = tmp_path_factory.mktemp("served")
    suite = folder / "benchmark_output/runs/s"
    suite.mkdir(parents=True)
    (suite / "groups.json").write_text(f'["{SECRET}"]')
    (suite.parent / "latest").symlink_to(suite.resolve())
    outside = folder / "outside"
    outside.mkdir()
    (outside / "schema.json").write_text(f'["{SECRET}"]')
    (suite / "file.json").symlink_to(outside / "schema.json")
    (suite / "folder").symlink_to(outside)
    (suite / "etc").symlink_to("/etc")
    (suite / "loop").symlink_to(suite / "loop")
    (suite.parent / "linked").symlink_to(outside)
    (folder / "prod_env/cache/output").mkdir(parents=True)
    (folder / "prod_env/cache/output/file.json").symlink_to(outside / "schema.json")
    return folder


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    """Yield the port of the server."""
    with served(folder) as address:
        yield urlsplit(address).port or 0


def ask(port: int, head: str) -> tuple[int, str, dict[str, str]]:
    """Send the lines of a request unchanged, and return the status, the body and the headers of the reply."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n")
        reply = HTTPResponse(connection, method=head.split(" ")[0])
        reply.begin()
        body = reply.read()
    headers = {name.lower(): value for name, value in reply.getheaders()}
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    return reply.status, body.decode(), headers


def get(
    port: int, path: str, more: str = "", method: str = "GET"
) -> tuple[int, str, dict[str, str]]:
    """Ask for a path under a name of this machine."""
    return ask(port, f"{method} {path} HTTP/1.1\nHost: 127.0.0.1:{port}{more}")


OWN_NAMES = ("127.0.0.1:{port}", "127.0.0.1", "127.8.9.10:{port}", "localhost:{port}", "LOCALHOST", "[::1]:{port}",
             "[::1]", "localhost:1")  # fmt: skip


@pytest.mark.parametrize("name", OWN_NAMES)
def test_names_of_this_machine(name: str, port: int) -> None:
    """A request under a name of this machine is answered, also with the port of a tunnel."""
    status, body, _ = ask(port, f"GET {PAGE} HTTP/1.1\nHost: {name.format(port=port)}")
    assert status == 200
    assert SECRET in body


OTHER_NAMES = ("evil.com", "evil.com:{port}", "127.0.0.1.evil.com", "127.0.0.1.evil.com:{port}", "localhost.evil.com",
               "evil.com:127.0.0.1", "notlocalhost", "localhost@evil.com", "localhost:{port}, evil.com", "127.0.0.1:",
               "[::1].evil.com", "[::2]:{port}", "0.0.0.0:{port}", "192.168.0.1", "", "localhost.", "127.1", "2130706433",
               "１２７.0.0.1", "localhost\nHost: evil.com", "evil.com\nHost: localhost",
               "evil.com\nX-Forwarded-Host: localhost")  # fmt: skip


@pytest.mark.parametrize("headers", ["", "\nAccept-Encoding: gzip"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
@pytest.mark.parametrize("name", OTHER_NAMES)
def test_other_names_are_refused(
    name: str, method: str, headers: str, port: int
) -> None:
    """A site with a name of its own for 127.0.0.1 (DNS rebinding) gets no page, no script and no status."""
    for path in (PAGE, "/", "/config.js", "/nothing", "/cache/output/x"):
        status, body, replied = ask(
            port, f"{method} {path} HTTP/1.1\nHost: {name.format(port=port)}{headers}"
        )
        assert status == 403
        assert SECRET not in body
        assert "last-modified" not in replied


def test_no_name_is_refused(port: int) -> None:
    """A request without `Host`, which HTTP/1.0 and the server's library allow, is refused."""
    assert ask(port, f"GET {PAGE} HTTP/1.0")[0] == 403
    assert ask(port, f"GET {PAGE} HTTP/1.1")[0] == 403


@pytest.mark.parametrize("host", ["localhost", "evil.com"])
@pytest.mark.parametrize(
    "target", ["http://evil.com" + PAGE, "//evil.com" + PAGE, "evil.com:80"]
)
def test_targets_with_a_name(target: str, host: str, port: int) -> None:
    """The target of a request to a proxy is not taken for a path."""
    status, body, _ = ask(port, f"GET {target} HTTP/1.1\nHost: {host}")
    assert status in (403, 404)
    assert SECRET not in body


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
@pytest.mark.parametrize("mode", ["no-cors", "cors"])
def test_scripts_of_other_sites_are_refused(site: str, mode: str, port: int) -> None:
    """A page of another site cannot load our files as its scripts, although browsers would allow that."""
    status, body, _ = get(
        port, PAGE, f"\nSec-Fetch-Site: {site}\nSec-Fetch-Mode: {mode}"
    )
    assert status == 403
    assert SECRET not in body


@pytest.mark.parametrize(
    "headers",
    ["Sec-Fetch-Site: same-origin\nSec-Fetch-Mode: cors", "Sec-Fetch-Site: none\nSec-Fetch-Mode: navigate",
     "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate"],
)  # fmt: skip
def test_links_and_own_scripts_work(headers: str, port: int) -> None:
    """Links from other sites and the scripts of our own pages work."""
    assert get(port, PAGE, f"\n{headers}")[0] == 200


LINKS_OUT = ("runs/s/file.json", "runs/s/folder/schema.json", "runs/linked/schema.json", "runs/s/etc/passwd",
             "runs/latest/file.json", "runs/latest/etc/passwd", "../outside/schema.json", "..%2foutside/schema.json",
             "%2e%2e/outside/schema.json", "runs/s/..%2f..%2f..%2foutside/schema.json", "runs/s/etc/../etc/passwd",
             "%2fetc/passwd", "//etc/passwd", "..%5coutside/schema.json", "runs/s/loop", "runs/s/file.json%00",
             "runs/linked/../s/file.json")  # fmt: skip


@pytest.mark.parametrize(
    "headers", ["", "\nAccept-Encoding: gzip", "\nRange: bytes=0-9"]
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    "path",
    [*(f"/benchmark_output/{path}" for path in LINKS_OUT), "/cache/output/file.json"],
)
def test_paths_out_of_the_folder_are_refused(
    path: str, method: str, headers: str, port: int
) -> None:
    """Links and `..` lead to no file outside the folder, and tell neither its size nor its date."""
    status, body, replied = get(port, path, headers, method)
    assert status in (403, 404)
    assert SECRET not in body
    assert "root:" not in body
    assert "last-modified" not in replied


def test_the_link_latest_works(port: int) -> None:
    """HELM's link `latest`, which stays in the folder, works, also with compression."""
    for headers in ("", "\nAccept-Encoding: gzip"):
        status, body, replied = get(
            port, "/benchmark_output/runs/latest/groups.json", headers
        )
        assert (status, SECRET in body) == (200, True)
        assert replied.get("content-encoding") == ("gzip" if headers else None)


def test_a_connection_that_sends_nothing(port: int) -> None:
    """A connection that sends nothing keeps no other one waiting."""
    with socket.create_connection(("127.0.0.1", port)) as silent:
        silent.sendall(b"GET /config.js HTTP/1.1\r\n")
        assert get(port, "/config.js")[0] == 200


def test_helms_pages_work(port: int) -> None:
    """HELM's first page and its configuration are served."""
    for path in ("/", "/config.js"):
        assert get(port, path)[0] == 200


def test_a_suite_that_is_a_link_out(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says why the pages of a suite that is a link out of the folder would be refused, and what to do."""
    monkeypatch.chdir(folder)
    (folder / "outside/groups.json").write_text("[]")
    assert command("serve", "--suite", "linked") == 2
    assert command.err.count("\n") == 1
    assert (
        f"suite='linked' is a link to {folder.resolve()}/outside, and serve shows only"
        in command.err
    )
    assert "--output-path" in command.err
