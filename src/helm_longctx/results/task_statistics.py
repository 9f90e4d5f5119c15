"""Computes the statistics of a task in a run: its score, the score if no answer were cut, and without known errors."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from helm_longctx.results.statistics.intervals import Clusters, Interval, cluster_errors, mean_interval, standard_error
from helm_longctx.runs.scores import InstanceScore, Value, mean_over_questions, values_of
from helm_longctx.tasks.benchmark import Benchmark, Erratum
from helm_longctx.tasks.metric_names import CONDITIONS, task_score
from helm_longctx.tasks.task import MAIN_METRIC, TEXT_GROUP, Task

CUT = "output_truncated"
"""The statistic that is 1 for answers that the token limit cut."""

WRONG, LEFT_OUT, BEST = "score_cut_as_wrong", "score_cut_left_out", "score_cut_at_best"
"""The names of the bounds in a result's statistics, and in exports. Tasks without cut answers do not have them."""

VALUES: Mapping[str, float | None] = {WRONG: 0.0, LEFT_OUT: None, BEST: 1.0}
"""The score that a cut answer gets in each of them; None if the answer is left out."""


def cut_values(rows: Sequence[InstanceScore], value: float | None, metric: str = "") -> list[Value]:
    """Return a metric, or the score, of answers, where cut ones have another value, or are left out for None."""
    if value is None:
        return values_of((row for row in rows if not row.values.get(CUT)), metric)
    # An answer that lacks the metric has no place in its mean, whatever cut it.
    having = [row for row in rows if (row.values.get(metric) if metric else row.score) is not None]
    return [
        each._replace(value=value) if row.values.get(CUT) else each
        for row, each in zip(having, values_of(having, metric), strict=True)
    ]


WITHOUT_ERRORS = "score_without_known_errors"
"""The name of the score in a result's statistics, and in exports. Tasks without known errors do not have it."""


def find_errata(benchmark: Benchmark, rows: Sequence[InstanceScore]) -> Mapping[str, tuple[Erratum, ...]]:
    """Return the known errors of the questions of a task that were asked, by instance."""
    errata = [each for each in benchmark.errata() if rows and each.task == rows[0].task]
    questions = {row.instance: row for row in rows} if errata else {}
    found = {
        name: tuple(each for each in errata if each.concerns(name, row.length, row.errata))
        for name, row in questions.items()
    }
    return {name: each for name, each in found.items() if each}


@dataclass(frozen=True)
class Statistic:
    """A statistic of a task in a run.

    Args:
        interval: the mean, its 95 % interval (NaN if it has none), and the number of instances with a value.
        error: the standard error of the mean, with the interval's clusters; NaN if it is unknown.
        clusters: the `cluster_errors` of the texts that other tasks can share.
    """

    interval: Interval
    error: float = math.nan
    clusters: Clusters = field(default_factory=dict)


def task_statistics(
    task: Task | None, rows: Sequence[InstanceScore], means: Mapping[str, float], errata: Mapping[str, object]
) -> dict[str, Statistic]:
    """Return the statistics of a task (None for another package's), with bounds if answers were cut
    (`results/score_rows.py`), and with the score of the questions without known errors if some have them."""
    found = _statistics(rows, means)
    if task and MAIN_METRIC in found:
        if any(row.values.get(CUT) for row in rows):
            found |= {name: _score_of(name, task, partial(cut_values, rows, value)) for name, value in VALUES.items()}
        if errata:
            right = [row for row in rows if row.instance not in errata]
            found[WITHOUT_ERRORS] = _score_of(WITHOUT_ERRORS, task, partial(values_of, right))
    return found


def _statistics(rows: Sequence[InstanceScore], means: Mapping[str, float]) -> dict[str, Statistic]:
    """Return the statistics of a task.

    `means` are the means in the run's files, which are the scores. A mean over the rows can differ: a score of several
    metrics is the mean of their means, and answers without a value are left out.
    """
    values: dict[str, list[tuple[float, str, str]]] = defaultdict(list)
    for row in rows:
        scores = {**row.values, **({} if row.score is None else {MAIN_METRIC: row.score})}
        for name, value in scores.items():
            values[name].append((value, row.group, row.instance))
    total = round(means.get("num_instances", 0))
    found = {
        name: _statistic(name, values.get(name, []), means.get(name), total)
        # A score of HELM's own scenarios has another name in the files.
        for name in dict.fromkeys([*means, *([MAIN_METRIC] if MAIN_METRIC in values else [])])
    }
    # A task's score is also stored under a separate name, which only the task's mean has.
    own = task_score(rows[0].task)
    return {**found, own: found[MAIN_METRIC]} if own in found and MAIN_METRIC in found else found


def _score_of(name: str, task: Task, values: Callable[[str], Sequence[Value]]) -> Statistic:
    # A score of several metrics is the mean of their means.
    means = [mean_over_questions(values(metric)) for metric in (task.headline if len(task.headline) > 1 else ("",))]
    return _statistic(name, values(""), math.fsum(means) / len(means), 0)


def _statistic(name: str, values: Sequence[tuple[float, str, str]], mean: float | None, total: int) -> Statistic:
    numbers, groups = [value for value, _, _ in values], [group for _, group, _ in values]
    # A statistic of the whole run, such as the agreement of a jury, has no values of instances.
    count = len({instance for _, _, instance in values}) or total
    if name in CONDITIONS or not values:
        return Statistic(replace(without_ends(math.nan if mean is None else mean), n=count))
    interval = replace(mean_interval(numbers, groups), n=count)
    clusters = {text: error for text, error in cluster_errors(numbers, groups).items() if text.startswith(TEXT_GROUP)}
    if mean is not None:
        # The interval stays within the bounds of scores if it was within them.
        is_share, by = interval.low >= 0 and interval.high <= 1, mean - interval.mean
        low, high = interval.low + by, interval.high + by
        interval = Interval(mean, max(low, 0.0) if is_share else low, min(high, 1.0) if is_share else high, count)
    return Statistic(interval, standard_error(numbers, groups), clusters)


def without_ends(mean: float) -> Interval:
    """Return a mean whose interval is not known."""
    return Interval(mean, math.nan, math.nan, 0)
