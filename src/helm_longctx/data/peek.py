"""Reads the first row of files on the hub, without downloading the files."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Literal, cast

import orjson

from helm_longctx.data.download import ResumingStream
from helm_longctx.data.jsonl import STRING_OR_BRACE
from helm_longctx.errors import ShapeError

MOST = 64 << 20
"""Most bytes of a file that are read for its first row, which can hold millions of tokens, or of a packed archive."""
MOST_NAMED = 12
"""Most files that an error names."""
JSON = (".json", ".jsonl")
"""The ends of the names of files whose first row can be read."""


class RangedStream(ResumingStream):
    """A file on a server of which parts are read, each with a request for a range."""

    def seekable(self) -> bool:
        """Return True: reading can go on at any position."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position."""
        place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size or 0}[whence]
        if place != self.position:
            self._drop()
            self.position = place
        return place


@contextmanager
def open_on_hub(repo: str, name: str, commit: str, kind: Literal["dataset", "model"] = "dataset") -> Iterator[BinaryIO]:
    """Open a file of a repository at a commit for reading in parts."""
    from huggingface_hub import get_hf_file_metadata, get_token, hf_hub_url

    url = hf_hub_url(repo, name, repo_type=kind, revision=commit)
    # The address is the hub's, not the one to which it redirects, which must not get the token.
    stream = RangedStream(url, get_hf_file_metadata(url).size, get_token() or None)
    with io.BufferedReader(stream, 1 << 16) as file:
        yield cast(BinaryIO, file)


def first_parquet_row(file: BinaryIO, columns: tuple[str, ...] | None = None) -> Mapping[str, Any]:
    """Return the first row of a parquet file. Its end and the first pages of the columns are read."""
    from pyarrow import parquet

    batches = parquet.ParquetFile(file).iter_batches(batch_size=1, row_groups=[0], columns=columns and list(columns))
    row: Mapping[str, Any] = next(batches).to_pylist()[0]
    return row


def first_json_row(file: BinaryIO) -> Mapping[str, Any]:
    """Return the first object of JSON lines, or of an array of objects.

    Raises a `ShapeError` if the file does not begin with an object.
    """
    return _read_first(file)[0]


def first_json_content(file: BinaryIO) -> bytes:
    """Return a file of JSON lines, or of an array of objects, with the first object alone."""
    row, is_array = _read_first(file)
    content = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
    return b"[" + content + b"]" if is_array else content


def _read_first(file: BinaryIO) -> tuple[Mapping[str, Any], bool]:
    text = file.read(1).lstrip()
    while not text and (more := file.read(1)):
        text = more.lstrip()
    is_array = text == b"["
    text = b"" if is_array else text
    while len(text) < MOST:
        # Each time as much again is read, because what was read is searched again.
        more = file.read(max(1 << 16, len(text))) if is_array else file.readline(MOST)
        text += more
        if not more:
            break
        with suppress(orjson.JSONDecodeError):
            row = orjson.loads(_first_object(text) if is_array else text)
            if isinstance(row, dict):
                return row, is_array
    raise ShapeError("it does not begin with a JSON object")


def _first_object(text: bytes) -> bytes:
    """Return the text up to the brace that closes the first one; all of it if that is not there."""
    depth = 0
    for match in STRING_OR_BRACE.finditer(text):
        depth += (match[0] == b"{") - (match[0] == b"}")
        if match[0] == b"}" and not depth:
            return text[: match.end()]
    return text
