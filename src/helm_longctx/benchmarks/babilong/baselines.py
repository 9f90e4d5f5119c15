"""How the baseline models answer BABILong's questions."""

import re
from collections.abc import Sequence

from helm_longctx.tasks.prompt import Message
from helm_longctx.tasks.template import Template

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[^.!?\n]+")


def find_label(template: Template, labels: Sequence[str], messages: Sequence[Message]) -> str | None:
    """Return a label of the last sentence that has one, and the most words of the question.

    Args:
        template: the task's template.
        labels: the task's labels in lower case. Those in the question are never the answer.

    Returns:
        A label. None if the template did not make the prompt.
    """
    fields = template.parse(messages[-1]["content"])
    if fields is None:
        return None
    words = set(_WORD.findall(fields["question"].lower()))
    possible = [label for label in labels if label not in words] or list(labels)
    # Of several best sentences, `max` returns the first, so the last sentence comes first.
    sentences = reversed(_SENTENCE.findall(fields["context"].lower()))
    found = [each for each in sentences if any(label in each for label in possible)]
    best = max(found, key=lambda sentence: len(words.intersection(_WORD.findall(sentence))), default="")
    return next((label for label in possible if label in best), possible[0])
