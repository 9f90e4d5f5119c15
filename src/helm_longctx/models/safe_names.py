"""Makes names of models for run entries and folders from names of any script and length."""

import re

from helm_longctx.redaction.abbreviation import digest

_MOST = 80
"""Characters of a name. A run's folder has it twice, and file systems allow 255 bytes."""

_OTHER = re.compile(r"[^\w.-]+", re.ASCII)
_DIGITS = 6


def make_safe_name(name: str) -> str:
    """Return a name of ASCII letters, digits, `.`, `_` and `-`.

    A name with letters of another script, or a long one, ends in a digest, so that different ones stay different.
    """
    safe = _OTHER.sub("-", name).strip("-")
    if name.isascii() and safe and len(safe) <= _MOST:
        return safe
    return (
        f"{safe[: _MOST - _DIGITS - 1].strip('-') or 'model'}-{digest(name)[:_DIGITS]}"
    )
