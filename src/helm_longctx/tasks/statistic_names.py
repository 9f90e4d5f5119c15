"""The names of statistics that have facts in them, and these facts as fields.

HELM's files have only the text of a name. It is made and read here, and nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_OF_A_JUDGE = "judge_"
"""Start of the names of metrics that need a judge, whoever judges."""

_KAPPA = "jury_kappa"

_PLACES = re.compile(
    r"(?P<pass>pass)_at_(?P<repeats>\d+)"
    r"|(?P<score>.+)_at_depth_(?P<depth>\d+)"
    r"|(?P<logprob>.+_logprob)_to_(?P<window>\d+)"
)


@dataclass(frozen=True)
class StatisticName:
    """The name of a statistic.

    Args:
        metric: the metric without the facts below.
        judge: the judge of a jury who gave the score, empty for the metric itself.
        pair: the two judges whose agreement it is, empty for other statistics.
        depth: the depth of the evidence in percent, or None for all depths.
        repeats: the number of answers of which one is right, or None for a single answer.
        window: the position at which the window of a text ends, or None for the whole text.
    """

    metric: str
    judge: str = ""
    pair: tuple[str, ...] = ()
    depth: int | None = None
    repeats: int | None = None
    window: int | None = None

    @property
    def is_judged(self) -> bool:
        """Whether the metric needs a judge."""
        return self.metric.startswith(_OF_A_JUDGE)

    def __str__(self) -> str:
        """Return the name as HELM's files have it."""
        if self.judge:
            return f"{self.metric}:{self.judge}"
        if self.pair:
            return f"{self.metric}:{'|'.join(self.pair)}"
        if self.depth is not None:
            return f"{self.metric}_at_depth_{self.depth}"
        if self.repeats is not None:
            return f"{self.metric}_at_{self.repeats}"
        if self.window is not None:
            return f"{self.metric}_to_{self.window}"
        return self.metric


@cache
def read_statistic(name: str) -> StatisticName:
    """Return the facts in the name of a statistic. HELM's files have it as a text."""
    metric, colon, rest = name.partition(":")
    if colon and metric == _KAPPA:
        return StatisticName(metric, pair=tuple(rest.split("|")))
    if colon:
        return StatisticName(metric, judge=rest)
    if (match := _PLACES.fullmatch(name)) is None:
        return StatisticName(name)
    if match["repeats"]:
        return StatisticName(match["pass"], repeats=int(match["repeats"]))
    if match["depth"]:
        return StatisticName(match["score"], depth=int(match["depth"]))
    return StatisticName(match["logprob"], window=int(match["window"]))


def kappa_of(one: str, other: str) -> str:
    """Return the name of the agreement of two judges of a jury."""
    return str(StatisticName(_KAPPA, pair=(one, other)))
