"""∞Bench's metrics, as pure functions. They give the official results for any output.

Source: OpenBMB/InfiniteBench at 88b3daa, src/compute_scores.py. Where the official code raises an error, the answer is
wrong.
"""

import json
import re
from collections.abc import Callable, Sequence

from helm_longctx.tasks.choices import follows_start, tidy
from helm_longctx.tasks.task import Record, Scores
from helm_longctx.tasks.words import english_words, f1

_WORD_ENDS = re.compile(r"""[\n:"'.,?!{}]""")
_CODE_RUN_ENDS = re.compile(r"""[\n.`'":]""")
_DEBUG_MARKS = re.compile(r"""[\n`'"*-]|[Oo]ption""")
_DEBUG_STARTS = ("answer is:", "is:", "answer:", "correct option is:")
_DIGITS = re.compile("[0-9]+")
_NUMBER = re.compile(r"\d+\.\d+|\d+")

Compare = Callable[[str, Sequence[str]], float]
"""(output, references) → 0…1"""


def has_word(output: str, answers: Sequence[str]) -> bool:
    """Return whether a word of the output is the answer, with the same case."""
    return answers[0] in _WORD_ENDS.sub(" ", output).split()


def has_name(output: str, answers: Sequence[str]) -> bool:
    """Return whether a word of the output in upper case is the first of the names."""
    return answers[0] in (word.upper() for word in _WORD_ENDS.sub(" ", output).split())


def has_first_digits(output: str, answers: Sequence[str]) -> bool:
    """Return whether the first digits of the output are the answer."""
    match = _DIGITS.search(output)
    return answers[0] == (match[0] if match else "")


def has_last_number(output: str, answers: Sequence[str]) -> bool:
    """Return whether the last word of the output is the number."""
    words = _CODE_RUN_ENDS.sub(" ", output).split()
    try:
        return int(words[-1]) == int(answers[0])
    except (IndexError, ValueError):
        return False


def has_first_number(output: str, answers: Sequence[str]) -> bool:
    """Return whether the first number of the output is the answer. To a whole answer, decimals are no answer."""
    match, (answer, *_) = _NUMBER.search(output), answers
    if match is None:
        return False
    try:
        kind = int if answer.lstrip("-").isdecimal() else float
        return kind(match[0]) == kind(answer)
    except ValueError:
        return False


def find_function(output: str, answers: Sequence[str]) -> bool:
    """Return whether the output names the right function; `answers` are its name and its letter."""
    name, letter = answers
    text = output.strip()
    if text[:2] in (f"{letter}.", f"{letter}:"):
        return True
    return bool(follows_start(tidy(_DEBUG_MARKS, text), _DEBUG_STARTS, (letter, name)))


def best_english_f1(output: str, answers: Sequence[str]) -> float:
    """Return the F1 of the words with the best answer."""
    words = english_words(output)
    return max(f1(words, english_words(answer)) for answer in answers)


def count_values(output: str, answers: Sequence[str], skipped: int = 0) -> float:
    """Return the share of the intermediate values before the first wrong one. Signs are not read.

    Args:
        answers: the values as a list in JSON.
        skipped: how many numbers of the output stand before the first value.
    """
    values = json.loads(answers[0])
    # Digits are compared, because Python does not read numbers of thousands of digits.
    numbers = [digits.lstrip("0") or "0" for digits in _DIGITS.findall(output)[skipped:]]
    right = 0
    for value, number in zip(values, numbers, strict=False):
        if str(value) != number:
            break
        right += 1
    return right / len(values)


def score(record: Record, metric: str, compare: Compare) -> Scores:
    """Return the score of an answer; empty if the record has no usable reference."""
    try:
        return {metric: float(compare(record["prediction"], record["references"]))}
    except (IndexError, ValueError, TypeError, ZeroDivisionError):
        return {}
