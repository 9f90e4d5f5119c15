"""Hubs that answer each question of `fetch --check` and `fetch` in a wrong way.

Each command must end in time, with the status of what is wrong, without a traceback, and with no character that controls
the terminal. A file that is no data set's never counts as the same.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import tarfile
import time
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import huggingface_hub.constants
import pyarrow
import pyarrow.parquet

from helm_longctx.benchmarks.flenqa.tasks import SOURCE as FLENQA
from helm_longctx.cli.main import main
from helm_longctx.data import download, release, unpack, web
from helm_longctx.data import hub as hub_data
from helm_longctx.data.download import Source
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.redaction.abbreviation import is_invisible
from helm_longctx.tasks import data_checks
from tests.data.hub_server import COMMIT, Hub, serve
from tests.support.servers.hostile import Act, Handler, bomb, drip, redirect, send

BOOKS = "xinrongzhang2022/InfiniteBench"
BOOKS_PIN = "90f0394333616266d9fe85824ceaf505093cbaa5"
BOOKS_FILE = "longbook_qa_eng.jsonl"
BOOKS_ENTRY = "infinite_bench:task=longbook_qa_eng"
ROW = {"id": 1, "context": "text", "input": "Who?", "answer": ["Ada"], "options": []}

FACTS = "alonj/FLenQA"
(FACTS_FILE,) = FLENQA.files["eval"]
FACTS_ENTRY = "flenqa:task=pir,length=250"
FACTS_ROW = {
    "dataset": "PIR",
    "global_sample_id": 1,
    "assertion/question": "q",
    "mixin": "m",
    "label": "True",
    "padding_type": "a",
    "dispersion": "first",
    "ctx_size": 250,
    "facts": ["f"],
}

SECONDS = 30.0
"""A command may take so long."""

ASK_SECONDS = 1.5
"""The limit of a description during an attack, and of a source."""

LARGE = 3 << 20
"""The largest description during an attack, in bytes."""

API = r"^GET /api/datasets/[^/]+/[^/]+(/revision/[^/]+)?(\?.*)?$"
NEWEST = r"^GET /api/datasets/[^/]+/[^/?]+(\?.*)?$"
COMMITS = r"/commits/"
FILE = r"^GET .*/resolve/"
HEAD = r"^HEAD .*/resolve/"


def info(**fields: object) -> Act:
    """Return an action that describes the repository with some fields replaced."""
    whole: dict[str, object] = {
        "id": BOOKS,
        "sha": COMMIT,
        "gated": False,
        "siblings": [{"rfilename": BOOKS_FILE, "blobId": "1"}],
    }
    return send({**whole, **fields})


def pour(piece: bytes) -> Act:
    """Return an action that sends a text again and again until the client has had enough, without a size."""

    def act(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        block = piece * ((1 << 16) // len(piece))
        while True:
            handler.wfile.write(block)

    return act


def claim(size: object, content: bytes = b"{}\n") -> Act:
    """Return an action that claims a size."""

    def act(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(size))
        handler.send_header("ETag", '"1"')
        handler.send_header("X-Repo-Commit", COMMIT)
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(content)

    return act


DEEP = b"[" * 200_000 + b"]" * 200_000
ESCAPES = "a\x1b[2J\x1b]0;owned\x07\u202e\nTo do: nothing"


class Attack(NamedTuple):
    """What answers which questions, and how the check must end.

    Args:
        acts: what sends replies, by a pattern of the question.
        status: the exit status; None for 0 or 1.
        told: a pattern of what the output must have, without line breaks.
    """

    acts: dict[str, Act]
    status: int | None
    told: str


ENDLESS = "more than 2 seconds|does not begin with a JSON"
"""What ends first depends on the speed of the machine."""

CHECKS: dict[str, Attack] = {
    "a description without end": Attack({API: pour(b" ")}, 0, "larger than 3 MiB"),
    "a description that is huge": Attack(
        {API: info(siblings=[{"rfilename": "x" * 100}] * 50_000)},
        0,
        "larger than 3 MiB",
    ),
    "a description that is a bomb": Attack(
        {API: bomb(100 << 20, {"id": BOOKS})}, 0, "larger than 3 MiB"
    ),
    "a description byte by byte": Attack({API: drip({}, 0.2)}, 0, "more than 2 sec"),
    "a description that is deep": Attack({API: send(DEEP)}, 0, "no JSON"),
    "a page": Attack(
        {API: send(b"<html>", **{"Content-Type": "text/html"})}, 0, "text/html"
    ),
    "no UTF-8": Attack({API: send(b'{"sha": "\xff"}')}, 0, "no JSON"),
    "nothing": Attack({API: send(b"")}, 0, "no JSON"),
    "a list": Attack({API: send([])}, 0, "unexpected form"),
    "null": Attack({API: send(None)}, 0, "unexpected form"),
    "a commit that is a number": Attack({API: info(sha=5)}, 0, "unexpected form"),
    "no commit": Attack({API: info(sha=None)}, 0, "names no commit"),
    "a name that is a list": Attack({API: info(id=["a"])}, 0, "unexpected form"),
    "files that are a text": Attack({API: info(siblings="abc")}, 0, "unexpected form"),
    "files that are numbers": Attack({API: info(siblings=[1])}, 0, "unexpected form"),
    "names that control the terminal": Attack(
        {API: info(id=ESCAPES)}, 1, r"it is called a\\x1b\[2J"
    ),
    "files that control the terminal": Attack(
        {NEWEST: info(siblings=[{"rfilename": ESCAPES}])}, 0, r"changed: a\\x1b\[2J"
    ),
    "a redirect to itself": Attack({API: redirect("/api/datasets/a/b")}, 0, "TooMany"),
    "a redirect to another host": Attack(
        {API: redirect("http://127.0.0.1:9/api")}, 0, "ConnectionError"
    ),
    "a redirect to a file": Attack({API: redirect("file:///etc/passwd")}, 0, "Invalid"),
    "commits that are an object": Attack(
        {COMMITS: send({"a": 1}), API: info(sha="f" * 40)}, 0, "unexpected form"
    ),
    "commits without names": Attack(
        {COMMITS: send([{}]), API: info(sha="f" * 40)}, 0, "unexpected form"
    ),
    "pages of commits without end": Attack(
        {
            COMMITS: send([{"id": "a"}], Link='</api/x/commits/main>; rel="next"'),
            API: info(sha="f" * 40),
        },
        0,
        "of which the pin is none",
    ),
    "429 for ever": Attack(
        {API: send(b"", 429), FILE: send(b"", 429)}, 0, "status 429"
    ),
    "503 and a wait of ages": Attack(
        {FILE: send(b"", 503, **{"Retry-After": "99999999"})}, 0, "more than 2 sec"
    ),
    "a negative size": Attack({HEAD: claim(-5)}, 0, "not read: 1"),
    "a size that is no number": Attack({HEAD: claim("many")}, 0, "not read: 1"),
    "a size of an exabyte": Attack({HEAD: claim(1 << 60)}, 0, "not read: 1"),
    "a file of blanks without end": Attack(
        {HEAD: claim(1 << 40), FILE: pour(b" \n")}, None, ENDLESS
    ),
    "a file of quotes without end": Attack(
        {HEAD: claim(1 << 30), FILE: pour(b'"\\')}, None, ENDLESS
    ),
    "a file of braces without end": Attack(
        {HEAD: claim(1 << 30), FILE: pour(b'{"a":\n')}, None, ENDLESS
    ),
    "a file byte by byte": Attack(
        {HEAD: claim(1 << 20), FILE: drip(ROW, 0.2)}, 0, "not read: 1"
    ),
    "a file that is a page": Attack(
        {FILE: send(b"<html>")}, None, "not read: 1|does not begin with a JSON"
    ),
    "a row that is deep": Attack(
        {
            HEAD: claim(len(DEEP) + 7),
            FILE: claim(len(DEEP) + 7, b'{"a": ' + DEEP + b"}"),
        },
        1,
        "does not begin with a JSON",
    ),
}
"""What a hub with a file of JSON lines can do during `fetch --check`."""


def lie_about_rows(rows: int) -> bytes:
    """Return a parquet file with a number of rows."""
    buffer = io.BytesIO()
    table = pyarrow.Table.from_pylist([FACTS_ROW] * rows)
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()


def end_with(content: bytes) -> bytes:
    """Return a parquet file whose end, the description of its rows, is replaced."""
    return b"PAR1" + content + len(content).to_bytes(4, "little") + b"PAR1"


TABLES: dict[str, tuple[bytes, int, str]] = {
    "fewer rows": (lie_about_rows(3), 1, "split eval has 3 rows, expected 12,000"),
    "no rows": (lie_about_rows(0), 1, "split eval has 0 rows, expected 12,000"),
    "an end that is noise": (end_with(bytes(range(256)) * 40), 0, "not read: 1"),
    "an end without content": (end_with(b""), 0, "not read: 1"),
    "an end larger than the file": (
        b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1",
        0,
        "not read: 1",
    ),
    "a text": (b"no table" * 100, 0, "not read: 1"),
    "a whole table that is cut": (lie_about_rows(12_000)[:-9], 0, "not read: 1"),
}
"""What a hub with a table can have: content, status, and what the output must have."""


class Outcome(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str
    seconds: float


def run_command(address: str, folder: Path, *arguments: str) -> Outcome:
    """Run a command in this process with short limits."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    err = io.StringIO()
    start = time.monotonic()
    status = 0
    with ExitStack() as stack:
        stack.enter_context(point_at(address, folder))
        for target, name, value in (
            (data_checks, "_SECONDS", ASK_SECONDS),
            (download, "ASK_SECONDS", ASK_SECONDS),
            (download, "_MOST_DESCRIPTION", LARGE),
            (download, "WAIT", 0.001),
            (download, "_ATTEMPTS", 3),
            (sys, "argv", ["helm-longctx", *arguments]),
        ):
            stack.enter_context(mock.patch.object(target, name, value))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        try:
            main()
        except SystemExit as error:
            status = int(error.code or 0)
    seconds = time.monotonic() - start
    out.seek(0)
    return Outcome(status, out.read(), err.getvalue(), seconds)


def find_check_fault(
    entry: str,
    acts: dict[str, Act],
    content: bytes,
    status: int | None,
    told: str,
    folder: Path,
) -> str:
    """Return what is wrong with the end of a check; empty if nothing is."""
    is_books = entry == BOOKS_ENTRY
    repo = BOOKS if is_books else FACTS
    hub = Hub(
        {repo: {BOOKS_FILE if is_books else FACTS_FILE: content}},
        commits={BOOKS: [BOOKS_PIN], FACTS: [FLENQA.commit]},
        acts=acts,
    )
    with serve(hub):
        outcome = run_command(hub.url, folder, "fetch", "--check", entry)
    printed = outcome.out + outcome.err
    if "Traceback" in printed:
        return printed[-800:]
    if any(is_invisible(character) for character in printed.replace("\n", "")):
        return f"a character that controls the terminal: {printed!r}"
    if outcome.seconds > SECONDS:
        return f"{outcome.seconds:.0f} s"
    statuses = (0, 1) if status is None else (status,)
    is_told = re.search(told, outcome.out.replace("\n", " "))
    if outcome.status not in statuses or not is_told:
        return f"status {outcome.status}: {printed[-800:]}"
    return ""


def check_file(name: str, folder: Path) -> str:
    """Attack `fetch --check` of a file of JSON lines, and return what is wrong with its end."""
    attack = CHECKS[name]
    content = json.dumps(ROW).encode() + b"\n"
    return find_check_fault(
        BOOKS_ENTRY, attack.acts, content, attack.status, attack.told, folder
    )


def check_table(name: str, folder: Path) -> str:
    """Attack `fetch --check` of a table, and return what is wrong with its end."""
    content, status, told = TABLES[name]
    return find_check_fault(FACTS_ENTRY, {}, content, status, told, folder)


# Downloads -----------------------------------------------------------------------------------------------------------

PACKED_ZEROS = gzip.compress(bytes(1 << 20), 9)
ROOM = 4 << 20
"""Bytes that a file may unpack to at any ratio during an attack."""


def pack(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """Return a tar.gz file of members whose headers can lie about their sizes."""
    plain = bytearray()
    for header, content in members:
        plain += header.tobuf(tarfile.GNU_FORMAT) + content
        plain += bytes(-len(content) % 512)
    return gzip.compress(bytes(plain) + bytes(1024))


def head_of(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    """Return the header of a member."""
    header = tarfile.TarInfo(name)
    header.size = size
    header.type = kind
    return header


def link(name: str, target: str) -> tarfile.TarInfo:
    """Return the header of a link."""
    header = head_of(name, 0, tarfile.SYMTYPE)
    header.linkname = target
    return header


def make_zip(*names: str, size: int = 10, lie: int | None = None) -> bytes:
    """Return a zip file of zeros, whose table can claim another size."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # names that exist twice are intended
                archive.writestr(name, bytes(size))
        if lie is not None:
            for member in archive.infolist():
                member.file_size = lie
    return buffer.getvalue()


def make_table(compression: str) -> bytes:
    """Return a table that repeats a text."""
    buffer = io.BytesIO()
    table = pyarrow.table({"text": ["x" * (1 << 18)] * 400})
    pyarrow.parquet.write_table(table, buffer, compression=compression)
    return buffer.getvalue()


TARS: dict[str, bytes] = {
    "a bomb": gzip.compress(head_of("r/f/x", 10**9).tobuf()) + PACKED_ZEROS * 100,
    "a bomb beside the folder": gzip.compress(head_of("r/g", 10**9).tobuf())
    + PACKED_ZEROS * 100,
    "a member of an exabyte": pack((head_of("r/f/x", 1 << 60), b"x")),
    "a negative member": pack((head_of("r/f/x", -512), b"x")),
    "a name of megabytes": pack(
        (head_of("r", 2 << 20, tarfile.GNUTYPE_LONGNAME), bytes(2 << 20))
    ),
    "attributes of megabytes": pack(
        (head_of("r", 2 << 20, tarfile.XHDTYPE), bytes(2 << 20))
    ),
    "a name that leads out": pack((head_of("r/f/../../../../x", 1), b"x")),
    "a path from the root": pack((head_of("/r/f/x", 1), b"x")),
    "a link that leads out": pack(
        (link("r/f/x", "/etc"), b""), (head_of("r/f/x/passwd", 1), b"x")
    ),
    "a device": pack((head_of("r/f/x", 0, tarfile.CHRTYPE), b"")),
    "an archive that is cut": pack((head_of("r/f/x", 10**5), bytes(10**5)))[:60],
    "noise": bytes(range(256)) * 100,
    "nothing": b"",
}
"""What a server can have as the archive of a repository's folder `f`."""


def make_zips() -> dict[str, bytes]:
    """Return what a hub can have as a zip file with the member `set/a`. Making them takes seconds."""
    return {
        "a bomb": make_zip("set/a", size=64 << 20),
        "a bomb that claims to be small": make_zip("set/a", size=64 << 20, lie=10),
        "a member of an exabyte": make_zip("set/a", lie=(1 << 60)),
        "a member that is there twice": make_zip("set/a", "set/a"),
        "another member": make_zip("set/b"),
        "a hundred thousand members": make_zip(
            *(f"{n}" for n in range(100_000)), size=0
        ),
        "an archive that is cut": make_zip("set/a")[:-10],
        "nothing": b"",
    }


DIGEST = "0" * 40


def fetch(source: Source, root: Path) -> str:
    """Fetch a source, and return what was raised."""
    with ExitStack() as stack:
        for target, name, value in (
            (unpack, "_ROOM", ROOM),
            (download, "WAIT", 0.001),
            (download, "_ATTEMPTS", 3),
            (download, "ASK_SECONDS", ASK_SECONDS),
            (download, "TIMEOUTS", (2.0, 2.0)),
            (release, "_MOST_PINNED", 1 << 20),
        ):
            stack.enter_context(mock.patch.object(target, name, value))
        try:
            source.ensure(DataRoot(root, mirror=False), "fetch it")
        except InputError as error:
            return str(error)
    return ""


def find_fetch_fault(source: Source, folder: Path) -> str:
    """Return what is wrong with a fetch of something hostile; empty if it ends in one line and leaves nothing."""
    root = folder / "root"
    start = time.monotonic()
    refusal = fetch(source, root)
    seconds = time.monotonic() - start
    if not refusal or "\n" in refusal:
        return f"refused with {refusal!r}"
    if seconds > SECONDS:
        return f"{seconds:.0f} s"
    left = [path for path in root.rglob("*") if path.is_file()]
    return f"left: {left}" if left else ""


@contextmanager
def serve_file(path: str, content: bytes | Act) -> Iterator[str]:
    """Serve one file, or what an action sends, and yield the address."""
    act = send(content) if isinstance(content, bytes) else content
    with serve(Hub({}, acts={path: act})) as hub:
        yield hub.url


def attack_folders(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the outcome of each archive of a repository's folder."""
    for number, (name, content) in enumerate(TARS.items()):
        with serve_file("/tar.gz/", content) as address:
            source = web.RepositoryFolder("o/r", DIGEST, "f", DIGEST, "r/f", ("x",))
            with mock.patch.object(web, "_ARCHIVES", address):
                fault = find_fetch_fault(source, folder / str(number))
        yield f"tar.gz, {name}: {fault}", not fault


def attack_zips(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the outcome of each zip file, and of tables that unpack to more than a disk holds."""
    contents: dict[str, bytes] = {
        f"zip, {name}": data for name, data in make_zips().items()
    }
    for compression in ("zstd", "gzip", "brotli", "snappy"):
        contents[f"parquet, {compression}"] = make_table(compression)
    for number, (name, content) in enumerate(contents.items()):
        is_zip = name.startswith("zip")
        source: Source = hub_data.HubZip("o/r", "x.zip", "set/a", "r/a")
        file = "x.zip"
        if not is_zip:
            source = hub_data.HubDataset("o/r", {"train": 400}, labelled=False)
            file = "data/train-00000-of-00001.parquet"
        with (
            serve(Hub({"o/r": {file: content}})) as hub,
            point_at(hub.url, folder / str(number)),
        ):
            fault = find_fetch_fault(source, folder / str(number))
        yield f"{name}: {fault}", not fault


def send_head(**headers: str) -> Act:
    """Return an action that describes a file by headers, without a size unless one is given."""

    def act(handler: Handler) -> None:
        handler.send_response(200)
        for name, value in {"ETag": '"1"', "X-Repo-Commit": COMMIT, **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()

    return act


def attack_hub_files(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the outcome of files of a hub that never end. The hub's cache may have a part of them."""
    heads: dict[str, Act] = {
        "more than announced": claim(1000),
        "more than announced, in another header": send_head(**{"X-Linked-Size": "9"}),
        "no announced size": send_head(),
    }
    for number, (name, head) in enumerate(heads.items()):
        hub = Hub({"o/r": {"x.json": b"{}"}}, acts={HEAD: head, FILE: pour(b"0")})
        hub_folder = folder / f"hub{number}"
        with (
            serve(hub),
            point_at(hub.url, hub_folder),
            mock.patch.object(hub_data, "check_space", _refuse_large),
        ):
            fault = find_fetch_fault(hub_data.HubFile("o/r", "x.json", "a"), hub_folder)
        kept = sum(
            path.stat().st_size for path in hub_folder.rglob("*") if path.is_file()
        )
        if kept > 160 << 20:
            fault = f"{kept:,} bytes are kept"
        yield f"hub, {name}: {fault}", not fault


def attack_files(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the outcome of files of web servers that never end, or that are not what was announced."""
    acts: dict[str, Act] = {
        "no end": pour(b"0"),
        "fewer bytes than announced": claim(1000),
        "an exabyte": claim(1 << 60),
        "a negative size": claim(-1),
        "a redirect to itself": redirect("/x"),
        "a redirect to a file": redirect("file:///etc/passwd"),
        "429 for ever": send(b"", 429),
        "a part that was not asked for": send(b"x", 206),
        "no content": send(b"", 204),
    }
    for number, (name, act) in enumerate(acts.items()):
        with serve_file("/x", act) as address:
            for source in (
                release.PinnedFile("r/a", f"{address}/x", "0" * 64),
                web.WebFile(f"{address}/x", "r/a", blob=DIGEST),
            ):
                kind = type(source).__name__
                case_folder = folder / f"{number}{kind}"
                with mock.patch.object(download, "check_space", _refuse_large):
                    fault = find_fetch_fault(source, case_folder)
                yield f"{kind}, {name}: {fault}", not fault


def _refuse_large(folder: Path, size: int = 0) -> None:
    """Stand for a disk of 128 MiB."""
    used = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if used + size > 128 << 20:
        raise InputError("the disk is full; free some space")


@contextmanager
def point_at(address: str, folder: Path) -> Iterator[None]:
    """Let huggingface_hub ask a server."""
    constants = huggingface_hub.constants
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    with ExitStack() as stack:
        for name, value in (
            ("ENDPOINT", address),
            ("HUGGINGFACE_CO_URL_TEMPLATE", template),
            ("HF_HUB_CACHE", str(folder / "cache")),
            ("HF_HUB_DISABLE_XET", True),
        ):
            stack.enter_context(mock.patch.object(constants, name, value))
        yield


def attack_checks(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the outcome of each hostile hub during `fetch --check`."""
    for name in CHECKS:
        fault = check_file(name, folder / "checks")
        yield f"fetch --check, {name}: {fault}", not fault
    for name in TABLES:
        fault = check_table(name, folder / "checks")
        yield f"fetch --check, a table with {name}: {fault}", not fault


def attack_downloads(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the outcome of each hostile download."""
    yield from attack_folders(folder / "folders")
    yield from attack_zips(folder / "zips")
    yield from attack_files(folder / "files")
    yield from attack_hub_files(folder / "hub files")
