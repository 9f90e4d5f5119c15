"""Reads the designation or the order in an answer, and scores it.

Source: open-compass/Ada-LEval at 2154258, ada_leval/dataset.py (`evaluate` of `StackSelect` and `TextSort`).
"""

import json
from collections.abc import Iterable
from itertools import permutations
from typing import Any

from helm_longctx.tasks.task import Record, Scores

ORDERS = ["".join(map(str, order)) for order in permutations(range(1, 5))]
NO_ORDER = [0, 0, 0, 0]


def find_designation(answer: str, count: int) -> str | None:
    """Return the designation, `A1` to `A<count>`, that an answer contains; None if it contains none.

    The highest one counts, or else the highest number without an A. It need not stand alone: `A1` occurs in `A12`.
    """
    for prefix in ("A", ""):
        for number in range(count, 0, -1):
            if f"{prefix}{number}" in answer:
                return f"A{number}"
    return None


def find_order(answer: str) -> Any:
    """Return the JSON value after the first `Answer:`, or else the only order whose digits occur in sequence.

    A second `Answer:` ends the value. The result is four zeros if there is no value and not exactly one such order.
    """
    text = answer.split("Answer:")[1].strip() if "Answer:" in answer else answer
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        found = [order for order in ORDERS if _occurs(order, text)]
    return [int(digit) for digit in found[0]] if len(found) == 1 else NO_ORDER


def score_designation(record: Record) -> Scores:
    """Return accuracy: 1 if the answer names the accepted designation, else 0."""
    if record.get("num_choice") is None:
        return {}
    found = find_designation(record["prediction"], record["num_choice"])
    return {"accuracy": float(found in record["references"])}


def score_order(record: Record) -> Scores:
    """Return accuracy: 1 if no part stands at a wrong place, else 0. Officially, missing parts are not wrong."""
    if record.get("order") is None:
        return {}
    found = find_order(record["prediction"])
    # The official code ends in an error if the value is a number or null.
    if not isinstance(found, Iterable):
        return {"accuracy": 0.0}
    return {"accuracy": float(all(part == place for part, place in zip(record["order"], found, strict=False)))}


def _occurs(digits: str, text: str) -> bool:
    # `in` moves the iterator past the digit that it finds, so the next digit is searched after it.
    rest = iter(text)
    return all(digit in rest for digit in digits)
