"""Lengths in tokens, and how they are written: `8k`, `131072`, `1m`."""

from __future__ import annotations

import re

from helm_longctx.errors import bad_argument

STANDARD = {f"{k}k": k * 1024 for k in (4, 8, 16, 32, 64, 128, 256, 512)} | {"1m": 1024 * 1024}
"""The lengths that tables, run entries and leaderboards speak of, by label."""

SHORTEST, LONGEST = STANDARD["4k"], STANDARD["1m"]


def parse_length(value: str | int, where: str = "length") -> int:
    """Tokens of `8k`, `8K`, `8192`, `"8192"` or `1m`.

    Raises:
        InputError: not a length, or outside 4k…1m.
    """
    match = re.fullmatch(r"([1-9][0-9]{0,8})([km]?)", str(value).strip().lower())
    tokens = int(match[1]) * {"": 1, "k": 1024, "m": 1024**2}[match[2]] if match else 0
    if not SHORTEST <= tokens <= LONGEST:
        raise bad_argument(
            where, "length", value, f"{', '.join(STANDARD)} or a whole number of tokens, 4096 to 1048576"
        )
    return tokens


def length_label(tokens: int) -> str:
    """The shortest way to write a length: `128k` for 131072, `100000` for 100000."""
    if tokens % 1024:
        return str(tokens)
    return f"{tokens // 1024**2}m" if tokens % 1024**2 == 0 else f"{tokens // 1024}k"
