"""Finds the shortest shared beginning with which a difference shows, and the size of a block, from kept answers.

The questions of a check share beginnings of random lengths with what was sent before them, so their answers already
tell about where a difference begins. Further questions are asked between the longest beginning without a difference and
the shortest one with it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from math import gcd
from typing import NamedTuple

from scipy.stats import fisher_exact

from helm_longctx.apps.cache_check.states import BEGINNING, StateReply
from helm_longctx.apps.cache_check.verdict import compare_answers
from helm_longctx.results.statistics.level import SIGNIFICANCE
from helm_longctx.tasks.token_estimate import estimate_tokens

_STEPS = 12
"""Most steps of a search."""

QUESTIONS = 6
"""Questions at each step."""


class _Shot(NamedTuple):
    """An answer after a prompt with the same beginning.

    Args:
        tokens: tokens of the beginning: those that the server read from its cache, or an estimate.
        line: the first line that differs.
        differs: whether the answer differs from cold ones.
    """

    tokens: int
    line: int
    differs: bool
    reply: StateReply


class Boundary(NamedTuple):
    """From which shared beginning on answers differ.

    Args:
        first: an answer with the shortest beginning with which answers differ.
        before: one with the longest shorter beginning with which they do not. None if they differ with the shortest.
        block: what all counts of cached tokens are multiples of. 0 if the server counts none, or has no blocks.
        is_counted: whether the server counts the tokens.
    """

    first: _Shot
    before: _Shot | None
    block: int
    is_counted: bool

    @property
    def text(self) -> str:
        """The result in a sentence."""
        kind = "cached" if self.is_counted else "shared"
        about = "" if self.is_counted else "about "
        blocks = ""
        if self.block:
            count = self.first.tokens // self.block
            blocks = f", {count} block{'s' * (count > 1)} of {self.block}"
        shorter = "no shorter beginning was tried"
        if self.before:
            shorter = f"none was seen at {about}{self.before.tokens}"
        return f"The fault begins at {about}{self.first.tokens} {kind} tokens{blocks}; {shorter}."


def find_boundary(
    replies: Sequence[StateReply],
    ask: Callable[[int, int], list[StateReply]],
    tie: float | None = None,
) -> Boundary | None:
    """Narrow down from which shared beginning on answers differ. Returns None if it does not depend on the beginning.

    Args:
        replies: the answers of one length and kind of text that were paid for.
        ask: (number of lines, how often it was tried) → the replies to new questions whose prompts share so many lines
            with what was sent before them.
        tie: see `judge`.
    """
    shots = _take_shots(replies, tie)
    if not all(shot.reply.logprobs for shot in shots):
        # A text does not tell of a block whose lines were not asked for.
        shots = [shot for shot in shots if shot.differs]
    tried: Counter[int] = Counter()
    while True:
        shots.sort(key=lambda shot: shot.tokens)
        split = _find_split(shots)
        first = next((shot for shot in shots[split:] if shot.differs), None)
        if first is None:
            return None
        before = next(
            (shot for shot in reversed(shots[:split]) if not shot.differs), None
        )
        block = reduce(gcd, (shot.reply.cached_tokens or 0 for shot in shots))
        line = ((before.line if before else 0) + first.line) // 2
        if line in tried or (before and first.tokens - before.tokens <= max(block, 1)):
            # A few answers at both ends are not enough if some others differ by chance.
            if _count_agreeing(shots, split) == len(shots):
                line = 0
            else:
                line = _find_rare(before, first, shots)
        if not line or tried.total() == _STEPS:
            break
        shots += _take_shots(ask(line, tried[line]), tie)
        tried[line] += 1
    above = sum(shot.differs for shot in shots[split:])
    below = sum(shot.differs for shot in shots[:split])
    if before is None:
        depends = 2 * above > len(shots)
    else:
        table = [[above, len(shots) - split - above], [below, split - below]]
        depends = fisher_exact(table, alternative="greater").pvalue < SIGNIFICANCE
    if not depends:
        return None
    is_counted = all(shot.reply.cached_tokens is not None for shot in shots)
    return Boundary(
        first=first,
        before=before,
        block=block if block > 1 else 0,
        is_counted=is_counted,
    )


def _find_rare(before: _Shot | None, first: _Shot, shots: Sequence[_Shot]) -> int:
    """Return the line of an end with fewer than `QUESTIONS` answers, or 0 if both have enough."""
    counts = Counter(shot.tokens for shot in shots)
    for end in (before, first):
        if end and counts[end.tokens] < QUESTIONS:
            return end.line
    return 0


def _take_shots(replies: Sequence[StateReply], tie: float | None) -> list[_Shot]:
    changes = compare_answers(replies, BEGINNING, tie)
    shots = []
    for (*_, reply), gap, lost in zip(
        changes.triples, changes.gaps, changes.losses, strict=True
    ):
        question = reply.question()
        tokens = reply.cached_tokens
        if tokens is None:
            prompt = question.prompt(BEGINNING)
            share = estimate_tokens(prompt.register(question.border)) / estimate_tokens(
                prompt.text
            )
            tokens = round(share * (reply.prompt_tokens or reply.length))
        shots.append(
            _Shot(
                tokens=tokens,
                line=question.border,
                differs=bool(gap > changes.tie or lost > 0),
                reply=reply,
            )
        )
    return shots


def _find_split(shots: Sequence[_Shot]) -> int:
    """Return the number of shots before the split that best divides those that differ from those that do not."""
    best = 0
    most = -1
    for split in range(len(shots)):
        # Shots with as many tokens stay together.
        if split and shots[split - 1].tokens == shots[split].tokens:
            continue
        agreeing = _count_agreeing(shots, split)
        if agreeing > most:
            best = split
            most = agreeing
    return best


def _count_agreeing(shots: Sequence[_Shot], split: int) -> int:
    """Return how many shots differ if and only if they stand after the split."""
    return sum(shot.differs == (index >= split) for index, shot in enumerate(shots))
