"""The agreement of a jury is computed over a run."""

from __future__ import annotations

import pytest
from helm.benchmark.metrics.metric import PerInstanceStats
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat

from helm_longctx.helm.metric import jury_stats
from helm_longctx.tasks.judge_scores import cohen_kappa, krippendorff_alpha

NAN = float("nan")


def rows(
    metric: str, task: str, **judges: list[float | None]
) -> list[PerInstanceStats]:
    """Return statistics with scores by judge; a judge's None is left out."""
    return [
        PerInstanceStats(
            f"{task}-{position}",
            None,
            0,
            [
                Stat(MetricName(f"{metric}:{judge}", split="test", sub_split=task)).add(
                    scores[position]
                )
                for judge, scores in judges.items()
                if scores[position] is not None
            ],
        )
        for position in range(len(next(iter(judges.values()))))
    ]


def test_a_jury() -> None:
    """A task has alpha over all judges and, if its scores are grades, kappa for each pair, over the answers that both
    judges scored."""
    a = [0, 1 / 3, 1, 1]
    b = [0, 2 / 3, 1, None]
    c = [1 / 3, 1 / 3, 1, 2 / 3]
    answers = rows("judge_score", "narrativeqa", a=a, b=b, c=c)
    summaries = rows("judge_f1", "infbench_sum", a=[0.1, 0.5, 0.9], b=[0.2, 0.5, 0.7])
    means = {
        (stat.name.name, stat.name.sub_split): stat.mean
        for stat in jury_stats([*answers, *summaries])
    }
    gaps = [NAN if score is None else score for score in b]
    assert means == pytest.approx(
        {
            ("jury_alpha", "narrativeqa"): krippendorff_alpha([a, gaps, c], "ordinal"),
            ("jury_kappa:a|b", "narrativeqa"): cohen_kappa(a, gaps, "quadratic"),
            ("jury_kappa:a|c", "narrativeqa"): cohen_kappa(a, c, "quadratic"),
            ("jury_kappa:b|c", "narrativeqa"): cohen_kappa(gaps, c, "quadratic"),
            ("jury_alpha", "infbench_sum"): krippendorff_alpha(
                [[0.1, 0.5, 0.9], [0.2, 0.5, 0.7]], "interval"
            ),
        }
    )
    assert (
        means["jury_kappa:a|b", "narrativeqa"] > means["jury_kappa:b|c", "narrativeqa"]
    )


def test_one_judge_and_constant_judges() -> None:
    """A single judge or constant judges have no statistics of agreement."""
    assert (
        jury_stats(
            [
                PerInstanceStats(
                    "x", None, 0, [Stat(MetricName("judge_score", split="test")).add(1)]
                )
            ]
        )
        == []
    )
    assert jury_stats(rows("judge_score", "narrativeqa", a=[1, 1], b=[1, 1])) == []
