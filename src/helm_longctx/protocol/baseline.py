"""How models without a neural network answer a task: the facts that the baseline models read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from helm_longctx.protocol.prompt import Message

AnswerKind = Literal["label", "lookup", "span", "ranking", "citation", "choice", "summary", "frequency", "chain"]
"""How to look for an answer in the context: the label of the nearest demonstration; what follows the question's words;
the words beside them; documents by the words that they share with the question, as a ranking or as cited sentences; the
option whose words are near them; first sentences; the most frequent words; variables that hold a value."""

Strategy = Callable[[Sequence[Message]], str | None]
"""From a conversation to its answer; None if the conversation is not of this task."""


@dataclass(frozen=True)
class Baseline:
    """How `longctx/lexical` and `longctx/null` answer a task.

    Args:
        kind: how the lexical model looks for an answer: in the fields of the task's template, or, for a task without
            a template, by a function of the benchmark's own.
        constant: the one answer of the null model.
    """

    kind: AnswerKind | Strategy
    constant: str
