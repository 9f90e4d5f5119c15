"""Pinned files from a local server instead of their own servers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from helm_longctx.data.fetch import ensure
from helm_longctx.data.release import PinnedFile
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from tests.data.release_server import ReleaseHub, serve


def fetch_fabricated(files: Sequence[PinnedFile], made: Path, to: Path) -> DataRoot:
    """Fetch files with fabricated content over HTTP. Content without the official digest is refused.

    Args:
        made: the root under which the fabricated files are.
        to: the data root that receives them.
    """
    contents = {file.path: (made / file.path).read_bytes() for file in files}
    root = DataRoot(to, mirror=False)
    with serve(
        ReleaseHub({}, files={_name(file): contents[file.path] for file in files})
    ) as server:
        local = [
            replace(file, url=f"{server.url}/files/{_name(file)}") for file in files
        ]
        for file in local:
            with pytest.raises(
                InputError,
                match=rf"{_name(file)}: the downloaded file has SHA-256 .* {file.sha256}",
            ):
                ensure([file], root, "fetch it")
        ensure(
            [
                replace(f, sha256=hashlib.sha256(contents[f.path]).hexdigest())
                for f in local
            ],
            root,
            "fetch it",
        )
    return root


def _name(file: PinnedFile) -> str:
    name = file.path.rpartition("/")[2]
    assert file.url.endswith(f"/{name}")
    return name
