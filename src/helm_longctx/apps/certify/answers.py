"""The questions that a certificate asks for, and what is kept of each answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PLACES = ("at_start", "at_quarter", "at_middle", "at_three_quarters", "at_end")
"""Metrics of a kind that asks for something at each of these depths of the text."""


@dataclass(frozen=True)
class AskedBlock:
    """Questions of one kind at one length that are asked together.

    Args:
        kind: the kind's name.
        length: the length in tokens.
        seed: the seed of the questions. Blocks with the same seed ask the same questions at other lengths.
        count: number of prompts.
        has_text: whether the prompts have their texts; without them a model can only guess.
        texts: number of texts in which each question is asked, one after the other.
    """

    kind: str
    length: int
    seed: int
    count: int
    has_text: bool = True
    texts: int = 1


@dataclass(frozen=True)
class KeptReply:
    """What is kept of the answer to a question.

    Args:
        score: 0 to 1, None without an answer.
        failure: why there is no answer, if there is none.
        refused: whether the server refused the prompt because of its length.
        is_cut: whether the output budget ended the answer.
        places: whether the answer has each of `PLACES`. Empty for kinds without them.
        sent: tokens of the prompt by an estimate.
        tokenized: tokens of the prompt by the deployment's tokenizer, if it was counted.
        counted: tokens of the prompt as the server reports them, if it does.
        dollars: price of the request, if it is known.
        model: name of the model in the reply.
        floors: scores of the baselines that need no model, by name.
        prompt, answer: SHA-256 of the prompt and of the answer.
    """

    score: float | None
    failure: str = ""
    refused: bool = False
    is_cut: bool = False
    places: tuple[float, ...] = ()
    sent: int = 0
    tokenized: int | None = None
    counted: int | None = None
    dollars: float | None = None
    model: str | None = None
    floors: Mapping[str, float] | None = None
    prompt: str = ""
    answer: str = ""

    @property
    def is_failed(self) -> bool:
        """Whether there is no answer for another reason than the length of the prompt."""
        return self.score is None and not self.refused

    def to_json(self) -> dict[str, Any]:
        """Return the fields that have a value."""
        values = {}
        for name, value in vars(self).items():
            if value not in (None, "", (), False):
                values[name] = value
        return values


@dataclass(frozen=True)
class Answered:
    """A block with its replies, in the order of the questions."""

    block: AskedBlock
    replies: Sequence[KeptReply]
