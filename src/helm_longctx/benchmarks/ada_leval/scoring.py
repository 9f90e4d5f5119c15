"""Reads the designation or the order in an answer, and scores it.

Source: open-compass/Ada-LEval at 2154258, ada_leval/dataset.py (`evaluate` of `StackSelect` and `TextSort`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import permutations
from typing import Any

from helm_longctx.protocol.task import Record, Scores

ORDERS = ["".join(map(str, order)) for order in permutations(range(1, 5))]
NO_ORDER = [0, 0, 0, 0]


def find_designation(answer: str, count: int) -> str | None:
    """Return the highest of `A1` to `A<count>` that occurs in an answer, else that of the highest number; None if none.

    A designation need not stand alone: `A1` occurs in `A12`.
    """
    for prefix in ("A", ""):
        for number in range(count, 0, -1):
            if f"{prefix}{number}" in answer:
                return f"A{number}"
    return None


def find_order(answer: str) -> Any:
    """Return the JSON value after the first `Answer:`, else the only order whose digits occur one after the other.

    A second `Answer:` ends the value. Without a value and such an order, returns four zeros.
    """
    text = answer.split("Answer:")[1].strip() if "Answer:" in answer else answer
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        found = [order for order in ORDERS if _occurs(order, text)]
    return [int(digit) for digit in found[0]] if len(found) == 1 else NO_ORDER


def score_designation(record: Record) -> Scores:
    """Return whether the answer names the accepted one."""
    if record.get("num_choice") is None:
        return {}
    found = find_designation(record["prediction"], record["num_choice"])
    return {"accuracy": float(found in record["references"])}


def score_order(record: Record) -> Scores:
    """Return whether no part stands at a wrong place. Officially, places that are missing are not wrong."""
    if record.get("order") is None:
        return {}
    found = find_order(record["prediction"])
    # At a number or null the official code ends in an error.
    if not isinstance(found, Iterable):
        return {"accuracy": 0.0}
    return {"accuracy": float(all(part == place for part, place in zip(record["order"], found, strict=False)))}


def _occurs(digits: str, text: str) -> bool:
    # `in` moves the iterator behind the digit that it finds, so the next one is looked for after it.
    rest = iter(text)
    return all(digit in rest for digit in digits)
