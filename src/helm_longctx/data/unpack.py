"""Reads single files from archives (tar.gz as a stream, zip) that may be damaged or malicious."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from helm_longctx.data.download import check_space
from helm_longctx.data.jsonl import JSON, MOST, first_json_content
from helm_longctx.data.root import USE_A_MIRROR
from helm_longctx.errors import InputError, ShapeError

BLOCK = 1 << 20
"""Bytes that are read into memory at a time."""

MOST_NAMED = 12
"""Most files that an error names."""

_MOST_NAMES = 1 << 20
"""Largest size in bytes of a tar header that holds a long name or further attributes."""

_MOST_ENDS = 10
"""Largest number of reads at the end of an archive. tarfile would skip a member that claims 2**60 bytes endlessly."""

_RATIO = 200
"""Highest ratio of unpacked to packed size. Text reaches 3 to 10; the formats allow about a thousand."""
_ROOM = 1 << 30
"""Bytes that any file may unpack to at any ratio, because a part of an archive may repeat one sentence."""

_NAMES = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)

Provenance = dict[str, Any]


def unpack(
    source: BinaryIO,
    archive: str,
    wanted: Mapping[str, str],
    part: Path,
) -> dict[str, Provenance]:
    """Write the wanted members of a tar.gz archive under `part`, and skip all others.

    Args:
        wanted: path under `part` by normalized member name.

    Returns:
        Size and SHA-256 of each written file, by path. Wanted members that the archive lacks are left out.

    Raises:
        InputError: the archive is damaged, or contains a wanted member twice or not as a regular file.
    """
    records: dict[str, Provenance] = {}
    try:
        # tarfile's own mode "r|gz" is not used: it accepts a truncated archive as complete and inflates without limit.
        with (
            InflatingStream(source, archive) as plain,
            open_members(plain) as members,
        ):
            for member in members:
                name = normalize(member.name)
                path = wanted.get(name or "")
                if not path:
                    continue
                if path in records:
                    raise InputError(f"{archive} has {name} twice")
                records[path] = _write_member(members, member, archive, part / path)
    except Exception as error:  # tarfile does not catch all errors of its parser
        if isinstance(error, InputError | OSError | MemoryError) and not isinstance(
            error, gzip.BadGzipFile
        ):
            raise  # an error of this package, the network or the disk
        what = type(error).__name__
        raise InputError(
            f"{archive} is not a complete tar.gz file ({what}); {USE_A_MIRROR}"
        ) from error
    return records


def gunzip(path: Path, target: Path) -> None:
    """Write the content of a gzip file to `target`.

    Raises:
        InputError: the file is damaged, or looks like a decompression bomb.
    """
    try:
        with (
            path.open("rb") as packed,
            target.open("wb") as plain,
            InflatingStream(packed, str(path)) as content,
        ):
            shutil.copyfileobj(content, plain, BLOCK)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(f"{path} is not a complete gzip file: {error}") from error


def unzip(
    path: Path,
    member: str,
    target: Path,
    names: Sequence[str] = (),
) -> None:
    """Write one member of a zip file to `target`, and check it against the checksum in the zip file.

    Args:
        names: all paths that the member can have, by default its path with its folder and without.

    Raises an `InputError` if the zip file is damaged, or does not contain the member exactly once.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            allowed = names or (member, member.rsplit("/", 1)[-1])
            matching = [name for name in archive.namelist() if name in allowed]
            if len(matching) != 1:
                count = len(matching) or "no"
                raise InputError(
                    f"it has {count} files named {member}, expected 1; {USE_A_MIRROR}"
                )
            name = matching[0]
            size = archive.getinfo(
                name
            ).file_size  # zipfile never unpacks more than this size
            check_ratio(member, size, path.stat().st_size)
            check_space(target.parent, size)
            with archive.open(name) as content, target.open("wb") as out:
                shutil.copyfileobj(content, out, BLOCK)
    # RuntimeError: the member is encrypted. NotImplementedError: it is packed with an unknown method.
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        RuntimeError,
        NotImplementedError,
    ) as error:
        raise InputError(
            f"it is not a complete zip file ({type(error).__name__}); {USE_A_MIRROR}"
        ) from error


def first_in_zip(file: BinaryIO, members: Sequence[str]) -> bytes:
    """Return the content with the first object alone of the first of some members that a zip file has.

    Only the end of the zip file (the list of its members) and the start of the member are read.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            available = archive.namelist()
            name = next((name for name in members if name in available), None)
            if name is None:
                listed = ", ".join(available[:MOST_NAMED]) or "nothing"
                raise ShapeError(f"the archive has no {members[0]}, but {listed}")
            with archive.open(name) as content:
                return first_json_content(cast(BinaryIO, content))
    except zipfile.BadZipFile as error:
        raise ShapeError("it is no zip file") from error


def first_in_tar(file: BinaryIO) -> dict[str, bytes]:
    """Return for each JSON file in the first part of a tar.gz file its content with the first object alone, by name."""
    contents: dict[str, bytes] = {}
    plain = InflatingStream(file, "the archive", MOST)
    try:
        with (
            plain,
            open_members(plain) as members,
        ):
            for member in members:
                if not (member.isreg() and member.name.endswith(JSON)):
                    continue
                file_of_member = members.extractfile(member)
                if file_of_member:
                    with suppress(ShapeError):
                        content = first_json_content(cast(BinaryIO, file_of_member))
                        contents[member.name] = content
    except (EOFError, tarfile.ReadError, gzip.BadGzipFile) as error:
        if plain.packed.count < MOST:
            raise ShapeError("it is no complete tar.gz file") from error
    return contents


def check_ratio(name: str, unpacked: int, packed: int) -> None:
    """Check that a packed file is not a decompression bomb. One would fill the disk or take hours to read.

    Raises an `InputError` if the ratio is too high.
    """
    if unpacked > _ROOM + _RATIO * packed:
        raise InputError(
            f"{name} unpacks to more than {_RATIO} times its size: it looks like a"
            " decompression bomb"
        )


class _CountingStream:
    """A stream that counts the bytes that are read from it, and ends after `most` of them."""

    def __init__(self, source: BinaryIO, most: int):
        self._source = source
        self._most = most
        self.count = 0

    def read(self, size: int) -> bytes:
        data = self._source.read(min(size, self._most - self.count))
        self.count += len(data)
        return data


class InflatingStream(gzip.GzipFile):
    """The content of a gzip file, or of its first `most` bytes. Reading fails if it is too large in proportion."""

    def __init__(
        self,
        source: BinaryIO,
        archive: str,
        most: int = sys.maxsize,
    ):
        self.packed = _CountingStream(source, most)
        self._archive = archive
        self._ends = 0
        super().__init__(fileobj=cast(BinaryIO, self.packed), mode="rb")

    def read(self, size: int | None = -1) -> bytes:
        """Read bytes. Raises an `InputError` if it looks like a decompression bomb."""
        data = super().read(size)
        self._ends += not data
        if self._ends > _MOST_ENDS:
            raise EOFError("a member claims to extend beyond the end of the archive")
        check_ratio(self._archive, self.tell(), self.packed.count)
        return data


def open_members(stream: InflatingStream) -> tarfile.TarFile:
    """Open the tar archive in a stream, whose members are read one after the other."""
    return tarfile.open(
        fileobj=stream,
        mode="r|",
        bufsize=BLOCK,
        tarinfo=_LimitedMember,
    )


class _LimitedMember(tarfile.TarInfo):
    """A tar header whose size is limited if it holds the name of the next member.

    tarfile reads such a header into memory as a whole.
    """

    @classmethod
    def frombuf(
        cls,
        buf: bytes | bytearray,
        encoding: str,
        errors: str,
    ) -> _LimitedMember:
        """Parse a header from its bytes."""
        member = super().frombuf(buf, encoding, errors)
        if member.size > _MOST_NAMES and member.type in _NAMES:
            raise tarfile.ReadError("a header is too large")
        return member


def _write_member(
    members: tarfile.TarFile,
    member: tarfile.TarInfo,
    archive: str,
    target: Path,
) -> Provenance:
    # A sparse member could unpack to any number of zeros, and a link could point out of the folder.
    if member.isreg() and not member.issparse():
        content = members.extractfile(member)
    else:
        content = None
    if content is None:
        raise InputError(f"{archive}: {normalize(member.name)} is not a regular file")
    target.parent.mkdir(parents=True, exist_ok=True)
    check_space(target.parent, member.size)
    digest = hashlib.sha256()
    size = 0
    with (
        content,
        target.open("wb") as out,
    ):  # tarfile returns no more bytes than the size in the member's header
        while block := content.read(BLOCK):
            size += out.write(block)
            digest.update(block)
    return {"size": size, "sha256": digest.hexdigest()}


def normalize(name: str) -> str | None:
    """Remove `.` parts from a member's name. Return None for a name that could lead out of the target folder."""
    parts = []
    for part in name.split("/"):
        if part not in ("", "."):
            parts.append(part)
    # A backslash separates folders on Windows, and NUL ends a name for the system.
    if name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        return None
    return "/".join(parts)
