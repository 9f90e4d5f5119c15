"""Reads answers to AgentLongBench's questions, and compares them with the right ones.

Source: euReKa025/AgentLongBench at 57e13e8, eval/common/question_logic.py (`parse_*`) and eval/evaluate.py. Where the
official code ends in an error, the answer is wrong. A question without a right answer that can be read has no score, as
in the official code.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from helm_longctx.tasks import MetricValues, ScorerInput, are_all, is_number, is_text
from helm_longctx.tasks.words import f1, find_last_between

_OPENING = re.compile("<answer>", re.IGNORECASE)
_CLOSING = re.compile("</answer>", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_FIRST_NUMBER = re.compile(r"-?\d[\d,]*")
_GIVEN_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NEGATIVE = re.compile(r"\b(no|false|not|doesn't|does not|none|neither)\b")
_POSITIVE = re.compile(r"\b(yes|true|contain|contains|appear|appears|does|both)\b")
_AND = re.compile(r"(?i)\band\b")
_SEPARATORS = re.compile(r"[\n;|]")
_ENUMERATION = re.compile(r"^\d+\.?\s*")
_ENUMERATION_OF_NAME = re.compile(r"^\d+\.?\s+(?=\S)")
_GIVEN_SEPARATORS = re.compile(r"[,;]|\s+and\s+", re.IGNORECASE)
_NAME_SIGNS = str.maketrans("", "", " -'\".")
_MASK_SIGNS = str.maketrans("", "", " -_'\".")
"""Signs that are left out of names, and of masked ones."""


class _OfficialError(Exception):
    """The official code ends in an error for this answer."""


def find_answer(text: str) -> str | None:
    """Return the text between the last pair of tags, or None if there is none."""
    return find_last_between(text, _OPENING, _CLOSING)


def _to_whole(text: str) -> int:
    try:
        return int(float(text))
    except OverflowError as error:
        raise _OfficialError from error


def read_number(tagged: str) -> int | None:
    """Return the last number, without its decimals."""
    numbers = _NUMBER.findall(tagged)
    return _to_whole(numbers[-1].replace(",", "")) if numbers else None


def read_truth(tagged: str) -> bool | None:
    """Return whether an answer says yes. A word of negation comes first, and a number above 0 means yes."""
    text = tagged.lower()
    if _NEGATIVE.search(text):
        return False
    if _POSITIVE.search(text):
        return True
    number = _FIRST_NUMBER.search(tagged)
    return _to_whole(number[0].replace(",", "")) > 0 if number else None


def _read_literal(text: str) -> list[str] | None:
    """Return the items of a Python list, or None if the text is none."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        value = ast.literal_eval(text)
        if not isinstance(value, list):
            return None
        items = [str(item).strip() for item in value]
    except (ValueError, SyntaxError):
        return None
    except (TypeError, MemoryError, RecursionError) as error:
        raise _OfficialError from error
    return [item for item in items if item]


def _split(text: str) -> list[str]:
    return _SEPARATORS.sub(",", _AND.sub(",", text)).split(",")


def read_pair(tagged: str, keeps_numbers: bool = False) -> list[str] | None:
    """Return the names in a list, without numbers before them.

    Args:
        keeps_numbers: whether a number alone is a name, such as a masked one. The official code takes it for the number
            before a name, so that `0639 and 0162` is read as `0162`.
    """
    items = _read_literal(tagged)
    if items is not None and len(items) >= 2:
        return items
    enumeration = _ENUMERATION_OF_NAME if keeps_numbers else _ENUMERATION
    names = []
    for part in _split(tagged):
        name = enumeration.sub("", part.strip() if keeps_numbers else part).strip()
        if name:
            names.append(name)
    return names or None


def read_names(tagged: str) -> list[str]:
    """Return the names in a list."""
    items = _read_literal(tagged)
    if items is not None:
        return items
    parts = [part.strip() for part in _split(tagged)]
    return [part for part in parts if part]


def _gold_of(record: ScorerInput) -> Any:
    """Return the right answer as the official row has it, or else the references: a text, or a list of several.

    Returns None if there is neither.
    """
    if record.get("answer") is not None:
        return record["answer"]
    references = record["references"]
    if len(references) > 1:
        return [*references]
    return references[0] if references else None


def _gold_number(value: Any) -> int | None:
    if is_number(value) or isinstance(value, bool):
        return int(value) if math.isfinite(value) else None
    number = _GIVEN_NUMBER.search(str(value))
    return _to_whole(number[0]) if number else None


def _gold_truth(value: Any) -> bool | None:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value > 0
    text = str(value).lower().strip()
    for answer, words in ((True, ("yes", "true", "1")), (False, ("no", "false", "0"))):
        if any(word in text for word in words):
            return answer
    return None


def _gold_pair(value: Any) -> list[str] | None:
    if isinstance(value, list):
        return [name for name in value if isinstance(name, str)]
    if not isinstance(value, str):
        return None
    names = _GIVEN_SEPARATORS.split(value.strip("[](){}"))
    return names if len(names) >= 2 else None


def _gold_set(value: Any) -> set[str]:
    if isinstance(value, list):
        names = [str(name).strip() for name in value]
    elif isinstance(value, str):
        names = value.replace(",", " ").split()
    else:
        names = []
    return {name for name in names if name}


def _simplify(name: str, is_masked: bool) -> str:
    """Return a name as it is compared."""
    return name.strip().lower().translate(_MASK_SIGNS if is_masked else _NAME_SIGNS)


def _compare_numbers(given: Any, tagged: str) -> float | None:
    right = _gold_number(given)
    return None if right is None else float(read_number(tagged) == right)


def _compare_truths(given: Any, tagged: str) -> float | None:
    right = _gold_truth(given)
    return None if right is None else float(read_truth(tagged) == right)


def _compare_pairs(
    given: Any,
    tagged: str,
    is_masked: bool,
    keeps_numbers: bool = False,
) -> float | None:
    """Compare two names in order. The first one alone is worth half."""
    right = _gold_pair(given)
    if right is None:
        return None
    wanted = [_simplify(name, is_masked) for name in right]
    answered = read_pair(tagged, keeps_numbers) or ()
    named = [_simplify(name, is_masked) for name in answered]
    if len(wanted) != 2:
        return 0.0
    if named == wanted:
        return 1.0
    return 0.5 if named == wanted[:1] else 0.0


def _compare_guesses(given: Any, tagged: str, is_masked: bool) -> float | None:
    right = _simplify(str(given or ""), is_masked)
    return float(_simplify(tagged, is_masked) == right) if right else None


def _compare_sets(given: Any, tagged: str) -> float:
    """Return F1 of the names."""
    right = _gold_set(given)
    named = {*read_names(tagged)}
    return f1(named, right) if right or named else 1.0


_COMPARE: dict[str, Callable[[Any, str, bool], float | None]] = {
    "number": lambda given, tagged, is_masked: _compare_numbers(given, tagged),
    "truth": lambda given, tagged, is_masked: _compare_truths(given, tagged),
    "pair": _compare_pairs,
    "masked pair": partial(_compare_pairs, keeps_numbers=True),
    "guess": _compare_guesses,
    "set": lambda given, tagged, is_masked: _compare_sets(given, tagged),
}
"""The comparisons by the form of the answer: of the right answer and a tagged one."""

_IS_ALL_TEXT = are_all(is_text)


def is_answer(value: Any) -> bool:
    """Whether a value can be the right answer of an official row."""
    is_single = is_text(value) or is_number(value) or isinstance(value, bool)
    return is_single or _IS_ALL_TEXT(value)


def score(record: ScorerInput, *, form: str, is_masked: bool) -> MetricValues:
    """Return the accuracy of an answer, or F1 of a set of names."""
    name = "f1" if form == "set" else "accuracy"
    given = _gold_of(record)
    tagged = find_answer(record["prediction"])
    try:
        # Without tags there is no answer, and an empty text has none either.
        value = _COMPARE[form](given, tagged or "", is_masked)
    except _OfficialError:
        value = 0.0
    return {} if value is None else {name: value}


def can_read(record: ScorerInput) -> bool:
    """Whether an answer is between tags."""
    return bool(find_answer(record["prediction"]))
