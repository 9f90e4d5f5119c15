"""Exports a suite's scores and averages as tables for other programs."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from helm_longctx.documents.numbers import MARK
from helm_longctx.documents.plots import Spec, curves
from helm_longctx.errors import InputError
from helm_longctx.results.boards import FLOORS, Board, Suite, label
from helm_longctx.results.reading import Result, is_published_name
from helm_longctx.results.score_rows import score_numbers
from helm_longctx.results.statistics.intervals import Interval, mean_of_means
from helm_longctx.tasks.lengths import parse_length

AVERAGE = "average"
"""Stands for the tasks or the lengths that an average is over."""


class Score(NamedTuple):
    """One statistic of a task in a run.

    Args:
        length: the length's label; empty if the benchmark has no lengths.
        low, high: the ends of the 95 % interval; None if there is none. Of a published score they are the widest that
            the benchmark's sample allows.
        error: the standard error, with the same clusters as the interval; None if it is unknown.
        failed: number of the task's requests without an answer, which are in no score.
        instances: number of instances with this statistic.
        lacking: the reasons why the score is not comparable: codes of `Caveat`, separated by `;`.
        package: version of helm-longctx that made the run; empty for older runs.
        comparability: the benchmark's comparability number; empty for older runs. Only runs with equal numbers are
            comparable.
        judge: the judge, as in run entries; empty if no judge decides the task's score.
        counts: whether averages and leaderboards have this score. Of several runs of a task, one counts.
    """

    run: str
    model: str
    entry: str
    task: str
    length: str
    context: str
    metric: str
    score: float
    instances: int | None
    lacking: str
    package: str = ""
    comparability: str = ""
    judge: str = ""
    low: float | None = None
    high: float | None = None
    error: float | None = None
    failed: int | None = None
    folder: str = ""
    counts: bool = True


class Average(NamedTuple):
    """A mean of `longctx_score` over the tasks of a run entry at a length, or over the lengths of a task.

    Args:
        task, length: `average` stands for the one over which the mean is.
        of: number of scores in the mean.
        low, high: the ends of the 95 % interval; None if the interval of a score is unknown, and for means over
            lengths.
        lacking: codes of `Caveat` of these scores and of the category's tasks without a score, separated by `;`.
        package, comparability: the values of these scores, separated by `;`.
        judge: the judges of these scores, joined by `+`.
        folder: the folder of the scores; of a mean over lengths that have a folder each, the name of the set.
        cut_wrong, cut_left_out, cut_best: the mean if cut answers are wrong, left out, or right. Of a task they are in
            the table of scores, as statistics.
        without_errors: the mean without questions that have known errors; None if there are none.
    """

    model: str
    entry: str
    task: str
    length: str
    context: str
    score: float
    of: int
    lacking: str
    package: str = ""
    comparability: str = ""
    judge: str = ""
    low: float | None = None
    high: float | None = None
    folder: str = ""
    cut_wrong: float | None = None
    cut_left_out: float | None = None
    cut_best: float | None = None
    without_errors: float | None = None


def scores(suite: Suite) -> Iterator[Score]:
    """Yield every statistic of every result of a suite, in the order of the results."""
    counting = {id(each) for board in suite.boards for each in (*board.tasks, *board.categories)}
    for result in suite.results:
        run = result.run
        # Runs of HELM's own scenarios have HELM's tables.
        for name, statistic in result.statistics.items() if result.benchmark else ():
            if not math.isnan(statistic.interval.mean):
                yield Score(
                    run=run.name if run else f"published_{result.benchmark}",
                    task=result.task,
                    length=label(result.length),
                    metric=name,
                    instances=statistic.interval.n or None,
                    package=run.package if run else "",
                    comparability=run.comparability if run else "",
                    error=None if math.isnan(statistic.error) else statistic.error,
                    failed=result.failed if run else None,
                    counts=id(result) in counting,
                    **_describe(result, statistic.interval),
                )


def averages(boards: Iterable[Board]) -> Iterator[Average]:
    """Yield the means of boards: over the tasks of each run entry at each length, and over the lengths of each task."""
    for board in boards:
        for category in board.categories:
            if category.has_score:
                tasks = category.parts or (category,)
                about = _average(category, tasks, category.interval, task=AVERAGE, length=label(category.length))
                yield about._replace(**score_numbers(category))
        groups: dict[tuple[str, str, str, str], list[Result]] = defaultdict(list)
        for each in board.tasks:
            if each.has_score and each.length is not None:
                groups[each.model, each.task, each.context, each.other_judge].append(each)
        for (_, task, *_), rows in groups.items():
            # The same questions are asked at several lengths, so these means are not independent.
            mean = mean_of_means([row.interval for row in rows])
            about = _average(rows[0], rows, mean, task=task, length=AVERAGE)
            lacking = _join(_codes(row) for row in rows)
            yield about._replace(low=None, high=None, lacking=lacking, folder=board.folder)


def _average(result: Result, parts: Sequence[Result], mean: Interval, *, task: str, length: str) -> Average:
    return Average(
        task=task,
        length=length,
        of=sum(part.has_score for part in parts),
        package=_join(run.package for part in parts for run in part.runs),
        comparability=_join(run.comparability for part in parts for run in part.runs),
        **_describe(result, mean),
    )


def _codes(result: Result) -> str:
    return ";".join(dict.fromkeys(caveat.code for caveat in result.caveats))


def _join(texts: Iterable[str]) -> str:
    return ";".join(dict.fromkeys(part for text in texts for part in text.split(";") if part))


def _describe(result: Result, interval: Interval) -> dict[str, Any]:
    """Return what scores and averages have alike."""
    # The difference is NaN if one of the ends is.
    is_known = not math.isnan(interval.high - interval.low)
    ends = {"low": interval.low, "high": interval.high} if is_known else {"low": None, "high": None}
    about = {name: getattr(result, name) for name in ("model", "entry", "context", "folder")}
    return {
        **about,
        **ends,
        "score": interval.mean,
        "lacking": _codes(result),
        "judge": "+".join(sorted(result.judges)),
    }


def length_plot(averages: Iterable[Average]) -> Spec:
    """Return a plot of means over tasks by length, with the data.

    There is a panel for each run entry, folder, judge, and for runs with `context=none`. A benchmark without lengths
    has no panel. Scores that are not comparable have the mark †.

    Raises:
        InputError: there are no scores by length.
    """
    means = [each for each in averages if each.task == AVERAGE and each.length]
    if not means:
        raise InputError("the suite has no scores by length to draw")
    means.sort(key=lambda mean: (mean.entry, mean.context, mean.folder, mean.judge, mean.model))
    rows: list[dict[str, Any]] = []
    for mean in means:
        conditions = {"context": mean.context.removeprefix("full"), "path": mean.folder, "judge": mean.judge}
        rows.append(
            {
                "model": mean.model,
                "part": ", ".join([mean.entry, *(f"{name}={value}" for name, value in conditions.items() if value)]),
                **{name: getattr(mean, name) for name in ("length", "score", "low", "high")},
                "kind": "published" if is_published_name(mean.model) else "floor" if mean.model in FLOORS else "own",
                "mark": MARK if mean.lacking else None,
                "note": mean.lacking or None,
            }
        )
    lengths = sorted({mean.length for mean in means}, key=parse_length)
    spec = curves(list(dict.fromkeys(row["part"] for row in rows)), lengths, "length")
    return {**spec, "datasets": {"rows": rows}}
