"""A judge of citations that follows a rule, which also stood for the judge when the golden file was made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from helm_longctx.judging.entailment import Pair


class Rule:
    """A judge whose verdicts follow a digest of the passage and the claim, and who keeps the questions."""

    name = "rule"
    official = True

    def __init__(self, missing: int = 0):
        self.asked: list[Pair] = []
        self.missing = missing

    def entails(self, pairs: Sequence[Pair]) -> list[bool | None]:
        """Return the verdicts of the rule."""
        self.asked += pairs
        return [
            None
            if self.missing and digest_pair(pair) % 7 < self.missing
            else is_entailed(pair)
            for pair in pairs
        ]


def digest_pair(pair: Pair) -> int:
    """Return a number from 0 to 255 for a passage and a claim."""
    return hashlib.sha256("|".join(pair).encode()).digest()[0]


def is_entailed(pair: Pair) -> bool:
    """Return whether a passage supports a claim."""
    return digest_pair(pair) % 5 < 3
