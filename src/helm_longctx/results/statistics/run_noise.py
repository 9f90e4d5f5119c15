"""Compares recipes by several training runs of each: intervals over runs and questions.

Two runs of one recipe differ, although the same questions give the same answers again. All runs answer the same
questions, so runs and questions are crossed. The variance of a difference is the sum of three parts:

    s² (1/R + 1/R')    s²: the variance of the runs' means, pooled over the recipes
    + v                v: the variance of the paired difference, as a mean over questions
    − m (1/R + 1/R')   m: the part of a run's mean that is chance of run and question together; it is in both above

It is at least the larger one of the first two. The quantile is Student's, with Satterthwaite's degrees of freedom
(1946). docs/statistics.md has the simulated coverage. It led to two rules. The estimate of a variance from few runs is
often far too small, so with few runs the variance is rather too large than too small, and with one degree of freedom a
difference must also be larger than runs alone explain. With `_ENOUGH` degrees of freedom, m is left out of the first
part, and a third of it out of the degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helm_longctx.results.statistics.intervals import Floats, cluster_sums
from helm_longctx.results.statistics.level import LEVEL, SIGNIFICANCE

_POWER = 0.8
"""Probability with which a difference of the smallest visible size is found."""

_ENOUGH = 5
"""Degrees of freedom of the variance between runs from which on it is certain enough to subtract m from it."""

_MOST_RUNS = 100
"""Largest number of runs of each recipe that is proposed."""


@dataclass(frozen=True)
class RunNoise:
    """The noise between runs of one recipe.

    Args:
        variance: of the means of runs, in squared points of the score's scale.
        freedom: degrees of freedom of the estimate. Infinity for an assumption.
        overlap: the part of `variance` that is chance of run and question together. 0 for an assumption.
    """

    variance: float
    freedom: float
    overlap: float = 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of the means of runs."""
        return math.sqrt(self.variance)


@dataclass(frozen=True)
class RecipeComparison:
    """One recipe compared with another.

    Args:
        difference: mean of the first minus mean of the second.
        low, high: the ends of its interval over runs and questions. NaN if the noise between runs is unknown.
        p_value: NaN if the noise is unknown.
        runs: numbers of runs of both.
        questions: number of questions that all runs answered.
        run_variance, question_variance: the parts of the variance of the difference.
        smallest: the smallest difference that so many runs and questions show in four of five cases.
        needed_runs: runs of each recipe with which this difference would be decided. None if no number up to 100 is
            enough, because questions decide.
        needed_questions: questions with which it would be decided with the present runs. None if runs decide.
    """

    difference: float
    low: float
    high: float
    p_value: float
    runs: tuple[int, int]
    questions: int
    run_variance: float
    question_variance: float
    smallest: float
    needed_runs: int | None
    needed_questions: int | None

    @property
    def is_known(self) -> bool:
        """Whether the noise between runs is known."""
        return not math.isnan(self.p_value)

    @property
    def run_share(self) -> float:
        """The share of runs in the variance, 0 to 1; the rest is of questions. NaN if nothing varies."""
        whole = self.run_variance + self.question_variance
        return self.run_variance / whole if whole else math.nan


def assume_noise(deviation: float) -> RunNoise:
    """Return noise that somebody assumes, by the standard deviation of the means of runs."""
    return RunNoise(variance=deviation**2, freedom=math.inf)


def estimate_noise(
    recipes: Sequence[Floats],
    weights: Floats,
    codes: NDArray[np.intp],
) -> RunNoise | None:
    """Estimate the noise between runs, pooled over recipes.

    Args:
        recipes: for each recipe, shape (runs, questions): the scores.
        weights: shape (questions,), with the sum 1.
        codes: shape (questions,): the number of each question's cluster.

    Returns:
        None if no recipe has two runs.
    """
    freedom = sum(len(scores) - 1 for scores in recipes)
    if not freedom:
        return None
    squares = 0.0
    chance = 0.0
    for scores in recipes:
        means = scores @ weights
        squares += float(((means - means.mean()) ** 2).sum())
        residuals = scores - scores.mean(axis=0)
        residuals = residuals - (residuals @ weights)[:, None]
        for run in residuals:
            chance += float((cluster_sums(run * weights, codes) ** 2).sum())
    clusters = int(codes.max()) + 1
    overlap = chance / freedom * clusters / max(clusters - 1, 1)
    variance = squares / freedom
    return RunNoise(
        variance=variance,
        freedom=freedom,
        overlap=min(overlap, variance),
    )


def compare_recipes(
    one: Floats,
    other: Floats,
    weights: Floats,
    codes: NDArray[np.intp],
    noise: RunNoise | None,
) -> RecipeComparison:
    """Compare two recipes on the questions that all runs answered.

    Args:
        one, other: shape (runs, questions): the scores.
        weights: shape (questions,), with the sum 1.
        codes: shape (questions,): the number of each question's cluster.
        noise: the noise between runs. None if it is unknown.
    """
    runs = (len(one), len(other))
    paired = one.mean(axis=0) - other.mean(axis=0)
    difference = float(paired @ weights)
    sums = cluster_sums((paired - difference) * weights, codes)
    clusters = len(sums)
    questions = math.nan
    if clusters > 1:
        questions = float((sums**2).sum()) * clusters / (clusters - 1)
    if noise is None:
        return RecipeComparison(
            difference=difference,
            low=math.nan,
            high=math.nan,
            p_value=math.nan,
            runs=runs,
            questions=len(weights),
            run_variance=math.nan,
            question_variance=questions,
            smallest=math.nan,
            needed_runs=None,
            needed_questions=None,
        )
    design = _Design(
        noise=noise,
        questions=questions,
        clusters=clusters,
        runs=runs,
    )
    half = design.half_width()
    decided = abs(difference) > half
    return RecipeComparison(
        difference=difference,
        low=difference - half,
        high=difference + half,
        p_value=design.find_p_value(difference),
        runs=runs,
        questions=len(weights),
        run_variance=noise.variance * design.shares(),
        question_variance=questions,
        smallest=design.half_width(power=_POWER),
        needed_runs=None if decided else design.find_runs(difference),
        needed_questions=None
        if decided
        else design.find_questions(difference, len(weights)),
    )


@dataclass(frozen=True)
class _Error:
    """A standard error.

    Args:
        freedom: the degrees of freedom of its estimate.
    """

    size: float
    freedom: float


@dataclass(frozen=True)
class _Design:
    """What decides how certain a difference is."""

    noise: RunNoise
    questions: float
    clusters: int
    runs: tuple[int, int]

    def shares(self) -> float:
        """Return 1/R + 1/R'."""
        return 1 / self.runs[0] + 1 / self.runs[1]

    def half_width(
        self,
        runs: tuple[int, int] | None = None,
        more_questions: float = 1.0,
        power: float = 0.0,
    ) -> float:
        """Return half of the width of the interval, also with other numbers of runs and questions.

        Args:
            power: if it is given, the smallest difference that is found with this probability.
        """
        widths = []
        for error in self._find_errors(runs, more_questions):
            quantile = _quantile((1 + LEVEL) / 2, error.freedom)
            if power:
                quantile += _quantile(power, error.freedom)
            widths.append(error.size * quantile)
        return max(widths)

    def find_p_value(self, difference: float) -> float:
        """Return the two-sided p-value of a difference."""
        p_values = []
        for error in self._find_errors():
            p_values.append(_p_value(difference, error.size, error.freedom))
        return max(p_values)

    def _find_errors(
        self,
        runs: tuple[int, int] | None = None,
        more_questions: float = 1.0,
    ) -> list[_Error]:
        """Return the standard errors that a difference must exceed: of all sources, and perhaps of runs alone."""
        first, second = runs or self.runs
        shares = 1 / first + 1 / second
        of_runs = self.noise.variance * shares
        of_questions = self.questions / more_questions
        overlap = self.noise.overlap * shares / more_questions
        freedom = self.noise.freedom
        if runs is not None and math.isfinite(freedom):
            freedom = first + second - 2
        variance = max(of_runs + of_questions - overlap, of_runs, of_questions)
        uncertain = of_runs
        if freedom >= _ENOUGH:
            variance = of_questions + max(of_runs - overlap, 0.0)
            uncertain = max(of_runs - overlap / 3, 0.0)
        if not variance:
            return [_Error(size=0.0, freedom=max(self.clusters - 1.0, 1.0))]
        parts = uncertain**2 / freedom + of_questions**2 / (self.clusters - 1)
        joint = max(variance**2 / parts, 1.0) if parts else math.inf
        errors = [_Error(size=math.sqrt(variance), freedom=joint)]
        if freedom == 1:
            errors.append(_Error(size=math.sqrt(of_runs), freedom=1.0))
        return errors

    def find_runs(self, difference: float) -> int | None:
        """Return the runs of each recipe with which a difference of this size is decided."""
        for runs in range(max(min(self.runs), 2), _MOST_RUNS + 1):
            if abs(difference) > self.half_width(runs=(runs, runs)):
                return runs
        return None

    def find_questions(self, difference: float, questions: int) -> int | None:
        """Return the number of questions with which a difference of this size is decided by the present runs."""
        for power in range(1, 21):
            more = 2 ** (power / 2)
            if abs(difference) > self.half_width(more_questions=more):
                return math.ceil(questions * more)
        return None


def _quantile(probability: float, freedom: float) -> float:
    from scipy.special import ndtri, stdtrit

    if math.isinf(freedom):
        return float(ndtri(probability))
    return float(stdtrit(freedom, probability))


def _p_value(difference: float, error: float, freedom: float) -> float:
    from scipy.special import ndtr, stdtr

    if not error:
        return 0.0 if difference else 1.0
    ratio = -abs(difference) / error
    below = ndtr(ratio) if math.isinf(freedom) else stdtr(freedom, ratio)
    return float(2 * below)


def is_decided(p_value: float) -> bool:
    """Whether a p-value decides. One that is not known does not."""
    return p_value < SIGNIFICANCE
