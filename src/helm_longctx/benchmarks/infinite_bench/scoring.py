"""∞Bench's metrics, as pure functions. They give the official results for any output.

Source: OpenBMB/InfiniteBench at 88b3daa, src/compute_scores.py. Where the official code raises an error, the answer is
wrong.
"""

import json
import re
from collections.abc import Callable, Sequence

from helm_longctx.tasks.task import Record, Scores
from helm_longctx.tasks.words import english_words, f1, normalize_chinese

_WORD_ENDS = re.compile(r"""[\n:"'.,?!{}]""")
_CODE_RUN_ENDS = re.compile(r"""[\n.`'":]""")
_DEBUG_MARKS = re.compile(r"""[\n`'"*-]|[Oo]ption""")
_CHOICE_MARKS = re.compile(r"""[\n"'.,?!{}]""")
_DEBUG_STARTS = ("answer is:", "is:", "answer:", "correct option is:")
_CHOICE_STARTS = ("answer is:", "answer:", "answer is", "option is")
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
    return bool(_follows_start(_tidy(_DEBUG_MARKS, text), _DEBUG_STARTS, (letter, name)))


def find_choice(output: str, answers: Sequence[str]) -> bool:
    """Return whether the output names the right option; `answers` are its text and its letter."""
    text = output.strip()
    if not text or text[0] in "ABCD":
        return bool(text) and text[0] in answers
    if text in answers:
        return True
    text = _tidy(_CHOICE_MARKS, text)
    follows = _follows_start(text, _CHOICE_STARTS, answers)
    if follows is not None:
        return follows
    # A word such as BC ends the search for a letter, too, as in the official code.
    return next((word for word in text.split() if word in "ABCD"), None) in answers


def _tidy(marks: re.Pattern[str], text: str) -> str:
    return re.sub(" +", " ", marks.sub(" ", text))


def _follows_start(text: str, starts: Sequence[str], answers: Sequence[str]) -> bool | None:
    """Return whether an answer stands after the first of `starts` that the text has; None if it has none."""
    start = next((start for start in starts if start in text), None)
    if start is None:
        return None
    # The character after the start is skipped, whatever it is. An empty answer would follow only if there is one.
    rest = text.partition(start)[2]
    return bool(rest) and rest[1:].startswith(tuple(answers))


def best_english_f1(output: str, answers: Sequence[str]) -> float:
    """Return the F1 of the words with the best answer."""
    words = english_words(output)
    return max(f1(words, english_words(answer)) for answer in answers)


def best_chinese_f1(output: str, answers: Sequence[str]) -> float:
    """Return the F1 of the characters with the best answer."""
    characters = normalize_chinese(output)
    return max(f1(characters, normalize_chinese(answer)) for answer in answers)


def rouge_l_sum(output: str, answers: Sequence[str]) -> float:
    """Return the F1 of ROUGE-Lsum with the best answer, without stemming."""
    from rouge_score.rouge_scorer import RougeScorer  # late, because it loads nltk

    return float(RougeScorer(["rougeLsum"]).score_multi(answers, output)["rougeLsum"].fmeasure)


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
