"""Statistics of the agreement of a jury in a run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat

from helm_longctx.tasks.agreement import cohen_kappa, krippendorff_alpha
from helm_longctx.tasks.judge_scores import BY_JUDGE

GRADES = "judge_score"
"""The score whose values are grades (the correctness of a fluent answer, 0 to 3). An F1 has no grades."""


def jury_stats(rows: Iterable[PerInstanceStats]) -> list[Stat]:
    """Return `jury_alpha` for each task with several judges, and `jury_kappa:a|b` for each pair if they give grades.

    A statistic that is not defined, such as the agreement of judges who give all answers the same score, is absent.
    """
    found = []
    for (headline, name), by_judge in _scores(rows).items():
        instances = sorted({instance for scores in by_judge.values() for instance in scores})
        ratings = {judge: [scores.get(i, math.nan) for i in instances] for judge, scores in sorted(by_judge.items())}
        has_grades = headline == GRADES
        values = {"jury_alpha": krippendorff_alpha(list(ratings.values()), "ordinal" if has_grades else "interval")}
        for one, other in combinations(ratings, 2) if has_grades else ():
            values[f"jury_kappa:{one}|{other}"] = cohen_kappa(ratings[one], ratings[other], "quadratic")
        found += [
            Stat(MetricName(metric, split=name.split, sub_split=name.sub_split)).add(value)
            for metric, value in values.items()
            if not math.isnan(value)
        ]
    return found


def _scores(rows: Iterable[PerInstanceStats]) -> dict[tuple[str, MetricName], dict[str, dict[str, float]]]:
    """Return each judge's scores by instance, for each headline metric and place (split and sub-split)."""
    scores: dict[tuple[str, MetricName], dict[str, dict[str, float]]] = {}
    for row in rows:
        for stat in row.stats:
            headline, by, judge = stat.name.name.partition(BY_JUDGE)
            # HELM also has statistics without a value, whose mean is None.
            if by and stat.mean is not None:
                place = MetricName("", split=stat.name.split, sub_split=stat.name.sub_split)
                by_judge = scores.setdefault((headline, place), defaultdict(dict))
                by_judge[judge][row.instance_id] = stat.mean
    return scores
