"""Finds the fields of a request that keep it away from a server's prefix cache.

Answers that are read past the cache do not depend on what the server was asked before.
"""

from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import Any

_COLD_FIELDS: tuple[Mapping[str, Any], ...] = (
    {"cache_prompt": False},
    {"cache_salt": "RANDOM"},
)
"""Fields that keep a request away from the cache: first of llama.cpp, then of vLLM and SGLang."""


def find_cold_fields(
    count_cached: Callable[[Mapping[str, Any]], int | None],
) -> dict[str, Any]:
    """Return the fields of `_COLD_FIELDS` with which a server reads nothing from its cache, or empty if there are none.

    Args:
        count_cached: sends, with some fields, a prompt that the server says it reads from its cache, and returns the
            number of tokens that it reads from there; 0 if it names no number, because vLLM then reads none, or None if
            there is no answer.
    """
    for fields in _COLD_FIELDS:
        if count_cached(fields) == 0:
            return dict(fields)
    return {}


def fill_cold_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as a single request has them: `RANDOM` in a value becomes another text in each call."""
    filled = {}
    for name, value in fields.items():
        filled[name] = (
            value.replace("RANDOM", token_hex(8)) if isinstance(value, str) else value
        )
    return filled
