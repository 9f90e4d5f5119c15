"""The rows of exports: scores and averages, and answers with everything that is needed to score them again."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from helm_longctx.documents.numbers import MARK, one_line
from helm_longctx.documents.plots import Spec, curves
from helm_longctx.errors import InputError
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.results.boards import FLOORS, Board, Suite, label
from helm_longctx.results.cells import score_numbers, unread_share
from helm_longctx.results.reading import Result, Run, Statistic, read_runs
from helm_longctx.results.statistics.intervals import Interval, mean_of_means
from helm_longctx.runs.files import RUN_SPEC, STATES, reading
from helm_longctx.runs.records import Record
from helm_longctx.runs.scores import Score, read_scored_records
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.benchmark import Benchmark, Metric
from helm_longctx.tasks.entry import Entry, check_entry
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.task import MAIN_METRIC, Task

_GENERATOR = "the generator of helm-longctx"
"""Names this package as the source of questions that are not the benchmark's own."""


def question_source(result: Result, benchmark: Benchmark) -> str:
    """Return where the questions of a result are from: the benchmark's address, the user's folder, or our generator."""
    if result.is_generated:
        versions = dict.fromkeys(run.package for run in result.runs if run.package)
        return " ".join([_GENERATOR, *versions])
    return result.folder or benchmark.url


AVERAGE = "average"
"""Stands for the tasks or the lengths that an average is over."""


class ScoreRow(NamedTuple):
    """One statistic of a task in a run.

    Args:
        length: the length's label, or empty if the benchmark has no lengths.
        low, high: the ends of the interval, if there is one. Of a published score they are the widest that
            the benchmark's sample allows.
        error: the standard error, with the same clusters as the interval, if it is known.
        failed: number of the task's requests without an answer. They are in no score.
        instances: number of instances with this statistic.
        caveats: the reasons why the score is not comparable: codes of `Caveat`, separated by `;`.
        package: version of helm-longctx that made the run. Empty for older runs.
        comparability: the benchmark's comparability number. Empty for older runs. Only runs with equal numbers are
            comparable.
        judge: the judge, as in run entries. Empty if no judge decides the task's score.
        counts: whether averages and leaderboards have this score. Of several runs of a task, one counts.
        questions: where the questions are from; see `question_source`.
        published_model: the model's name in the publication, or empty for a score of a run.
    """

    run: str
    model: ShownModel
    entry: str
    task: str
    length: str
    context: str
    questions: str
    metric: str
    score: float
    instances: int | None
    caveats: str
    package: str = ""
    comparability: str = ""
    judge: str = ""
    low: float | None = None
    high: float | None = None
    error: float | None = None
    failed: int | None = None
    folder: str = ""
    counts: bool = True
    published_model: str = ""


class Average(NamedTuple):
    """A mean of `longctx_score` over the tasks of a run entry at a length, or over the lengths of a task.

    Args:
        task, length: `average` stands for the one over which the mean is.
        of: number of scores in the mean.
        low, high: the ends of the interval. None if the interval of a score is unknown, and for means over
            lengths.
        caveats: codes of `Caveat` of these scores and of the category's tasks without a score, separated by `;`.
        package, comparability: the values of these scores, separated by `;`.
        judge: the judges of these scores, joined by `+`.
        folder: the folder of the scores; of a mean over lengths that have a folder each, the name of the set.
        cut_wrong, cut_left_out, cut_best: the mean if cut answers are wrong, left out, or right. Of a task they are in
            the table of scores, as statistics.
        without_errors: the mean without questions that have known errors, if there are any.
        questions: where the questions are from. See `question_source`.
        unread: the share of answers that the scorer could not read, if it is known. Of a task it is in the
            table of scores, as a statistic.
    """

    model: ShownModel
    entry: str
    task: str
    length: str
    context: str
    score: float
    of: int
    caveats: str
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
    unread: float | None = None
    questions: str = ""


def scores(suite: Suite) -> Iterator[ScoreRow]:
    """Yield every statistic of every result of a suite, in the order of the results."""
    counting: set[int] = set()
    for board in suite.boards:
        for result in (*board.tasks, *board.categories):
            counting.add(id(result))
    benchmarks = {}
    for board in suite.boards:
        benchmarks[board.benchmark.name] = board.benchmark
    for result in suite.results:
        run = result.run
        # Runs of HELM's own scenarios have HELM's tables.
        for name, statistic in result.statistics.items() if result.benchmark else ():
            if not math.isnan(statistic.interval.mean):
                yield ScoreRow(
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
                    published_model=result.model.base if result.is_published else "",
                    **_describe(
                        result, statistic.interval, benchmarks[result.benchmark]
                    ),
                )


def averages(boards: Iterable[Board]) -> Iterator[Average]:
    """Yield the means of boards: over the tasks of each run entry at each length, and over the lengths of each task."""
    for board in boards:
        for category in board.categories:
            if category.has_score:
                tasks = category.parts or (category,)
                about = _average(
                    category,
                    tasks,
                    category.interval,
                    board.benchmark,
                    task=AVERAGE,
                    length=label(category.length),
                )
                yield about._replace(
                    unread=unread_share(category), **score_numbers(category)
                )
        groups: dict[tuple[str, str, str, str], list[Result]] = defaultdict(list)
        for result in board.tasks:
            if result.has_score and result.length is not None:
                key = (result.model, result.task, result.context, result.other_judge)
                groups[key].append(result)
        for (_, task, *_), rows in groups.items():
            # The same questions are asked at several lengths, so these means are not independent.
            mean = mean_of_means([row.interval for row in rows])
            about = _average(
                rows[0], rows, mean, board.benchmark, task=task, length=AVERAGE
            )
            sources = (question_source(row, board.benchmark) for row in rows)
            yield about._replace(
                low=None,
                high=None,
                caveats=_join(_codes(row) for row in rows),
                folder=board.folder,
                questions=_join(sources),
            )


def _average(
    result: Result,
    parts: Sequence[Result],
    mean: Interval,
    benchmark: Benchmark,
    *,
    task: str,
    length: str,
) -> Average:
    runs: list[Run] = []
    for part in parts:
        runs += part.runs
    return Average(
        task=task,
        length=length,
        of=sum(part.has_score for part in parts),
        package=_join(run.package for run in runs),
        comparability=_join(run.comparability for run in runs),
        **_describe(result, mean, benchmark),
    )


def _codes(result: Result) -> str:
    return ";".join(dict.fromkeys(caveat.code for caveat in result.caveats))


def _join(texts: Iterable[str]) -> str:
    parts: dict[str, None] = {}
    for text in texts:
        parts |= dict.fromkeys(text.split(";"))
    return ";".join(part for part in parts if part)


def _describe(
    result: Result,
    interval: Interval,
    benchmark: Benchmark,
) -> dict[str, Any]:
    """Return what scores and averages have alike."""
    # The difference is NaN if one of the ends is.
    is_known = not math.isnan(interval.high - interval.low)
    low = interval.low if is_known else None
    high = interval.high if is_known else None
    about = {}
    for name in ("model", "entry", "context", "folder"):
        about[name] = getattr(result, name)
    return {
        **about,
        "low": low,
        "high": high,
        "score": interval.mean,
        "caveats": _codes(result),
        "judge": "+".join(sorted(result.judges)),
        "questions": question_source(result, benchmark),
    }


def length_plot(averages: Iterable[Average]) -> Spec:
    """Return a plot of means over tasks by length, with the data.

    There is a panel for each run entry, folder, judge, and for runs with `context=none`. A benchmark without lengths
    has no panel. Scores that are not comparable have the mark †.

    Raises:
        InputError: there are no scores by length.
    """
    means = []
    for average in averages:
        if average.task == AVERAGE and average.length:
            means.append(average)
    if not means:
        raise InputError("the suite has no scores by length to draw")
    means.sort(
        key=lambda mean: (mean.entry, mean.context, mean.folder, mean.judge, mean.model)
    )
    rows: list[dict[str, Any]] = []
    for mean in means:
        conditions = {
            "context": mean.context.removeprefix("full"),
            "path": mean.folder,
            "judge": mean.judge,
        }
        named = []
        for name, value in conditions.items():
            if value:
                named.append(f"{name}={value}")
        kind = "own"
        if mean.model.is_published:
            kind = "published"
        elif mean.model in FLOORS:
            kind = "floor"
        rows.append(
            {
                "model": mean.model,
                "part": ", ".join([mean.entry, *named]),
                "length": mean.length,
                "score": mean.score,
                "low": mean.low,
                "high": mean.high,
                "kind": kind,
                "mark": MARK if mean.caveats else None,
                "note": mean.caveats or None,
            }
        )
    lengths = sorted({mean.length for mean in means}, key=parse_length)
    spec = curves(list(dict.fromkeys(row["part"] for row in rows)), lengths, "length")
    return {**spec, "datasets": {"rows": rows}}


class AnswerRow(NamedTuple):
    """A model's answer to one instance.

    Args:
        repeat: the number of the repeat, from 1.
        score: None if the answer has no score.
        failure: the statistic that counts requests without an answer for this reason, e.g. `request_too_long`.
        failure_kind: the kind of failure (`failures.Failure`), or empty if there is an answer.
        package, comparability: see `ScoreRow`.
        record: everything that the scorer reads besides the answer, as a JSON object, so that it can be scored again.
        entry: the run entry that asks for this task alone. Empty if this version does not know the run's arguments.
        group: the name of what the instance shares with others of its task. See `Example.group`.
        finish_reason: why the model ended its answer, if it is known.
        source: `generated` if this package made the question instead of the benchmark's own, else another value of
            `Sample.source`.
    """

    run: str
    model: str
    task: str
    length: str
    instance: str
    repeat: int
    question: str
    references: str
    answer: str
    score: float | None
    package: str = ""
    comparability: str = ""
    error: str = ""
    failure: str = ""
    failure_kind: str = ""
    depth: float | None = None
    tokens: int | None = None
    record: str = ""
    entry: str = ""
    group: str = ""
    seconds: float | None = None
    finish_reason: str = ""
    source: str = ""


def answers(
    results: Iterable[Result],
    benchmarks: Iterable[Benchmark],
) -> Iterator[AnswerRow]:
    """Yield every answer of every run, holding one request state in memory at a time.

    Raises:
        InputError: a file of a run is damaged.
    """
    by_name = {benchmark.name: benchmark for benchmark in benchmarks}
    for run, rows in read_runs(result for result in results if result.benchmark):
        benchmark = by_name[rows[0].benchmark]
        entries: dict[str, str] = {}
        for asked, score in read_scored_records(run.path, [benchmark]):
            task = asked.task
            if task not in entries:
                entries[task] = _narrow_entry(run, task).description
            with reading(run.path / STATES):
                row = _row(run, rows[0], asked, score, entries[task])
            yield row


def _row(
    run: Run,
    about: Result,
    asked: Record,
    score: Score | None,
    entry: str,
) -> AnswerRow:
    task, instance, repeat = asked.key
    sample = asked.sample
    answer = asked.answer
    return AnswerRow(
        run=run.path.name,
        model=about.model,
        task=task,
        length=label(about.length),
        instance=instance,
        repeat=repeat + 1,
        question=asked.question,
        references=" | ".join(asked.references),
        answer=asked.text,
        score=score.score if score else None,
        package=run.package,
        comparability=run.comparability,
        error=answer.error,
        failure=score.failure if score else "",
        failure_kind=answer.failure.value if answer.failure else "",
        depth=score.depth if score else sample.depth if sample else None,
        tokens=score.tokens if score else None,
        record=answer_record(asked),
        entry=entry,
        group=(sample.group if sample else None) or "",
        seconds=answer.seconds,
        finish_reason=answer.finish_reason,
        source=sample.source if sample else "",
    )


def answer_record(asked: Record) -> str:
    """Return everything that the scorer reads in addition to the answer, as JSON.

    These are the references, the fields of the sample, `notes` with the judges' annotations, and `answer_prefix` with
    the text that is scored before the answer.
    """
    sample = asked.sample
    scores_prefix = (
        sample is not None and sample.style == "completion" and sample.prefix_scored
    )
    scores_prefix = scores_prefix and not asked.reasoning  # see `scored_record`
    prefix = {}
    if sample and scores_prefix and sample.answer_prefix:
        prefix = {"answer_prefix": sample.answer_prefix}
    notes = {"notes": asked.notes} if asked.notes else {}
    record = {
        **prefix,
        "references": asked.references,
        **(sample.record if sample else {}),
        **notes,
    }
    return json.dumps(record, ensure_ascii=False)


def _narrow_entry(run: Run, task: str) -> Entry:
    """Return the entry that asks for one task of a run of ours."""
    assert run.entry
    entry = run.entry
    benchmark = entry.benchmark
    arguments = {
        **entry.arguments,
        benchmark.task_argument: benchmark.task(task).argument,
    }
    if benchmark.task(task).has_judge:
        arguments["judge"] = (
            entry.settings.judge if run.spec.get("annotators") else "none"
        )
    narrow = check_entry(benchmark, entry.name, arguments)
    if entry.repeats not in (1, narrow.repeats):
        narrow = check_entry(
            benchmark, entry.name, {**arguments, "repeats": entry.repeats}
        )
    return narrow


@dataclass(frozen=True)
class TaskResult:
    """The result of a model in a task at a length.

    Args:
        entry: the run entry of this task alone.
    """

    result: Result
    run: Run
    entry: Entry

    @property
    def task(self) -> Task:
        """The task."""
        return self.entry.tasks[0]

    @property
    def name(self) -> str:
        """The name of the task's run group, such as `helmet_nq_8k`. It is unique for task and length."""
        return self.entry.groups[-1]

    @property
    def num_examples(self) -> int:
        """Number of examples in the run."""
        count = self.result.statistics.get("num_instances")
        if count:
            return round(count.interval.mean)
        return self.result.interval.n

    @property
    def questions(self) -> str:
        """Where the questions are from; see `question_source`."""
        return question_source(self.result, self.entry.benchmark)

    @property
    def caveats(self) -> str:
        """The reasons why the score is not comparable, as codes."""
        return ";".join(caveat.code for caveat in self.result.caveats)

    def metrics(self) -> Iterator[tuple[Metric, Statistic]]:
        """Yield the headline and the official metrics that have a value."""
        by_name = {}
        for metric in self.entry.benchmark.metrics:
            by_name[metric.name] = metric
        for metric in (
            Metric(
                name=MAIN_METRIC,
                title="Score",
                description="The task's official headline metric, 0 to 1.",
            ),
            *(by_name[name] for name in self.task.metrics if name in by_name),
        ):
            if metric.name in self.result.statistics:
                yield metric, self.result.statistics[metric.name]

    def answers(self) -> Iterator[tuple[Record, Score]]:
        """Yield the answers to the task that have statistics, with these, one answer in memory at a time."""
        benchmark = self.entry.benchmark
        for asked, score in read_scored_records(self.run.path, [benchmark]):
            if score and score.task == self.task.name:
                yield asked, score


def task_results(
    boards: Iterable[Board],
    benchmarks: Sequence[Benchmark],
) -> Iterator[TaskResult]:
    """Yield the results of tasks that count and have a run, in the order of the runs' names.

    Raises:
        InputError: the installed version does not know a run's arguments.
    """
    pairs: list[tuple[Run, Result]] = []
    for board in boards:
        for result in board.tasks:
            if result.run:
                pairs.append((result.run, result))
    for run, result in sorted(pairs, key=lambda pair: pair[0].path):
        try:
            entry = _narrow_entry(run, result.task)
        except InputError as error:
            raise InputError(f"{run.path / RUN_SPEC}: {error}") from error
        yield TaskResult(
            result=result,
            run=run,
            entry=entry,
        )


LONGEST_NAME = 255
"""Maximum number of bytes in the name of a folder, on all usual file systems."""

_SEPARATORS = re.compile(r"[/\\]")


def folder_name(text: str) -> str:
    """Return a text as the name of one folder: it leads to no other folder, and no file system finds it too long."""
    name = _SEPARATORS.sub("_", one_line(text))
    if not name.strip("."):
        name = "_" * max(1, len(name))
    encoded = name.encode("utf-8", "replace")
    if len(encoded) <= LONGEST_NAME:
        return name
    return (
        f"{encoded[: LONGEST_NAME - 17].decode('utf-8', 'ignore')}-{digest(text)[:16]}"
    )
