"""Compares an answer with the right one as OfficeQA's reward does.

Source: databricks/officeqa at 7b9a3c1, reward.py (`score_answer`). Where the official code raises an error, the answer is
wrong, as there. A list of numbers is split by dynamic programming in place of listing all ways to split it, which takes
exponential time for long lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from helm_longctx.tasks.words import find_last_between

_CURRENCIES = "$£€¥₹¢₩₽"
_NUMBER = r"\d{1,3}(?:,\d{3})*(?:\.\d+)?|\d+(?:\.\d+)?"
_ACCOUNTING = re.compile(rf"\(\s*([{_CURRENCIES}])?\s*({_NUMBER})\s*\)")
_CURRENCY = re.compile(f"[{_CURRENCIES}]")
_THOUSANDS = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)")
_ANY_NUMBER = re.compile(r"-?\d+\.?\d*%?")
_LIST_ITEM = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?")
_BRACKETED = re.compile(r"\[([^\[\]]+)\]")
_PARENTHESES = re.compile(r"\([^)]*\)")
_MARKUP = re.compile(r"<[^>]*>")
_SPACES = re.compile(r"\s+")
_OPENING = re.compile("<FINAL_ANSWER>", re.IGNORECASE)
_CLOSING = re.compile("</FINAL_ANSWER>", re.IGNORECASE)

_AROUND = 20
"""Characters before and after a number in which its unit is looked for."""
_LONGEST_ANSWER = 250
"""Characters of the longest direct answer."""
_FIRST_YEAR = 1900
_LAST_YEAR = 2100

_UNITS = {
    "trillion": re.compile(r"\btrillions?\b"),
    "billion": re.compile(r"\bbillions?\b|\bb\b"),
    "million": re.compile(r"\bmillions?\b|\bm\b"),
    "thousand": re.compile(r"\bthousands?\b|\bk\b"),
}
"""The units with their words. The first one in this order counts."""

_UNIT_WORDS = re.compile(
    r"\b(?:trillions?|billions?|millions?|thousands?|hundreds?|percent|percentage)\b"
)


class _Number(NamedTuple):
    """A number in an answer, and the text around it in lower case."""

    value: float
    context: str = ""

    @property
    def is_year(self) -> bool:
        """Whether it can be a year."""
        return _is_year(self.value)

    @property
    def unit(self) -> str | None:
        """The unit that the text around it names."""
        for name, words in _UNITS.items():
            if words.search(self.context):
                return name
        return None

    def equals(self, other: _Number, tolerance: float) -> bool:
        """Whether another number is this one. Units that differ exclude it, and one alone does not."""
        if self.unit and other.unit and self.unit != other.unit:
            return False
        if self.value == 0:
            return other.value == 0
        return abs(self.value - other.value) / abs(self.value) <= tolerance


def _is_year(value: float) -> bool:
    return _FIRST_YEAR <= value <= _LAST_YEAR and value == int(value)


def find_answer(text: str) -> str:
    """Return the text between the last pair of tags, or else the whole text."""
    answer = find_last_between(text, _OPENING, _CLOSING)
    return text if answer is None else answer


def _tidy(text: str) -> str:
    if not text:
        raise ValueError("an empty text has no numbers")
    return _SPACES.sub(" ", text.replace("\u2212", "-")).strip()


def _write_plainly(text: str) -> str:
    """Return a text with a minus for brackets of accountants, and without signs of currencies."""

    def replace(match: re.Match[str]) -> str:
        currency, number = match.groups()
        if currency is None and _is_year(float(number.replace(",", ""))):
            return match[0]
        return f"-{number}"

    return _CURRENCY.sub("", _ACCOUNTING.sub(replace, text))


def _find_numbers(text: str) -> list[_Number]:
    text = _write_plainly(_tidy(text))
    text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    numbers = []
    for match in _ANY_NUMBER.finditer(text):
        start = max(0, match.start() - _AROUND)
        context = text[start : match.end() + _AROUND].lower()
        numbers.append(_Number(float(match[0].rstrip("%")), context))
    return numbers


def _find_words(text: str) -> str:
    """Return the words of an answer without its numbers, units and signs; empty if there is at most one letter."""
    if not text:
        return ""
    words = _ANY_NUMBER.sub("", _tidy(text).lower()).replace(",", "")
    words = re.sub(r"\b%\b", "", _UNIT_WORDS.sub("", words))
    words = _SPACES.sub(" ", re.sub(r"[^\w\s]", " ", words)).strip()
    return words if len(words) >= 2 else ""


def _share_words(gold: str, answer: str) -> bool:
    """Whether the words of one are a part of the other's, or the right answer has none."""
    wanted = _find_words(gold)
    if not wanted:
        return True
    written = _find_words(answer)
    return bool(written) and (wanted in written or written in wanted)


def _leave_out_years(gold: str, wanted: Sequence[_Number]) -> bool:
    """Whether years in an answer are not counted: the right answer has none, and as a single number no words."""
    if any(number.is_year for number in wanted):
        return False
    return len(wanted) > 1 or not _find_words(gold)


def _find_list_body(text: str) -> str | None:
    """Return what is in the only brackets of an answer that has no number outside of them."""
    text = _tidy(text)
    matches = list(_BRACKETED.finditer(text))
    if len(matches) != 1:
        return None
    (match,) = matches
    outside = text[: match.start()] + text[match.end() :]
    return None if re.search(r"\d", outside) else match[1]


def _parse_item(text: str) -> float | None:
    item = text.strip()
    if not item or re.search(r"\s,|,\s", item):
        return None
    item = _write_plainly(_tidy(item))
    if not _LIST_ITEM.fullmatch(item):
        return None
    return float(item.rstrip("%").replace(",", ""))


def _can_split(text: str, accept: Sequence[Callable[[float], bool]]) -> bool:
    """Whether a list of numbers can be split at its commas into numbers that are accepted one by one.

    A comma can also separate thousands: `8,152,260` is the numbers 8 and 152260, too.
    """
    if len(accept) < 2:
        return False
    parts = (_find_list_body(text) or _tidy(text)).split(",")

    @cache
    def can_split_from(part: int, item: int) -> bool:
        if item == len(accept):
            return part == len(parts)
        last = len(parts) - (len(accept) - item) + 1
        for end in range(part + 1, last + 1):
            value = _parse_item(",".join(parts[part:end]))
            is_accepted = value is not None and accept[item](value)
            if is_accepted and can_split_from(end, item + 1):
                return True
        return False

    return can_split_from(0, 0)


def _accept_any(value: float) -> bool:
    return True


def _is_number_list(gold: str, wanted: Sequence[_Number]) -> bool:
    """Whether the right answer is a list of numbers in brackets."""
    body = _find_list_body(gold)
    if body is None or len(wanted) < 2:
        return False
    # The equality is that of the official code, also for a number that is none.
    return _can_split(body, [number.value.__eq__ for number in wanted])


def _is_direct(gold: str, answer: str, wanted: Sequence[_Number]) -> bool:
    """Whether an answer is nothing but an answer: one short line with as many numbers as the right one."""
    answer = answer.strip()
    lines = [line for line in answer.splitlines() if line.strip()]
    if len(lines) != 1 or len(answer) > _LONGEST_ANSWER:
        return False
    numbers = _find_numbers(answer)
    if not wanted:
        return not numbers and _simplify(gold) == _simplify(answer)
    if _leave_out_years(gold, wanted):
        numbers = [number for number in numbers if not number.is_year]
    if len(numbers) != len(wanted):
        can_split = _is_number_list(gold, wanted)
        if not (can_split and _can_split(answer, [_accept_any] * len(wanted))):
            return False
    return not _MARKUP.search(answer)


def _simplify(text: str) -> str:
    text = text.strip().lower().strip('"').strip("'")
    return _SPACES.sub(" ", _PARENTHESES.sub("", text).strip())


def _match_list(
    gold: str,
    answer: str,
    wanted: Sequence[_Number],
    tolerance: float,
) -> bool:
    """Whether an answer has the numbers of a list in its order."""

    def accept(number: _Number) -> Callable[[float], bool]:
        return lambda value: number.equals(_Number(value), tolerance)

    if _can_split(answer, [accept(number) for number in wanted]):
        return True
    numbers = _find_numbers(answer)
    if _leave_out_years(gold, wanted):
        numbers = [number for number in numbers if not number.is_year]
    if len(numbers) != len(wanted):
        return False
    pairs = zip(wanted, numbers, strict=True)
    return all(number.equals(other, tolerance) for number, other in pairs)


def _match_numbers(
    gold: str,
    answer: str,
    wanted: Sequence[_Number],
    tolerance: float,
) -> bool:
    """Whether each number of the right answer is in an answer, whose words also have to be right."""
    numbers = _find_numbers(answer)
    if _leave_out_years(gold, wanted):
        numbers = [number for number in numbers if not number.is_year]
    for number in wanted:
        if not any(number.equals(other, tolerance) for other in numbers):
            return False
    return _share_words(gold, answer)


def is_right(gold: str, prediction: str, tolerance: float = 0.0) -> bool:
    """Whether an answer is right within a relative tolerance of its numbers."""
    answer = find_answer(prediction)
    try:
        wanted = _find_numbers(gold)
        if not _is_direct(gold, answer, wanted):
            return False
        if "unable to determine" in answer.lower():
            return False
        if not (wanted and _find_numbers(answer)):
            return _simplify(gold) in _simplify(answer)
        if _is_number_list(gold, wanted):
            return _match_list(gold, answer, wanted, tolerance)
        return _match_numbers(gold, answer, wanted, tolerance)
    except (ValueError, OverflowError):
        return False
