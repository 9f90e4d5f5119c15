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
    PairedQuestions,
    Spread,
    count_needed_questions,
    detectable_difference,
    paired_spread,
    variance_components,
)
from helm_longctx.runner.estimate import Estimate, TaskSample
from helm_longctx.runs.scores import Score
from helm_longctx.tasks.registry import BENCHMARKS

TaskKey = tuple[str, str, int | None]
"""A run entry's name, a task's name and a length."""


@dataclass(frozen=True)
class Spreads:
    """How much scores of a task vary.

    `unpaired` is for two models with different questions, `paired` for the same ones, if two models were run.
    """

    unpaired: Spread
    paired: Spread | None
    source: str


_NO_SPREADS = Spreads(
    Spread(LARGEST_VARIANCE, 1.0, is_paired=False),
    None,
    "the largest possible variance",
)
"""The spreads of a task of which nothing is known."""


@dataclass(frozen=True)
class DetectionPlan:
    """What the sample of a task can detect.

    Args:
        unpaired, paired: the smallest difference that is detected between two models with different questions, and
            with the same questions, if that is known.
        needed: number of questions that the wanted difference needs, if one is wanted: with the same questions if that
            is known, else with different ones.
        dollars: the price of so many questions, at the mean price of the run's questions, if it is known.
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
    estimates: Iterable[Estimate],
    known: Mapping[TaskKey, Spreads],
    difference: float | None = None,
) -> list[DetectionPlan]:
    """Plan the sample of each task of each run, with the `known` spreads, for a wanted difference from 0 to 1."""
    plans = []
    for estimate in estimates:
        for sample in estimate.samples:
            spreads = find_spreads(sample, known)
            plans.append(_make_plan(estimate, sample, spreads, difference))
    return plans


def _make_plan(
    estimate: Estimate,
    sample: TaskSample,
    spreads: Spreads,
    difference: float | None,
) -> DetectionPlan:
    paired = needed = dollars = None
    if spreads.paired:
        paired = detectable_difference([_sample(sample, spreads.paired)])
    if difference:
        best = spreads.paired or spreads.unpaired
        needed = count_needed_questions(best, difference, sample.cluster_size)
    price = estimate.dollars.typical
    if price and needed:
        questions = sum(task_sample.questions for task_sample in estimate.samples)
        dollars = price / questions * needed
    return DetectionPlan(
        run=estimate.run,
        deployment=estimate.deployment,
        sample=sample,
        unpaired=detectable_difference([_sample(sample, spreads.unpaired)]),
        paired=paired,
        needed=needed,
        dollars=dollars,
        source=spreads.source,
    )


def detectable_overall(
    plans: Sequence[DetectionPlan],
    known: Mapping[TaskKey, Spreads],
) -> tuple[float, float | None]:
    """Return the smallest detected difference of the unweighted mean over all plans' tasks: unpaired, and paired."""
    unpaired = []
    paired = []
    for plan in plans:
        spreads = find_spreads(plan.sample, known)
        unpaired.append(_sample(plan.sample, spreads.unpaired))
        if spreads.paired:
            paired.append(_sample(plan.sample, spreads.paired))
    is_known = len(paired) == len(plans)
    return detectable_difference(unpaired), detectable_difference(
        paired
    ) if is_known else None


def _sample(sample: TaskSample, spread: Spread) -> PairedQuestions:
    return PairedQuestions(
        spread, sample.questions, sample.questions / sample.cluster_size
    )


def read_spreads(suite: Path) -> dict[TaskKey, Spreads]:
    """Return the spreads of a suite's tasks, or raise an `InputError` if a run is damaged, or none has scores."""
    answered = []
    for result in read_results(suite, BENCHMARKS):
        if result.answers and result.context == "full":
            answered.append(result)
    models: dict[TaskKey, dict[str, dict[str, list[Score]]]] = defaultdict(dict)
    for result in choose_results(answered, lambda result: (_key(result), result.model)):
        if result.has_score:
            models[_key(result)][result.model] = by_instance(result.answers)
    if not models:
        raise InputError(
            f"like={suite.name}: the suite has no run with scores in {suite.parent};"
            " name another suite"
        )
    return {key: _spreads_of(by_model) for key, by_model in models.items()}


def _key(result: Result) -> TaskKey:
    # The entry of an answer also names the folder of own questions.
    return result.answers[0].entry, result.task, result.length


def find_spreads(sample: TaskSample, known: Mapping[TaskKey, Spreads]) -> Spreads:
    """Return the spreads of a task: of earlier runs, or of published scores, or the largest possible ones.

    Of several models, the one whose scores vary most gives the variance, so that the power holds for each.
    """
    spreads = known.get((sample.entry, sample.task, sample.length))
    if spreads:
        return spreads
    scores = _published_scores(sample)
    if not scores:
        return _NO_SPREADS
    # The correlation in clusters is not published, so each cluster counts as one question.
    variance = max(score * (1 - score) for score in scores)
    return Spreads(Spread(variance, 1.0, is_paired=False), None, "published scores")


def _published_scores(sample: TaskSample) -> list[float]:
    """Return the published scores of a task at a length, each the mean of right and wrong answers."""
    benchmarks = (
        benchmark for benchmark in BENCHMARKS if sample.entry in benchmark.entries
    )
    benchmark = next(benchmarks, None)
    if benchmark is None:
        return []
    category = benchmark.entries[sample.entry].name
    scores = []
    for row in benchmark.published():
        if row.category != category or row.length != sample.length:
            continue
        # The score of the task, or else of its category.
        score = row.scores.get(sample.task, row.scores.get(""))
        if score is not None:
            scores.append(score)
    return scores


def _spreads_of(models: Mapping[str, Mapping[str, Sequence[Score]]]) -> Spreads:
    means = {}
    groups: dict[str, str | None] = {}
    for model, instances in models.items():
        means[model] = {name: mean_of(rows) for name, rows in instances.items()}
        for name, rows in instances.items():
            groups[name] = rows[0].group
    components = []
    for mean in means.values():
        component = variance_components(
            list(mean.values()), [groups[name] for name in mean]
        )
        if component.groups > 1:
            components.append(component)
    if not components:
        return _NO_SPREADS
    variance = max(component.between + component.within for component in components)
    unpaired = Spread(
        variance,
        max(component.share_between for component in components),
        is_paired=False,
    )
    pairs = []
    for one, other in combinations(means.values(), 2):
        shared = [name for name in one if name in other]
        clusters = [groups[name] for name in shared]
        if len(set(clusters)) > 1:
            scores = [one[name] for name in shared]
            other_scores = [other[name] for name in shared]
            pairs.append(paired_spread(scores, other_scores, clusters))
    if not pairs:
        return Spreads(unpaired, None, "earlier runs")
    kurtoses = []
    for pair in pairs:
        if pair.kurtosis is not None:
            kurtoses.append(pair.kurtosis)
    paired = Spread(
        variance=fmean(pair.variance for pair in pairs),
        correlation=fmean(pair.correlation for pair in pairs),
        is_paired=True,
        kurtosis=fmean(kurtoses) if kurtoses else None,
    )
    return Spreads(unpaired, paired, "earlier runs")
