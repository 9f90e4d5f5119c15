"""A gzip-compressed tar file as a stream, from which single files are kept."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from helm_longctx.errors import InputError
from helm_longctx.sources.download import check_space
from helm_longctx.sources.root import USE_A_MIRROR

BLOCK = 1 << 20
"""Bytes in memory at a time."""

MOST_NAMES = 1 << 20
"""Bytes that a header's further names and attributes may have."""

MOST_ENDS = 10
"""How often the end of an archive may be read. tarfile passes over a member of 2**60 bytes by reading on and on."""

RATIO = 200
"""How many times its size a packed file may unpack to. Texts come to 3 to 10 times, at most a thousand is possible."""
ROOM = 1 << 30
"""Bytes that any packed file may unpack to: a part of an archive may repeat one sentence."""


_NAMES = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)

Provenance = dict[str, Any]


def unpack(source: BinaryIO, archive: str, wanted: Mapping[str, str], part: Path) -> dict[str, Provenance]:
    """Write the wanted members under `part`; the others are passed over, whatever their names.

    Args:
        source: the archive's bytes; they are not read to their end.
        archive: its name, for errors.
        wanted: normalised member name to path under `part`.

    Returns:
        Path to size and SHA-256 of what was written; of members that are not there nothing is told.

    Raises:
        InputError: the archive is damaged, or a wanted member is there twice or is not a plain file.
    """
    records: dict[str, Provenance] = {}
    try:
        # gzip rather than tarfile's "r|gz": that one takes a cut archive for a whole one, and inflates without limit.
        with (
            _InflatingStream(source, archive) as plain,
            tarfile.open(fileobj=plain, mode="r|", bufsize=BLOCK, tarinfo=_Member) as members,
        ):
            for member in members:
                name = normalize(member.name)
                path = wanted.get(name or "")
                if not path:
                    continue
                if path in records:
                    raise InputError(f"{archive} has {name} twice")
                records[path] = _keep(members, member, archive, part / path)
    except (InputError, OSError, MemoryError) as error:
        if not isinstance(error, gzip.BadGzipFile):
            raise  # ours, the network's or the disk's
        raise _archive_error(archive, error) from error
    except Exception as error:  # tarfile lets through what its parsing raises
        raise _archive_error(archive, error) from error
    return records


def unzip(path: Path, member: str, target: Path) -> None:
    """Write one member of a zip file to `target`, a block in memory at a time; the zip file's checksum is checked.

    Raises:
        InputError: the file is no whole zip file, or the member is not in it exactly once.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            found = [name for name in archive.namelist() if name in (member, member.rsplit("/", 1)[-1])]
            if len(found) != 1:
                raise InputError(f"it has {len(found) or 'no'} files {member}; {USE_A_MIRROR}")
            size = archive.getinfo(found[0]).file_size  # more than that is never unpacked
            check_ratio(member, size, path.stat().st_size)
            check_space(target.parent, size)
            with archive.open(found[0]) as content, target.open("wb") as out:
                shutil.copyfileobj(content, out, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise InputError(f"it is not a whole zip file ({type(error).__name__}); {USE_A_MIRROR}") from error


def check_ratio(name: str, unpacked: int, packed: int) -> None:
    """Refuse a packed file that would fill the disk, or take hours to read.

    Args:
        unpacked: bytes that came out of it, or that it says will come.
        packed: bytes that were read for that.

    Raises:
        InputError: it unpacks to too many.
    """
    if unpacked > ROOM + RATIO * packed:
        raise InputError(f"{name} unpacks to more than {RATIO} times its size: it is no data but made to fill a disk")


class _CountingStream:
    """A stream that counts the bytes that are read of it."""

    def __init__(self, source: BinaryIO):
        self._source, self.count = source, 0

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self.count += len(data)
        return data


class _InflatingStream(gzip.GzipFile):
    """What a gzip file holds; reading ends where that is out of all proportion to its size."""

    def __init__(self, source: BinaryIO, archive: str):
        self._packed, self._archive, self._ends = _CountingStream(source), archive, 0
        super().__init__(fileobj=cast(BinaryIO, self._packed), mode="rb")

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self._ends += not data
        if self._ends > MOST_ENDS:
            raise EOFError("a member says that it goes on after the end of the archive")
        check_ratio(self._archive, self.tell(), self._packed.count)
        return data


class _Member(tarfile.TarInfo):
    """A header. Those that hold the name of the next member are read into memory whole, so they must be small."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        """From its bytes."""
        member = super().frombuf(buf, encoding, errors)
        if member.size > MOST_NAMES and member.type in _NAMES:
            raise tarfile.ReadError("a header is too large")
        return member


def _archive_error(archive: str, error: Exception) -> InputError:
    return InputError(f"{archive} is not a whole gzip-compressed tar file ({type(error).__name__}); {USE_A_MIRROR}")


def _keep(members: tarfile.TarFile, member: tarfile.TarInfo, archive: str, target: Path) -> Provenance:
    """Write a member to a path that we chose."""
    content = members.extractfile(member) if member.isreg() and not member.issparse() else None
    if content is None:
        raise InputError(f"{archive}: {normalize(member.name)} is not a plain file")
    target.parent.mkdir(parents=True, exist_ok=True)
    check_space(target.parent, member.size)
    with content:
        return _copy(content, target)


def _copy(content: IO[bytes], target: Path) -> Provenance:
    """Of `content` no more comes than the size in the member's header."""
    digest, size = hashlib.sha256(), 0
    with target.open("wb") as out:
        while block := content.read(BLOCK):
            size += out.write(block)
            digest.update(block)
    return {"size": size, "sha256": digest.hexdigest()}


def normalize(name: str) -> str | None:
    """A member's name without `.` parts; None for a name that may lead elsewhere."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        return None
    return "/".join(parts)
