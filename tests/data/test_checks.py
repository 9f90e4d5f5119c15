"""Tests of what `fetch --check` says of repositories: what moved, vanished, changed, or needs a login.

A local server speaks the hub's and GitHub's protocols, and huggingface_hub itself asks it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.data.hub import HubDataset, HubFile, HubZip
from helm_longctx.data.release import PinnedFile
from helm_longctx.data.web import WebFile
from helm_longctx.errors import InputError
from helm_longctx.tasks import data_checks
from helm_longctx.tasks.data_checks import RepositoryState, check_repositories
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from tests.data.hub_server import COMMIT, Hub, point_at, serve, to_parquet
from tests.data.releases import root
from tests.support.commands import Command
from tests.support.json_http import JsonHandler, serve_handler

BOOKS = "xinrongzhang2022/InfiniteBench"
PIN = "90f0394333616266d9fe85824ceaf505093cbaa5"
ENTRY = "infinite_bench:task=longbook_qa_eng"
FILE = "longbook_qa_eng.jsonl"
ROW = {"id": 1, "context": "text", "input": "Who?", "answer": ["Ada"], "options": []}
CONTENT = json.dumps(ROW).encode() + b"\n"
HEAD = "f" * 40
OTHER = b'[{"a": 1}]'
FLENQA_FILE = "data/eval-00000-of-00001-e3c7225e84e4d34b.parquet"
BETWEEN = "e" * 40


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """Start a hub with InfiniteBench at its pinned commit, and point huggingface_hub at it."""
    served = Hub({BOOKS: {FILE: CONTENT, "README.md": b"a"}}, commits={BOOKS: [PIN]})
    with serve(served):
        point_at(monkeypatch, served.url, tmp_path)
        yield served


def test_what_is_as_pinned(hub: Hub, command: Command) -> None:
    """A row that the loader takes, at the newest commit, leaves nothing to do."""
    assert command("fetch", "--check", ENTRY) == 0, command.err
    assert "same: 1" in command.out
    assert "To do" not in command.out


def _newer(hub: Hub, files: dict[str, bytes]) -> None:
    hub.commits[BOOKS] = [HEAD, BETWEEN, "d" * 40, PIN]
    hub.repos[f"{BOOKS}@{PIN}"] = hub.repos[BOOKS]
    hub.repos[BOOKS] = {**hub.repos[BOOKS], **files}


def _move(hub: Hub) -> None:
    hub.repos["org/new"] = hub.repos.pop(BOOKS)
    hub.commits["org/new"] = [PIN]
    hub.moved[BOOKS] = "org/new"


@pytest.mark.parametrize(
    ("change", "status", "result", "told"),
    [
        (
            lambda hub: _newer(hub, {"README.md": b"b"}),
            0,
            "newer",
            "three commits newer, files changed: README.md",
        ),
        (
            lambda hub: _newer(hub, {FILE: b"{}\n"}),
            0,
            "changed",
            f"To do: https://huggingface.co/datasets/{BOOKS}: three commits newer, files changed: {FILE};"
            f" compare {FILE} at fffffff; raise the pin, and the comparability if scores change",
        ),
        (_move, 1, "moved", "it is called org/new now; name the repository org/new"),
        (
            lambda hub: hub.repos[BOOKS].pop(FILE),
            1,
            "vanished: 1",
            f"To do: {FILE} of hub dataset {BOOKS}: it does not exist, or your login has no access to it (404)",
        ),
        (lambda hub: hub.repos.pop(BOOKS), 1, "vanished", "find where the file is now"),
        (
            lambda hub: hub.gated.add(BOOKS),
            1,
            "gated: 1",
            "say `gated: true` in the data card",
        ),
        (
            lambda hub: hub.repos[BOOKS].update(
                {FILE: json.dumps({**ROW, "answer": {}}).encode()}
            ),
            1,
            "differs: 1",
            "To do: longbook_qa_eng.jsonl of hub dataset",
        ),
    ],
    ids=[
        "other file",
        "our file",
        "moved",
        "vanished",
        "no repository",
        "gated",
        "refused row",
    ],
)
def test_what_changed(
    hub: Hub, command: Command, change: Any, status: int, result: str, told: str
) -> None:
    """Each change has its line and its status; a pinned commit stays readable when others follow."""
    change(hub)
    assert command("fetch", "--check", ENTRY) == status, command.out
    assert result in command.out
    assert told in command.out.replace("\n", " ")


@pytest.mark.parametrize(
    ("entry", "repos", "told"),
    [
        (
            "flenqa:task=pir,length=250",
            {
                "alonj/FLenQA": {"README.md": b""},
                "alonj/FLenQA@refs/convert/parquet": {
                    "default/partial-eval/0000.parquet": to_parquet([{"a": 1}])
                },
            },
            "its parquet conversion has only default/partial-eval: the hub converts the first 5 GB",
        ),
        (
            "longbench_v2",
            {"zai-org/LongBench-v2": {"data.json": OTHER}},
            f"data.json has SHA-256 {hashlib.sha256(OTHER).hexdigest()}, expected 15d61c22",
        ),
    ],
    ids=["cut conversion", "other digest"],
)
def test_content_that_differs(
    hub: Hub,
    command: Command,
    entry: str,
    repos: dict[str, dict[str, bytes]],
    told: str,
) -> None:
    """A conversion that the hub cut, and a file with another digest, have their line, and the status is 1."""
    hub.repos |= repos
    for source in parse_entry(BENCHMARKS, entry).sources:
        assert source.pin
        hub.commits[source.pin.repo] = [source.pin.commit]
    assert command("fetch", "--check", entry) == 1
    assert told in command.out.replace("\n", " ")
    assert "To do: " in command.out
    assert "compare the file with the loader" in command.out.replace("\n", " ")


def test_the_check_as_json(hub: Hub, command: Command) -> None:
    """Programs get the same results, and the pages of which the rows were compared without a failure."""
    assert command("fetch", "--check", "--json", ENTRY) == 0
    check = json.loads(command.out)
    assert check["passed_pages"] == [f"https://huggingface.co/datasets/{BOOKS}"]
    assert [file["result"] for file in check["files"]] == ["same"]
    hub.repos[BOOKS].pop(FILE)
    assert command("fetch", "--check", "--json", ENTRY) == 1
    check = json.loads(command.out)
    assert (check["has_passed"], check["passed_pages"], len(check["todo"])) == (
        False,
        [],
        1,
    )
    assert command("fetch", "--json", ENTRY) != 0


def test_what_is_not_pinned_or_not_read(hub: Hub, command: Command) -> None:
    """An unpinned repository has its newest commit as a task; an error of the server is no difference."""
    source = HubFile("org/free", "x.json", "x.json")
    hub.repos["org/free"] = {"x.json": b"{}"}
    (state,) = check_repositories([source])
    assert (state.result, state.todo) == (
        "unpinned",
        f"compare the files, and pin {COMMIT}",
    )
    hub.status = 500
    (state,) = check_repositories([source])
    assert (state.result, state.todo) == ("not read", "")
    assert command("fetch", "--check", ENTRY) == 0
    assert "not read: 1" in command.out


def parquet(rows: int) -> bytes:
    return to_parquet([{"a": number} for number in range(rows)])


LARGE = HubDataset("org/large", {"train": 5, "test": 2}, labelled=False)


def test_the_repositorys_own_parquet_files_are_read(hub: Hub, tmp_path: Path) -> None:
    """Files of the repository are read where it has all splits; their rows are in the order of the files."""
    hub.repos["org/large@refs/convert/parquet"] = {
        "default/partial-train/0000.parquet": parquet(1),
        "default/partial-test/0000.parquet": parquet(1),
    }
    hub.repos["org/large"] = {
        "data/train-00001-of-00002.parquet": parquet(2),
        "data/train-00000-of-00002.parquet": parquet(3),
        "data/test-00000-of-00001.parquet": parquet(2),
    }
    assert LARGE.find_differences() == []
    LARGE.ensure(root(tmp_path), "fetch it")
    folder = root(tmp_path) / LARGE.folder
    rows = [
        json.loads(line)["a"]
        for line in (folder / "train.jsonl").read_text().splitlines()
    ]
    assert rows == [0, 1, 2, 0, 1]
    assert json.loads((folder / "source.json").read_text())["is_conversion"] is False


def test_a_cut_conversion_is_refused(hub: Hub, tmp_path: Path) -> None:
    """A conversion that stops within the splits is refused with the reason, and nothing is stored."""
    hub.repos["org/large"] = {"data.zip": b"x"}
    hub.repos["org/large@refs/convert/parquet"] = {
        "default/partial-train/0000.parquet": parquet(1),
        "default/partial-test/0000.parquet": parquet(2),
    }
    with pytest.raises(
        InputError, match=r"has only default/partial-train: .* first 5 GB of a split"
    ):
        LARGE.ensure(root(tmp_path), "fetch it")
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]


def test_numbers_of_rows_and_digests_differ(hub: Hub) -> None:
    """Other numbers of rows and other digests are differences, without a download of the files."""
    hub.repos["org/large@refs/convert/parquet"] = {
        "default/train/0000.parquet": parquet(4),
        "default/test/0000.parquet": parquet(2),
    }
    hub.repos["org/large"] = {}
    assert LARGE.find_differences() == ["split train has 4 rows, expected 5"]
    hub.repos["org/file"] = {"x.zip": b"content"}
    right = hashlib.sha256(b"content").hexdigest()
    for source in (HubFile, HubZip):
        given = {"repo": "org/file", "name": "x.zip", "path": "x", "commit": COMMIT}
        given |= {"member": "x"} if source is HubZip else {}
        assert source(**given, sha256=right).find_differences() == []  # type: ignore[arg-type]
        (difference,) = source(**given, sha256="0" * 64).find_differences()  # type: ignore[arg-type]
        assert difference == f"x.zip has SHA-256 {right}, expected {'0' * 64}"


def test_the_digest_of_a_small_file_is_computed(hub: Hub) -> None:
    """For small files the hub announces git's id in the place of the SHA-256. Then the file is read and compared."""
    hub.repos["org/small"] = {"x.csv": b"a,b\n"}
    hub.etag = "a" * 40
    source = HubFile("org/small", "x.csv", "x.csv", commit=COMMIT)
    right = hashlib.sha256(b"a,b\n").hexdigest()
    assert replace(source, sha256=right).find_differences() == []
    (difference,) = replace(source, sha256="0" * 64).find_differences()
    assert difference == f"x.csv has SHA-256 {right}, expected {'0' * 64}"


def test_rows_in_json_are_a_split(hub: Hub, tmp_path: Path) -> None:
    """A split can be an array of rows in a JSON file, whose digest is checked."""
    content = json.dumps([{"a": 1}, {"a": 2}]).encode()
    hub.repos["org/json"] = {"data.json": content}
    digest = hashlib.sha256(content).hexdigest()
    source = HubDataset(
        "org/json",
        {"train": 2},
        labelled=False,
        commit=COMMIT,
        files={"train": ("data.json",)},
        sha256={"data.json": digest},
    )
    assert source.find_differences() == []
    assert source.first_rows() == {"hub/org__json/train.jsonl": b'{"a":1}\n'}
    source.ensure(root(tmp_path), "fetch it")
    assert (
        root(tmp_path) / source.folder / "train.jsonl"
    ).read_bytes() == b'{"a":1}\n{"a":2}\n'


def test_rows_in_json_lines_are_a_split_at_a_commit_of_few_digits(
    hub: Hub, tmp_path: Path
) -> None:
    """A split can be a file of JSON lines. Of a pinned commit the first digits are enough, if no other has them."""
    repo = "org/lines"
    hub.repos[f"{repo}@{PIN}"] = {"rows of life.jsonl": b'{"a": 1}\n{"a": 2}\n'}
    hub.repos[repo] = {"rows of life.jsonl": b'{"a": 3}\n{"a": 4}\n'}
    hub.commits[repo] = [HEAD, PIN]
    source = HubDataset(
        repo,
        {"train": 2},
        labelled=False,
        commit=PIN[:7],
        files={"train": ("rows of life.jsonl",)},
    )
    assert source.first_rows() == {"hub/org__lines/train.jsonl": b'{"a":1}\n'}
    source.ensure(root(tmp_path), "fetch it")
    folder = root(tmp_path) / source.folder
    assert (folder / "train.jsonl").read_bytes() == b'{"a":1}\n{"a":2}\n'
    assert json.loads((folder / "source.json").read_text())["commit"] == PIN
    (state,) = check_repositories([source])
    assert (state.result, state.about) == (
        "changed",
        "one commit newer, files changed: rows of life.jsonl",
    )
    hub.commits[repo] = [PIN]
    (state,) = check_repositories([source])
    assert state.result == "same"
    for commits, count in (([HEAD], "no commit"), ([PIN, PIN[:39] + "0"], "several")):
        hub.commits[repo] = commits
        with pytest.raises(InputError, match=f"the repository has {count}.* {PIN[:7]}"):
            source.find_files()


def test_a_conversion_with_known_digests_asks_for_nothing(
    hub: Hub, tmp_path: Path
) -> None:
    """The hub's conversion has commits of its own, so its files are compared by their digests, and others are refused."""
    content = to_parquet([{"a": 1}])
    hub.repos["org/script"] = {"script.py": b""}
    name = "default/train/0000.parquet"
    hub.repos["org/script@refs/convert/parquet"] = {name: content}
    source = HubDataset(
        "org/script",
        {"train": 1},
        labelled=False,
        sha256={name: hashlib.sha256(content).hexdigest()},
    )
    (state,) = check_repositories([source])
    assert (state.result, state.todo) == ("unpinned", "")
    source.ensure(root(tmp_path), "fetch it")
    hub.repos["org/script@refs/convert/parquet"] = {name: to_parquet([{"a": 2}])}
    assert len(source.find_differences()) == 1
    (root(tmp_path) / source.paths[0]).unlink()
    other = replace(source, sha256={name: "0" * 64})
    with pytest.raises(InputError, match=f"expected {'0' * 64}"):
        other.ensure(root(tmp_path), "fetch it")


def test_a_changed_file_is_warned_of(
    hub: Hub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A later fetch of other content than the recorded one has a line in the log, and one of the same has none."""
    source = HubFile("org/free", "x.json", "free/x.json")
    for content, is_changed in ((b"{}", False), (b"{}", False), (b"[]", True)):
        hub.repos["org/free"] = {"x.json": content}
        hub.commits["org/free"] = [hashlib.sha1(content).hexdigest()]
        (root(tmp_path) / source.path).unlink(missing_ok=True)
        caplog.clear()
        source.ensure(root(tmp_path), "fetch it")
        assert (
            "the file changed since it was fetched before" in caplog.text
        ) == is_changed
    data = HubDataset("org/rows", {"train": 0}, labelled=False)
    for rows, is_changed in ((2, False), (3, True)):
        hub.repos["org/rows"] = {"data/train-00000-of-00001.parquet": parquet(rows)}
        hub.commits["org/rows"] = [f"{rows}" * 40]
        (root(tmp_path) / data.paths[0]).unlink(missing_ok=True)
        caplog.clear()
        data.ensure(root(tmp_path), "fetch it")
        assert (
            "the file changed since it was fetched before" in caplog.text
        ) == is_changed


def test_files_on_other_servers(hub: Hub) -> None:
    """The content of small pinned files is compared, and of others it is asked whether they exist."""
    hub.repos["org/web"] = {"x.txt": b"text"}
    url = f"{hub.url}/datasets/org/web/resolve/main/x.txt"
    right = hashlib.sha256(b"text").hexdigest()
    assert PinnedFile("x", url, right).find_differences() == []
    assert PinnedFile("x", url, "0" * 64).find_differences() == [
        f"SHA-256 {right}, expected {'0' * 64}"
    ]
    assert WebFile(url, "x").find_differences() == []
    assert (
        WebFile(url, "x", blob="0" * 40)
        .find_differences()[0]
        .startswith("the git id is")
    )
    with pytest.raises(OSError, match="404"):
        WebFile(f"{url}x", "x").find_differences()


def test_repositories_on_github(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository on GitHub is compared by its interface: renamed, or with newer commits."""
    pinned = WebFile(
        f"https://raw.githubusercontent.com/o/r/{PIN}/a/x.json", "x", blob="0" * 40
    )
    answers: dict[str, dict[str, Any]] = {
        "/repos/o/r": {"full_name": "o/r", "default_branch": "main"},
        "/repos/o/r/commits/main": {"sha": HEAD},
        f"/repos/o/r/compare/{PIN}...main": {
            "ahead_by": 1,
            "files": [{"filename": "a/x.json"}],
        },
    }

    class GitHub(JsonHandler):
        def do_GET(self) -> None:  # noqa: N802
            """Answer what the interface knows."""
            self.send_json(200, answers[self.path.removeprefix("/v1")])

    with serve_handler(GitHub) as url:
        monkeypatch.setattr(data_checks, "_GITHUB_API", url)
        (state,) = check_repositories([pinned])
        assert (state.result, state.about) == (
            "changed",
            "one commit newer, files changed: a/x.json",
        )
        answers["/repos/o/r"]["full_name"] = "o/renamed"
        (state,) = check_repositories([pinned])
        assert state.result == "moved"


def test_one_commit_for_each_repository() -> None:
    """All benchmarks that read a repository pin the same commit of it, unless they read different versions by name."""
    commits: dict[str, set[str]] = {}
    for benchmark in BENCHMARKS:
        for task in benchmark.tasks:
            for length in sorted(task.sizes) or (None,):
                for source in task.all_sources(length):
                    if source.pin and source.pin.kind != "github":
                        commits.setdefault(source.pin.repo, set()).add(
                            source.pin.commit
                        )
    assert {repo for repo, revisions in commits.items() if len(revisions) > 1} == set()


def test_a_source_is_compared_once(hub: Hub) -> None:
    """Sources that several tasks share are compared once, and their rows are given to each task's loader."""
    facts = {
        "dataset": "PIR",
        "global_sample_id": 1,
        "assertion/question": "q",
        "mixin": "m",
    }
    facts |= {
        "label": "True",
        "padding_type": "a",
        "dispersion": "first",
        "ctx_size": 250,
    }
    hub.repos["alonj/FLenQA"] = {
        FLENQA_FILE: to_parquet([{**facts, "facts": ["f"]}] * 12000)
    }
    entries = [
        parse_entry(BENCHMARKS, f"flenqa:task={task},length=250")
        for task in ("pir", "monorel")
    ]
    shapes = [*data_checks.check_shapes(entries)]
    assert [shape.result for shape in shapes] == ["same", "one row"]
    heads = [request for request in hub.requests if request.startswith("GET /api/")]
    assert len(heads) == 3


def test_a_state_names_its_fields() -> None:
    """A state without a finding leaves nothing to do."""
    assert RepositoryState("page", PIN, PIN, "same").todo == ""
