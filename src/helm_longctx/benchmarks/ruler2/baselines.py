"""Answers RULER v2's questions without understanding: copies what has the number, and compares words."""

import re
from collections.abc import Sequence

from helm_longctx.benchmarks.ruler2 import prompts
from helm_longctx.tasks.prompt import Message
from helm_longctx.tasks.template import Template

_COPY_ALL, _COPY_STEPS, _COPY_ONE = (
    Template(text, "", separator="") for text in (prompts.COPY_ALL, prompts.COPY_STEPS, prompts.COPY_ONE)
)
_SOLVE = tuple(
    Template(prompts.SOLVE_CONTEXT + text, "", separator="") for text in (prompts.SOLVE, prompts.SOLVE_STEPS)
)
_FIND = tuple(Template(text, "", separator="") for text in (prompts.FIND_TEXT, prompts.FIND_ANSWER))

_DOCUMENT = re.compile(r"^Document (\d+):\n(.*(?:\n.+)*)", re.MULTILINE)
_WORD = re.compile(r"\w+")


def copy_question(messages: Sequence[Message]) -> str | None:
    """Copy the questions with a number; None if the conversation asks for none."""
    prompt = messages[-1]["content"]
    for template in (_COPY_ALL, _COPY_STEPS, _COPY_ONE):
        fields = template.parse(prompt)
        if fields is not None:
            found = re.findall(rf"^Question {re.escape(fields['query'])}: (.*)$", fields["context"], re.MULTILINE)
            order = re.match(r"\d+", fields.get("order", ""))
            one = found[int(order[0]) - 1 :][:1] if order else found[:1]
            return "\n\n".join(found if template is _COPY_ALL else [*found, *one] if template is _COPY_STEPS else one)
    return None


def choose_letter(messages: Sequence[Message]) -> str | None:
    """Choose the first option; None if the conversation asks for none."""
    return "\\boxed{A}" if any(template.parse(messages[-1]["content"]) for template in _SOLVE) else None


def find_document(messages: Sequence[Message]) -> str | None:
    """Find the document with the most words of a text or a question; None if none is asked for."""
    for template in _FIND:
        fields = template.parse(messages[-1]["content"])
        if fields is not None:
            words = {*_WORD.findall(fields["query"].lower())}
            documents = _DOCUMENT.findall(fields["context"])
            return str(max(documents, key=lambda document: _compare(document[1], words), default=("", ""))[0])
    return None


def _compare(text: str, words: set[str]) -> float:
    """Return how many words a text shares, less if it is long."""
    found = {*_WORD.findall(text.lower())}
    return len(found & words) / (len(found) + 10)
