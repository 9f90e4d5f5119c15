"""Sources whose commit and digest nobody published: the first fetch is recorded, and other content later is warned of.

A local server speaks the hub's protocol, and huggingface_hub itself asks it.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from helm_longctx.data.download import Source, sha256_of
from helm_longctx.data.fetch import describe_files
from helm_longctx.data.hub import HubDataset, HubFile
from helm_longctx.data.web import WebFile
from helm_longctx.errors import InputError
from helm_longctx.runs.files import read_data, write_data
from helm_longctx.tasks.data_cards import NEWEST, find_origin, make_cards
from helm_longctx.tasks.registry import BENCHMARKS
from tests.data.hub_server import Hub, point_at, serve, to_parquet
from tests.data.releases import root
from tests.support.programs import ROOT

WARNING = "the file changed since it was fetched before"


def find_first_fetches() -> dict[str, Source]:
    """Return a source of each publisher's page for which neither a commit nor a digest is known."""
    sources: dict[str, Source] = {}
    for benchmark in BENCHMARKS:
        for task in benchmark.tasks:
            for length in sorted(task.sizes) or (None,):
                for source in task.all_sources(length):
                    if is_first_fetch(source):
                        sources.setdefault(find_origin(source).page, source)
    return sources


def is_first_fetch(source: Source) -> bool:
    match source:
        case HubDataset():
            return not source.commit and not source.sha256
        case HubFile():
            return not source.revision and not source.sha256
        case WebFile():
            return not source.blob
    return False


FIRST_FETCHES = find_first_fetches()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """Start a hub without data, and point huggingface_hub at it."""
    with serve(Hub({})) as served:
        point_at(monkeypatch, served.url, tmp_path)
        yield served


def publish(hub: Hub, source: Source, text: str) -> Source:
    """Put made content of a source on the hub, as its newest commit. Return the source to be fetched from there."""
    commit = hashlib.sha1(text.encode()).hexdigest()
    match source:
        case HubDataset():
            # One split stands for all of them, and has as many rows as the fetch expects.
            split, rows = next(iter(source.splits.items()))
            row = dict.fromkeys(source.columns.get(split, ("text",)), text)
            name = f"data/{split}-00000-of-00001.parquet"
            hub.repos[source.repo_id] = {name: to_parquet([row] * (rows or 2))}
            hub.commits[source.repo_id] = [commit]
            return replace(source, splits={split: rows})
        case HubFile():
            content = json.dumps({"text": text}).encode() + b"\n"
            hub.repos[source.repo] = {source.name: content}
            hub.commits[source.repo] = [commit]
            return source
        case WebFile():
            hub.repos["org/web"] = {"file": json.dumps([text]).encode()}
            return replace(source, url=f"{hub.url}/datasets/org/web/resolve/main/file")
    raise TypeError(type(source).__name__)


@pytest.mark.parametrize("page", FIRST_FETCHES)
def test_the_first_fetch_is_recorded_and_a_later_change_is_warned_of(
    page: str, hub: Hub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The digest is in the data folder and in the run; other content later has a line, and the same has none."""
    digests = []
    for fetch, text in enumerate(("first", "first", "second")):
        source = publish(hub, FIRST_FETCHES[page], text)
        path = root(tmp_path) / source.paths[0]
        path.unlink(missing_ok=True)
        caplog.clear()
        source.ensure(root(tmp_path), "fetch it")
        assert (WARNING in caplog.text) == (text == "second")
        described = describe_files([source], root(tmp_path))
        recorded = described[source.paths[0]]
        # The record of the fetch has the origin, which a digest of the file alone has not.
        assert {"repo", "url"} & recorded.keys()
        run = tmp_path / f"run {fetch}"
        write_data(run, described)
        digests.append(read_data(run)[source.paths[0]])
        assert digests[-1] == sha256_of(path)
    assert digests[0] == digests[1] != digests[2]


def test_every_row_has_a_pin_or_a_digest_or_is_named() -> None:
    """Each publisher's data has a pinned commit or a digest, or is one of those that docs/data.md names as recorded."""
    unknown = set()
    for benchmark in BENCHMARKS:
        for card in make_cards(benchmark):
            is_pinned = not any(
                revision.startswith(("the newest", "the file", NEWEST))
                for revision in card.revisions
            )
            has_digest = any("first fetch" not in check for check in card.checks)
            if not is_pinned and not has_digest:
                unknown.add(card.page)
    assert unknown == {*FIRST_FETCHES}
    text = (ROOT / "docs/data.md").read_text(encoding="utf-8")
    _, _, section = text.partition("\n### The first fetch\n")
    section = section.partition("\n### ")[0]
    for page in unknown:
        name = page.rpartition("/")[2].partition("_medium")[0].partition("_hard")[0]
        assert name in section.replace("-", "")


def find_files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("kind", [HubDataset, HubFile, WebFile])
def test_a_full_disk(
    kind: type[Source], hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A download that does not fit ends in one line and leaves no part of a file, and the same command has all later."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    first = next(source for source in FIRST_FETCHES.values() if type(source) is kind)
    source = publish(hub, first, "".join(Random(7).choices("abcdefgh", k=300_000)))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(
            InputError, match="File too large; check free space"
        ) as raised:
            source.ensure(root(tmp_path), "fetch it")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(raised.value)
    left = find_files(root(tmp_path).path)
    assert not [name for name in left if "lock" not in name]
    source.ensure(root(tmp_path), "fetch it")
    assert {*source.paths} <= find_files(root(tmp_path).path)
