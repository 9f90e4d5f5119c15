"""Decides a question about scores while the sample grows, for `run --stop-when`.

Whoever looks after each answer and stops when the result suits errs far more often than in 5 % of cases. The tests of
`statistics/sequential.py` stay right with any rule of stopping.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from statistics import fmean
from typing import NamedTuple

from helm_longctx.errors import InputError
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.results.statistics.sequential import (
    DIFFERENCES,
    ERROR,
    SCORES,
    Decision,
    decide,
    is_precise,
    sequential_interval,
)
from helm_longctx.runs.scores import InstanceScore
from helm_longctx.tasks.stop_rules import BETTER, SCORE, WIDTH, Rule

_ERROR = ERROR / 2
"""The error of each of two decisions. Of two equal models neither is better, so both decisions can be wrong."""

Unit = tuple[str, str]
"""The names of a task and of a cluster of its instances."""


class Verdict(NamedTuple):
    """The answer to a question.

    Args:
        text: the answer in words; empty while the question is open.
        interval: the mean over tasks of the score or of the difference, with an interval that is right at any time.
    """

    text: str
    interval: Interval


class Question:
    """A question about the scores of one model, or of two on the same instances.

    A value is the mean over the tasks of one cluster each, so that each task counts the same. Only clusters that are
    new in a round count, because the values that were looked at must not change.

    Args:
        rule: what is to be decided.
        models: the names of the models.
    """

    def __init__(self, rule: Rule, models: Sequence[str]):
        self._rule, self._models = rule, models
        self._values: dict[str, dict[str, float]] = defaultdict(dict)
        self.asked = 0

    def observe(self, scores: Sequence[Iterable[InstanceScore]]) -> None:
        """Take the clusters that are new.

        Args:
            scores: the scores of all answers until now, of each model.

        Raises:
            InputError: a score is not between 0 and 1.
        """
        found = [_means(each) for each in scores]
        self.asked = len({key for means in found for key in means})
        shared = [key for key in found[0] if all(key in means for means in found)]
        units: dict[Unit, list[float]] = defaultdict(list)
        for task, group, instance in shared:
            first, *others = (means[task, group, instance] for means in found)
            units[task, group].append(first - sum(others))
        for task, group in sorted(units, key=_draw):
            if group not in self._values[task]:
                self._values[task][group] = fmean(units[task, group])

    def decide(self) -> Verdict:
        """Return the answer as far as it is known."""
        values = [fmean(block) for block in zip(*(each.values() for each in self._values.values()), strict=False)]
        return Verdict(
            _DECIDE[self._rule.kind](self, values),
            sequential_interval(values, bounds=DIFFERENCES if self._rule.kind == BETTER else SCORES),
        )

    def _decide_better(self, values: Sequence[float]) -> str:
        first, second = self._models
        decision = decide(values, 0.0, _ERROR, bounds=DIFFERENCES)
        names = {Decision.ABOVE: (first, second), Decision.BELOW: (second, first)}
        return "{} is better than {}".format(*names[decision]) if decision in names else ""

    def _decide_score(self, values: Sequence[float]) -> str:
        words = {Decision.ABOVE: "above", Decision.BELOW: "below", Decision.OPEN: ""}
        word = words[decide(values, self._rule.share, _ERROR)]
        return f"{self._models[0]} is {word} {100 * self._rule.share:g} %" if word else ""

    def _decide_width(self, values: Sequence[float]) -> str:
        precise = is_precise(values, self._rule.share)
        return f"{self._models[0]} is known to {100 * self._rule.share:g} points" if precise else ""


_DECIDE: dict[str, Callable[[Question, Sequence[float]], str]] = {
    BETTER: Question._decide_better,
    SCORE: Question._decide_score,
    WIDTH: Question._decide_width,
}


def _means(scores: Iterable[InstanceScore]) -> dict[tuple[str, str, str], float]:
    """Return the mean over repeats of each instance that has a score, by task, cluster and instance."""
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for each in scores:
        if each.score is not None:
            if not 0 <= each.score <= 1:
                raise InputError(f"run: stop_when needs scores between 0 and 1, but {each.task} has {each.score:g}")
            values[each.task, each.group, each.instance].append(each.score)
    return {key: fmean(found) for key, found in values.items()}


def _draw(unit: Unit) -> bytes:
    """Return the place of a cluster in an order that does not depend on the order of the data."""
    return blake2b("\0".join(unit).encode("utf-8", "surrogatepass"), digest_size=8).digest()
