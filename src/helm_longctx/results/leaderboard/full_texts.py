"""Writes the whole texts of a run as static files, to which the run's page links."""

from __future__ import annotations

import gzip
import hashlib
import html
import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import zstandard

from helm_longctx.runs.prompts import read_prompts

FOLDER = "prompts"
INDEX = "index.html"


class FullTexts:
    """The folder `prompts` of a run, with a file `<digest>.txt.gz` for each text and an index page.

    Web servers send these files as compressed text. A file that exists is not written again.

    Args:
        run: the run's folder, `…/runs/<suite>/<run>`.
    """

    def __init__(self, run: Path):
        self._run, self._folder = run, run / FOLDER
        self._digests: set[str] = set()

    def add(self, text: str) -> str:
        """Write a text and return its digest."""
        data = text.encode("utf-8", "surrogatepass")
        return self._write(hashlib.sha256(data).hexdigest(), data)

    def copy_prompts(self, limit: int) -> None:
        """Write the prompts of more than `limit` bytes from the run's prompt store, up to the first damaged one."""
        with suppress(OSError, ValueError, KeyError, zstandard.ZstdError):
            for digest, data in read_prompts(self._run):
                if len(data) > limit:
                    self._write(digest, data)

    def __contains__(self, digest: str) -> bool:
        return digest in self._digests

    def link(self, digest: str) -> str:
        """Return the address of a text, relative to the page's."""
        return self._url(file_name(digest))

    @property
    def index(self) -> str:
        """The address of the index page."""
        return self._url(INDEX)

    def finish(self, digests: dict[str, str]) -> None:
        """Write the index page, and remove files of an earlier run in the same folder.

        Args:
            digests: instance name to the digest of its prompt.
        """
        names = {file_name(digest) for digest in self._digests}
        for path in (*self._folder.glob("*.txt.*"), self._folder / INDEX):
            if path.name not in names:
                path.unlink(missing_ok=True)
        if names:
            (self._folder / INDEX).write_text(_index(self._run.name, digests), encoding="utf-8")

    def _write(self, digest: str, data: bytes) -> str:
        self._digests.add(digest)
        path = self._folder / file_name(digest)
        if not path.exists():
            self._folder.mkdir(exist_ok=True)
            part = path.with_suffix(".part")
            # With mtime=0 the file depends only on the text. Level 1 is fast, and the page is rarely opened.
            part.write_bytes(gzip.compress(data, compresslevel=1, mtime=0))
            os.replace(part, path)
        return digest

    def _url(self, name: str) -> str:
        # helm-server serves HELM's output folder as `benchmark_output`.
        parts = ("runs", self._run.parent.name, self._run.name, FOLDER, name)
        return "/".join(["benchmark_output", *(quote(part, safe="") for part in parts)])


def file_name(digest: str) -> str:
    """Return the name of the file with the text of a digest."""
    return f"{digest[:16]}.txt.gz"


def _index(title: str, digests: dict[str, str]) -> str:
    rows = "\n".join(
        f'<li><a href="{file_name(digest)}">{html.escape(instance)}</a></li>' for instance, digest in digests.items()
    )
    head = f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
    return f"{head}<h1>Prompts of {html.escape(title)}</h1>\n<ol>\n{rows}\n</ol>\n"
