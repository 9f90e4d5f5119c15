"""The results of tasks that count, with their run entries and answers, for exports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from helm_longctx.apps.exchange.answer_rows import entry_of
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board
from helm_longctx.results.reading import Result, Run
from helm_longctx.results.task_statistics import Statistic
from helm_longctx.runs.answers import Answer, read_answers
from helm_longctx.runs.files import RUN_SPEC
from helm_longctx.runs.scores import InstanceScore, read_scores
from helm_longctx.tasks.benchmark import Benchmark, Metric
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.task import MAIN_METRIC, Task

HEADLINE = Metric(MAIN_METRIC, "Score", "The task's official headline metric, 0 to 1.")


@dataclass(frozen=True)
class TaskResult:
    """The result of a model in a task at a length.

    Args:
        result: the result.
        run: its run.
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
        """The name of the task's run group, such as `helmet_nq_8k`, which is unique for task and length."""
        return self.entry.groups[-1]

    @property
    def num_examples(self) -> int:
        """Number of examples in the run."""
        count = self.result.statistics.get("num_instances")
        return round(count.interval.mean) if count else self.result.interval.n

    @property
    def lacking(self) -> str:
        """The reasons why the score is not comparable, as codes."""
        return ";".join(caveat.code for caveat in self.result.caveats)

    def metrics(self) -> Iterator[tuple[Metric, Statistic]]:
        """Yield the headline and the official metrics that have a value."""
        by_name = {metric.name: metric for metric in self.entry.benchmark.metrics}
        for metric in (HEADLINE, *(by_name[name] for name in self.task.metrics if name in by_name)):
            if metric.name in self.result.statistics:
                yield metric, self.result.statistics[metric.name]

    def answers(self) -> Iterator[tuple[Answer, InstanceScore]]:
        """Yield the answers to the task that have statistics, with these, one answer in memory at a time."""
        for answer in read_answers(self.run.path, read_scores(self.run.path, [self.entry.benchmark])):
            if answer.score and answer.score.task == self.task.name:
                yield answer, answer.score


def task_results(boards: Iterable[Board], benchmarks: Sequence[Benchmark]) -> Iterator[TaskResult]:
    """Yield the results of tasks that count and have a run, in the order of the runs' names.

    Raises:
        InputError: the installed version does not know a run's arguments.
    """
    by_name = {each.name: each for each in benchmarks}
    found = [(each.run, each) for board in boards for each in board.tasks if each.run]
    for run, result in sorted(found, key=lambda pair: pair[0].path):
        try:
            entry = entry_of(by_name[result.benchmark], run.spec, result.task)
        except InputError as error:
            raise InputError(f"{run.path / RUN_SPEC}: {error}") from error
        yield TaskResult(result, run, entry)
