"""Lengths: what they count, and their notation (`8k`, `0.5k`, `131072`, `1m`, `0k`)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from helm_longctx.errors import bad_argument

STANDARD = {f"{k}k": k * 1024 for k in (4, 8, 16, 32, 64, 128, 256, 512)} | {
    "1m": 1024 * 1024
}
"""The usual lengths, by label. Tables, run-entry files and leaderboards use these."""


def sizes_in_tokens(lengths: Iterable[int] = STANDARD.values()) -> dict[int, int]:
    """Return the sizes of a task that has as many tokens as the length says: each length by itself."""
    return {length: length for length in lengths}


SMALLEST = 250
LARGEST = 16 * 1024**2
"""The range of lengths that can be parsed."""

_EMPTY = "0k"
"""The notation of the length 0, for questions without filler text."""


@dataclass(frozen=True)
class Axis:
    """What the lengths of a benchmark count.

    Args:
        shortest, longest: limits for tasks that exist at any length.
        limits_prompt: whether the length is also a limit in tokens for prompt and output together.
    """

    unit: str
    shortest: int = STANDARD["4k"]
    longest: int = STANDARD["1m"]
    limits_prompt: bool = False

    def contains(self, length: int) -> bool:
        """Whether tasks that exist at any length exist at this one."""
        return self.shortest <= length <= self.longest


INPUT_TOKENS = Axis("tokens", limits_prompt=True)
"""A length counts the tokens of prompt and output together, as in HELMET and RULER."""


@lru_cache(maxsize=1000, typed=True)
def parse_length(value: str | int, where: str = "length") -> int:
    """Parse a length such as `8k`, `8K`, `0.5k`, `8192`, `"8192"`, `1m` or `0k`, or raise an `InputError`."""
    if str(value).strip().lower() in (_EMPTY, "0"):
        return 0
    # Nine digits are enough for LARGEST, and `float` is exact for them. The only fraction is 0.5, for LongProc's level
    # 0.5k.
    match = re.fullmatch(r"([1-9][0-9]{0,8}|0\.5)([km]?)", str(value).strip().lower())
    if match:
        number = float(match[1]) * {"": 1, "k": 1024, "m": 1024**2}[match[2]]
    else:
        number = 0
    if not SMALLEST <= number <= LARGEST:
        allowed = f"{', '.join(STANDARD)}, … {length_label(LARGEST)} or a whole number from {SMALLEST}"
        raise bad_argument(where, "length", value, allowed)
    return int(number)


def sort_lengths(lengths: Iterable[int | None]) -> list[int | None]:
    """Return lengths in order, each once. None, of a benchmark without lengths, is the first."""
    return sorted(set(lengths), key=lambda length: length or 0)


def length_label(length: int) -> str:
    """Return the shortest notation of a length: `128k` for 131072, `0.5k` for 512, `100000` for 100000."""
    if length == 512:
        return "0.5k"
    if length % 1024:
        return str(length)
    if length % 1024**2 or not length:
        return f"{length // 1024}k"
    return f"{length // 1024**2}m"
