"""Reads a run's answers and scores, with what statistics need: clusters, lengths, depths, repeats and failures."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import yaml

from helm_longctx.runs.files import (
    RUN_SPEC,
    read_run_spec,
    reading,
)
from helm_longctx.runs.records import (
    TEST_SPLIT,
    Record,
    read_records,
)
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.groups import folder_name
from helm_longctx.tasks.metric_names import FAILURES
from helm_longctx.tasks.run_names import read_run_name
from helm_longctx.tasks.sample import RecordKey, Sample
from helm_longctx.tasks.stored_entry import read_entry
from helm_longctx.tasks.task import MAIN_METRIC, TEXT_GROUP


class Score(NamedTuple):
    """The score of one answer.

    Args:
        run: name of the run's folder.
        entry: the run entry's name, with the folder of the user's own files; for HELM's own runs the part of the run's
            name before the arguments.
        task: the task's name; empty in HELM's own runs.
        length: the length; None if the benchmark has no lengths.
        repeat: the number of the repeat, from 0.
        score: the score; None if there is no answer or no verdict.
        group: the name of the cluster of answers: the book, the set of documents, or the question that is asked at
            several depths; else the instance alone. Only the names of texts (`TEXT_GROUP`) are the same in other tasks.
        depth: position of the evidence, 0 to 1.
        failure: the statistic that counts requests without an answer for this reason; empty if there is an answer.
        tokens: number of tokens of the prompt; None if unknown.
        values: all statistics of the answer, by name.
        errata: the rules by which the question has a known error (`Example.errata`).
    """

    run: str
    entry: str
    task: str
    length: int | None
    instance: str
    repeat: int
    score: float | None
    group: str
    depth: float | None
    failure: str
    tokens: int | None
    values: Mapping[str, float]
    errata: tuple[str, ...] = ()


def read_scores(
    run: Path,
    benchmarks: Iterable[Benchmark] = (),
    metric: str | None = None,
) -> list[Score]:
    """Read the scores of a run's answers. The arguments and errors are those of `read_scored_records`.

    Returns:
        An empty list for published results, which have no instances.
    """
    scores = []
    for _, score in read_scored_records(run, benchmarks, metric):
        if score is not None:
            scores.append(score)
    return scores


def read_scored_records(
    run: Path,
    benchmarks: Iterable[Benchmark] = (),
    metric: str | None = None,
) -> Iterator[tuple[Record, Score | None]]:
    """Read a run's records in order, one at a time, each with its score.

    Perturbed copies, records of other splits, and those of a run that was not scored have none.

    Args:
        run: the run's folder. Runs of HELM's own scenarios can be read, too.
        benchmarks: the benchmarks whose tasks can have a score of several metrics, which is the mean of the answer's.
        metric: the statistic that is the score; None for `longctx_score`, and in runs of HELM's own scenarios for the
            main metric by HELM's schema files.

    Raises:
        InputError: a file is missing or damaged.
    """
    spec = read_run_spec(run)
    with reading(run / RUN_SPEC):
        entry = read_entry(spec)
    return score_records(run, spec, entry, benchmarks, metric)


def score_records(
    run: Path,
    spec: Mapping[str, Any],
    entry: Entry | None,
    benchmarks: Iterable[Benchmark],
    metric: str | None = None,
) -> Iterator[tuple[Record, Score | None]]:
    """Return what `read_scored_records` does, for a run whose spec was read before.

    Args:
        spec: the content of the run's `run_spec.json`.
        entry: what the run was asked with (`read_entry`).
    """
    with reading(run / RUN_SPEC):
        if entry:
            main = MAIN_METRIC
            split = TEST_SPLIT
        else:
            main, split = _schema_metric(tuple(spec["groups"]))
        # Where a metric is given, or the run scores given texts, the score of each task is one statistic.
        is_official = entry is not None and metric is None and not entry.metric
        maker = _ScoreMaker(
            about=_about(run, spec, entry),
            headlines=_find_headlines(entry, benchmarks)
            if entry and is_official
            else {},
            main=metric or main,
            benchmark=entry.benchmark if entry else None,
        )
    for record in read_records(run):
        has_score = record.values and record.split == split and not record.is_perturbed
        yield record, maker.make(record) if has_score else None


@dataclass(frozen=True)
class _ScoreMaker:
    """Makes the scores of a run.

    Args:
        about: the fields that all scores of the run share.
        headlines: the metrics of which the score is the mean, by task. Other tasks have the score `main`.
        benchmark: the benchmark, which knows earlier names of its metrics.
    """

    about: Mapping[str, Any]
    headlines: Mapping[str, Sequence[str]]
    main: str
    benchmark: Benchmark | None

    def make(self, record: Record) -> Score:
        """Return the score of a record."""
        task = record.task
        values = self._rename(record.values)
        # The scenario of another package has no sample.
        sample = record.sample or _NONE
        headline = self.headlines.get(task, (self.main,))
        has_score = values.keys() >= {*headline}
        tokens = values.get(
            "prompt_tokens", values.get("input_tokens", sample.input_tokens)
        )
        return Score(
            **self.about,
            task=task,
            instance=record.instance,
            repeat=record.repeat,
            score=fmean([values[name] for name in headline]) if has_score else None,
            group=_group(task, record.instance, sample),
            depth=values.get("depth", sample.depth),
            failure=next((name for name in FAILURES if values.get(name)), ""),
            tokens=None if tokens is None else int(tokens),
            values=values,
            errata=tuple(sample.errata or ()),
        )

    def _rename(self, values: Mapping[str, float]) -> Mapping[str, float]:
        """Return the values by the names that metrics have today."""
        if self.benchmark is None or not self.benchmark.former_metrics:
            return values
        renamed = {}
        for name, value in values.items():
            renamed[self.benchmark.current_name(name)] = value
        return renamed


def _find_headlines(
    entry: Entry,
    benchmarks: Iterable[Benchmark],
) -> dict[str, Sequence[str]]:
    """Return the metrics of tasks whose score is the mean of several."""
    names = {benchmark.name for benchmark in benchmarks}
    if entry.benchmark.name not in names:
        return {}
    return {
        task.name: task.headline
        for task in entry.benchmark.tasks
        if len(task.headline) > 1
    }


_NONE = Sample("", 0, 0)
"""Stands for the sample of another package's scenario."""


def _group(task: str, instance: str, sample: Sample) -> str:
    """Return the name of an instance's cluster."""
    if sample.group and sample.group.startswith(TEXT_GROUP):
        return sample.group
    return f"{task}: {sample.group or instance}"


def _about(run: Path, spec: Mapping[str, Any], entry: Entry | None) -> dict[str, Any]:
    """Return the fields that all scores of a run share."""
    name = entry.name if entry else read_run_name(spec["name"]).entry
    folder = folder_name(entry.settings.path) if entry else ""
    return {
        "run": run.name,
        "entry": f"{name} {folder}" if folder else name,
        "length": entry.settings.length if entry else None,
    }


@lru_cache(maxsize=256)
def _schema_metric(groups: tuple[str, ...]) -> tuple[str, str]:
    """Return the main metric and split of the first of a run's groups that has one in HELM's schema files."""
    folder = Path(str(resources.files("helm.benchmark"))) / "static"
    for path in sorted(folder.glob("schema*.yaml")):
        text = path.read_text(encoding="utf-8")
        if not any(f"name: {group}\n" in text for group in groups):
            continue  # parsing all files would take seconds
        for group in yaml.safe_load(text)["run_groups"]:
            main = (group.get("environment") or {}).get("main_name", "$")
            if group["name"] in groups and "$" not in main:
                return main, group["environment"].get("main_split", "test")
    return MAIN_METRIC, "test"


def find_values(
    rows: Iterable[Score],
    metric: str = MAIN_METRIC,
) -> list[tuple[Score, float]]:
    """Return the answers that have a statistic, each with its value. That of `longctx_score` is the score."""
    measured = []
    for row in rows:
        value = row.score if metric == MAIN_METRIC else row.values.get(metric)
        if value is not None:
            measured.append((row, value))
    return measured


def mean_over_questions(rows: Iterable[Score], metric: str = MAIN_METRIC) -> float:
    """Return the mean over questions of their means over repeats, as HELM's statistics; NaN without a value."""
    questions: dict[str, list[float]] = {}
    for row, value in find_values(rows, metric):
        questions.setdefault(row.instance, []).append(value)
    return fmean(map(fmean, questions.values())) if questions else math.nan


STEPS = "steps.jsonl"
"""The file with the requests of methods that send any number of them: a line for each question.

A line has the question's `id`, `task` and `repeat`, and its `steps` in the order of their replies: `label`, the elided
`prompt` as messages, its `characters` and `sha256`, the reply's `text` and `calls` or the `error`, `seconds`, `usage`,
`dollars`, and whether the request was `shared` with an earlier question, which has paid for it.
"""


def read_steps(run: Path) -> Iterator[tuple[RecordKey, list[dict[str, Any]]]]:
    """Yield each question's key and its steps, or raise an `InputError`."""
    path = run / STEPS
    if path.is_file():
        with reading(path), path.open("rb") as file:
            # Texts of models can have lone surrogates, which orjson refuses.
            for line in map(json.loads, file):
                yield (line["task"] or "", line["id"], line["repeat"]), line["steps"]
