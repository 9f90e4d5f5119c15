"""What makes a score incomparable with published ones and with its neighbours. Whoever shows scores asks here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from helm_longctx.protocol.metric_names import CONDITIONS, DEPTHS, depth_score, task_score
from helm_longctx.protocol.task import MAIN_METRIC, Benchmark, Task

MARK = "†"
"""Stands at scores that are not comparable."""

_SHARES = {
    "request_failed": "failed requests",
    "request_refused": "refused requests",
    "request_too_long": "requests too long for the model",
    "judge_failed": "failed judgements",
    "prompt_cut": "cut prompts",
}
"""Statistics that are zero in a comparable run, and what they count."""


class Lack(NamedTuple):
    """A reason why a score is not comparable.

    Args:
        kind: `missing` (the task has no score), `extra` (the category's mean has the task beside its own),
            `num_samples`, `subsampled` (by HELM's `-m`), `judge` (it is not the official one), or the name of a
            statistic of `_SHARES`.
        task: its name.
        detail: of `num_samples` how many of how many, of `judge` its name, of a statistic its value.
    """

    kind: str
    task: str
    detail: str = ""

    @property
    def code(self) -> str:
        """For programs: `kind:task` or `kind:task=detail`."""
        return f"{self.kind}:{self.task}" + (f"={self.detail}" if self.detail else "")

    @property
    def text(self) -> str:
        """For people, without the task."""
        if self.kind in _SHARES:
            return f"{_SHARES[self.kind]}: {100 * float(self.detail):.3g} %"
        if self.kind == "num_samples":
            return "{} of the benchmark's {} examples".format(*self.detail.split("/"))
        return {
            "missing": "no score",
            "extra": "not of this category, but in its mean",
            "subsampled": "instances drawn by -m",
            "judge": f"judged by {self.detail}",
        }[self.kind]


@dataclass(frozen=True)
class Outcome:
    """What a run was asked for, and what came of it.

    Args:
        category_tasks: those whose mean is the score of the run entry's category at its length.
        tasks: those that it ran.
        num_samples: the run entry's; None for the benchmark's own.
        judge: the run entry's.
        means: statistic and task to its mean, of what is not perturbed.
    """

    category_tasks: tuple[Task, ...]
    tasks: tuple[Task, ...]
    num_samples: int | None
    judge: str
    means: Mapping[tuple[str, str], float]


def find_outcome(
    spec: Mapping[str, Any], stats: Iterable[Mapping[str, Any]], benchmarks: Iterable[Benchmark]
) -> Outcome | None:
    """The outcome of a run of one of the benchmarks; None of other runs, and of published results.

    Args:
        spec: `run_spec.json`.
        stats: `stats.json`.
    """
    arguments = spec["scenario_spec"].get("args", {})
    benchmark = next((b for b in benchmarks if arguments.get("entry") in b.entries), None)
    if benchmark is None or "revision" not in arguments:
        return None
    category = benchmark.entries[arguments["entry"]]
    chosen, length = arguments.get(benchmark.task_argument), arguments.get("length")
    tasks = tuple(task for task in (*category.tasks, *category.variants) if task.argument == str(chosen))
    expected = category.tasks_at(None if length is None else int(length))
    samples = arguments.get("num_samples")
    annotators = spec.get("annotators") or []
    means = {
        (stat["name"]["name"], stat["name"].get("sub_split", "")): stat["mean"]
        for stat in stats
        if "perturbation" not in stat["name"] and stat.get("mean") is not None
    }
    return Outcome(
        expected,
        tasks or expected,
        None if samples is None else int(samples),
        next((each.get("args", {}).get("judge", "auto") for each in annotators), "auto"),
        means,
    )


def find_lacks(tasks: Iterable[Task], outcomes: Sequence[Outcome], metric: str = MAIN_METRIC) -> list[Lack]:
    """What is lacking to a mean of a statistic over tasks, each of which should have it in one of the outcomes."""
    found: list[Lack] = []
    for task in tasks:
        scored = [outcome for outcome in outcomes if (metric, task.name) in outcome.means]
        if not scored:
            found.append(Lack("missing", task.name))
        found += [lack for outcome in scored for lack in task_lacks(outcome, task)]
    return list(dict.fromkeys(found))


def task_lacks(outcome: Outcome, task: Task) -> Iterator[Lack]:
    """What is lacking to a task's scores in a run."""
    if outcome.num_samples is not None and outcome.num_samples < task.num_samples:
        yield Lack("num_samples", task.name, f"{outcome.num_samples}/{task.num_samples}")
    if outcome.means.get(("subsampled", task.name)):
        yield Lack("subsampled", task.name)
    if task.official_judge and outcome.judge not in ("auto", "none", task.official_judge):
        yield Lack("judge", task.name, outcome.judge)
    for name in _SHARES:
        if share := outcome.means.get((name, task.name)):
            yield Lack(name, task.name, f"{share:.4g}")


def cell_lacks(metric: str, task: str | None, outcomes: Sequence[Outcome]) -> list[Lack]:
    """What is lacking to a cell of a table.

    Args:
        metric: the statistic that it shows.
        task: whose; None for the mean over a category, or where the statistic is a task's own score.
        outcomes: of the runs that it is a mean of.
    """
    if metric in CONDITIONS or not outcomes:
        return []
    ran = {each.name: each for outcome in outcomes for each in outcome.tasks}
    own = [each for each in ran.values() if task in (None, each.name) and task_score(each.name) == metric]
    if task or own:
        return find_lacks(own or [each for each in ran.values() if each.name == task], outcomes)
    category = outcomes[0].category_tasks
    if metric not in (MAIN_METRIC, *map(depth_score, DEPTHS)):
        return find_lacks([each for each in category if metric in each.metrics], outcomes, metric)
    scored = {name for outcome in outcomes for statistic, name in outcome.means if statistic == MAIN_METRIC}
    extra = [Lack("extra", name) for name, each in ran.items() if each not in category and name in scored]
    return [*find_lacks(category, outcomes), *extra]


def describe(lacks: Iterable[Lack]) -> list[str]:
    """For people: each reason with its tasks, such as `no score (narrativeqa)`."""
    tasks: dict[str, list[str]] = {}
    for lack in lacks:
        tasks.setdefault(lack.text, []).append(lack.task)
    return [f"{text} ({', '.join(names)})" for text, names in tasks.items()]
