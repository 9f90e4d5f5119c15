"""Scores without the questions whose known errors a benchmark's `errata.jsonl` lists, beside the published scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from helm_longctx.results.statistics.intervals import Interval, mean_of_means
from helm_longctx.runs.scores import InstanceScore
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.errata import Erratum

if TYPE_CHECKING:
    from helm_longctx.results.reading import Result

WITHOUT_ERRORS = "score_without_known_errors"
"""The name of the score in a result's statistics, and in exports. Tasks without known errors do not have it."""


def find_errata(benchmark: Benchmark, rows: Sequence[InstanceScore]) -> Mapping[str, tuple[Erratum, ...]]:
    """Return the known errors of the questions of a task that were asked, by instance.

    Args:
        rows: the answers of one task in a run.
    """
    errata = [each for each in benchmark.errata() if rows and each.task == rows[0].task]
    questions = {row.instance: row for row in rows} if errata else {}
    found = {
        name: tuple(each for each in errata if each.concerns(name, row.length, row.errata))
        for name, row in questions.items()
    }
    return {name: each for name, each in found.items() if each}


def without_errors(result: Result) -> Interval | None:
    """Return a score without the questions that have known errors; None if there are none, or no score.

    A mean over tasks is the mean of the tasks without such questions, and of the other tasks as they are.
    """
    if not (result.has_score and _has_errors(result)):
        return None
    if not result.parts:
        interval = result.statistics[WITHOUT_ERRORS].interval
        return None if math.isnan(interval.mean) else interval
    parts = [part for part in result.parts if part.has_score]
    intervals = [without_errors(part) if _has_errors(part) else part.interval for part in parts]
    known = [each for each in intervals if each is not None]
    return mean_of_means(known, [part.clusters_of() for part in parts]) if len(known) == len(parts) else None


def _has_errors(result: Result) -> bool:
    return WITHOUT_ERRORS in result.statistics or any(map(_has_errors, result.parts))
