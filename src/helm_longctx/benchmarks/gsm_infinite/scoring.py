"""Scores GSM-Infinite's answers.

Source: Infini-AI-Lab/gsm_infinite at caa5388, gsm-infinite/pred/eval_realistic.py (`criteriaoutput`) and
eval_symbolic.py (`get_prompt`, `postprocess_line`).
"""

import re
from functools import partial
from typing import Any

from helm_longctx.benchmarks.gsm_infinite import prompts
from helm_longctx.tasks import Judgement, Record, Scores
from helm_longctx.tasks.judge_scores import judge_scores

JUDGE = "together/qwen2.5-7b-instruct-turbo"
"""The official extractor is Qwen/Qwen2.5-7B-Instruct; this is HELM's deployment of it."""

_ENDS = (
    *(("answer: ", "."), ("solution: ", "."), ("oxed{", "}"), ("**answer:** ", "."), ("**answer: ", "**")),
    *(
        ("final answer: answer: ", "."),
        ("\nanswer: ", "."),
        (r"\text{answer: } ", ""),
        ("is ", "."),
        ("answer: ", "\n"),
    ),
)
"""What stands before and after a number, in the order of the search; nothing after it ends the number's digits."""
_SEARCHED_FROM_END = frozenset({"oxed{", "is "})
_BACKSPACED = re.compile(".\x08")
_DIGITS = re.compile(r"\d*")
_VARIABLE = re.compile(r"\bV\d+\b")


def find_number(output: str) -> int | None:
    """Return the number of an answer: the first in one of the official forms; None if there is none."""
    text = _BACKSPACED.sub("b", output).lower()
    for start, end in _ENDS:
        place = text.rfind(start) if start in _SEARCHED_FROM_END else text.find(start)
        if place < 0:
            continue
        first = place + len(start)
        last = text.find(end, first) if end else _DIGITS.match(text, first).end()  # type: ignore[union-attr]
        try:
            return int(text[first : last if last >= 0 else len(text)])
        except ValueError:
            continue
    return None


def score_number(record: Record) -> Scores:
    """Return whether the answer has the right number."""
    number = find_number(record["prediction"])
    return {"accuracy": float(number is not None and str(number) in record["references"])}


def read_verdict(reply: Any, record: Record) -> Scores:
    """Return whether exactly the right variables were extracted, in any order; nothing if the reply is no text."""
    if not isinstance(reply, str):
        return {}
    return {"judge_score": float(set(_VARIABLE.findall(reply)) == set(record["references"]))}


def score_variables(record: Record) -> Scores:
    """Return whether the variables that the judge extracted, and those of the last line, are the right ones."""
    lines = record["prediction"].strip().splitlines()
    last = read_verdict(lines[-1] if lines else "", record)["judge_score"]
    return {**judge_scores(record, "judge_score", partial(read_verdict, record=record)), "last_line_accuracy": last}


def judge_prompt(record: Record) -> str:
    """Make the extractor's prompt. The braces of its examples are filled in, too, as in the official code."""
    return prompts.EXTRACTION.format(value=record["value"], answer=record["prediction"])


JUDGEMENT = Judgement(judge_prompt, read_verdict, prompts.EXTRACTION, max_tokens=2048, readings=1)
