"""Reads the results of a suite: a `Result` for each task of each finished run, and for each published score.

This is the only module that turns a run's files into scores.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from helm_longctx.errors import InputError
from helm_longctx.results.comparability import (
    GENERATED,
    Caveat,
    data_caveats,
    do_files_differ,
    task_caveats,
)
from helm_longctx.results.statistics.intervals import (
    ClusterWeights,
    Interval,
    ValueKind,
    cluster_errors,
    error_of_means,
    mean_interval,
    normal_quantile,
    ratio_interval,
    standard_error,
    wilson,
)
from helm_longctx.results.statistics.rare_misses import interval_with_misses
from helm_longctx.results.suite import MAKER, read_reference_rows
from helm_longctx.runs.files import (
    RUN_SPEC,
    STATS,
    find_runs,
    read_data,
    read_json,
    read_looks,
    read_model,
    read_run_spec,
    read_undamaged,
    reading,
)
from helm_longctx.runs.scores import (
    Score,
    find_values,
    mean_over_questions,
    score_records,
)
from helm_longctx.runs.shown_models import ShownModel, published_model, shown_model
from helm_longctx.tasks.benchmark import Benchmark, Erratum
from helm_longctx.tasks.entry import OF_PROMPTS, Entry
from helm_longctx.tasks.groups import folder_name
from helm_longctx.tasks.metric_names import (
    ANSWER_LOGPROB,
    CONDITIONS,
    KEY_LOGPROB,
    KEY_LOGPROB_SUM,
    KEY_TOKENS,
    is_log_probability,
    task_score,
)
from helm_longctx.tasks.publications import Published
from helm_longctx.tasks.run_names import read_run_name
from helm_longctx.tasks.stored_entry import read_entry
from helm_longctx.tasks.task import MAIN_METRIC, TEXT_GROUP, Settings, Task

CUT = "output_truncated"
"""The statistic that is 1 for answers that the token limit cut."""

WRONG = "score_cut_as_wrong"
LEFT_OUT = "score_cut_left_out"
BEST = "score_cut_at_best"
"""The names of the bounds in a result's statistics, and in exports. Tasks without cut answers do not have them."""

VALUES: Mapping[str, float | None] = {WRONG: 0.0, LEFT_OUT: None, BEST: 1.0}
"""The score that a cut answer gets in each of them, or None if the answer is left out."""


def replace_cut_scores(
    rows: Iterable[Score],
    value: float | None,
    metrics: Iterable[str] = (),
) -> list[Score]:
    """Return answers where cut ones have another score, or are left out for None.

    Args:
        metrics: the metrics of which the score is the mean. Cut answers get the value in these, too.
    """
    replaced = []
    for row in rows:
        if not row.values.get(CUT):
            replaced.append(row)
        elif value is not None:
            replaced.append(_replace_scores(row, value, metrics))
    return replaced


def _replace_scores(row: Score, value: float, metrics: Iterable[str]) -> Score:
    """Return an answer with another score and other metrics. What it lacks it does not get."""
    values = dict(row.values)
    for metric in metrics:
        if metric in values:
            values[metric] = value
    score = None if row.score is None else value
    return row._replace(score=score, values=values)


WITHOUT_ERRORS = "score_without_known_errors"
"""The name of the score in a result's statistics, and in exports. Tasks without known errors do not have it."""


def _find_errata(
    benchmark: Benchmark,
    rows: Sequence[Score],
) -> Mapping[str, tuple[Erratum, ...]]:
    """Return the known errors of the questions of a task that were asked, by instance."""
    by_instance: dict[str, tuple[Erratum, ...]] = {}
    errata = []
    for erratum in benchmark.errata():
        if erratum.task == rows[0].task:
            errata.append(erratum)
    if not errata:
        return by_instance
    questions = {row.instance: row for row in rows}
    for name, row in questions.items():
        known = []
        for erratum in errata:
            if erratum.concerns(name, row.length, row.errata):
                known.append(erratum)
        if known:
            by_instance[name] = tuple(known)
    return by_instance


@dataclass(frozen=True)
class Statistic:
    """A statistic of a task in a run.

    Args:
        interval: the mean, its interval (NaN if it has none), and the number of instances with a value.
        error: the standard error of the mean, with the interval's clusters; NaN if it is unknown.
        clusters: the `cluster_errors` of the texts that other tasks can share.
    """

    interval: Interval
    error: float = math.nan
    clusters: ClusterWeights = field(default_factory=dict)


def task_statistics(
    task: Task | None,
    rows: Sequence[Score],
    means: Mapping[str, float],
    errata: Mapping[str, object],
) -> dict[str, Statistic]:
    """Return the statistics of a task (None for another package's), with bounds if answers were cut
    (`results/cells.py`), and with the score of the questions without known errors if some have them.

    `means` are the means in the run's files: these are the scores. A mean over the rows can differ: a score of several
    metrics is the mean of their means, and answers without a value are left out.
    """
    total = round(means.get("num_instances", 0))
    is_of_answers = any(ANSWER_LOGPROB in row.values for row in rows)
    names = dict.fromkeys(means)
    if find_values(rows):
        # A score of HELM's own scenarios has another name in the files.
        names[MAIN_METRIC] = None
    statistics = {}
    for name in names:
        statistics[name] = _statistic(
            name, rows, name, means.get(name), total, is_of_answers
        )
    statistics.update(_key_statistics(rows))
    # A task's score is also stored under a separate name that only the task's mean has.
    own = task_score(rows[0].task)
    if own in statistics and MAIN_METRIC in statistics:
        statistics[own] = statistics[MAIN_METRIC]
    if task and MAIN_METRIC in statistics:
        if any(row.values.get(CUT) for row in rows):
            for name, cut_value in VALUES.items():
                replaced = replace_cut_scores(rows, cut_value, task.headline)
                statistics[name] = _score_of(name, task, replaced)
        if errata:
            right = [row for row in rows if row.instance not in errata]
            statistics[WITHOUT_ERRORS] = _score_of(WITHOUT_ERRORS, task, right)
    return statistics


def _key_statistics(rows: Sequence[Score]) -> dict[str, Statistic]:
    """Return the mean log-probability of the key tokens of all texts. Nothing if no text has one.

    Each key token counts the same, as in LongPPL's official script.
    """
    sums = []
    sizes = []
    groups = []
    for row in rows:
        if KEY_TOKENS in row.values:
            sums.append(row.values[KEY_LOGPROB_SUM])
            sizes.append(row.values[KEY_TOKENS])
            groups.append(row.group)
    if not any(sizes):
        return {}
    return {KEY_LOGPROB: Statistic(ratio_interval(sums, sizes, groups))}


def _score_of(name: str, task: Task, rows: Sequence[Score]) -> Statistic:
    """Return the score of answers, under another name."""
    # A score of several metrics is the mean of their means.
    means = []
    for metric in task.headline if len(task.headline) > 1 else (MAIN_METRIC,):
        means.append(mean_over_questions(rows, metric))
    mean = math.fsum(means) / len(means)
    return _statistic(name, rows, MAIN_METRIC, mean)


def _statistic(
    name: str,
    rows: Iterable[Score],
    metric: str,
    mean: float | None,
    total: int = 0,
    is_of_answers: bool = False,
) -> Statistic:
    """Return a statistic.

    Args:
        metric: what of the answers the statistic is the mean of.
        total: the number of instances, for a statistic of the whole run.
        is_of_answers: whether log-probabilities are of answers, of which a few can be misses. A text's mean over
            thousands of tokens has none.
    """
    numbers = []
    groups = []
    instances = set()
    for row, value in find_values(rows, metric):
        numbers.append(value)
        groups.append(row.group)
        instances.add(row.instance)
    # A statistic of the whole run, such as the agreement of a jury, has no values of instances.
    count = len(instances) or total
    if name in CONDITIONS or not numbers:
        return Statistic(
            replace(without_ends(math.nan if mean is None else mean), n=count)
        )
    kind = ValueKind.NATS if is_log_probability(name) else ValueKind.SCORE
    if kind is ValueKind.NATS and is_of_answers:
        interval = interval_with_misses(numbers, groups)
    else:
        interval = mean_interval(numbers, groups, kind)
    interval = replace(interval, n=count)
    clusters = {}
    for text, error in cluster_errors(numbers, groups).items():
        if text.startswith(TEXT_GROUP):
            clusters[text] = error
    if mean is not None:
        # The interval stays within the bounds of scores if it was within them.
        is_share = kind is ValueKind.SCORE and interval.low >= 0 and interval.high <= 1
        by = mean - interval.mean
        low = interval.low + by
        high = interval.high + by
        if is_share:
            low = max(low, 0.0)
            high = min(high, 1.0)
        interval = Interval(mean, low, high, count)
    return Statistic(interval, standard_error(numbers, groups), clusters)


def without_ends(mean: float) -> Interval:
    """Return a mean whose interval is not known."""
    return Interval(mean, math.nan, math.nan, 0)


_DEFAULTS = vars(Settings(None))


@dataclass(frozen=True)
class Run:
    """A finished run.

    Args:
        tasks: the tasks that were run, empty for a scenario of another package.
        judge: the judge that the run entry names, if it is not the official one of each judged task; else empty.
        looks: the numbers of instances after which somebody looked and could stop the run.
        model_facts: what identifies a model that ran in the run's process, empty for others.
        entry: what the run was asked with, or None for another package's scenario.
    """

    path: Path
    spec: Mapping[str, Any]
    tasks: tuple[Task, ...]
    judge: str
    looks: tuple[int, ...] = ()
    model_facts: Mapping[str, Any] = field(default_factory=dict)
    entry: Entry | None = None

    @property
    def name(self) -> str:
        """The run's name. The folder's name can differ from it in slashes."""
        return str(self.spec["name"])

    @property
    def shared_name(self) -> str:
        """The run's name without the model: what runs of several models share."""
        return str(read_run_name(self.path.name).before_model())

    @property
    def model(self) -> str:
        """The model that was asked."""
        return str(self.spec["adapter_spec"]["model"])

    @property
    def deployment(self) -> str:
        """The model's deployment."""
        return str(self.spec["adapter_spec"].get("model_deployment", ""))

    @property
    def package(self) -> str:
        """The version of helm-longctx that made the run, empty for older runs."""
        packages = (
            metric.get("args", {}).get("package")
            for metric in self.spec.get("metric_specs", [])
        )
        return next(filter(None, packages), "")

    @property
    def comparability(self) -> str:
        """The benchmark's comparability number, empty for older runs."""
        return str(self.spec["scenario_spec"].get("args", {}).get("comparability", ""))


@dataclass(frozen=True)
class Result:
    """A model's score: of a task in a run, of a published table, of a category, or of a whole benchmark.

    Args:
        entry: the name of the run entry, or `overall` for a benchmark's overall score.
        task: the task's name, empty for the score of a whole category or benchmark.
        model: the model's name; its deployment if the suite has several deployments of the model.
        interval: the score with its interval and the number of instances. The mean is NaN if there is no score.
        lacks: the reasons why the score is not comparable, or why there is none.
        run: the run, or None for published scores and for means.
        answers: the scores of the answers, empty if they were not kept, for published scores and for means.
        failed: the number of requests without an answer. They are in no score.
        parts: the results that a mean is of, empty for the score of a task.
        errata: the known errors of the task's questions, by the names of the instances that were asked.
        metric: `likelihood`, `perplexity` or `longppl` if the run scores given texts, empty for the official metrics.
    """

    benchmark: str
    entry: str
    task: str
    model: ShownModel
    length: int | None
    context: str
    interval: Interval
    judges: frozenset[str] = frozenset()
    caveats: tuple[Caveat, ...] = ()
    folder: str = ""
    run: Run | None = None
    statistics: Mapping[str, Statistic] = field(default_factory=dict)
    answers: tuple[Score, ...] = ()
    failed: int = 0
    parts: tuple[Result, ...] = ()
    errata: Mapping[str, tuple[Erratum, ...]] = field(default_factory=dict)
    is_published: bool = False
    metric: str = ""

    @property
    def part(self) -> str:
        """The part of the benchmark that the score is of: a task, a run entry, or `overall`."""
        return self.task or self.entry

    @cached_property
    def has_score(self) -> bool:
        """Whether there is a score."""
        return not math.isnan(self.interval.mean)

    @property
    def task_results(self) -> list[Result]:
        """The results of the user's tasks that the score is of; none if it was published."""
        if self.is_published:
            return []
        if self.task:
            return [self]
        tasks = []
        for part in self.parts:
            tasks += part.task_results
        return tasks

    @property
    def weighted_tasks(self) -> list[tuple[Result, float]]:
        """The scores of which the score is the weighted mean, each with its weight; the score itself if it is no mean.

        A mean of means is one of tasks.
        """
        scored = [part for part in self.parts if part.has_score]
        if not scored:
            return [(self, 1.0)]
        weighted = []
        for part in scored:
            if not part.parts:
                weighted.append((part, 1 / len(scored)))
                continue
            for task, weight in part.weighted_tasks:
                weighted.append((task, weight / len(scored)))
        return weighted

    @cached_property
    def is_complete(self) -> bool:
        """Whether all tasks of a mean have a score."""
        return self.has_score and (not self.caveats or not self._has_caveat("missing"))

    @cached_property
    def is_official(self) -> bool:
        """Whether the official judge judged, or no judge decides."""
        return not self.caveats or not self._has_caveat("judge")

    @cached_property
    def is_generated(self) -> bool:
        """Whether this package made some of the questions in place of the benchmark's own."""
        return bool(self.caveats) and self._has_caveat(GENERATED)

    def _has_caveat(self, kind: str) -> bool:
        return kind in [caveat.kind for caveat in self.caveats]

    @property
    def asked_conditions(self) -> tuple[str, ...]:
        """What results of a task must share to be compared, apart from the judge: questions, prompts and scorer."""
        entry = self.run.entry if self.run else None
        given = entry.arguments if entry else {}
        scorers = set()
        for caveat in self.caveats:
            if caveat.kind == "scorer":
                scorers.add(caveat.detail)
        conditions = [f"scorer={scorer}" for scorer in sorted(scorers)]
        for name in OF_PROMPTS:
            if str(given.get(name, _DEFAULTS[name])) != str(_DEFAULTS[name]):
                conditions.append(f"{name}={given[name]}")
        if self.is_generated:
            # The questions of two sources can have the same names.
            conditions.append(f"questions={GENERATED}")
        return tuple(conditions)

    @property
    def conditions(self) -> tuple[str, ...]:
        """What results of a task must share to be compared."""
        judges = [f"judge={judge}" for judge in sorted(self.judges)]
        return (*judges, *self.asked_conditions)

    @property
    def error(self) -> float:
        """The standard error of the score. Of a published one only the widest interval is known."""
        if self.parts:
            parts = []
            for part in self.parts:
                if part.has_score:
                    parts.append(part)
            return error_of_means(
                [part.error for part in parts], [part.clusters_of() for part in parts]
            )
        if self.is_published:
            return (self.interval.high - self.interval.low) / (2 * normal_quantile())
        return self.statistics[MAIN_METRIC].error

    def find_interval(self, metric: str) -> Interval | None:
        """Return a statistic of the score, or None if it has none of that name."""
        return interval_finder(metric)(self)

    def clusters_of(self, metric: str = MAIN_METRIC) -> ClusterWeights:
        """Return the `cluster_errors` of a statistic in texts that other tasks can share; of a mean the score's."""
        if self.is_published:
            return {}
        if not self.parts:
            if metric in self.statistics:
                return self.statistics[metric].clusters
            return {}
        parts = [part.clusters_of() for part in self.parts if part.has_score]
        sums: dict[str, float] = defaultdict(float)
        for part in parts:
            for group, error in part.items():
                sums[group] += error / len(parts)
        return sums

    @property
    def runs(self) -> list[Run]:
        """The runs that the score is from, each once; none for a published score."""
        if self.run:
            return [self.run]
        by_path = {}
        for part in self.parts:
            for run in part.runs:
                by_path[run.path] = run
        return list(by_path.values())

    @property
    def other_judge(self) -> str:
        """The judge, if it is not the official one; else empty."""
        if self.is_official:
            return ""
        return next(iter(self.judges))


def read_results(
    suite: Path,
    benchmarks: Iterable[Benchmark],
    keep_answers: bool = True,
    most_models: int | None = None,
) -> list[Result]:
    """Read all results of a suite: of its finished runs by name, and the published ones.

    Args:
        keep_answers: whether results have the scores of answers: these need memory.
        most_models: the largest number of models that the suite may have. None for no limit.

    Raises:
        InputError: all runs are damaged, or there are more models. Reading ends at the first model too many.
    """
    benchmarks = tuple(benchmarks)
    folders = tqdm(find_runs(suite), "Scores of runs", disable=None, leave=False)

    def read_folder(folder: Path) -> list[Result]:
        return read_run(folder, read_run_spec(folder), benchmarks)

    own: list[Result] = []
    models: set[str] = set()
    for _, results in read_undamaged(folders, read_folder):
        for result in results:
            models.add(result.model)
            own.append(result if keep_answers else replace(result, answers=()))
        if most_models is not None and len(models) > most_models:
            raise InputError(
                f"{suite} has more than {most_models:,} models in {len(folders):,}"
                " runs, which take time that grows with the square of their number;"
                " divide the runs among several suites"
            )
    deployments: dict[str, set[str]] = defaultdict(set)
    for result in own:
        if result.run:
            deployments[result.run.model].add(result.run.deployment)
    named = []
    for result in own:
        run = result.run
        # Models are named by their deployments where the suite has several deployments of a model.
        if run and run.deployment and len(deployments[run.model]) > 1:
            result = replace(result, model=shown_model(run.deployment, run.entry))
        named.append(result)

    for benchmark in benchmarks:
        rows = read_reference_rows(suite, benchmark)
        named += published_results(benchmark, rows)
    return named


def read_run(
    path: Path,
    spec: Mapping[str, Any],
    benchmarks: Sequence[Benchmark],
) -> list[Result]:
    """Read the result of each task of a finished run, one of another scenario's run, or raise an `InputError`."""
    with reading(path / RUN_SPEC):
        arguments = spec["scenario_spec"].get("args", {})
        asked = read_entry(spec)
        shown = shown_model(spec["adapter_spec"]["model"], asked)
    by_name = {benchmark.name: benchmark for benchmark in benchmarks}
    entry = asked if asked and asked.benchmark.name in by_name else None
    benchmark = by_name[entry.benchmark.name] if entry else None
    if not (path / STATS).is_file() or MAKER in arguments:
        return []
    means = _read_means(path / STATS, is_ours=entry is not None)
    files_changed = entry is not None and do_files_differ(entry, arguments.get("files"))
    tasks = entry.tasks if entry else ()
    judge = entry.settings.judge if entry else ""
    # Answers that no judge has seen compare with those of the official judge.
    named_judge = judge if spec.get("annotators") else ""
    if all(task.is_official(judge) for task in tasks):
        judge = ""
    model = read_model(path)
    digests = read_data(path)
    run = Run(
        path=path,
        spec=spec,
        tasks=tasks,
        judge=judge,
        looks=read_looks(path),
        model_facts=model,
        entry=entry,
    )
    answers: dict[str, list[Score]] = defaultdict(list)
    scored = score_records(path, spec, asked, [benchmark] if benchmark else ())
    for _, answer in scored:
        if answer is not None:
            answers[answer.task].append(answer)
    results = []
    for name, rows in answers.items():
        first = rows[0]
        task = next((candidate for candidate in tasks if candidate.name == name), None)
        errata = _find_errata(benchmark, rows) if benchmark else {}
        task_means = {}
        for (statistic, of), mean in means.items():
            if of == name:
                known = benchmark.current_name(statistic) if benchmark else statistic
                task_means[known] = mean
        statistics = task_statistics(task, rows, task_means, errata)
        if MAIN_METRIC in statistics:
            score = statistics[MAIN_METRIC].interval
        else:
            score = without_ends(math.nan)
        caveats = []
        if model.get("remote_code"):
            code = f"{model.get('pretrained_model_name_or_path')} at {model.get('revision')}"
            caveats.append(Caveat("remote_code", name, code))
        if changed := model.get("resumed"):
            caveats.append(Caveat("resumed", name, ", ".join(changed)))
        if entry and task:
            caveats += task_caveats(task, entry, task_means, files_changed)
            caveats += data_caveats(task, entry.settings.length, digests)
        results.append(
            Result(
                benchmark=benchmark.name if benchmark else "",
                entry=entry.name if entry else first.entry,
                task=name,
                model=shown,
                length=first.length,
                context=asked.settings.context if asked else "full",
                interval=score,
                judges=_judges(task, named_judge),
                caveats=tuple(caveats),
                folder=folder_name(entry.settings.path) if entry else "",
                run=run,
                statistics=statistics,
                answers=tuple(rows),
                failed=sum(bool(row.failure) for row in rows),
                errata=errata,
                metric=entry.metric if entry else "",
            )
        )
    return results


def _read_means(path: Path, is_ours: bool) -> dict[tuple[str, str], float]:
    """Return the mean of each statistic of the test instances, or else of the others, by name and task."""
    stats = read_json(path)
    with reading(path):
        stats = [stat for stat in stats if "perturbation" not in stat["name"]]
        if is_ours and len(
            {tuple(sorted(stat["name"].items(), key=str)) for stat in stats}
        ) < len(stats):
            raise ValueError("a statistic is there twice")
        # Some scenarios of HELM have only validation instances. The last one of equal keys counts.
        stats.sort(key=lambda stat: stat["name"].get("split") == "test")
        means = []
        for stat in stats:
            if stat.get("mean") is not None:
                means.append((stat["name"], stat["mean"]))
        return {(name["name"], name.get("sub_split", "")): mean for name, mean in means}


def _judges(task: Task | None, judge: str) -> frozenset[str]:
    """Return a run's judge: the one that its entry names, or the official one on any host. Empty without a judge."""
    if task is None or task.official_judge is None:
        return frozenset()
    if not judge or task.is_official(judge):
        return frozenset([task.official_judge])
    return frozenset([judge])


def interval_of(answers: Iterable[Score]) -> Interval:
    """Return the mean of answers' scores, clustered by their groups, and the number of instances."""
    scores = []
    groups = []
    instances = set()
    for answer in answers:
        if answer.score is not None:
            scores.append(answer.score)
            groups.append(answer.group)
            instances.add((answer.task, answer.length, answer.instance))
    return replace(mean_interval(scores, groups), n=len(instances))


def published_results(
    benchmark: Benchmark,
    rows: Iterable[Published] | None = None,
    known: Iterable[Result] = (),
) -> list[Result]:
    """Return published scores, all or of some rows, of tasks, or of categories that have no others.

    Args:
        known: published scores that are there already, such as those in a suite. Equal ones are left out.
    """
    # Thousands of scores share what `_find_published_part` returns.
    parts: dict[tuple[str, str, int | None], _PublishedPart] = {}
    intervals = {
        (result.model, result.entry, result.task, result.length): result.interval
        for result in known
        if result.is_published
    }
    results: list[Result] = []
    for row in benchmark.published() if rows is None else rows:
        model = published_model(row.model)
        for task, score in row.scores.items():
            key = (row.category, task, row.length)
            if key not in parts:
                parts[key] = _find_published_part(
                    benchmark, row.category, task, row.length
                )
            part = parts[key]
            count = part.sample if row.samples is None else row.samples
            interval = _widest_interval(score, count)
            if intervals.get((model, part.entry, task, row.length)) == interval:
                continue
            statistics = dict.fromkeys(part.names, Statistic(interval))
            for name, mean in row.metrics.get(task, {}).items():
                statistics[name] = Statistic(_widest_interval(mean, count))
            statistics[MAKER] = _IS_PUBLISHED
            result = Result(
                benchmark=benchmark.name,
                entry=part.entry,
                task=task,
                model=model,
                length=row.length,
                context="full",
                interval=statistics[MAIN_METRIC].interval,
                judges=part.judges,
                caveats=_published_caveats(part, task, row)
                if row.source or row.scorer
                else (),
                statistics=statistics,
                is_published=True,
            )
            results.append(result)
    return results


def _find_published_part(
    benchmark: Benchmark,
    category: str,
    name: str,
    length: int | None,
) -> _PublishedPart:
    """Return what the scores of a task, or of a whole category for an empty name, share at a length."""
    entry = next(
        entry
        for entry, candidate in benchmark.entries.items()
        if candidate.name == category
    )
    if name:
        tasks: tuple[Task, ...] = (benchmark.task(name),)
    else:
        tasks = benchmark.entries[entry].tasks_at(length)
    # The publication does not name the protocol of a model, so the smallest sample is used.
    samples = []
    for task in tasks:
        of_protocols = []
        for protocol in task.variants:
            of_protocols.append(task.sample(Settings(length, protocol=protocol)))
        samples.append(min(of_protocols))
    headline = tasks[0].headline if name else ()
    names = [MAIN_METRIC]
    if name:
        names.append(task_score(name))
    if len(headline) == 1:
        names += headline
    judges = [task.official_judge for task in tasks if task.official_judge]
    return _PublishedPart(
        entry=entry,
        tasks=tasks,
        sample=sum(samples),
        names=names,
        judges=frozenset(judges),
    )


class _PublishedPart(NamedTuple):
    """What all published scores of a task or a category at a length share.

    Args:
        sample: the smallest number of questions that the score can be of.
        names: the statistics that the score is.
    """

    entry: str
    tasks: tuple[Task, ...]
    sample: int
    names: Sequence[str]
    judges: frozenset[str]


_IS_PUBLISHED = Statistic(without_ends(1.0))


def _published_caveats(
    part: _PublishedPart,
    name: str,
    row: Published,
) -> tuple[Caveat, ...]:
    """Return why a published score does not compare: it was imported, or made by another scorer."""
    caveats = [Caveat("imported", name, row.source)] if row.source else []
    for task in part.tasks:
        if task.is_other_scorer(row.scorer):
            caveats.append(Caveat("scorer", task.name, row.scorer))
    return tuple(caveats)


@cache
def _widest_interval(mean: float, count: int) -> Interval:
    """Return a mean in 0…1 with the ends of Wilson's interval; of an unknown number of questions without ends."""
    if not count:
        return without_ends(mean)
    low, high = wilson(mean, count, normal_quantile())
    return Interval(mean, low, high, count)


@cache
def interval_finder(metric: str) -> Callable[[Result], Interval | None]:
    """Return what finds a statistic of a score, or None if the score has none of that name. A suite has thousands."""
    if metric == MAIN_METRIC:
        return operator.attrgetter("interval")

    def find_statistic(result: Result) -> Interval | None:
        statistic = result.statistics.get(metric)
        return statistic.interval if statistic else None

    return find_statistic


def read_runs(results: Iterable[Result]) -> Iterator[tuple[Run, list[Result]]]:
    """Yield each run with the results of its tasks, in the order of the results."""
    by_run: dict[Path, list[Result]] = defaultdict(list)
    for result in results:
        if result.run:
            by_run[result.run.path].append(result)
    for rows in by_run.values():
        if run := rows[0].run:
            yield run, rows
