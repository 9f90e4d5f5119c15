"""OneRuler's metrics: whether the output has the numbers, the words, or the language's word for "none".

Source: mungg/OneRuler at a3fe6af, OneRuler/eval/evaluate.py.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence

from helm_longctx.data.tables import read_table
from helm_longctx.tasks.task import Record, Scores

NONE = {row["code"]: tuple(row["none"].split("|")) for row in read_table(__package__, "languages.csv")}
"""What the output says if there is no number, by language."""

_ANSWER = re.compile(r"<Answer>.*?</Answer>")

Compare = Callable[[str, Sequence[str], str], bool]
"""(output, expected answers, language) → whether the output is right."""


def score(record: Record, compare: Compare, language: str) -> Scores:
    """Return whether the output is right: the whole output, and only its first `<Answer>` if it has one."""
    output, expected = record["prediction"], record["references"]
    answer = _ANSWER.search(output)
    return {
        "accuracy": float(compare(output, expected, language)),
        "accuracy_in_answer": float(compare(answer[0] if answer else output, expected, language)),
    }


def has_numbers(output: str, expected: Sequence[str], language: str) -> bool:
    """Whether the output has exactly the expected numbers, and no word for "none". Single digits are ignored."""
    text = unicodedata.normalize("NFKC", output)
    if any(word in text or _clean(word) in text for word in NONE[language]):
        return False
    numbers = dict.fromkeys(number for number in re.findall(r"\d+", text) if len(number) > 1)
    try:
        found, right = [int(number) for number in numbers], [int(number) for number in expected]
    except ValueError:  # a number in a file is no number, or has more digits than Python converts
        return False
    return bool(found) and len(found) == len(right) and set(found) == set(right)


def says_none(output: str, expected: Sequence[str], language: str) -> bool:
    """Whether the output has a word for "none", whatever else it says."""
    text = re.sub(r"\b\d\b", "", _clean(unicodedata.normalize("NFKC", output)))
    return any(_clean(word) in text for word in NONE[language])


def has_words(output: str, expected: Sequence[str], language: str) -> bool:
    """Whether the output has all expected words."""
    text = output.strip().lower()
    return all(word.strip().lower() in text for word in expected)


def _clean(text: str) -> str:
    return text.strip().lower().replace("\u200c", "").replace(" ", "")
