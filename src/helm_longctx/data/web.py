"""Downloads single files of releases without a published SHA-256 from web servers."""

from __future__ import annotations

import io
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from helm_longctx.data.download import Download, ResumingStream, check_space, place_file
from helm_longctx.data.repository import object_id
from helm_longctx.data.root import USE_A_MIRROR, SingleFile
from helm_longctx.errors import InputError

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WebFile(SingleFile, Download):
    """A file on a web server.

    Args:
        url: address of the file.
        path: path under the data root.
        blob: git's id of the content (`git hash-object FILE`); empty if it is not known. The content is then not
            checked, but users can compare the records of the files on two machines.
    """

    url: str
    path: str
    blob: str = ""

    @property
    def label(self) -> str:
        """Its name in the log and in errors."""
        return self.url

    def fetch(self, folder: Path) -> None:
        """Download the file, and write its address, size and SHA-256 into a record next to it."""
        if not self.blob:
            _log.warning("the content of %s cannot be checked, because no checksum was published", self.url)
        with place_file(folder / Path(self.path).name) as (part, source):
            check_space(folder)
            with ResumingStream(self.url) as stream, part.open("wb") as out:
                shutil.copyfileobj(io.BufferedReader(stream), out)
                source |= {"url": self.url, "size": stream.position, "sha256": stream.digest.hexdigest()}
            if self.blob and (found := object_id("blob", part.read_bytes())) != self.blob:
                raise InputError(f"the downloaded file has the git id {found}, expected {self.blob}; {USE_A_MIRROR}")
