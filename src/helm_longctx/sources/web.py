"""Downloads single files of releases without a published SHA-256 from web servers."""

from __future__ import annotations

import io
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from helm_longctx.errors import InputError
from helm_longctx.sources.download import ResumingStream, check_space, explain_failures, place_file
from helm_longctx.sources.repository import object_id
from helm_longctx.sources.root import USE_A_MIRROR, DataRoot, SingleFile

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WebFile(SingleFile):
    """A file on a web server.

    Args:
        url: address of the file.
        path: path under the data root.
        blob: git's id of the content (`git hash-object FILE`); empty if it is not known. The content is then not
            checked, but users can compare the records beside the files of two machines.
    """

    url: str
    path: str
    blob: str = ""


def ensure_web_file(file: WebFile, root: DataRoot, command: str) -> None:
    """Download a file if it is not under the data root, and record its address, size and SHA-256 beside it.

    Args:
        command: command that gets the file, for errors.

    Raises:
        InputError: the file is missing from a mirror, the download fails, or its content does not have the id `blob`.
    """
    if not root.lacks(file.paths, command):
        return
    target = root / file.path
    check = "" if file.blob else "; its content cannot be checked, because no checksum was published"
    _log.warning("fetching %s into %s%s", file.url, target.parent, check)
    with explain_failures(file.url, target.parent, command):
        _fetch(file, target)


def _fetch(file: WebFile, target: Path) -> None:
    with place_file(target) as (part, source):
        check_space(target.parent)
        with ResumingStream(file.url) as stream, part.open("wb") as out:
            shutil.copyfileobj(io.BufferedReader(stream), out)
            source |= {"url": file.url, "size": stream.position, "sha256": stream.digest.hexdigest()}
        if file.blob and (found := object_id("blob", part.read_bytes())) != file.blob:
            raise InputError(f"the downloaded file has the git id {found}, expected {file.blob}; {USE_A_MIRROR}")
