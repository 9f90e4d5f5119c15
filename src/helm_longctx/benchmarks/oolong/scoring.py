"""OOLONG's metrics, as pure functions. They give the official scores for any output.

Source: abertsch72/oolong at adbf1cb, src/eval/eval_helpers.py (`synth_process_response`, `dnd_process_response`). Where
the official code raises an error, the answer is wrong.
"""

import re
from collections.abc import Callable
from datetime import datetime

from helm_longctx.tasks.task import Record, Scores

_COMPARISONS = ("more common", "less common", "same frequency")
_SHORT = 20
"""Number of characters from which on an answer is not taken whole."""

_BOXED = (re.compile(r"\\boxed\{\\text\{([^}]*)\}\}"), re.compile(r"\\boxed[\{]+([^}]*)[\}]+"))

_MISSING = (datetime(1996, 1, 1), datetime(1997, 2, 2))
"""Two days from which dates take what they lack. The official code takes it from the day on which it runs."""

Credit = Callable[[Record], float]
"""(record) → 0…1"""


def credit_synth(record: Record) -> float:
    """Return the credit of an answer to a question on classified texts."""
    gold, kind = record["references"][0], record.get("answer_type")
    answer = read_synth(record["prediction"])
    if answer == gold:
        return 1
    if answer in _COMPARISONS:
        return answer in gold
    if kind == "ANSWER_TYPE.NUMERIC":
        return credit_number(int(answer), int(gold))
    return kind == "ANSWER_TYPE.DATE" and is_date(answer, gold)


def read_synth(output: str) -> str:
    """Return the answer in an output: the text after its last colon; without a colon a short output, or its last word.

    Raises:
        IndexError: the output is long and blank.
    """
    if ":" not in output:
        return output if len(output) < _SHORT else output.split()[-1]
    answer = re.sub(r"[*\[\]]", "", output.rpartition(":")[2].strip())
    if len(answer) < _SHORT:
        return answer
    return next((comparison for comparison in _COMPARISONS if comparison in answer), answer)


def credit_real(record: Record) -> float:
    """Return the credit of an answer to a question on transcripts."""
    gold, answer = read_value(record["references"][0]), read_real(record["prediction"])
    if isinstance(gold, int) and isinstance(answer, int):
        return credit_number(answer, gold)
    if isinstance(gold, str) and isinstance(answer, str):
        return gold.strip().lower() == answer.strip().lower()
    if isinstance(gold, list) and isinstance(answer, list):
        return len({*gold} & {*answer}) / len(gold)
    return 0


def read_real(output: str) -> int | str | list[str]:
    """Return the answer in an output: what is in the first box, or the whole output without a box."""
    match = next(filter(None, (pattern.search(output) for pattern in _BOXED)), None)
    return read_value(match[1]) if match else output


def read_value(text: str) -> int | str | list[str]:
    """Read a number, a list if there is a comma, or a text."""
    try:
        return int(text)
    except ValueError:
        return [item.strip() for item in text.split(",") if item.strip()] if "," in text else text


def credit_number(answer: int, gold: int) -> float:
    """Return 0.75 to the power of the difference."""
    return float(0.75 ** abs(gold - answer))


def is_date(answer: str, gold: str) -> bool:
    """Return whether a text is the date. A text without a year, a month or a day is none.

    Raises:
        ValueError, OverflowError: the text cannot be read.
    """
    from dateutil.parser import parse  # late, because commands that score nothing do not need it

    return [parse(answer, default=day) for day in _MISSING] == [datetime.fromisoformat(gold)] * len(_MISSING)


def score(record: Record, credit: Credit) -> Scores:
    """Return both metrics of an answer; empty if the record has no reference."""
    if not record.get("references"):
        return {}
    try:
        points = float(credit(record))
    # The official code ignores all errors of reading, and the errors that dateutil raises depend on its version.
    except Exception:
        points = 0.0
    return {"credit": points, "exact": float(points == 1)}
