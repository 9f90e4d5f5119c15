"""How the baseline models, which have no neural network, answer a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from helm_longctx.tasks.prompt import Message

AnswerKind = Literal[
    "label", "lookup", "span", "label_or_span", "ranking", "citation", "choice", "summary", "frequency", "chain"
]
"""How the lexical model finds an answer in the context.

- `label`: the label of the most similar demonstrations.
- `lookup`: the value after the question's words.
- `span`: names and numbers near the question's words.
- `label_or_span`: a label if the context has demonstrations, otherwise a span.
- `ranking`: the passages that share the most words with the question, in order.
- `citation`: a sentence of each of those passages, with its number.
- `choice`: the option whose words stand near the question's words.
- `summary`: first sentences of several parts of the text.
- `frequency`: the most frequent words.
- `chain`: the variables that hold a value.
"""

Strategy = Callable[[Sequence[Message]], str | None]
"""(conversation) → its answer; None if the conversation does not belong to the task."""


@dataclass(frozen=True)
class Baseline:
    """How `longctx/lexical` and `longctx/null` answer a task.

    Args:
        kind: how the lexical model finds an answer. It reads the fields of the task's template; if that is not enough,
            or the task has no template, this is a function of the benchmark.
        constant: the answer of the null model to every question.
    """

    kind: AnswerKind | Strategy
    constant: str
