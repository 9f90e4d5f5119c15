"""The rules of `run --stop-when`: what question ends a run when it is decided."""

from contextlib import suppress
from typing import NamedTuple

from helm_longctx.errors import bad_argument

BETTER = "better"
_SCORE = "score"
WIDTH = "width"
ALLOWED = f"{BETTER}, {_SCORE}=POINTS or {WIDTH}=POINTS, such as {_SCORE}=60"


class Rule(NamedTuple):
    """When a run stops.

    Args:
        kind: `better` if it is known which of two models is better, `score` if it is known whether the score is above
            a threshold, or `width` if the interval is narrow enough.
        share: the threshold or the width, 0 to 1; 0 for `better`.
    """

    kind: str
    share: float = 0.0

    @property
    def text(self) -> str:
        """The rule as users write it."""
        return f"{self.kind}={100 * self.share:g}" if self.share else self.kind

    @property
    def models(self) -> int:
        """The number of models that the question is about."""
        return 2 if self.kind == BETTER else 1


def parse_rule(text: str) -> Rule:
    """Return the rule that a user wrote. Raises an `InputError` if the text is not a rule."""
    if text == BETTER:
        return Rule(BETTER)
    kind, _, points = text.partition("=")
    with suppress(ValueError):
        if kind in (_SCORE, WIDTH) and 0 < float(points) < 100:
            return Rule(kind, float(points) / 100)
    raise bad_argument("run", "stop_when", text, ALLOWED)
