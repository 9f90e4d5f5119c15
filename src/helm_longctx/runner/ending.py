"""The end of a runner's log: the scores of the runs, and the next command."""

from __future__ import annotations

import math
import shlex
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from helm.common.hierarchical_logger import hlog, hwarn

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.errors import InputError
from helm_longctx.runs.files import STATS
from helm_longctx.runs.scores import read_scores
from helm_longctx.statistics.intervals import Interval, mean_interval, mean_of_means

ROWS = 30
"""Largest number of runs whose scores are logged."""


class RunScore(NamedTuple):
    """A run's score.

    Args:
        interval: the unweighted mean over the run's tasks.
        failed: number of requests without an answer.
    """

    interval: Interval
    failed: int


def log_scores(output_path: Path, suite: str, names: Sequence[str]) -> None:
    """Log the scores of the runs that are complete, and the command that shows all scores of their suite.

    Args:
        output_path, suite: the arguments of `helm-run`.
        names: names of runs of this package.
    """
    folder = output_path / "runs" / suite
    made = [name for name in names if (folder / name / STATS).is_file()]
    if not made:
        return
    hlog("score  95 % interval     answers  failed  run")
    for name in islice(made, ROWS):
        try:
            hlog(_row(name, read_score(folder / name)))
        except InputError as error:  # the other runs still have scores
            hwarn(str(error))
    if len(made) > ROWS:
        hlog(f"and {len(made) - ROWS} more")
    hlog(f"Next: helm-longctx summarize {shlex.join(['--suite', suite, '-o', str(output_path)])}")


def read_score(run: Path) -> RunScore:
    """Read the score of a complete run of this package.

    Raises:
        InputError: a file of the run is damaged.
    """
    rows = read_scores(run, BENCHMARKS)
    scores: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for row in rows:
        if row.score is not None:
            scores[row.task].append((row.score, row.group))
    intervals = [mean_interval(*zip(*pairs, strict=True)) for pairs in scores.values()]
    return RunScore(mean_of_means(intervals), sum(bool(row.failure) for row in rows))


def _row(name: str, score: RunScore) -> str:
    mean, low, high, n = score.interval.mean, score.interval.low, score.interval.high, score.interval.n
    ends = "" if math.isnan(low) else f"{low:.3f} to {high:.3f}"
    return f"{'none' if math.isnan(mean) else f'{mean:.3f}'}  {ends:<16}  {n:>7}  {score.failed:>6}  {name}"
