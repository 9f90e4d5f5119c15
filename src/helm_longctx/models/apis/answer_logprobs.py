"""Log-probabilities of the tokens that a server writes, and the distance between two answers."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from helm_longctx.failures import Failure, FailureError
from helm_longctx.tasks.logprobs import Distribution

Logprobs = Sequence[Mapping[str, float]]
"""For each token of an answer the log-probabilities of the most likely ones, the chosen one first."""

_LARGEST_SUM = 1.05
"""The largest sum of the told probabilities of a token. It is at most 1, and servers round."""

_LEAST = -15.0
"""The log-probability of a token that is not among the most likely ones, if none of them is less likely."""


def read_logprobs(body: Mapping[str, Any]) -> Iterator[dict[str, float]]:
    """Yield for each token of an answer the log-probabilities of the most likely tokens, the chosen one first."""
    choice = (body.get("choices") or [{}])[0]
    logprobs = choice.get("logprobs") or {}
    if tokens := logprobs.get("tokens"):  # a completion
        tops = logprobs.get("top_logprobs") or [{}] * len(tokens)
        for token, value, top in zip(
            tokens, logprobs.get("token_logprobs") or (), tops, strict=False
        ):
            yield _list_tokens([(token, value), *(top or {}).items()])
    for row in logprobs.get("content") or ():
        likely = []
        for top in row.get("top_logprobs") or ():
            likely.append((top["token"], top["logprob"]))
        yield _list_tokens([(row["token"], row["logprob"]), *likely])


def _list_tokens(tokens: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return log-probabilities by text. Of several tokens with one text, such as parts of characters, the first counts:
    the chosen one, or else the most likely one."""
    row: dict[str, float] = {}
    for text, value in tokens:
        row.setdefault(text, value)
    return row


def read_distributions(body: Mapping[str, Any]) -> list[Distribution]:
    """Return the distributions at the tokens of an answer; none if the server gives none.

    Raises:
        FailureError: a log-probability is not a finite number up to 0, or a token's probabilities sum above 1.
    """
    distributions = []
    for row in read_logprobs(body):
        if not all(
            isinstance(value, int | float) and -math.inf < value < 1e-3
            for value in row.values()
        ):
            raise FailureError(
                Failure.MALFORMED,
                "a token has no log-probability in the server's answer",
            )
        if math.fsum(map(math.exp, row.values())) > _LARGEST_SUM:
            raise FailureError(
                Failure.MALFORMED,
                "the probabilities of a token sum above 1 in the server's answer",
            )
        token, value = next(iter(row.items()))
        distributions.append(
            Distribution(
                text=token,
                logprob=min(value, 0.0),
                top=row,
            )
        )
    return distributions


def mean_difference(ours: Logprobs, theirs: Logprobs) -> float:
    """Return the mean difference of the log-probabilities of the second answer, up to the first token that differs."""
    differences = []
    for mine, other in zip(ours, theirs, strict=False):
        token, value = next(iter(other.items()))
        differences.append(abs(value - mine.get(token, min(_LEAST, *mine.values()))))
        if token != next(iter(mine)):
            break
    return fmean(differences)
