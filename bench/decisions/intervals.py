"""Simulates how often intervals, decisions between models, and ranks are right. The seeds are fixed.

python -m bench.decisions.intervals [ROUNDS]

Without ROUNDS (2,000) the script needs about six minutes of processor time.
"""

from __future__ import annotations

import sys
from itertools import product

from tests.results.statistics.simulation import (
    KINDS,
    SHAPES,
    Case,
    Field,
    cases,
    coverage,
    coverage_of_tasks,
    effect_coverage,
    false_positives,
)

MODELS = (2, 10, 30, 60)


def print_intervals(rounds: int) -> None:
    """Print the smallest and the largest coverage over all correlations, and errors of the paired test."""
    print(
        "Intervals of means, by the mean, and paired tests of equally good models (at most)"
    )
    print(
        "clusters  size  scores           coverage at 0.5   at 0.02, 0.1, 0.98  different"
    )
    for (clusters, size), kind in product(SHAPES, KINDS):
        every = list(cases(kind, clusters, size))
        coverages = {case: coverage(case, rounds, seed=1) for case in every}
        middle = _range(
            [share for case, share in coverages.items() if case.mean == 0.5]
        )
        ends = _range([share for case, share in coverages.items() if case.mean != 0.5])
        errors = max(false_positives(case, rounds // 4, seed=2) for case in every)
        print(
            f"{clusters:8}  {size:4}  {kind:15}  {middle}  {ends:18}  {errors:9.1%}",
            flush=True,
        )


def print_effects(rounds: int) -> None:
    """Print the smallest coverage of the interval of a difference."""
    print(
        "Intervals of differences of two models (at least)\nclusters  size  scores           coverage"
    )
    for (clusters, size), kind in product(SHAPES, KINDS):
        least = min(
            effect_coverage(case, rounds // 4, seed=6)
            for case in cases(kind, clusters, size)
        )
        print(f"{clusters:8}  {size:4}  {kind:15}  {least:8.1%}", flush=True)


def _range(shares: list[float]) -> str:
    return f"{min(shares):6.1%} to {max(shares):6.1%}"


def print_tasks(rounds: int) -> None:
    """Print the coverage of means over tasks with shared clusters."""
    print(
        "Means over tasks that share clusters\nclusters  tasks  correlation  coverage"
    )
    for clusters, tasks, correlation in product((10, 30, 100), (2, 5), (0.0, 0.3, 0.9)):
        case = Case("right or wrong", 0.5, clusters, 4, correlation)
        print(
            f"{clusters:8}  {tasks:5}  {correlation:11.1f}  {coverage_of_tasks(case, tasks, rounds, seed=3):8.1%}"
        )


def print_families(rounds: int) -> None:
    """Print how often any two equal models are told apart, and how often the ranges of ranks are right."""
    print(
        "Many models\nmodels  questions  right  compared         any wrong 'different'  all ranks right"
    )
    for models, (questions, chance), is_shared in product(
        MODELS, ((100, 0.95), (600, 0.5)), (True, False)
    ):
        # The number of pairs grows with the square of the number of models, and tests in pairs take longer.
        few = (
            10 * rounds
            if models == 2
            else max(6 * rounds // models, 20)
            if is_shared
            else rounds
        )
        equal = Field((chance,) * models, questions, is_shared)
        unequal = Field(
            tuple(chance * (1 - 0.5 * rank / models) for rank in range(models)),
            questions,
            is_shared,
        )
        compared = "in pairs" if is_shared else "by intervals"
        error = equal.family_error(few, seed=4)
        right = unequal.rank_coverage(few, seed=5)
        line = f"{models:6}  {questions:9}  {chance:5.0%}  {compared:15}  {error:21.1%}  {right:15.1%}  ({few} rounds)"
        print(line, flush=True)


def main(rounds: int) -> None:
    """Print all tables."""
    print_intervals(rounds)
    print_effects(rounds)
    print_tasks(rounds)
    print_families(rounds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
