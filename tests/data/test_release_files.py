"""Tests of single files: of a repository with the unpacked release, and small ones pinned by their hash."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from helm_longctx.data.fetch import ensure
from helm_longctx.data.release import PinnedFile
from helm_longctx.errors import InputError
from tests.data.hub_server import COMMIT
from tests.data.release_server import Fault, ReleaseHub
from tests.data.releases import (
    ALCE,
    CONTENT,
    KILT,
    PROMPTS,
    SETTING,
    UNPACKED,
    fetched,
    refused,
    root,
    short_of,
    tree,
)

# The release unpacked


@pytest.fixture
def unpacked(served: ReleaseHub, monkeypatch: pytest.MonkeyPatch) -> ReleaseHub:
    """Serve a repository with the unpacked release: one file at its top, one under `data/`."""
    served.repos[UNPACKED] = {
        "kilt/nq.jsonl": CONTENT["data/kilt/nq.jsonl"],
        "data/ruler/cwe/validation_8.jsonl": CONTENT[
            "data/ruler/cwe/validation_8.jsonl"
        ],
        "other": b"not for us",
    }
    monkeypatch.setenv(SETTING, UNPACKED)
    return served


@pytest.mark.parametrize("revision", ["", "@main", "@refs/pr/3"])
def test_an_unpacked_repository(
    unpacked: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revision: str
) -> None:
    """Single files come from the repository that the setting names, in either layout."""
    monkeypatch.setenv(SETTING, UNPACKED + revision)
    fetched(tmp_path)
    record = json.loads((tmp_path / "data/helmet/release.json").read_text())
    digest = hashlib.sha256(CONTENT["data/kilt/nq.jsonl"]).hexdigest()
    assert record[KILT] == {
        "size": 300_000,
        "sha256": digest,
        "repo": UNPACKED,
        "commit": COMMIT,
    }
    assert unpacked.requests[0].endswith(
        f"/revision/{(revision or '@main')[1:].replace('/', '%2F')}"
    )
    assert not [
        request
        for request in unpacked.requests
        if "data.tar.gz" in request or "other" in request
    ]


def test_an_unpacked_repository_on_another_disk(
    unpacked: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the cache cannot be linked to, files are copied."""

    def no_link(*paths: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_link)
    fetched(tmp_path)


def test_an_unpacked_repository_that_lacks_files(
    unpacked: ReleaseHub, tmp_path: Path
) -> None:
    """Files that the unpacked repository lacks are named, and nothing is kept."""
    message = refused(tmp_path, KILT, ALCE)
    assert message.startswith(
        f"the repository that {SETTING} names: it has no data/alce/asqa.json"
    )


def test_an_unpacked_repository_with_wrong_content(
    unpacked: ReleaseHub, tmp_path: Path
) -> None:
    """Files with another digest than the hub's are not kept."""
    unpacked.etag = "0" * 64
    assert "SHA-256" in refused(tmp_path)


@pytest.mark.parametrize(
    "value",
    [
        "nonsense",
        "a/b/c",
        "https://user:hf_secretsecretsecret@hub/x?y",
        "a/b@",
        "a/b@c d",
    ],
)
def test_settings_that_name_no_repository(
    unpacked: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """A setting that names no repository is refused without repeating its value."""
    monkeypatch.setenv(SETTING, value)
    assert "org/name or org/name@revision" in refused(tmp_path)


def test_an_unpacked_repository_that_is_not_there(
    unpacked: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository that the hub does not show is reported, with the way to log in."""
    monkeypatch.setenv(SETTING, "org/none")
    assert "set HF_TOKEN" in refused(tmp_path)


def test_an_unpacked_repository_without_commits(
    unpacked: ReleaseHub, tmp_path: Path
) -> None:
    """A hub that names no commit is an error, because nothing can be pinned."""
    unpacked.info = (
        200,
        {"Content-Type": "application/json"},
        b'{"id": "org/unpacked", "sha": null}',
    )
    assert "names no commit of main" in refused(tmp_path)


# Pinned files

PROMPT = b'{"demos": []}' * 1000


def pinned(
    tmp_path: Path,
    served: ReleaseHub,
    sha256: str = "",
    mirror: bool = False,
    name: str = "asqa",
) -> None:
    digest = sha256 or hashlib.sha256(PROMPT).hexdigest()
    file = PinnedFile(PROMPTS, f"{served.url}/files/{name}?signature=x", digest)
    ensure([file, file], root(tmp_path, mirror), "fetch it")


@pytest.fixture
def web(served: ReleaseHub) -> ReleaseHub:
    """Start a server with a prompt file."""
    served.files["asqa"] = PROMPT
    return served


def test_a_pinned_file(web: ReleaseHub, tmp_path: Path) -> None:
    """A pinned file is downloaded once, without the hub's token, despite interruptions and refusals."""
    web.faults = [Fault(status=503), Fault(cut=1000), Fault(cut=100, whole=True)]
    pinned(tmp_path, web)
    pinned(tmp_path, web)
    assert tree(tmp_path) == [PROMPTS]
    assert (tmp_path / "data" / PROMPTS).read_bytes() == PROMPT
    assert web.downloads == ["", "", "bytes=1000-", "bytes=1000-"]
    assert web.logins == [None] * 4


def test_a_pinned_file_of_unknown_size(web: ReleaseHub, tmp_path: Path) -> None:
    """A server need not give the size of a pinned file, because its digest shows whether it is whole."""
    web.faults = [
        Fault(headers={"Content-Length": ""}, cut=500),
        Fault(headers={"Content-Length": ""}, cut=len(PROMPT)),
    ]
    message = refused(tmp_path, act=lambda path: pinned(path, web))
    assert "SHA-256" in message
    pinned(tmp_path, web)


def test_another_pinned_content(web: ReleaseHub, tmp_path: Path) -> None:
    """A pinned file with another digest is not kept."""
    message = refused(tmp_path, act=lambda path: pinned(path, web, sha256="0" * 64))
    assert (
        f"has SHA-256 {hashlib.sha256(PROMPT).hexdigest()}, expected {'0' * 64}"
        in message
    )
    assert PROMPTS in message


def test_no_pinned_file(web: ReleaseHub, tmp_path: Path) -> None:
    """A pinned file that no longer exists is reported at once."""
    assert "404" in refused(tmp_path, act=lambda path: pinned(path, web, name="none"))
    assert len(web.downloads) == 1


def test_pinned_files_in_a_mirror(web: ReleaseHub, tmp_path: Path) -> None:
    """A mirror is not filled with pinned files."""
    with pytest.raises(
        InputError, match=r"lacks helmet/prompts/asqa.json; get it with: fetch it"
    ):
        pinned(tmp_path, web, mirror=True)
    assert web.requests == []


def test_no_room_for_pinned_files(
    web: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk nothing is downloaded."""
    short_of(monkeypatch, 1000)
    assert "of free disk space" in refused(tmp_path, act=lambda path: pinned(path, web))
    assert web.requests == []
