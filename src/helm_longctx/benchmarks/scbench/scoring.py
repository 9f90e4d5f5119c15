"""SCBench's metrics, as pure functions. They give the official results for any output.

Source: microsoft/MInference at fb56c91, scbench/compute_scores.py. A record has the `subtask` that a question belongs
to, the official `answer`, and the `turn` of a conversation.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from helm_longctx.benchmarks.scbench.functions import FUNCTION, is_right_function
from helm_longctx.tasks import TEXT, TEXTS, Record, Scores, Shape, are_all, is_number, is_text, is_whole
from helm_longctx.tasks.choices import best_character_f1, find_choice, rouge_l_sum

BY_TURN = tuple(f"turn_{number}" for number in range(1, 6))
SHAPES = {"subtask": TEXT, "turn": Shape("a whole number", is_whole)}
"""The shapes of a record's fields. The shape of the answer depends on the subtask."""

_LETTERS = Shape("text or a list of texts, not empty", lambda v: bool(v) and (is_text(v) or are_all(is_text)(v)))


def share_of_answers(output: str, answers: Sequence[str]) -> float:
    """Return the share of the answers that the output contains, ignoring case, rounded to two decimals."""
    return round(sum(text.lower() in output.lower() for text in answers) / len(answers), 2)


def has_any_answer(output: str, answers: Sequence[str]) -> bool:
    """Return whether the output contains an answer, ignoring case. Of a text, each character is an answer."""
    return any(text.upper() in output.strip().upper() for text in answers)


def equals_number(output: str, answer: float) -> bool:
    """Return whether the first number of the output is the answer. If the answer is whole, decimals do not count."""
    found = re.search(r"\d+\.\d+|\d+", output)
    return found is not None and (float(found[0]) // 1 if isinstance(answer, int) else float(found[0])) == answer


def has_first_digits(output: str, answer: str) -> bool:
    """Return whether the first digits of the output are the answer; without digits, whether the answer is empty."""
    return (re.findall("[0-9]+", output) or [""])[0] == answer


class Measure(NamedTuple):
    """How a kind of question is scored: the metric's name, the kind of its answer, and (output, answer) → 0…1."""

    metric: str
    answer: Shape
    compare: Callable[..., float]


_HAS_ANSWER = Measure("accuracy", TEXT, lambda output, answer: answer in output)

MEASURES = {
    "scbench_kv": _HAS_ANSWER,
    "scbench_prefix_suffix": _HAS_ANSWER,
    "scbench_vt": Measure("string_match_all", _LETTERS, share_of_answers),
    "scbench_repoqa": Measure("pass@1", FUNCTION, is_right_function),
    "scbench_qa_eng": Measure("accuracy", TEXTS, has_any_answer),
    "scbench_qa_chn": Measure("f1", _LETTERS, best_character_f1),
    "scbench_choice_eng": Measure("accuracy", TEXTS, find_choice),
    "scbench_many_shot": Measure("accuracy", _LETTERS, has_any_answer),
    "scbench_mf": Measure("accuracy", Shape("a number", is_number), equals_number),
    "scbench_summary": Measure("rougeLsum", TEXT, lambda output, answer: rouge_l_sum(output, [answer])),
    "scbench_passkey": Measure("accuracy", TEXT, has_first_digits),
}
"""The measures by the official names of the kinds of questions."""


def score(record: Record, subtask: str, by_turn: bool) -> Scores:
    """Return the score of an answer; empty if it cannot be computed.

    Args:
        subtask: the kind of question, if the record does not say it.
        by_turn: whether the score also counts in one of `BY_TURN`.
    """
    measure = MEASURES.get(record.get("subtask") or subtask)
    if measure is None or not measure.answer.fits(record.get("answer")):
        return {}
    value, turn = float(measure.compare(record["prediction"], record["answer"])), f"turn_{record.get('turn')}"
    return {measure.metric: value} | ({turn: value} if by_turn and turn in BY_TURN else {})
