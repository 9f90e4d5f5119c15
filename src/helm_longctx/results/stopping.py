"""Decides a question about scores while the sample grows, for `run --stop-when`.

Whoever looks after each round and stops when the result suits errs far more often than in 5 % of cases. So all rounds
share the error (`statistics/comparison.py`), and `compare` knows of them.

Questions need not fail at random. So a score is above a threshold only if it is so with failures as wrong answers, and
below it only if it is so with failures as right ones; `compare_parts` does the same for two models.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from helm_longctx.errors import InputError
from helm_longctx.results.comparison import mean_of, pair_questions
from helm_longctx.results.statistics.comparison import (
    FAILURES_DECIDE,
    FIRST_OF_ROUNDS,
    AskedPairs,
    Looks,
    Pairs,
    compare_parts,
    join_pairs,
    level_of_look,
    next_looks,
    quantile_of,
)
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.results.statistics.level import SIGNIFICANCE
from helm_longctx.results.statistics.noninferiority import Clusters, margin_interval
from helm_longctx.results.statistics.sequential import SCORES
from helm_longctx.runs.scores import Score
from helm_longctx.tasks.stop_rules import BETTER, WIDTH, Rule

TaskName = tuple[str, str, str]
"""The names of a task, of a cluster and of an instance."""


class StoppingVerdict(NamedTuple):
    """The answer to a question.

    Args:
        text: the answer in words; empty while the question is open.
        interval: the mean over tasks of the score or of the difference, with an interval that is right at all looks
            together. The interval of a score contains what failures could have scored.
        is_left_to_failures: whether the question is open only because failures could change the answer.
    """

    text: str
    interval: Interval
    is_left_to_failures: bool = False

    def __str__(self) -> str:
        if self.text:
            return self.text
        return FAILURES_DECIDE if self.is_left_to_failures else "not decided"


class StoppingQuestion:
    """A question about the scores of one model, or of two on the same instances.

    It is about what the tables show: the mean over tasks of the means over their questions. Each round is a look at all
    answers until then.

    Args:
        earlier: the numbers of instances at the looks of earlier commands.
    """

    def __init__(
        self,
        rule: Rule,
        models: Sequence[str],
        earlier: Iterable[int] = (),
    ):
        self._rule = rule
        self._models = models
        self._pairs: list[Pairs] = []
        self._bounds: list[list[Pairs]] = []
        self.asked = 0
        self.looks = set(earlier)
        self._now: Looks = ()

    def observe(self, scores: Sequence[Sequence[Score]]) -> None:
        """Take all answers until now of each model, or raise an `InputError` for a score outside 0 to 1."""
        # The repeats of each instance of each model, also those that failed.
        sides: list[dict[TaskName, list[Score]]] = []
        for answers in scores:
            questions: dict[TaskName, list[Score]] = defaultdict(list)
            for answer in answers:
                if answer.score is not None and not 0 <= answer.score <= 1:
                    raise InputError(
                        "run: stop_when needs scores between 0 and 1, but"
                        f" {answer.task} has {answer.score:g}"
                    )
                questions[answer.task, answer.group, answer.instance].append(answer)
            sides.append(questions)
        means = [_mean_scores(questions) for questions in sides]
        self.asked = len({key for side in means for key in side})
        tasks: dict[str, list[TaskName]] = defaultdict(list)
        for key in means[0]:
            if all(key in side for side in means):
                tasks[key[0]].append(key)
        # Of one model, the difference to a score of 0 is the score.
        first = means[0]
        second = means[1] if len(means) > 1 else defaultdict(float)
        self._pairs = []
        for task, keys in tasks.items():
            pairs = Pairs(
                a=[first[key] for key in keys],
                b=[second[key] for key in keys],
                groups=[key[1] for key in keys],
                weight=1 / len(tasks),
                asked=_find_questions(sides, task),
            )
            self._pairs.append(pairs)
        has_failures = any(answer.score is None for side in scores for answer in side)
        is_bounded = has_failures and self._rule.kind != BETTER
        ends = SCORES if is_bounded else ()
        self._bounds = [_fill_failures(sides[0], end) for end in ends]
        if size := sum(map(len, tasks.values())):
            self._now = next_looks(self.looks, size)
            self.looks.add(size)

    def decide(self) -> StoppingVerdict:
        """Return the answer as far as it is known."""
        if not self._pairs:
            return StoppingVerdict(
                "",
                Interval(math.nan, -1.0 if self._rule.kind == BETTER else 0.0, 1.0, 0),
            )
        if self._rule.kind != BETTER:
            return self._decide_score()
        # This is how `compare` decides, so that both agree.
        comparison = compare_parts(self._pairs, self._now)
        if comparison.effect.mean > 0:
            better, worse = self._models
        else:
            better, worse = reversed(self._models)
        if comparison.decisive_p_value < SIGNIFICANCE:
            return StoppingVerdict(
                f"{better} is better than {worse}", comparison.effect
            )
        return StoppingVerdict(
            "", comparison.effect, is_left_to_failures=comparison.p_value < SIGNIFICANCE
        )

    def _decide_score(self) -> StoppingVerdict:
        """Return the answer about the score of one model."""
        answered = self._find_interval(self._pairs)
        intervals = [answered, *(self._find_interval(pairs) for pairs in self._bounds)]
        interval = replace(
            answered,
            low=min(candidate.low for candidate in intervals),
            high=max(candidate.high for candidate in intervals),
        )
        text = self._read_interval(interval)
        is_left_to_failures = not text and bool(self._read_interval(answered))
        return StoppingVerdict(text, interval, is_left_to_failures)

    def _find_interval(self, pairs: Sequence[Pairs]) -> Interval:
        """Return a mean score with the interval of the last look."""
        clusters = Clusters.of(*join_pairs(pairs))
        level = level_of_look(self._now, SIGNIFICANCE / 2, FIRST_OF_ROUNDS)
        low, high = margin_interval(clusters, quantile_of(level), SCORES)
        mean = float(clusters.counts[0] @ clusters.sums)
        return Interval(mean, low, high, self._now[-1])

    def _read_interval(self, interval: Interval) -> str:
        """Return the answer that the interval of a score gives, empty if it gives none."""
        model = self._models[0]
        share = self._rule.share
        points = f"{100 * share:g}"
        if self._rule.kind == WIDTH:
            is_narrow = interval.high - interval.low <= share
            if is_narrow:
                return f"{model} is known to {points} points"
            return ""
        if interval.low > share:
            return f"{model} is above {points} %"
        if interval.high < share:
            return f"{model} is below {points} %"
        return ""


def _mean_scores(
    questions: Mapping[TaskName, Sequence[Score]],
) -> dict[TaskName, float]:
    """Return the mean over repeats of the questions that have an answer."""
    means = {}
    for key, repeats in questions.items():
        mean = mean_of(repeats)
        if not math.isnan(mean):
            means[key] = mean
    return means


def _fill_failures(
    questions: Mapping[TaskName, Sequence[Score]],
    failure: float,
) -> list[Pairs]:
    """Return the scores of one model on all questions that were put to it.

    Args:
        failure: the score of a request without one.
    """
    tasks: dict[str, list[TaskName]] = defaultdict(list)
    for key in questions:
        tasks[key[0]].append(key)
    parts = []
    for keys in tasks.values():
        means = []
        for key in keys:
            scores = [answer.score for answer in questions[key]]
            means.append(fmean(failure if score is None else score for score in scores))
        part = Pairs(
            a=means,
            b=[0.0] * len(means),
            groups=[key[1] for key in keys],
            weight=1 / len(tasks),
        )
        parts.append(part)
    return parts


def _find_questions(
    sides: Sequence[Mapping[TaskName, Sequence[Score]]],
    task: str,
) -> AskedPairs | None:
    """Return the questions of a task that were put to both models, or nothing for one model or without failures."""
    if len(sides) < 2:
        return None
    one, other = sides
    keys = []
    for key in one:
        if key[0] == task and key in other:
            keys.append(key)
    return pair_questions([one[key] for key in keys], [other[key] for key in keys])
