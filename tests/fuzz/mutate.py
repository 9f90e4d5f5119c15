"""Makes values, texts and bytes that are nearly right, or not right at all."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import Any

DEEP = "<deep>"
"""Stands for a list of 900 lists in each other, which Python's own copying and writing would not survive."""

ODD_TEXTS = (
    "", " ", "\n", "x", "\x00", "\u2028", "\ufeff", "😀", "文" * 30, "{x}", "{}", "{0}", "{", "}", "%s", "a" * 20_000, "nan", "1",
    "-1", "null", "[]", "['a', 1]", "[" * 300, "\ud83d", "../../x", "/etc/passwd", "\\", '"', "[1][2]", "1 > 2 > 1", "id: 3",
)  # fmt: skip
ODD_VALUES = (
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 2**31, 2**63 - 1, 2**63, 10**30, 1e308, float("nan"), float("inf"), [], [[]],
    [None], [1, "a"], ["a", "a"], [{}], {}, {"": None}, {"text": 3}, {"a": {"b": []}}, DEEP, *ODD_TEXTS,
)  # fmt: skip
ODD_BYTES = (
    b"", b"\n", b"null", b"7", b"[]", b"{}", b"[[]]", b"[null]", b'""', b"{", b"[", b'"', b"\xff\xfe\x00", b"\x00" * 100, b"[" * 100_000,
    b'{"a":' * 50_000, b'[{"a": "' + b'\\"' * 100_000, b"\xef\xbb\xbf[]", b"PK\x03\x04", b"\x1f\x8b\x08\x00", b"<html></html>", b"9" * 10_000,
)  # fmt: skip


def mutated(value: Any, rng: random.Random) -> Any:
    """Return a copy with one to three changes."""
    copy = deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        copy = _changed(copy, rng)
    return copy


def _changed(value: Any, rng: random.Random) -> Any:
    """Return the value changed itself or in one of its parts."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        return _changed_member(value, rng.choice(list(value)), rng)
    if isinstance(value, list) and value and rng.random() < 0.8:
        return _changed_member(value, rng.randrange(len(value)), rng)
    return _replaced(value, rng)


def _changed_member(value: Any, key: Any, rng: random.Random) -> Any:
    kind = rng.random()
    if kind < 0.2:
        del value[key]
    elif kind < 0.25 and isinstance(value, dict):
        value[rng.choice(ODD_TEXTS)] = value.pop(key)
    elif kind < 0.3 and isinstance(value, list):
        value.extend(deepcopy(value[: rng.randint(1, 3)]))
    else:
        value[key] = _changed(value[key], rng)
    return value


def _replaced(value: Any, rng: random.Random) -> Any:
    kind = rng.random()
    if isinstance(value, str) and kind < 0.3:
        return mutated_text(value, rng)
    if kind < 0.4:
        return rng.choice(
            (
                [value],
                {"x": value},
                str(value),
                json.dumps(value, default=str),
                [value, value],
            )
        )
    return deepcopy(rng.choice(ODD_VALUES))


def mutated_text(text: str, rng: random.Random) -> str:
    """Return a text that is cut, repeated, or has something inserted."""
    start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    kind = rng.randrange(5)
    if kind == 0:
        return text[:start]
    if kind == 1:
        return text[:start] + text[end:]
    if kind == 2:
        return text[:end] + text[start:]
    if kind == 3:
        return text[:start] + rng.choice(ODD_TEXTS) + text[start:]
    return text.swapcase() if rng.random() < 0.5 else text[::-1]


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """Return bytes that are cut, overwritten, or replaced."""
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(ODD_BYTES)
    if kind == 1:
        return data[:start]
    if kind == 2:
        return data[:start] + data[end:]
    if kind == 3:
        return data[:start] + rng.choice(ODD_BYTES) + data[start:]
    if kind == 4:
        return data[:end] + data[start:]
    position = rng.randrange(len(data) or 1)
    return data[:position] + bytes([rng.randrange(256)]) + data[position + 1 :]


def dumped(value: Any, rng: random.Random) -> bytes:
    """Return JSON as some writers write it: also with NaN, and with half surrogates, escaped or not."""
    text = json.dumps(value, ensure_ascii=rng.random() < 0.3)
    deep = text.replace(json.dumps(DEEP), "[" * 900 + "]" * 900)
    return deep.encode("utf-8", "surrogatepass")
