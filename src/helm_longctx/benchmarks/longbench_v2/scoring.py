"""Reads the letter in an answer, and scores it.

Source: THUDM/LongBench at 2e00731, pred.py (`extract_answer`) and result.py. A record has the question's `difficulty`
and `length`.
"""

import re

from helm_longctx.tasks.task import Record, Scores

DIFFICULTIES, LENGTHS = ("easy", "hard"), ("short", "medium", "long")
BY_CLASS = tuple(f"accuracy_{name}" for name in (*DIFFICULTIES, *LENGTHS))
METRICS = ("accuracy", "accuracy_compensated", *BY_CLASS)
CHANCE = 0.25
"""The score of an answer without a letter if result.py compensates for such answers."""

_PATTERNS = tuple(map(re.compile, (r"The correct answer is \(([A-D])\)", r"The correct answer is ([A-D])")))


def find_letter(answer: str) -> str | None:
    """Return the letter of the first sentence in the required form, with or else without brackets; None if none."""
    text = answer.replace("*", "")
    return next((match[1] for pattern in _PATTERNS if (match := pattern.search(text))), None)


def score(record: Record) -> Scores:
    """Return whether the letter is right: for all questions, and for questions of the same difficulty and length."""
    letter = find_letter(record["prediction"])
    accuracy = float(letter in record["references"])
    # As in the official tables, whatever is neither easy nor short or medium is hard and long.
    difficulty = "easy" if record.get("difficulty") == "easy" else "hard"
    length = record.get("length") if record.get("length") in LENGTHS else "long"
    return {
        "accuracy": accuracy,
        "accuracy_compensated": CHANCE if letter is None else accuracy,
        f"accuracy_{difficulty}": accuracy,
        f"accuracy_{length}": accuracy,
    }
