"""The task model: benchmarks, their tasks, and the examples, prompts, scores and lengths of a task.

Everything that HELM needs is derived from these objects. No other module holds facts about a task.

**What a scorer gets.** `Task.score` gets a scored record, a mapping with these fields:

- `prediction`: the output, a string with the white space that the model wrote. If the prompt was sent in completion
  form and the task has `prefix_scored`, the prompt's answer prefix stands before the output, joined without a
  separator; in chat form it never does. If the output has a `</think>`, the prediction is only the text after the last
  one, stripped, without the answer prefix.
- `references`: the list `Example.references`.
- every item of `Example.record`.
- of a judged task, what its annotator says of the answer.

`helm-longctx score` reads such records from a file. A scorer returns the official metrics by name; a metric that has no
value for this record is left out. It reads only the record, and raises for no `prediction`.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from typing import Any, Literal

from helm_longctx.protocol.baseline import Baseline
from helm_longctx.protocol.lengths import INPUT_TOKENS, Axis, parse_length
from helm_longctx.protocol.prompt import FollowUp, Message, Prompt
from helm_longctx.protocol.shapes import Shape
from helm_longctx.protocol.template import Template
from helm_longctx.sources.fetch import Source
from helm_longctx.sources.root import DataRoot

Style = Literal["auto", "chat", "completion"]
Protocol = Literal["paper", "current", "api"]
Labels = Literal["integer", "natural_label"]
Context = Literal["full", "none"]
Truncation = Literal["auto", "error"]
CutRule = Literal["context", "middle", "middle_joined", "nothing"]

EVERY_TASK = ("length", "num_samples", "style", "thinking_tokens", "truncation", "repeats")
"""The run-entry arguments that every task takes."""

MAIN_METRIC = "longctx_score"
"""The name under which every task's official headline metric is reported, 0…1."""


@dataclass(frozen=True)
class Example:
    """One test item, independent of any model.

    Args:
        id: unique in its task, and the same each time the same data is loaded.
        fields: values of the template's placeholders. The question, if there is one, is the field `question`, `query`
            or `input`.
        references: accepted answers, as the official code has them.
        depth: position of the evidence in the context, 0 (start) to 1 (end); None if there is no such position.
        source: "official" files, "hub" data, or "generated".
        input_tokens: length of the completion prompt if it was counted, with the counter named `counter`.
        record: the fields that the scored record has besides prediction and references.
        messages: the whole conversation, for tasks without a template.
        group: what the example shares with others of its task, so that their scores are not independent: the book, the
            set of documents, or the question that is asked at several depths. Empty if it shares nothing.
        follow_up: the second request, if the first answer is not the one that is scored.
    """

    id: str
    fields: Mapping[str, str]
    references: list[str]
    source: Literal["official", "hub", "generated"]
    depth: float | None = None
    input_tokens: int | None = None
    counter: str | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    messages: Sequence[Message] = ()
    group: str = ""
    follow_up: FollowUp | None = None


@dataclass(frozen=True)
class Variant:
    """How the official code sends a task's prompts under one protocol.

    Args:
        stop: stop sequences of completions. Chats and thinking models get none (HELMET eval.py:74).
        system: the system message of chats.
        temperature: the temperature of requests.
        max_tokens: the output budget; None for the task's own.
    """

    stop: tuple[str, ...] = ()
    system: str | None = None
    temperature: float = 0.0
    max_tokens: int | None = None


@dataclass(frozen=True)
class Settings:
    """The checked arguments of a run entry. `None` stands for the official configuration's value.

    `counter` is no argument. It counts tokens with the tokenizer that `count_with` names, for tasks whose examples are
    generated to fit a length.
    """

    length: int | None
    shots: int | None = None
    seed: int = 42
    num_samples: int | None = None
    style: Style = "auto"
    protocol: Protocol = "paper"
    labels: Labels = "integer"
    context: Context = "full"
    thinking_tokens: int = 0
    truncation: Truncation = "auto"
    judge: str = "auto"
    repeats: int | None = None
    count_with: str | None = None
    depth: int | None = None
    path: str | None = None
    counter: Callable[[str], int] | None = None

    @property
    def level(self) -> int:
        """The length, for benchmarks that have lengths."""
        assert self.length is not None
        return self.length


@dataclass(frozen=True)
class Metric:
    """An official metric and its meaning.

    Args:
        name: the official name, which scores and statistics use.
        title, description: shown on web pages and in tables.
        lower_is_better: None if neither direction is better.
        range: smallest and largest value; None for counts and where the official code has no bound.
        success: whether each value is 0 or 1, so that repeats give pass@k.
    """

    name: str
    title: str
    description: str
    lower_is_better: bool | None = False
    range: tuple[float, float] | None = (0.0, 1.0)
    success: bool = False


Record = Mapping[str, Any]
"""A scored record. The docstring of this module lists its fields."""

Scores = dict[str, float]
Loader = Callable[["Task", Settings, DataRoot], Iterable[Example]]
Scorer = Callable[[Record], Scores]


@dataclass(frozen=True)
class Task:
    """One row of a benchmark's table.

    Args:
        name: its name in run entries, e.g. `json_kv`.
        title: its name on web pages and in tables.
        sizes: the number of units (pairs, shots, documents) at each length; empty if the benchmark has no lengths.
        unit: what `sizes` counts, in the plural.
        load: loads examples in the official order. It reads files and uses no HELM type.
        score: computes the official metrics of a scored record, by name, mostly in 0…1. It is a pure function. The
            docstring of this module lists what the record has.
        headline: the official metrics whose mean is `longctx_score`; nearly always one. It is empty if
            the official headline metric is not computed here; `unscored` then says why.
        metrics: every name that `score` can return.
        max_tokens: output budget in tokens, for all lengths or by length.
        num_samples: the official sample size.
        depths: at how many depths of the evidence each of the `num_samples` questions is asked.
        shots: the official number of demonstrations before the question.
        sources: the data that the task needs at a length.
        optional_sources: data that the task uses at a length if it exists. Only `helm-longctx fetch` downloads it.
        any_length: whether the task can be generated at any length.
        chat: whether the official code uses the model's chat template.
        arguments: the run-entry arguments that the task takes in addition to `EVERY_TASK`: `seed`, `shots`, `labels`,
            `context`, `count_with`, `depth`, `path`. `judge` follows from `official_judge`, `protocol` from several
            `variants`. Others are refused.
        variants: the variant that each value of `protocol` selects.
        most_samples: the largest `num_samples` of a task that can be generated; None if the data sets the limit.
        official_judge: the judge that the benchmark uses for a part of the score; None if no judge is needed. The
            `judge` argument can name another.
        judge_sources: the files that a judge needs, by role: its `rubric`, the `keypoints` of summaries.
        record_shapes: the kinds of the optional fields that `score` reads from a record.
        cut: which part of a prompt that is too long is cut: the end of its context, or its middle. The halves beside
            the middle are decoded each by itself, or joined. A prompt of which nothing is cut is sent as it is.
        prefix_scored: whether a completion is scored with the answer prefix before the output, as some official codes
            do.
        repeats: how often the official protocol asks each question. A score is the mean of the answers.
        trait: a property that some tasks of the benchmark have and others do not, by which scores can be split.
        alias: the task's name in run entries, if it differs from `name`.
        unscored: why the task has no `longctx_score`; only if `headline` is empty.
    """

    name: str
    title: str
    template: Template
    load: Loader
    score: Scorer
    headline: tuple[str, ...]
    metrics: tuple[str, ...]
    max_tokens: int | Mapping[int, int]
    sizes: Mapping[int, int] = field(default_factory=dict)
    unit: str = ""
    # Functions of the length, because an official release has other files for each length. The type is Any because
    # benchmarks without lengths pass None, and the functions of the others declare `int`.
    sources: Callable[[Any], tuple[Source, ...]] = lambda length: ()
    optional_sources: Callable[[Any], tuple[Source, ...]] = lambda length: ()
    num_samples: int = 100
    depths: int = 1
    shots: int = 0
    any_length: bool = False
    chat: bool = False
    arguments: tuple[str, ...] = ()
    variants: Mapping[Protocol, Variant] = field(default_factory=lambda: {"paper": Variant()})
    most_samples: int | None = None
    official_judge: str | None = None
    judge_sources: Mapping[str, Source] = field(default_factory=dict)
    cut: CutRule = "context"
    record_shapes: Mapping[str, Shape] = field(default_factory=dict)
    prefix_scored: bool = False
    repeats: int = 1
    trait: str = ""
    alias: str = ""
    unscored: str = ""

    @property
    def argument(self) -> str:
        """What run entries call it."""
        return self.alias or self.name

    def exists_at(self, length: int | None) -> bool:
        """Whether it can be asked at a length; a task without lengths can."""
        # A task without sizes belongs to a benchmark without lengths.
        return not self.sizes or self.any_length or length in self.sizes

    def prompt(self, example: Example, system: str | None = None) -> Prompt:
        """Make the prompt of an example, after a system message if the protocol has one."""
        # Messages of their own have no span of a context, so nothing of them is cut.
        prompt = Prompt(example.messages) if example.messages else self.template.render(example.fields)
        return prompt.with_system(system) if system else prompt

    def check_record(self, record: Record, where: str) -> None:
        """Check that `score` can read a record.

        Args:
            where: file and row of the record; errors start with it.

        Raises:
            InputError: a field has the wrong kind.
        """
        for name, shape in self.record_shapes.items():
            # Fields that are absent are allowed: `score` leaves out the metrics that need them.
            if record.get(name) is not None:
                shape.check(f"{where}: {name}", record[name])

    @property
    def is_self_contained(self) -> bool:
        """Whether its examples can be generated without any file and without a tokenizer."""
        return self.any_length and not self.sources(min(self.sizes)) and "count_with" not in self.arguments

    @property
    def closed_book(self) -> bool:
        """Whether the task can be run without its context (`context=none`)."""
        return "context" in self.arguments

    @property
    def has_judge(self) -> bool:
        """Whether a judge decides a part of the score."""
        return self.official_judge is not None

    def is_official(self, judge: str) -> bool:
        """Whether a `judge` argument means the official judge, on any host: `azure/X` is the same as `openai/X`."""
        # Without a judge the judged metrics are absent, so no score of another judge can be mixed with the official
        # ones.
        if judge in ("auto", "none") or self.official_judge is None:
            return True
        # A plus joins the judges of a jury.
        return "+" not in judge and judge.rpartition("/")[2] == self.official_judge.rpartition("/")[2]

    @property
    def all_arguments(self) -> frozenset[str]:
        """All run-entry arguments that the task takes."""
        # `protocol` has no meaning for a task that all protocols send alike.
        further = (["protocol"] if len(self.variants) > 1 else []) + (["judge"] if self.has_judge else [])
        return frozenset((*EVERY_TASK, *self.arguments, *further))

    def variant(self, settings: Settings) -> Variant:
        """The variant of the entry's protocol; the published one if the task does not have that protocol.

        In a category some tasks may have the protocol and others not.
        """
        return self.variants.get(settings.protocol, self.variants["paper"])

    def output_tokens(self, settings: Settings) -> int:
        """The official output budget."""
        official = self.max_tokens if isinstance(self.max_tokens, int) else self.max_tokens[settings.level]
        return self.variant(settings).max_tokens or official

    def budget(self, settings: Settings) -> int:
        """The output budget of a request: the official budget plus the tokens for thinking."""
        return self.output_tokens(settings) + settings.thinking_tokens

    def scores(self, record: Record) -> Scores:
        """The official metrics and `longctx_score`. A metric that cannot be computed is absent."""
        scores = {name: float(value) for name, value in self.score(record).items()}
        if (mean := self.headline_mean(scores)) is not None:
            scores[MAIN_METRIC] = mean
        return scores

    def headline_mean(self, scores: Scores) -> float | None:
        """`longctx_score` from the official metrics of an answer or of a run; None if one of them is missing."""
        if not self.headline or not all(name in scores for name in self.headline):
            return None
        # The mean is computed from all parts or not at all: a mean of the parts that exist would be on another scale.
        return sum(scores[name] for name in self.headline) / len(self.headline)

    def sample(self, settings: Settings) -> int:
        """The number of examples to load, if the data has that many."""
        return settings.num_samples or self.num_samples

    def demonstrations(self, settings: Settings) -> int:
        """The number of demonstrations before the question."""
        return self.shots if settings.shots is None else settings.shots

    def all_sources(self, length: int | None) -> list[Source]:
        """All data that can be fetched for the task at a length."""
        return [*self.sources(length), *self.optional_sources(length), *self.judge_sources.values()]

    def paths(self, length: int | None) -> list[str]:
        """The paths under the data root that the task reads at a length, in the order of its sources."""
        return [p for sources in (self.sources, self.optional_sources) for s in sources(length) for p in s.paths]


@dataclass(frozen=True)
class Category:
    """Tasks that run and are averaged together.

    Args:
        name: the last part of the run entry `<benchmark>_<name>`; empty if the benchmark has one category.
        tasks: the tasks whose unweighted mean is the category's score: the published ones, and no others. At a
            length at which some do not exist, it is the mean of the others.
        variants: further tasks, which run only if the entry names them, and enter no mean.
        averaged: whether the category is a column of the published tables.
        judge: the annotator that judges the answers, as `module.Class`; empty if none does.
    """

    name: str
    title: str
    tasks: tuple[Task, ...]
    variants: tuple[Task, ...] = ()
    averaged: bool = True
    # A path and not a class: annotators import HELM, and this module must not. The same holds for `judge_checks` below.
    judge: str = ""

    @property
    def is_self_contained(self) -> bool:
        """Whether it can be run without any file and without a tokenizer."""
        return all(task.is_self_contained for task in self.tasks)

    def tasks_at(self, length: int | None) -> tuple[Task, ...]:
        """The tasks whose mean is the category's score at a length: those that exist there."""
        return tuple(task for task in self.tasks if task.exists_at(length))


@dataclass(frozen=True)
class Published:
    """The published results of a model in one category at one length.

    Args:
        model: its name in the publication.
        category: the category's name; empty if the benchmark has one category.
        scores: scores by task, 0…1. If only the category's score was published, its name is empty.
        instruct: whether the publication calls the model instruction-tuned; None if it says nothing.
    """

    model: str
    category: str
    length: int | None
    scores: Mapping[str, float]
    instruct: bool | None = None


def read_published(package: str) -> tuple[Published, ...]:
    """Read a benchmark's `published.csv`, with a row for each score.

    Its columns are `model`, `score` in percent, and where there are several, `length` and `task`.
    """
    results: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    text = (resources.files(package) / "published.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        results[row["model"], row.get("length", "")][row.get("task", "")] = float(row["score"]) / 100
    return tuple(
        Published(model, "", parse_length(length) if length else None, scores)
        for (model, length), scores in results.items()
    )


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: its tasks, in categories, and everything that they share.

    Args:
        name: the name of its folder and scenario, e.g. `helmet`.
        title: its name on web pages and in tables.
        revision: repository and commit that the prompts and metrics follow; part of every run spec.
        comparability: a number that is raised when our code gives other scores; part of every run spec. The README in
            the benchmark's folder lists the reasons.
        url: the official code at that commit.
        categories: in the order of the published tables. A task can be in several categories.
        metrics: all metrics that the tasks' scorers return.
        task_argument: the run-entry argument that selects a task; not a key of HELM's `RUN_EXPANDERS`.
        axis: what the lengths count; None if the benchmark has no lengths.
        baselines: how the baseline models answer, by task.
        published: loads published results.
        effective_score: the score below which the publication calls a length not effective; None if it has no such
            score.
        overall: the name of the mean of all averaged categories, as the publication has it; empty if it has none.
        judge_checks: function from a data root to the checks of `helm-longctx judge-check`, as `module.function`; empty
            if there are none.
        outputs: the `OutputReader` of the official code's files, as `module.NAME`; empty if there is none.
    """

    name: str
    title: str
    description: str
    revision: str
    comparability: int
    url: str
    categories: tuple[Category, ...]
    metrics: tuple[Metric, ...]
    task_argument: str = "task"
    axis: Axis | None = INPUT_TOKENS
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    # Loaded on demand, because only tables need the files. The default `tuple` returns an empty tuple.
    published: Callable[[], tuple[Published, ...]] = tuple
    effective_score: float | None = None
    overall: str = ""
    judge_checks: str = ""
    outputs: str = ""

    @cached_property
    def entries(self) -> dict[str, Category]:
        """The category of each run-entry name."""
        return {"_".join(filter(None, (self.name, category.name))): category for category in self.categories}

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks, each once."""
        rows = (task for category in self.categories for task in (*category.tasks, *category.variants))
        # By name, because a task can be in several categories. A dictionary keeps the order of the table.
        return tuple({task.name: task for task in rows}.values())

    def task(self, name: str) -> Task:
        """Find a task by name.

        Raises:
            KeyError: the benchmark has none of that name.
        """
        return {task.name: task for task in self.tasks}[name]

    def metric(self, name: str) -> Metric:
        """Find a metric by name.

        Raises:
            KeyError: the benchmark has none of that name.
        """
        return {metric.name: metric for metric in self.metrics}[name]

    @cached_property
    def lengths(self) -> list[int]:
        """All lengths at which some task has a size, ascending."""
        return sorted({length for task in self.tasks for length in task.sizes})
