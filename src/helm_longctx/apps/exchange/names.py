"""Models' names in files of other programs, where some characters are markup or lead to other folders."""

from __future__ import annotations

import re

from helm_longctx.documents.numbers import one_line
from helm_longctx.redaction.abbreviation import digest

LONGEST_NAME = 255
"""Maximum number of bytes in the name of a folder, on all usual file systems."""

_SEPARATORS = re.compile(r"[/\\]")


def folder_name(text: str) -> str:
    """Return a text as the name of one folder: it leads to no other folder, and no file system finds it too long."""
    name = _SEPARATORS.sub("_", one_line(text))
    name = name if name.strip(".") else "_" * max(1, len(name))
    encoded = name.encode("utf-8", "replace")
    if len(encoded) <= LONGEST_NAME:
        return name
    return f"{encoded[: LONGEST_NAME - 17].decode('utf-8', 'ignore')}-{digest(text)[:16]}"
