"""L-Eval's metrics.

Source: OpenLMLab/LEval at cd34b05, Evaluation/auto_eval.py (`process_*`), em.py, f1.py and rouge.py.
"""

import re
import string
from collections.abc import Callable

from helm_longctx.tasks import Record, Scores
from helm_longctx.tasks.words import english_words, f1, make_rouge

_LETTERS = "ABCD"
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_LISTED = re.compile(r"\s*[A-Z](?=[\s.)])")
_MATH = re.compile(r"The answer is (\S+)")
_SPACE = re.compile(r"\s+")
_CODE = ((",", ""), ("'", ""), ("\\", ""), (".0", ""), ("] [", "]["), ("[ [", "[["), ("] ]", "]]"))
_SAID = ("will be", "of the code", "is", "would be", "the value of", "the result of", "printed")

Read = Callable[[str, str], tuple[str, str]]
"""(output, reference) → both in the form in which they are compared."""


def _letters(text: str) -> str:
    return "".join(sorted({letter for letter in text if letter in _LETTERS}))


def find_letters(output: str, several: bool) -> str:
    """Return the options that an answer names; A if it names none.

    Args:
        several: whether several options can be right. If not, the first letter counts.
    """
    if not output.strip():
        return "None"
    if output in _LETTERS:
        return output
    if not several and (first := next((letter for letter in output if letter in _LETTERS), None)):
        return first
    start = output[: len(output) - len(output.lstrip(_LETTERS))]
    if len(start) > 1:
        return _letters(start)
    rest = output[len(start) :].partition("Question")[0]
    listed = _letters(start + "".join(_LISTED.findall(rest)))
    run = re.search(f"[{_LETTERS}]+", rest)
    return listed or (run[0] if run else "A")


def read_choice(output: str, reference: str, several: bool = False) -> tuple[str, str]:
    """Return the options that the answer names, and the right ones."""
    right = "".join(letter for letter in reference.split()[0] if letter in _LETTERS)
    return find_letters(output, several), right or "A"


def find_number(text: str) -> str:
    """Return the digits of the number in an answer, up to a full stop."""
    match = _MATH.search(text)
    words = [match[1]] if match else text.split("\n\n")[0].split(" ")[::-1]
    found = next((word for word in words if match or any(map(str.isdigit, word))), "")
    return "".join(filter(str.isdigit, found.partition(".")[0]))


def _tidy_code(text: str) -> str:
    text = _SPACE.sub(" ", text)
    for old, new in _CODE:
        text = text.replace(old, new)
    return text


def read_code(output: str, reference: str) -> tuple[str, str]:
    """Return the words in which the value of a program is expected, and the right value."""
    count = len(reference.split()) + 3
    text = _tidy_code(output)
    for said in _SAID:
        text = text.replace(said, "")
    _, after, final = text.rpartition("the final output")
    words = _SPACE.split(final)[:count] if after else _SPACE.split(text)[-count:]
    return " ".join(words), _tidy_code(reference)


def read_truth(output: str, reference: str) -> tuple[str, str]:
    """Return the first truth value of an answer, and the right one."""
    words = output.lower().split()
    named = next((word for word in words if "true" in word or "false" in word), None)
    return "<error>" if named is None else "true" if "true" in named else "false", reference


READERS: dict[str, Read] = {
    "tpo": read_choice,
    "quality": read_choice,
    "coursera": lambda output, reference: read_choice(output, reference, several=True),
    "gsm100": lambda output, reference: (find_number(output), find_number(reference)),
    "codeU": read_code,
    "sci_fi": read_truth,
    "topic_retrieval_longchat": lambda output, reference: (output, reference),
}


def _plain(text: str) -> str:
    return " ".join(_ARTICLES.sub(" ", text.translate(_PUNCTUATION)).split())


def compare(output: str, reference: str) -> float:
    """Return 1 for the right answer, and 0.25 for some of several right options.

    An answer without any letter has some of the right options, too, as in the official code.
    """
    if set(_plain(reference)) <= set(_LETTERS):
        if _plain(output) == _plain(reference):
            return 1.0
        return 0.25 if set(_plain(output)) <= set(_plain(reference)) else 0.0
    try:
        return float(float(output) == float(reference))
    except ValueError:
        return float(reference.lower().replace(" ", "") in output.lower().replace(" ", ""))


def score_closed(record: Record, task: str) -> Scores:
    """Return the exact match of an answer to a closed question."""
    return {"exact_match": compare(*READERS[task](record["prediction"].strip(), record["references"][0]))}


def score_words(record: Record) -> Scores:
    """Return the F1 of the words."""
    return {"f1": f1(english_words(record["prediction"]), english_words(record["references"][0]))}


def score_summary(record: Record) -> Scores:
    """Return the F1 of ROUGE."""
    scores = make_rouge("rouge1", "rouge2", "rougeL").score(record["references"][0], record["prediction"])
    return {name: score.fmeasure for name, score in scores.items()}
