"""Writes what a suite measured of each model's context, as an effective-context file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from helm_longctx._version import VERSION
from helm_longctx.apps.exchange.export import folder_name
from helm_longctx.documents.numbers import drop_nan, format_share
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, Suite
from helm_longctx.results.comparability import describe
from helm_longctx.results.effective_context import (
    FILE,
    EffectiveContext,
    MeasuredLength,
    MeasuredTask,
    longest_effective,
    write_effective_context,
)
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.intervals import NOLIMA_SHARE, Interval
from helm_longctx.results.statistics.level import LEVEL
from helm_longctx.runs.files import STATS
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.task import Task


def write_files(
    suite: Suite,
    benchmarks: Sequence[Benchmark],
    folder: Path,
) -> Iterator[tuple[Path, int]]:
    """Write `MODEL/effective-context.json` for each of the user's models, and yield the files.

    Raises:
        InputError: no benchmark of the suite has lengths.
    """
    tasks_by_model: dict[ShownModel, list[MeasuredTask]] = {}
    for board in suite.boards:
        for model in board.own_models if board.benchmark.axis else []:
            tasks = tasks_by_model.setdefault(model, [])
            for task in board.benchmark.tasks:
                measured = _measure_task(board, model, task)
                if measured is not None:
                    tasks.append(measured)
    written = {model: tasks for model, tasks in tasks_by_model.items() if tasks}
    if not written:
        raise InputError(
            "effective-context: the suite has no score of a benchmark with lengths"
        )
    for model, tasks in written.items():
        content = EffectiveContext(
            model=model,
            made_by=f"helm-longctx {VERSION}",
            certificate=None,
            tasks=tasks,
        )
        path = folder / folder_name(model) / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        write_effective_context(content, path)
        yield path, sum(len(task.lengths) for task in tasks)


def _measure_task(board: Board, model: ShownModel, task: Task) -> MeasuredTask | None:
    """Return a task's scores by length. Returns None if the model has none."""
    results: dict[int, Result] = {}
    for length in board.lengths:
        result = board.score(model, task.name, length)
        if result is not None and length:
            results[length] = result
    if not results:
        return None
    threshold = board.benchmark.effective_score
    if threshold is None:
        rule = (
            f"at least {format_share(NOLIMA_SHARE)} of the score at the shortest length"
        )
    else:
        rule = f"a score of at least {threshold:g}"
    lengths = _measure_lengths(results, threshold)
    axis = board.benchmark.axis
    return MeasuredTask(
        task=f"{board.benchmark.name}/{task.name}",
        protocol=board.benchmark.revision,
        unit=axis.unit if axis else "",
        rule=f"{rule}, at both ends of the intervals",
        effective_tokens=longest_effective(lengths),
        lengths=lengths,
    )


def _measure_lengths(
    results: Mapping[int, Result],
    threshold: float | None,
) -> list[MeasuredLength]:
    """Return the scores by length, ascending.

    Args:
        threshold: the publication's own. If it has none, the score at the shortest length gives it.
    """
    shortest = min(results)
    measured = []
    for length, result in sorted(results.items()):
        assert result.run is not None
        interval = result.interval
        if threshold is None:
            is_effective = _compare_with_shortest(interval, results[shortest].interval)
        else:
            is_effective = _compare(interval, threshold, threshold)
        made = (result.run.path / STATS).stat().st_mtime
        measured.append(
            MeasuredLength(
                length=length,
                score=interval.mean,
                low=drop_nan(interval.low),
                high=drop_nan(interval.high),
                level=LEVEL,
                questions=interval.n,
                failed=result.failed,
                is_effective=is_effective,
                caveats=describe(result.caveats),
                measured_on=datetime.fromtimestamp(made, timezone.utc).date(),
            )
        )
    return measured


def _compare_with_shortest(interval: Interval, shortest: Interval) -> bool | None:
    """Whether a score reaches the share of the score at the shortest length, which is uncertain, too."""
    if interval is shortest:
        return True
    return _compare(interval, NOLIMA_SHARE * shortest.low, NOLIMA_SHARE * shortest.high)


def _compare(interval: Interval, lowest: float, highest: float) -> bool | None:
    """Whether a score is above a threshold between two ends. None if the intervals leave it open."""
    if interval.low >= highest:
        return True
    return False if interval.high < lowest else None
