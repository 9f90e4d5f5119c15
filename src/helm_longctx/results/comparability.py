"""Finds the reasons why a score does not compare with published scores or with others in a table.

Everything that shows scores (tables, pages, exports, plots) uses this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from helm_longctx.protocol.benchmark import Benchmark
from helm_longctx.protocol.entry import digest_own_files
from helm_longctx.protocol.metric_names import CONDITIONS, DEPTHS, depth_score, task_score
from helm_longctx.protocol.task import MAIN_METRIC, Settings, Task

MARK = "†"
"""Marks a score that is not comparable."""

_SHARES = {
    "request_failed": "failed requests",
    "request_refused": "refused requests",
    "request_too_long": "requests too long for the model",
    "judge_failed": "failed judgements",
    "prompt_cut": "cut prompts",
}
"""Statistics that are zero in a comparable run, with a description of what they count."""


class Lack(NamedTuple):
    """A reason why a score is not comparable.

    Args:
        kind: `missing` (the task has no score), `extra` (the task is in a mean but not in the category),
            `num_samples` (fewer examples than the benchmark has), `pooled` (a mean of runs with different numbers of
            examples), `subsampled` (drawn by HELM's `-m`), `judge` (not the official one), `files` (the user's own
            files are not those of the run), or the name of a statistic in `_SHARES`.
        task: the task's name.
        detail: for `num_samples` the number and the official number, for `pooled` the numbers of the runs, for `judge`
            its name, for a statistic its value.
    """

    kind: str
    task: str
    detail: str = ""

    @property
    def code(self) -> str:
        """The reason for programs: `kind:task` or `kind:task=detail`."""
        return f"{self.kind}:{self.task}" + (f"={self.detail}" if self.detail else "")

    @property
    def text(self) -> str:
        """The reason for people, without the task."""
        if self.kind in _SHARES:
            return f"{_SHARES[self.kind]}: {100 * float(self.detail):.3g} %"
        if self.kind == "num_samples":
            return "{} of the benchmark's {} examples".format(*self.detail.split("/"))
        return {
            "missing": "no score",
            "extra": "not of this category, but in its mean",
            "subsampled": "instances drawn by -m",
            "judge": f"judged by {self.detail}",
            "pooled": f"mean of runs with {self.detail.replace('+', ' and ')} examples",
            "files": "your files have changed since this run",
        }[self.kind]


@dataclass(frozen=True)
class Outcome:
    """The request of a run entry, and the statistics of the run.

    Args:
        category_tasks: the tasks whose mean is the score of the run entry's category at its length.
        tasks: the tasks that were run.
        settings: the run entry's length, protocol and number of samples.
        judge: the run entry's judge.
        means: from (statistic, task) to the mean over instances without perturbation.
        files_changed: whether the user's own files are no longer those of the run.
    """

    category_tasks: tuple[Task, ...]
    tasks: tuple[Task, ...]
    settings: Settings
    judge: str
    means: Mapping[tuple[str, str], float]
    files_changed: bool = False


def find_outcome(
    spec: Mapping[str, Any], stats: Iterable[Mapping[str, Any]], benchmarks: Iterable[Benchmark]
) -> Outcome | None:
    """Return the outcome of a run of one of the benchmarks; None for another run or published results.

    Args:
        spec: content of `run_spec.json`.
        stats: content of `stats.json`.
    """
    arguments = spec["scenario_spec"].get("args", {})
    benchmark = next((b for b in benchmarks if arguments.get("entry") in b.entries), None)
    # Published results have no revision of the code, because nothing was run.
    if benchmark is None or "revision" not in arguments:
        return None
    category = benchmark.entries[arguments["entry"]]
    chosen = arguments.get(benchmark.task_argument)
    given = {name: int(arguments[name]) for name in ("length", "num_samples") if arguments.get(name) is not None}
    length = given.get("length")
    tasks = tuple(task for task in (*category.tasks, *category.variants) if task.argument == str(chosen))
    expected = category.tasks_at(length)
    # A user's own questions have no published set of tasks, so the tasks of the run are the whole category.
    if category.needs_path and tasks:
        expected = tasks
    annotators = spec.get("annotators") or []
    # Files that are not on this machine have not changed.
    files = digest_own_files(tasks or expected, arguments.get("path")) if "files" in arguments else None
    means = {
        (stat["name"]["name"], stat["name"].get("sub_split", "")): stat["mean"]
        for stat in stats
        if "perturbation" not in stat["name"] and stat.get("mean") is not None
    }
    return Outcome(
        expected,
        tasks or expected,
        Settings(length, num_samples=given.get("num_samples"), protocol=arguments.get("protocol", "paper")),
        # A run has at most one annotator.
        next((each.get("args", {}).get("judge", "auto") for each in annotators), "auto"),
        means,
        files not in (None, arguments.get("files")),
    )


def find_lacks(tasks: Iterable[Task], outcomes: Sequence[Outcome], metric: str = MAIN_METRIC) -> list[Lack]:
    """Return why a statistic's mean over tasks is not comparable.

    Each task should have the statistic in one of the outcomes.
    """
    lacks: list[Lack] = []
    for task in tasks:
        scored = [outcome for outcome in outcomes if (metric, task.name) in outcome.means]
        if not scored:
            lacks.append(Lack("missing", task.name))
        lacks += _pooled_samples(scored, task)
        lacks += [lack for outcome in scored for lack in task_lacks(outcome, task)]
    return list(dict.fromkeys(lacks))


def _pooled_samples(outcomes: Sequence[Outcome], task: Task) -> Iterator[Lack]:
    sizes: dict[int | None, set[int]] = {}
    for outcome in outcomes:
        sizes.setdefault(outcome.settings.length, set()).add(task.sample(outcome.settings))
    for several in sizes.values():
        if len(several) > 1:
            yield Lack("pooled", task.name, "+".join(map(str, sorted(several))))


def task_lacks(outcome: Outcome, task: Task) -> Iterator[Lack]:
    """Yield why a task's scores in a run are not comparable."""
    if (samples := task.sample(outcome.settings)) < (official := task.official_sample(outcome.settings)):
        yield Lack("num_samples", task.name, f"{samples}/{official}")
    if outcome.means.get(("subsampled", task.name)):
        yield Lack("subsampled", task.name)
    if not task.is_official(outcome.judge):
        yield Lack("judge", task.name, outcome.judge)
    if outcome.files_changed:
        yield Lack("files", task.name)
    for name in _SHARES:
        if share := outcome.means.get((name, task.name)):
            yield Lack(name, task.name, f"{share:.4g}")


def cell_lacks(metric: str, task: str | None, outcomes: Sequence[Outcome]) -> list[Lack]:
    """Return why the score in a cell of a table is not comparable.

    Args:
        metric: the cell's statistic.
        task: the cell's task; None for the mean over a category, or for a statistic that is one task's score.
        outcomes: the outcomes of the runs that the cell is a mean of.
    """
    if metric in CONDITIONS or not outcomes:
        return []
    run_tasks = {each.name: each for outcome in outcomes for each in outcome.tasks}
    # HELM's schema cannot name a sub-split in a column, so a task's score also has its own name.
    own = [each for each in run_tasks.values() if task in (None, each.name) and task_score(each.name) == metric]
    if task or own:
        return find_lacks(own or [each for each in run_tasks.values() if each.name == task], outcomes)
    category = outcomes[0].category_tasks
    # An official metric is only expected of the tasks that have it.
    if metric not in (MAIN_METRIC, *map(depth_score, DEPTHS)):
        return find_lacks([each for each in category if metric in each.metrics], outcomes, metric)
    scored = {name for outcome in outcomes for statistic, name in outcome.means if statistic == MAIN_METRIC}
    # A run of a variant, such as ASQA without citations, is in HELM's mean of the category's group.
    extra = [Lack("extra", name) for name, each in run_tasks.items() if each not in category and name in scored]
    return [*find_lacks(category, outcomes), *extra]


def describe(lacks: Iterable[Lack]) -> list[str]:
    """Return the reasons for people, each with its tasks, such as `no score (narrativeqa)`."""
    tasks: dict[str, list[str]] = {}
    for lack in lacks:
        tasks.setdefault(lack.text, []).append(lack.task)
    return [f"{text} ({', '.join(names)})" for text, names in tasks.items()]
