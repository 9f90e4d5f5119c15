"""Tests of hub data sets with a real local HTTP server and huggingface_hub itself."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import socket
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import datasets
import huggingface_hub.constants
import pyarrow
import pyarrow.parquet
import pytest

from helm_longctx.data import download
from helm_longctx.data import hub as sources_hub
from helm_longctx.data.hub import HubDataset, HubFile, HubFiles, HubZip, label_names
from helm_longctx.errors import InputError
from tests.data.hub_server import COMMIT, Hub, point_at, serve
from tests.data.releases import SECRET, root, short_of
from tests.support.servers.closed import closed_address

DATASET = HubDataset("org/letters", {"train": 700, "test": 3}, config="plus")


def parquet(rows: int) -> bytes:
    """Return a parquet file of the hub's conversion, with label names in its schema."""
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["a", "bé"]),
        }
    )
    table = datasets.Dataset.from_dict(
        {
            "text": [f"text {n} 文\n" * 20 for n in range(rows)],
            "label": [n % 2 for n in range(rows)],
        },
        features=features,
    )
    buffer = io.BytesIO()
    table.to_parquet(buffer)
    return buffer.getvalue()


TEST_ONLY = HubDataset("org/letters", {"test": 3}, config="plus")
TEST_FILE = "plus/test/0000.parquet"
TRAIN_0 = parquet(400)
TRAIN_1 = parquet(300)
TEST = parquet(3)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Start a hub with one data set, and point huggingface_hub at it."""
    files = {
        "plus/train/0001.parquet": TRAIN_1,
        "plus/train/0000.parquet": TRAIN_0,
        "plus/test/0000.parquet": TEST,
        "other/test/0000.parquet": b"not for us",
    }
    with serve(Hub({"org/letters": files})) as served:
        point_at(monkeypatch, served.url, tmp_path)
        yield served


def refused(tmp_path: Path, dataset: HubDataset = DATASET) -> str:
    """Return the one line of a failing fetch, and check that nothing half-written stays and no token is shown."""
    with pytest.raises(InputError) as caught:
        dataset.ensure(root(tmp_path), "fetch it")
    message = str(caught.value)
    assert "\n" not in message
    assert SECRET not in message
    assert message.endswith("; then run: fetch it")
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    return message


def test_rows_labels_and_source_are_kept(hub: Hub, tmp_path: Path) -> None:
    """A fetched data set has its rows in order, its label names and a record of its origin."""
    DATASET.ensure(root(tmp_path), "fetch it")
    folder = root(tmp_path) / DATASET.folder
    rows = [
        json.loads(line)
        for line in (folder / "train.jsonl")
        .read_text(encoding="utf-8")
        .split("\n")[:-1]
    ]
    assert [row["text"].split(" ")[1] for row in rows] == [
        str(n) for n in (*range(400), *range(300))
    ]
    assert rows[1]["label"] == 1
    assert label_names(folder, "label") == ["a", "bé"]
    source = json.loads((folder / "source.json").read_text())
    assert source["commit"] == COMMIT
    assert source["rows"] == {"train": 700, "test": 3}
    assert sorted(source["files"]) == [
        "plus/test/0000.parquet",
        "plus/train/0000.parquet",
        "plus/train/0001.parquet",
    ]


def test_what_is_there_is_not_asked_for_again(hub: Hub, tmp_path: Path) -> None:
    """A second call for data that is present makes no request."""
    DATASET.ensure(root(tmp_path), "fetch it")
    made = len(hub.requests)
    DATASET.ensure(root(tmp_path), "fetch it")
    assert len(hub.requests) == made > 0


def test_a_mirror_is_never_filled(hub: Hub, tmp_path: Path) -> None:
    """With a mirror folder the error names files, folder and command, and the hub is not asked."""
    with pytest.raises(
        InputError,
        match=r"lacks hub/org__letters/plus/train.jsonl.*get it with: fetch it",
    ):
        DATASET.ensure(root(tmp_path, mirror=True), "fetch it")
    assert hub.requests == []


def test_a_cut_download_is_taken_up_again(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A download whose connection breaks costs only the rest of the file."""
    monkeypatch.setattr(
        huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 1000
    )  # what is kept is whole chunks
    hub.cut = 1
    DATASET.ensure(root(tmp_path), "fetch it")
    folder = root(tmp_path) / DATASET.folder
    assert (folder / "train.jsonl").read_text(encoding="utf-8").count("\n") == 700
    assert [request.split()[-1] for request in hub.requests if "bytes=" in request] == [
        f"bytes={len(TRAIN_0) // 2 // 1000 * 1000}-"
    ]


def test_wrong_content_is_refused(hub: Hub, tmp_path: Path) -> None:
    """Content with another digest than the hub's is refused."""
    hub.etag = "0" * 64
    assert "SHA-256" in refused(tmp_path)


def test_wrong_content_does_not_stay_in_the_cache(hub: Hub, tmp_path: Path) -> None:
    """After wrong content the next attempt downloads again and succeeds."""
    hub.etag = hashlib.sha256(TEST).hexdigest()
    hub.repos["org/letters"][TEST_FILE] = TEST[:-1] + b"X"
    assert "SHA-256" in refused(tmp_path, TEST_ONLY)
    hub.repos["org/letters"][TEST_FILE] = TEST
    TEST_ONLY.ensure(root(tmp_path), "fetch it")
    assert (root(tmp_path) / TEST_ONLY.folder).is_dir()


def test_wrong_number_of_rows_is_refused(hub: Hub, tmp_path: Path) -> None:
    """A release with another number of rows than the benchmark's is refused."""
    message = refused(
        tmp_path, HubDataset("org/letters", {"train": 699, "test": 3}, config="plus")
    )
    assert "has more than 699 rows, expected 699" in message


def test_missing_split_is_named(hub: Hub, tmp_path: Path) -> None:
    """A split that the conversion lacks is named."""
    assert "has no plus/dev, but other/test, plus/test, plus/train" in refused(
        tmp_path, HubDataset("org/letters", {"dev": 3}, config="plus")
    )


@pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
def test_a_hub_that_refuses(
    hub: Hub, tmp_path: Path, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal of the hub ends in one line."""
    hub.status = status
    assert "hub data set org/letters" in refused(tmp_path)


def test_unknown_repository(hub: Hub, tmp_path: Path) -> None:
    """A repository that does not exist is named, with the way to log in."""
    assert "set HF_TOKEN" in refused(tmp_path, HubDataset("org/none", {"train": 1}))


def table(column: list[object], metadata: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(
        pyarrow.table({"x": column}).replace_schema_metadata(metadata), buffer
    )
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(b"PAR1 nonsense PAR1", "cannot be read", id="not parquet"),
        pytest.param(
            TEST[:4] + b"\xff" * 296 + TEST[300:], "cannot be read", id="damaged page"
        ),
        pytest.param(
            table([b"1", b"2", b"3"], {}), "cannot be read", id="not for JSON"
        ),
        pytest.param(
            table([1, 2, 3], {"huggingface": '{"info": null}'}),
            "malformed label names",
            id="metadata",
        ),
    ],
)
def test_unreadable_parquet(
    hub: Hub, tmp_path: Path, content: bytes, told: str
) -> None:
    """A file that is not parquet, is damaged, or has values that JSON cannot express is refused."""
    hub.repos["org/letters"][TEST_FILE] = content
    assert told in refused(tmp_path, TEST_ONLY)


def test_no_parquet_conversion(hub: Hub, tmp_path: Path) -> None:
    """A repository without a parquet conversion is distinguished from a network failure."""
    hub.info = (404, {"X-Error-Code": "RevisionNotFound"}, b"{}")
    assert (
        "it has no parquet conversion, or your login has no access to it (404)"
        in refused(tmp_path)
    )


def test_login_page_instead_of_the_hub(hub: Hub, tmp_path: Path) -> None:
    """A proxy that answers everything with a web page is a failed download."""
    hub.info = (200, {"Content-Type": "text/html"}, b"<html>log in</html>")
    assert "check the network" in refused(tmp_path)


def test_silent_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A hub that accepts the connection and never answers is given up."""
    monkeypatch.setattr(download, "TIMEOUTS", (0.5, 0.5))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        point_at(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}", tmp_path)
        assert "check the network" in refused(tmp_path)


def test_two_at_once(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two runs that fetch one data set at the same time both end with whole files."""
    read = sources_hub._read_parquet
    whole = []

    def read_slowly(*arguments):
        for row in read(*arguments):
            time.sleep(0.0005)
            yield row

    def fetch() -> None:
        DATASET.ensure(root(tmp_path), "fetch it")
        folder = root(tmp_path) / DATASET.folder
        whole.append(
            len(
                [
                    json.loads(line)
                    for line in (folder / "train.jsonl").read_bytes().splitlines()
                ]
            )
        )

    monkeypatch.setattr(sources_hub, "_read_parquet", read_slowly)
    threads = [threading.Thread(target=fetch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert whole == [700, 700, 700]


def test_disk_full(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A full disk is reported as such, and no file stays."""

    def full(*arguments):
        yield {}
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sources_hub, "_read_parquet", full)
    assert "No space left on device; check free space" in refused(tmp_path)


def test_no_hub_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a network the error suggests a mirror folder."""
    with closed_address() as address:
        point_at(monkeypatch, address, tmp_path)
        assert "HELM_LONGCTX_DATA" in refused(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"label": 3}', '{"label": [1]}', '{"features": {"label": {}}}'],
)
def test_malformed_features(tmp_path: Path, text: str) -> None:
    """A malformed `features.json` ends in one line that names it."""
    (tmp_path / "features.json").write_text(text)
    with pytest.raises(InputError, match=r"features\.json"):
        label_names(tmp_path, "label")


def test_both_forms_of_features(tmp_path: Path) -> None:
    """Label names are read from a plain mapping and from the hub's own description."""
    (tmp_path / "features.json").write_text(
        '{"features": {"label": {"names": ["x"], "_type": "ClassLabel"}}}'
    )
    assert sources_hub.label_names(tmp_path, "label") == ["x"]


def test_columns_and_sets_without_labels(hub: Hub, tmp_path: Path) -> None:
    """Only the wanted columns are kept, and a set without labels is complete with its rows."""
    dataset = HubDataset(
        "org/letters",
        {"test": 3},
        parquet="plus",
        columns={"test": ("label",)},
        labelled=False,
    )
    dataset.ensure(root(tmp_path), "fetch it")
    folder = root(tmp_path) / dataset.folder
    assert folder == tmp_path / "data/hub/org__letters"
    assert (
        folder / "test.jsonl"
    ).read_text() == '{"label":0}\n{"label":1}\n{"label":0}\n'
    (folder / "features.json").unlink()
    made = len(hub.requests)
    dataset.ensure(root(tmp_path), "fetch it")
    assert len(hub.requests) == made


RULER = HubFile(
    "org/ruler",
    "tokenizer.json",
    "tokenizers/ruler.json",
    kind="model",
    setting="RULER_REPO",
)


def test_one_file_of_a_repository(hub: Hub, tmp_path: Path) -> None:
    """One file of a repository is kept with a record of its origin, and is not requested again."""
    hub.repos["org/ruler"] = {"tokenizer.json": b"{}"}
    for _ in range(2):
        RULER.ensure(root(tmp_path), "fetch it")
    assert (tmp_path / "data/tokenizers/ruler.json").read_bytes() == b"{}"
    source = json.loads(
        (tmp_path / "data/tokenizers/ruler.json.source.json").read_text()
    )
    assert (source["repo"], source["commit"]) == ("org/ruler", COMMIT)
    assert RULER.origin(root(tmp_path)) == "org/ruler"
    assert (
        sum(request.startswith("GET /org/ruler/resolve") for request in hub.requests)
        == 1
    )


def test_a_copy_of_the_file_can_be_named(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The setting names another repository with a copy of the file, and the record says so."""
    hub.repos["copies/ruler"] = {"tokenizer.json": b"[]"}
    told = (
        r"tokenizer\.json of hub model org/ruler: it does not exist, or your login has no access to it \(404\); set HF_TOKEN to a token"
        r" with access, or set RULER_REPO to a repository with a copy of it, or put .*; then run: fetch it"
    )
    with pytest.raises(InputError, match=told):
        RULER.ensure(root(tmp_path), "fetch it")
    monkeypatch.setenv("RULER_REPO", "copies/ruler")
    RULER.ensure(root(tmp_path), "fetch it")
    assert RULER.origin(root(tmp_path)) == "copies/ruler"
    with pytest.raises(
        InputError, match=r"lacks tokenizers/other\.json; get it with: fetch it"
    ):
        HubFile("a/b", "c", "tokenizers/other.json").ensure(
            root(tmp_path, mirror=True), "fetch it"
        )


def test_a_copy_has_no_pinned_commit(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The pinned commit is that of the publisher's repository, so of a copy the latest one is read."""
    hub.repos["copies/ruler"] = {"tokenizer.json": b"[]"}
    pinned = replace(RULER, commit="5" * 40)
    assert pinned.pin.commit == "5" * 40
    monkeypatch.setenv("RULER_REPO", "copies/ruler")
    assert pinned.pin.commit == ""
    pinned.ensure(root(tmp_path), "fetch it")
    source = json.loads(
        (tmp_path / "data/tokenizers/ruler.json.source.json").read_text()
    )
    assert (source["repo"], source["commit"]) == ("copies/ruler", COMMIT)


FILES = HubFiles(
    repo="org/reports",
    names=("parsed/one.json", "parsed/two.json"),
    path="reports/parsed",
    setting="REPORTS_REPO",
    commit="5" * 40,
)


def test_files_of_a_repository(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files of a repository are fetched at the commit; a fetch that failed goes on, and the setting can name a copy."""
    hub.repos["org/reports"] = {"parsed/one.json": b"1", "other.json": b"0"}
    assert FILES.find_differences() == ["1 of 2 files are missing: parsed/two.json"]
    with pytest.raises(InputError, match="set REPORTS_REPO to a repository"):
        FILES.ensure(root(tmp_path), "fetch it")
    folder = tmp_path / "data/reports/parsed"
    assert (folder / "one.json").read_bytes() == b"1"
    monkeypatch.setenv("REPORTS_REPO", "copies/reports")
    hub.repos["copies/reports"] = dict.fromkeys(FILES.names, b"2")
    FILES.ensure(root(tmp_path), "fetch it")
    assert FILES.find_differences() == []
    contents = [(folder / name).read_bytes() for name in ("one.json", "two.json")]
    assert contents == [b"1", b"2"]
    record = json.loads((folder / "two.json.source.json").read_text())
    assert (record["repo"], record["commit"]) == ("copies/reports", COMMIT)
    assert sorted(path.name for path in folder.glob("*.json")) == [
        "one.json",
        "one.json.source.json",
        "two.json",
        "two.json.source.json",
    ]


def test_no_room_for_a_file_of_a_repository(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file that does not fit on the disk is not downloaded, and a file in the hub's cache needs no room."""
    hub.repos["org/ruler"] = {"tokenizer.json": b"{}"}
    short_of(monkeypatch, download.SPACE_MARGIN + 1)
    with pytest.raises(InputError, match=r"hub-cache needs .* GB of free disk space"):
        RULER.ensure(root(tmp_path), "fetch it")
    assert not [
        request
        for request in hub.requests
        if request.startswith("GET /org/ruler/resolve")
    ]
    short_of(monkeypatch, download.SPACE_MARGIN + 2)
    RULER.ensure(root(tmp_path), "fetch it")
    (tmp_path / "data" / RULER.path).unlink()
    short_of(monkeypatch, 0)
    RULER.ensure(root(tmp_path), "fetch it")


def test_a_wrong_digest_leaves_no_file(hub: Hub, tmp_path: Path) -> None:
    """A file with another digest than the hub's is deleted."""
    hub.repos["org/ruler"], hub.etag = {"tokenizer.json": b"{}"}, "0" * 64
    with pytest.raises(InputError, match="has SHA-256"):
        RULER.ensure(root(tmp_path), "fetch it")
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


MEMBER = HubZip("org/zips", "set.zip", "set/set_16k.jsonl", "lveval/set/set_16k.jsonl")


@pytest.mark.parametrize("name", ["set/set_16k.jsonl", "set_16k.jsonl"])
def test_a_member_of_a_zip_file(hub: Hub, tmp_path: Path, name: str) -> None:
    """Only the wanted member of a zip file is unpacked, with a record of the zip file, whatever the other names are."""
    members = {
        name: b'{"a": 1}\n',
        "../evil": b"x",
        "/abs": b"x",
        "set/set_32k.jsonl": b"other",
    }
    hub.repos["org/zips"] = {"set.zip": zipped(members)}
    for _ in range(2):
        MEMBER.ensure(root(tmp_path), "fetch it")
    files = sorted(
        str(p.relative_to(tmp_path / "data"))
        for p in (tmp_path / "data").rglob("*")
        if p.is_file()
    )
    assert files == ["lveval/set/set_16k.jsonl", "lveval/set/set_16k.jsonl.source.json"]
    assert (tmp_path / "data" / MEMBER.path).read_bytes() == b'{"a": 1}\n'
    assert not (tmp_path / "evil").exists()
    assert (
        sum("GET /datasets/org/zips/resolve" in request for request in hub.requests)
        == 1
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zipped({"other": b"x"}), "it has no files named set/set_16k.jsonl"),
        (
            zipped({"set/set_16k.jsonl": b"x", "set_16k.jsonl": b"y"}),
            "it has 2 files named set/set_16k.jsonl",
        ),
        (
            zipped({"set/set_16k.jsonl": b"x" * 9999})[:-30],
            "it is not a complete zip file",
        ),
        (b"no zip", "it is not a complete zip file"),
        (
            zipped({"set/set_16k.jsonl": os.urandom(999)}).replace(
                b"set/set_16k.jsonl", b"set/set_16k.jsonl", 1
            ),
            "",
        ),
    ],
)
def test_bad_zip_files(hub: Hub, tmp_path: Path, content: bytes, message: str) -> None:
    """A zip file that is damaged or lacks the member leaves nothing."""
    hub.repos["org/zips"] = {"set.zip": content}
    if not message:
        position = content.index(b"set/set_16k.jsonl") + 200
        hub.repos["org/zips"] = {
            "set.zip": content[:position] + b"\0\0\0" + content[position + 3 :]
        }
        message = "it is not a complete zip file"
    with pytest.raises(InputError, match=message) as caught:
        MEMBER.ensure(root(tmp_path), "fetch it")
    assert str(caught.value).endswith("; then run: fetch it")
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    with pytest.raises(InputError, match="lacks lveval/set"):
        MEMBER.ensure(root(tmp_path, mirror=True), "fetch it")


def test_a_member_that_the_disk_cannot_hold(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A member that the disk cannot hold is refused before it is unpacked."""
    hub.repos["org/zips"] = {"set.zip": zipped({"set/set_16k.jsonl": b"x"})}
    monkeypatch.setattr(download, "SPACE_MARGIN", 1 << 60)
    with pytest.raises(InputError, match="of free disk space and has"):
        MEMBER.ensure(root(tmp_path), "fetch it")
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
