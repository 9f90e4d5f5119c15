"""What servers and local models tell of the probabilities of tokens: distributions, and windows of long texts."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

WINDOW = 1024
"""Tokens of a text whose mean log-probability is one value of its curve."""

_LEAST_LEFT = 1e-6
"""The least probability of all tokens that are not told: log-probabilities are told with six digits."""


class Distribution(NamedTuple):
    """What is known of a model's distribution at a token.

    Args:
        text: the token that stands there.
        logprob: its log-probability.
        top: the log-probabilities of the most likely tokens, by their texts.
    """

    text: str
    logprob: float
    top: Mapping[str, float]

    @property
    def best(self) -> str:
        """The most likely token."""
        if self.top:
            return max(self.top, key=lambda text: self.top[text])
        return self.text

    @property
    def largest_missing(self) -> float:
        """The largest log-probability that a token which is not told can have.

        It is at most that of the least likely token of the list, and all tokens together have a probability of 1. The
        token that stands there can be told although it is less likely than others, so it is not taken for the list's.
        """
        listed = []
        for text, value in self.top.items():
            if text != self.text:
                listed.append(value)
        told = math.fsum(map(math.exp, {**self.top, self.text: self.logprob}.values()))
        return min([math.log(max(1 - told, _LEAST_LEFT)), *listed])

    def find_logprob(self, text: str) -> float:
        """Return a token's log-probability, or if it is not told, the largest one that it can have."""
        if text == self.text:
            return self.logprob
        return self.top.get(text, self.largest_missing)


class Window(NamedTuple):
    """A part of a text of at most `WINDOW` tokens.

    Args:
        logprob: the mean log-probability of its tokens.
        tokens: the number of its tokens that have a log-probability.
    """

    logprob: float
    tokens: int

    @property
    def is_representative(self) -> bool:
        """Whether it has half of the tokens of a full window, so that its mean can stand for its position."""
        return self.tokens >= WINDOW // 2 - 1


class KeyTokens(NamedTuple):
    """The tokens of a text that a model can tell only from what is far back.

    Args:
        logprob: the sum of their log-probabilities, in nats.
        tokens: their number.
    """

    logprob: float
    tokens: int

    @property
    def perplexity(self) -> float | None:
        """LongPPL, the perplexity of these tokens. None if there are none."""
        return math.exp(-self.logprob / self.tokens) if self.tokens else None


class KeyTokenRule(NamedTuple):
    """Which tokens of a text are key tokens. The numbers are LongPPL's (arXiv 2410.23771).

    Args:
        short_context: tokens before a token that it is told from in the second pass, at least.
        step: the number of tokens that share the start of their short context.
        least_gain: how much the log-probability must rise from the short context to the whole one, in nats.
        least_logprob: what the log-probability given everything must exceed, in nats.
    """

    short_context: int = 4096
    step: int = 1024
    least_gain: float = 2.0
    least_logprob: float = -2.0


LONGPPL_RULE = KeyTokenRule()
"""The rule of `metric=longppl`."""


def split_windows(logprobs: Sequence[float]) -> tuple[Window, ...]:
    """Return the windows of a text: they have all of its tokens but the first.

    Args:
        logprobs: of all tokens except the first: no text precedes it.
    """
    windows = []
    for start in range(0, len(logprobs) + 1, WINDOW):
        values = logprobs[max(start - 1, 0) : start + WINDOW - 1]
        if values:
            windows.append(
                Window(logprob=math.fsum(values) / len(values), tokens=len(values))
            )
    return tuple(windows)


def mean_logprob(windows: Sequence[Window]) -> float:
    """Return the mean log-probability of the tokens of a text, in nats. Each token counts the same."""
    tokens = sum(window.tokens for window in windows)
    return math.fsum(window.logprob * window.tokens for window in windows) / tokens
