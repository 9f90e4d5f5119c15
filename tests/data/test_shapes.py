"""Tests of `fetch --check` with a real local HTTP server that speaks the hub's protocol, and huggingface_hub itself."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from helm_longctx.data import unpack
from helm_longctx.data.hub import HubZip, RangedStream
from helm_longctx.data.jsonl import read_first_row
from helm_longctx.data.release import Release, ReleaseFile
from helm_longctx.data.unpack import first_in_tar
from helm_longctx.data.web import WebFile
from helm_longctx.errors import ShapeError
from helm_longctx.tasks.data_checks import SourceShape, check_shapes
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from tests.data.hub_server import Hub, point_at, serve
from tests.support.commands import Command

GRAPHS = "default/train/0000.parquet"
PROMPT = "The graph has the following edges:\na -> b\n\nOperation:\nFind the parents of node b.\n"
ROW = {
    "prompt": PROMPT,
    "answer_nodes": ["a"],
    "prompt_chars": len(PROMPT),
    "problem_type": "parents",
}
ENTRY = "graphwalks:task=openai_parents,length=128k"
GRAPH_ROWS = 1150


def parquet(row: dict[str, object], rows: int = 1) -> bytes:
    """Return a parquet file whose row groups have a hundred rows."""
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist([row] * rows), buffer, row_group_size=100
    )
    return buffer.getvalue()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """Start a hub without data, and point huggingface_hub at it."""
    with serve(Hub({})) as served:
        point_at(monkeypatch, served.url, tmp_path)
        yield served


def check(*entries: str) -> list[SourceShape]:
    """Return the shapes of the data of run entries."""
    return [*check_shapes([parse_entry(BENCHMARKS, entry) for entry in entries])]


def test_a_row_of_the_right_shape(hub: Hub, command: Command) -> None:
    """A row with the loader's columns is the same, and the exit status is 0."""
    hub.repos["openai/graphwalks"] = {GRAPHS: parquet(ROW, GRAPH_ROWS)}
    assert command("fetch", "--check", ENTRY) == 0, command.err
    (shape,) = check(ENTRY)
    assert shape[2:] == (
        "prompt str, answer_nodes list, prompt_chars int, problem_type str",
        "same",
        "",
    )
    assert "same: 1" in command.out


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {GRAPHS: {**ROW, "answer_nodes": "a"}},
            "column 'answer_nodes' must be list, found str",
        ),
        (
            {
                GRAPHS: {
                    "prompts": PROMPT,
                    "answer_nodes": ["a"],
                    "problem_type": "parents",
                }
            },
            "column 'prompt' must be str, found nothing; the row has 'prompts' instead; its columns are 'prompts',"
            " 'answer_nodes', 'problem_type'",
        ),
        (
            {"other/test/0000.parquet": ROW},
            "its parquet conversion has no default/train, but other/test",
        ),
    ],
)
def test_a_row_of_another_shape(
    hub: Hub, command: Command, files: dict[str, dict[str, object]], told: str
) -> None:
    """Another type, another column or another split differs, with the names that are there, and the status is 1."""
    hub.repos["openai/graphwalks"] = {
        name: parquet(row, GRAPH_ROWS) for name, row in files.items()
    }
    assert command("fetch", "--check", ENTRY) == 1
    assert "differs: 1" in command.out
    (shape,) = check(ENTRY)
    assert (shape.result, told in shape.why) == ("differs", True), shape.why


def test_files_of_json(hub: Hub) -> None:
    """Rows of JSON lines and of an array are compared, and a file that is missing has vanished."""
    book = {
        "id": 1,
        "context": "text",
        "input": "Who?",
        "answer": ["Ada"],
        "options": [],
    }
    hub.repos["xinrongzhang2022/InfiniteBench"] = {
        "longbook_qa_eng.jsonl": json.dumps(book).encode() + b"\n{}\n"
    }
    facts = {
        "input": "Mary is in the hall.",
        "question": "Where is Mary?",
        "target": "hall",
    }
    hub.repos["RMT-team/babilong"] = {
        "data/qa1/256k.json": json.dumps([facts, facts]).encode()
    }
    results = {
        shape.entry: shape
        for shape in check(
            "infinite_bench:task=longbook_qa_eng", "babilong:task=qa1,length=256k"
        )
    }
    assert {name: shape.result for name, shape in results.items()} == {
        "infinite_bench:longbook_qa_eng": "same",
        "babilong:qa1": "same",
    }, results
    (shape,) = check("infinite_bench:task=passkey")
    assert (shape.result, "(404)" in shape.why) == ("vanished", True)


LOOGLE = "loogle:task=shortdep_qa"
PAIRS = "[{'Q': 'Who?', 'A': 'Ada'}]"
QUESTION = {"input": "Ada.", "title": "Ada", "qa_pairs": PAIRS, "output": "none"}


def zipped(files: dict[str, bytes]) -> bytes:
    """Return a zip file, whose first member is large."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large", random.Random(1).randbytes(4 << 20))
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_a_row_of_a_zip_file(hub: Hub) -> None:
    """Of a zip file the list at its end and the start of the member are read, by requests for ranges."""
    rows = (
        json.dumps(QUESTION).encode()
        + b"\n"
        + random.Random(2).randbytes(1 << 20).hex().encode()
    )
    hub.repos["bigai-nlco/LooGLE"] = {
        "data.zip": zipped({"data/shortdep_qa.json": rows})
    }
    (shape,) = check(LOOGLE)
    assert shape[2:] == (
        "input str, title str, qa_pairs str, output str",
        "same",
        "",
    )
    gets = [request for request in hub.requests if request.startswith("GET /datasets")]
    assert gets
    assert all("bytes=" in request for request in gets)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            zipped(
                {"shortdep_qa.jsonl": json.dumps({**QUESTION, "input": 7}).encode()}
            ),
            "column 'input' must be",
        ),
        (
            zipped({"data/other.jsonl": b"{}"}),
            "the archive has no data/shortdep_qa.json, but large, data/other.jsonl",
        ),
        (
            zipped({"data/shortdep_qa.json": b"text"}),
            "it does not begin with a JSON object",
        ),
        (b"no archive", "it is no zip file"),
    ],
)
def test_a_zip_file_of_another_shape(hub: Hub, content: bytes, told: str) -> None:
    """Another type, a missing member, other content and a file that is no archive differ."""
    hub.repos["bigai-nlco/LooGLE"] = {"data.zip": content}
    (shape,) = check(LOOGLE)
    assert (shape.result, told in shape.why) == ("differs", True), shape.why


def test_arrays_in_a_zip_file(hub: Hub) -> None:
    """Of an array the first object is read, also if it is larger than a block."""
    text = "Repository:\n" + random.Random(3).randbytes(300_000).hex()
    row = {
        "prompt": f"Goal {text} Question",
        "repo": "a/b",
        "repo_text": text,
        "correct_letter": "A",
    }
    member = json.dumps([row, row], indent=4).encode()
    hub.repos["org/array"] = {"x.zip": zipped({"a/x.json": member})}
    source = HubZip("org/array", "x.zip", "a/x.json", "x.json")
    (content,) = source.first_rows().values()
    assert json.loads(content) == [row]


def tarred(files: dict[str, bytes]) -> bytes:
    """Return a tar.gz file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def test_rows_of_a_tar_file() -> None:
    """Each JSON file has its first row, lines and arrays alike; what is no JSON is left out."""
    files = {
        "a/x.jsonl": b'{"a": 1}\n{"a": 2}\n',
        "a/y.json": b'[{"b": 1}, {"b": 2}]',
        "a/z.json": b"3",
        "a/w": b"{}",
    }
    member = first_in_tar(io.BytesIO(tarred(files)))
    assert {name: json.loads(content) for name, content in member.items()} == {
        "a/x.jsonl": {"a": 1},
        "a/y.json": [{"b": 1}],
    }
    for damaged in (
        tarred(files)[:-30],
        b"no archive",
        gzip.compress(b"no archive" * 1000),
    ):
        with pytest.raises(ShapeError, match=r"no complete tar\.gz file"):
            first_in_tar(io.BytesIO(damaged))


def test_only_the_first_part_of_a_tar_file_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of an archive that is larger than the limit the files before it are found, and not more is read."""
    monkeypatch.setattr(unpack, "MOST", 2 << 20)
    file = io.BytesIO(
        tarred(
            {
                "x.jsonl": b"{}\n",
                "large": random.Random(1).randbytes(8 << 20),
                "y.jsonl": b"{}\n",
            }
        )
    )
    assert [*first_in_tar(file)] == ["x.jsonl"]
    assert file.tell() <= 2 << 20


def test_a_release_is_read_once_for_all_its_files(hub: Hub) -> None:
    """A file in the first part of a release has its first row, another one none, and the archive is read once."""
    hub.repos["org/peeked"] = {
        "data.tar.gz": tarred({"./data/x.jsonl": b'{"a": 1}\n', "data/y.txt": b"text"})
    }
    release = Release("org/peeked", "UNUSED_REPO", "peeked")
    rows = [
        ReleaseFile(release, f"peeked/{name}").first_rows()
        for name in ("x.jsonl", "y.txt", "z.jsonl")
    ]
    assert rows == [{"peeked/x.jsonl": b'{"a":1}\n'}, {}, {}]
    assert sum(request.startswith("GET /datasets") for request in hub.requests) == 1


def test_a_row_of_a_web_file(hub: Hub) -> None:
    """A file on a web server has its first row, if it is JSON."""
    hub.repos["org/web"] = {"x.jsonl": b'{"a": 1}\n{"a": 2}\n'}
    url = f"{hub.url}/datasets/org/web/resolve/main/x.jsonl"
    assert WebFile(url, "web/x.jsonl").first_rows() == {"web/x.jsonl": b'{"a":1}\n'}
    assert WebFile(url, "web/x.csv").first_rows() == {}


def test_only_parts_of_a_file_are_read(hub: Hub) -> None:
    """Of a large file the end and the first row are read, by requests for ranges."""
    hub.repos["openai/graphwalks"] = {GRAPHS: parquet(ROW, GRAPH_ROWS)}
    (shape,) = check(ENTRY)
    assert shape.result == "same"
    assert any("bytes=" in request for request in hub.requests)


def test_a_stream_of_ranges(hub: Hub) -> None:
    """A stream gives the bytes at any position, from the start, from the end, and from where it is."""
    content = bytes(range(256)) * 40
    hub.repos["org/bytes"] = {"file.bin": content}
    stream = RangedStream(
        f"{hub.url}/datasets/org/bytes/resolve/main/file.bin", len(content)
    )
    assert stream.seekable()
    assert (stream.seek(-100, io.SEEK_END), stream.read(100)) == (
        len(content) - 100,
        content[-100:],
    )
    assert (stream.seek(5), stream.read(3), stream.tell()) == (5, content[5:8], 8)
    assert (stream.seek(2, io.SEEK_CUR), stream.read(1)) == (10, content[10:11])


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (b'\n {"a": 1}\n{"b": 2}\n', {"a": 1}),
        (b'[{"a": "}\\"{", "b": {"c": 1}}, {"a": 2}]', {"a": '}"{', "b": {"c": 1}}),
        (b'[\n  {"a": [1, 2]}\n]', {"a": [1, 2]}),
    ],
)
def test_first_rows_of_json(text: bytes, row: dict[str, object]) -> None:
    """The first object is found, whatever braces its strings have."""
    assert read_first_row(io.BufferedReader(io.BytesIO(text)))[0] == row  # type: ignore[arg-type]
