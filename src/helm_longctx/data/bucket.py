"""Downloads single files of public buckets of Google Cloud Storage, checked against the announced size and MD5."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from helm_longctx.data.download import TIMEOUTS, Download, ResumingStream, check_space, place_file
from helm_longctx.data.root import USE_A_MIRROR, SingleFile
from helm_longctx.errors import InputError

API = "https://storage.googleapis.com/storage/v1/b"
BLOCK = 1 << 20


@dataclass(frozen=True)
class BucketFile(SingleFile, Download):
    """A file in a public bucket.

    Args:
        bucket: name of the bucket.
        name: name of the file in it.
        path: path under the data root.
    """

    bucket: str
    name: str
    path: str

    @property
    def label(self) -> str:
        """Its name in the log and in errors."""
        return f"{self.name} of bucket {self.bucket}"

    def fetch(self, folder: Path) -> None:
        """Download the file, and write its origin into a record next to it."""
        _fetch(self, folder / Path(self.path).name)


def _fetch(file: BucketFile, target: Path) -> None:
    import requests

    url = f"{API}/{file.bucket}/o/{quote(file.name, safe='')}"
    response = requests.get(url, timeout=TIMEOUTS)
    response.raise_for_status()
    about = response.json()
    size, found = int(about["size"]), hashlib.md5(usedforsecurity=False)
    with place_file(target) as (part, source):
        check_space(target.parent, size)
        # The generation selects one version of the content, so all parts belong together even if the file changes.
        address = f"{url}?alt=media&generation={about['generation']}"
        with ResumingStream(address, size) as stream, part.open("wb") as out:
            while block := stream.read(BLOCK):
                found.update(block)
                out.write(block)
        announced = about.get("md5Hash")  # a file that was composed of several files has no MD5
        if announced is not None and found.digest() != base64.b64decode(announced):
            raise InputError(f"the downloaded file has MD5 {found.hexdigest()}, not the announced one; {USE_A_MIRROR}")
        source |= {"bucket": file.bucket, "name": file.name, "generation": about["generation"]}
        source["md5"] = found.hexdigest()
