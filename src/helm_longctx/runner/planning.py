"""Finds before a run which difference of two models it can detect, and how many questions a wanted difference needs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean

from helm_longctx.errors import InputError
from helm_longctx.results.boards import choose_results
from helm_longctx.results.comparison import by_instance, mean_of
from helm_longctx.results.reading import Result, read_results
from helm_longctx.results.statistics.power import (
    LARGEST_VARIANCE,
    Sample,
    Spread,
    detectable_difference,
    paired_spread,
    questions_needed,
    variance_components,
)
from helm_longctx.runner.estimate import Estimate, TaskSample
from helm_longctx.runs.scores import InstanceScore
from helm_longctx.tasks.registry import BENCHMARKS

TaskKey = tuple[str, str, int | None]
"""A run entry's name, a task's name and a length."""


@dataclass(frozen=True)
class Spreads:
    """How much scores of a task vary.

    `unpaired` is for two models with different questions, `paired` for the same ones; None if no two models were run.
    """

    unpaired: Spread
    paired: Spread | None
    source: str


NO_SPREADS = Spreads(
    Spread(LARGEST_VARIANCE, 1.0, is_paired=False), None, "the largest possible variance"
)
"""The spreads of a task of which nothing is known."""


@dataclass(frozen=True)
class Plan:
    """What the sample of a task can detect.

    Args:
        unpaired, paired: the smallest difference that is detected between two models with different questions, and
            with the same questions; None if that is not known.
        needed: number of questions that the wanted difference needs: with the same questions if that is known, else
            with different ones; None without a wanted difference.
        dollars: the price of so many questions, at the mean price of the run's questions; None if it is not known.
    """

    run: str
    deployment: str
    sample: TaskSample
    unpaired: float
    paired: float | None
    needed: int | None
    dollars: float | None
    source: str


def make_plans(
    estimates: Iterable[Estimate], known: Mapping[TaskKey, Spreads], difference: float | None = None
) -> list[Plan]:
    """Plan the sample of each task of each run, with the `known` spreads, for a wanted difference from 0 to 1."""
    plans = []
    for estimate, sample in ((each, sample) for each in estimates for sample in each.samples):
        spreads = find_spreads(sample, known)
        price = estimate.dollars.typical
        best = spreads.paired or spreads.unpaired
        needed = questions_needed(best, difference, sample.cluster_size) if difference else None
        plan = Plan(
            run=estimate.run,
            deployment=estimate.deployment,
            sample=sample,
            unpaired=detectable_difference([_sample(sample, spreads.unpaired)]),
            paired=detectable_difference([_sample(sample, spreads.paired)])
            if spreads.paired
            else None,
            needed=needed,
            dollars=price / sum(each.questions for each in estimate.samples) * needed
            if price and needed
            else None,
            source=spreads.source,
        )
        plans.append(plan)
    return plans


def detectable_overall(
    plans: Sequence[Plan], known: Mapping[TaskKey, Spreads]
) -> tuple[float, float | None]:
    """Return the smallest detected difference of the unweighted mean over all plans' tasks: unpaired, and paired."""
    spreads = [find_spreads(plan.sample, known) for plan in plans]
    unpaired = [
        _sample(plan.sample, each.unpaired) for plan, each in zip(plans, spreads, strict=True)
    ]
    paired = [
        _sample(plan.sample, each.paired)
        for plan, each in zip(plans, spreads, strict=True)
        if each.paired
    ]
    is_known = len(paired) == len(plans)
    return detectable_difference(unpaired), detectable_difference(paired) if is_known else None


def _sample(sample: TaskSample, spread: Spread) -> Sample:
    return Sample(spread, sample.questions, sample.questions / sample.cluster_size)


def read_spreads(suite: Path) -> dict[TaskKey, Spreads]:
    """Return the spreads of a suite's tasks, or raise an `InputError` if a run is damaged, or none has scores."""
    found = [
        each for each in read_results(suite, BENCHMARKS) if each.answers and each.context == "full"
    ]
    models: dict[TaskKey, dict[str, dict[str, list[InstanceScore]]]] = defaultdict(dict)
    for result in choose_results(found, lambda each: (_key(each), each.model)):
        if result.has_score:
            models[_key(result)][result.model] = by_instance(result.answers)
    if not models:
        raise InputError(
            f"like={suite.name}: the suite has no run with scores in {suite.parent}; name another suite"
        )
    return {key: _spreads_of(each) for key, each in models.items()}


def _key(result: Result) -> TaskKey:
    # The entry of an answer also names the folder of own questions.
    return result.answers[0].entry, result.task, result.length


def find_spreads(sample: TaskSample, known: Mapping[TaskKey, Spreads]) -> Spreads:
    """Return the spreads of a task: of earlier runs, or of published scores, or the largest possible ones.

    Of several models, the one whose scores vary most gives the variance, so that the power holds for each.
    """
    if found := known.get((sample.entry, sample.task, sample.length)):
        return found
    benchmark = next((each for each in BENCHMARKS if sample.entry in each.entries), None)
    rows = benchmark.published() if benchmark else ()
    category = benchmark.entries[sample.entry].name if benchmark else None
    alike = [row for row in rows if row.category == category and row.length == sample.length]
    # The score of the task, or else of its category. It is the mean of right and wrong answers.
    scores = [
        score
        for row in alike
        if (score := row.scores.get(sample.task, row.scores.get(""))) is not None
    ]
    if scores:
        # The correlation in clusters is not published, so each cluster counts as one question.
        variance = max(score * (1 - score) for score in scores)
        return Spreads(Spread(variance, 1.0, is_paired=False), None, "published scores")
    return NO_SPREADS


def _spreads_of(models: Mapping[str, Mapping[str, Sequence[InstanceScore]]]) -> Spreads:
    means = {
        model: {name: mean_of(rows) for name, rows in instances.items()}
        for model, instances in models.items()
    }
    groups = {
        name: rows[0].group for instances in models.values() for name, rows in instances.items()
    }
    alone = [
        variance_components(list(mean.values()), [groups[name] for name in mean])
        for mean in means.values()
    ]
    components = [each for each in alone if each.groups > 1]
    if not components:
        return NO_SPREADS
    variance = max(component.between + component.within for component in components)
    unpaired = Spread(
        variance, max(component.share_between for component in components), is_paired=False
    )
    pairs = []
    for one, other in combinations(means.values(), 2):
        shared = [name for name in one if name in other]
        clusters = [groups[name] for name in shared]
        if len(set(clusters)) > 1:
            pairs.append(
                paired_spread(
                    [one[name] for name in shared], [other[name] for name in shared], clusters
                )
            )
    if not pairs:
        return Spreads(unpaired, None, "earlier runs")
    kurtoses = [pair.kurtosis for pair in pairs if pair.kurtosis is not None]
    paired = Spread(
        variance=fmean(pair.variance for pair in pairs),
        correlation=fmean(pair.correlation for pair in pairs),
        is_paired=True,
        kurtosis=fmean(kurtoses) if kurtoses else None,
    )
    return Spreads(unpaired, paired, "earlier runs")
