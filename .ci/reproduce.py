"""Makes an sdist the same on every machine: `python .ci/reproduce.py FILE.tar.gz`, with SOURCE_DATE_EPOCH set.

setuptools writes the time and the user of the build into the archive. Wheels need no change: setuptools takes their
time from SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path


def main() -> None:
    """Write the archive again: sorted, of one time, without users, and with modes that do not depend on the umask."""
    path, seconds = Path(sys.argv[1]), int(os.environ["SOURCE_DATE_EPOCH"])
    content = io.BytesIO()
    with (
        tarfile.open(path) as old,
        tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.mode = (
                seconds,
                0o755 if member.isdir() or member.mode & 0o100 else 0o644,
            )
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isreg() else None)
    path.write_bytes(gzip.compress(content.getvalue(), mtime=seconds))


if __name__ == "__main__":
    main()
