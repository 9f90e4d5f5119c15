"""Reads a run's answers and scores, with what statistics need: clusters, lengths, depths, repeats and failures."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import yaml

from helm_longctx.errors import InputError
from helm_longctx.runs.files import (
    INSTANCE_STATS,
    RUN_SPEC,
    STATES,
    State,
    find_sample,
    read_rows,
    read_run_spec,
    read_states,
    reading,
    repeat_of,
)
from helm_longctx.runs.prompts import to_text
from helm_longctx.runs.shown_models import ShownModel, shown_model
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.groups import folder_name
from helm_longctx.tasks.metric_names import FAILURES
from helm_longctx.tasks.run_names import read_run_name
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.stored_entry import read_entry
from helm_longctx.tasks.task import MAIN_METRIC, TEXT_GROUP


class InstanceScore(NamedTuple):
    """The score of one answer.

    Args:
        run: name of the run's folder.
        entry: the run entry's name, with the folder of the user's own files; for HELM's own runs the part of the run's
            name before the arguments.
        task: the task's name; empty in HELM's own runs.
        length: the length; None if the benchmark has no lengths.
        context: `full`, or `none` for a closed-book run.
        repeat: the number of the repeat, from 0.
        score: the score; None if there is no answer or no verdict.
        group: the name of the cluster of answers: the book, the set of documents, or the question that is asked at
            several depths; else the instance alone. Only the names of texts (`TEXT_GROUP`) are the same in other tasks.
        depth: position of the evidence, 0 to 1.
        failure: the statistic that counts requests without an answer for this reason; empty if there is an answer.
        tokens: number of tokens of the prompt; None if unknown.
        judge: the run's judge; empty if none was named.
        values: all statistics of the answer, by name.
        errata: the rules by which the question has a known error (`Example.errata`).
    """

    run: str
    model: ShownModel
    entry: str
    task: str
    length: int | None
    context: str
    instance: str
    repeat: int
    score: float | None
    group: str
    depth: float | None
    failure: str
    tokens: int | None
    judge: str
    values: Mapping[str, float]
    errata: tuple[str, ...] = ()


def read_scores(
    run: Path, benchmarks: Iterable[Benchmark] = (), metric: str | None = None
) -> list[InstanceScore]:
    """Read the scores of a run's answers, in the data's order, of instances without perturbation.

    Args:
        run: the run's folder. Runs of earlier versions and of HELM's own scenarios can be read, too.
        benchmarks: the benchmarks whose tasks can have a score of several metrics, which is the mean of the answer's.
        metric: the statistic that is the score; None for `longctx_score`, and in runs of HELM's own scenarios for the
            main metric by HELM's schema files.

    Returns:
        An empty list for published results, which have no instances.

    Raises:
        InputError: a file is missing or damaged.
    """
    spec = read_run_spec(run)
    path = run / INSTANCE_STATS
    with reading(run / RUN_SPEC):
        entry = read_entry(spec)
        about = _about(run, spec, entry)
        main, split = (MAIN_METRIC, "test") if entry else _schema_metric(tuple(spec["groups"]))
        # The score of a task can be the mean of several statistics.
        headlines: dict[str, tuple[str, ...]] = {}
        names = {benchmark.name for benchmark in benchmarks}
        is_official = entry is not None and metric is None and not entry.metric
        if entry is not None and is_official and entry.benchmark.name in names:
            headlines = {
                task.name: task.headline for task in entry.benchmark.tasks if len(task.headline) > 1
            }
        alone = (metric or main,)
    scores: list[InstanceScore] = []
    samples: dict[tuple[str, str], Sample | None] = {}
    if (states := run / STATES).is_file():
        with reading(states):
            instances = (state["instance"] for state in read_states(states))
            samples = {
                (each["id"], each.get("sub_split") or ""): find_sample(each) for each in instances
            }
    with reading(path):
        for row in read_rows(path):
            for task, values in _by_task(row, split).items():
                name = row["instance_id"]
                headline = headlines.get(task, alone)
                sample = samples.get((name, task)) or Sample("", 0, 0)
                tokens = values.get(
                    "prompt_tokens", values.get("input_tokens", sample.input_tokens)
                )
                scores.append(
                    InstanceScore(
                        **about,
                        task=task,
                        instance=name,
                        repeat=repeat_of(row),
                        score=fmean(values[each] for each in headline)
                        if values.keys() >= {*headline}
                        else None,
                        group=_group(task, name, sample),
                        depth=values.get("depth", sample.depth),
                        failure=next((each for each in FAILURES if values.get(each)), ""),
                        tokens=None if tokens is None else int(tokens),
                        values=values,
                        errata=tuple(sample.errata or ()),
                    )
                )
    return scores


def _group(task: str, instance: str, sample: Sample) -> str:
    """Return the name of an instance's cluster."""
    if sample.group and sample.group.startswith(TEXT_GROUP):
        return sample.group
    return f"{task}: {sample.group or instance}"


def _about(run: Path, spec: Mapping[str, Any], entry: Entry | None) -> dict[str, Any]:
    """Return the fields that all scores of a run share."""
    name = entry.name if entry else read_run_name(spec["name"]).entry
    folder = folder_name(entry.settings.path) if entry else ""
    judge = entry.settings.judge if entry and spec.get("annotators") else ""
    return {
        "run": run.name,
        "model": shown_model(spec["adapter_spec"]["model"], entry),
        "entry": f"{name} {folder}" if folder else name,
        "length": entry.settings.length if entry else None,
        "context": entry.settings.context if entry else "full",
        "judge": judge,
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


def _by_task(row: Mapping[str, Any], split: str) -> dict[str, dict[str, float]]:
    """Return the statistics of an answer by task; nearly always there is one task."""
    tasks: dict[str, dict[str, float]] = {}
    for stat in row["stats"]:
        name = stat["name"]
        if (
            name.get("split") in (split, None)
            and "perturbation" not in name
            and stat.get("mean") is not None
        ):
            tasks.setdefault(name.get("sub_split") or "", {})[name["name"]] = stat["mean"]
    return tasks


class Value(NamedTuple):
    """A value of an answer, with its cluster and its instance."""

    value: float
    group: str
    instance: str


def values_of(rows: Iterable[InstanceScore], metric: str = "") -> list[Value]:
    """Return a metric of answers, without answers that do not have it.

    Args:
        metric: the metric; empty for the score.
    """
    found = ((row, row.values.get(metric) if metric else row.score) for row in rows)
    return [Value(value, row.group, row.instance) for row, value in found if value is not None]


def mean_over_questions(values: Sequence[Value]) -> float:
    """Return the mean over questions of their means over repeats, as HELM's statistics; NaN without a value."""
    questions: dict[str, list[float]] = {}
    for each in values:
        questions.setdefault(each.instance, []).append(each.value)
    return fmean(map(fmean, questions.values())) if questions else math.nan


Key = tuple[str, str, int]
"""An answer's task, instance id and repeat, from 0. A task is empty in HELM's own scenarios."""


STEPS = "steps.jsonl"
"""The file with the requests of methods that send any number of them: a line for each question.

A line has the question's `id`, `task` and `repeat`, and its `steps` in the order of their replies: `label`, the elided
`prompt` as messages, its `characters` and `sha256`, the reply's `text` and `calls` or the `error`, `seconds`, `usage`,
`dollars`, and whether the request was `shared` with an earlier question, which has paid for it.
"""


class Answer(NamedTuple):
    """A model's answer: its request state, and its score; None for copies that HELM has perturbed."""

    state: State
    score: InstanceScore | None = None

    @property
    def key(self) -> Key:
        """What no other answer of the run has, apart from perturbed copies."""
        instance = self.state["instance"]
        return instance.get("sub_split") or "", instance["id"], repeat_of(self.state)

    @property
    def is_perturbed(self) -> bool:
        """Whether the instance is a copy that HELM has changed. Our statistics leave these out."""
        return bool(self.state["instance"].get("perturbation"))

    @property
    def sample(self) -> Sample | None:
        """The sample of our scenarios; None for an instance of another package's scenario."""
        return find_sample(self.state["instance"])

    @property
    def question(self) -> str:
        """The question without its context; empty if the scenario does not tell them apart."""
        sample = self.sample
        return (sample.question if sample else None) or ""

    @property
    def references(self) -> list[str]:
        """The accepted answers."""
        return [reference["output"]["text"] for reference in self.state["instance"]["references"]]

    @property
    def prompt(self) -> str:
        """The prompt as the files have it, in which long texts are elided; a conversation as JSON."""
        request = self.state["request"]
        return to_text(request.get("prompt", ""), request.get("messages"))

    @property
    def completion(self) -> Mapping[str, Any]:
        """The first completion; empty if there is none."""
        return ((self.state.get("result") or {}).get("completions") or [{}])[0]

    @property
    def is_answered(self) -> bool:
        """Whether the request has an answer. A request that failed has an empty completion."""
        return bool((self.state.get("result") or {}).get("success") and self.completion)

    @property
    def text(self) -> str:
        """The answer, as it is scored after reasoning in a field of its own; empty if there is none."""
        text = str(self.completion.get("text") or "")
        return text.strip() if self.reasoning else text

    @property
    def reasoning(self) -> str:
        """The reasoning in a field of its own; empty if there is none."""
        return (self.completion.get("thinking") or {}).get("text") or ""

    @property
    def error(self) -> str:
        """The server's message if the request has no answer."""
        return (self.state.get("result") or {}).get("error") or ""


def read_answers(run: Path, scores: Iterable[InstanceScore] = ()) -> Iterator[Answer]:
    """Read a run's answers in order, one at a time, or raise an `InputError` if states are damaged or missing."""
    path = run / STATES
    by_key = {(each.task, each.instance, each.repeat): each for each in scores}
    left = set(by_key)
    for state in read_states(path):
        with reading(path):
            answer = Answer(state)
            score = None if answer.is_perturbed else by_key.get(answer.key)
            left.discard(answer.key)
        yield Answer(state, score)
    if left:
        raise InputError(f"{path} lacks instances that have a score; repeat that run")


def read_steps(run: Path) -> Iterator[tuple[Key, list[dict[str, Any]]]]:
    """Yield each question's key and its steps, or raise an `InputError`."""
    path = run / STEPS
    if path.is_file():
        with reading(path), path.open("rb") as file:
            # Texts of models can have lone surrogates, which orjson refuses.
            for line in map(json.loads, file):
                yield (line["task"] or "", line["id"], line["repeat"]), line["steps"]
