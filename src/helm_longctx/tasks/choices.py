"""Reads the option that an answer chooses, and other measures of answers, as ∞Bench and SCBench do.

Source: OpenBMB/InfiniteBench at 88b3daa, src/compute_scores.py, which microsoft/MInference at fb56c91,
scbench/compute_scores.py, repeats.
"""

import re
from collections.abc import Sequence

from helm_longctx.tasks.words import f1, make_rouge, normalize_chinese

_MARKS = re.compile(r"""[\n"'.,?!{}]""")
_LONG_WORD = re.compile(r"\w{5,}")
_STARTS = ("answer is:", "answer:", "answer is", "option is")


def find_choice(output: str, answers: Sequence[str]) -> bool:
    """Return whether the output names the right option; `answers` are its text and its letter."""
    text = output.strip()
    if not text or text[0] in "ABCD":
        return bool(text) and text[0] in answers
    if text in answers:
        return True
    text = tidy(_MARKS, text)
    follows = follows_start(text, _STARTS, answers)
    if follows is not None:
        return follows
    # A word such as BC ends the search for a letter, too, as in the official code.
    return next((word for word in text.split() if word in "ABCD"), None) in answers


def nearest_choice(text: str, choices: Sequence[str]) -> int:
    """Return the number of the first choice with the largest share of its long words in a text, for baselines."""
    there = set(_LONG_WORD.findall(text.lower()))
    words = [_LONG_WORD.findall(choice.lower()) for choice in choices]
    shares = [sum(word in there for word in each) / max(len(each), 1) for each in words]
    return shares.index(max(shares))


def tidy(marks: re.Pattern[str], text: str) -> str:
    """Replace marks by spaces, and several spaces by one."""
    return re.sub(" +", " ", marks.sub(" ", text))


def follows_start(text: str, starts: Sequence[str], answers: Sequence[str]) -> bool | None:
    """Return whether an answer stands after the first of `starts` that the text has; None if it has none."""
    start = next((start for start in starts if start in text), None)
    if start is None:
        return None
    # The character after the start is skipped, whatever it is. An empty answer would follow only if there is one.
    rest = text.partition(start)[2]
    return bool(rest) and rest[1:].startswith(tuple(answers))


def best_character_f1(output: str, answers: Sequence[str]) -> float:
    """Return the F1 of the Chinese characters with the best answer. Of a text, each character is an answer."""
    characters = normalize_chinese(output)
    return max(f1(characters, normalize_chinese(text)) for text in answers)


def rouge_l_sum(output: str, answers: Sequence[str]) -> float:
    """Return the F1 of ROUGE-Lsum with the best answer, without stemming."""
    return float(make_rouge("rougeLsum").score_multi(answers, output)["rougeLsum"].fmeasure)
