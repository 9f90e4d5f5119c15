"""The task record: where examples come from, how one becomes a prompt, how an answer is scored, what a level means.

Everything that HELM needs is derived from these records; nothing else states a fact about a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from helm_longctx.protocol.baseline import Baseline
from helm_longctx.protocol.lengths import INPUT_TOKENS, Axis
from helm_longctx.protocol.prompt import Message, Prompt
from helm_longctx.protocol.shapes import Shape
from helm_longctx.protocol.template import Template
from helm_longctx.sources.fetch import Source
from helm_longctx.sources.root import DataRoot

Style = Literal["auto", "chat", "completion"]
Protocol = Literal["paper", "current", "api"]
Labels = Literal["integer", "natural_label"]
Context = Literal["full", "none"]
Truncation = Literal["auto", "error"]
Cut = Literal["context", "middle", "nothing"]

EVERY_TASK = ("length", "num_samples", "style", "thinking_tokens", "truncation", "repeats")
"""Arguments of run entries that have a meaning for every task."""

MAIN_METRIC = "longctx_score"
"""The official headline metric of every task, 0…1, under one name."""


@dataclass(frozen=True)
class Example:
    """One test item, before any model is known.

    Args:
        id: unique in its task, the same whenever the same data is read.
        fields: the template's places; a question of its own stands under `question`, `query` or `input`.
        references: accepted answers, as the official code holds them.
        depth: where the evidence stands in the context, 0 (start) to 1 (end); None if that has no meaning.
        source: "official" files, "hub" data, or "generated".
        input_tokens: length of the completion prompt, where it was counted; `counter` says with what.
        record: what the scorer needs besides the references.
        messages: the whole conversation, of tasks without a template.
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


@dataclass(frozen=True)
class Variant:
    """How one protocol of the official code sends a task's prompts.

    Args:
        stop: stop sequences of completions. A chat has none, nor a model that thinks (HELMET eval.py:74).
        system: the system message of chats.
        temperature: of the requests.
        max_tokens: the output budget; None for the task's.
    """

    stop: tuple[str, ...] = ()
    system: str | None = None
    temperature: float = 0.0
    max_tokens: int | None = None


@dataclass(frozen=True)
class Settings:
    """What a run entry asks for, checked. `None` means: as the official configuration has it."""

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

    @property
    def level(self) -> int:
        """The length of a benchmark that has an axis."""
        assert self.length is not None
        return self.length


@dataclass(frozen=True)
class Metric:
    """An official metric: what its name means.

    Args:
        name: the official name, under which scores and statistics have it.
        title, description: for people.
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
"""A scored item: `prediction`, `references`, and what else the task's metric reads."""

Scores = dict[str, float]
Loader = Callable[["Task", Settings, DataRoot], Iterable[Example]]
Scorer = Callable[[Record], Scores]


@dataclass(frozen=True)
class Task:
    """One row of a benchmark's table.

    Args:
        name: e.g. `json_kv`; sub-splits and run groups have it.
        title: for people.
        sizes: for each length, how many units fill it (pairs, shots, documents); empty if there is no axis.
        unit: what `sizes` counts, in the plural.
        load: examples in the official order; reads files, knows no HELM type.
        score: pure; returns official metric names and values in 0…1, without `longctx_score`.
        headline: the official metrics whose mean becomes `longctx_score`; nearly always one. Empty if the official
            headline metric is not computed here; `unscored` then says why.
        metrics: every name that `score` can return.
        max_tokens: output budget in tokens, for all lengths or by length.
        num_samples: the official sample size.
        shots: the official number of demonstrations before the question.
        sources: what must be there at a length.
        optional_sources: what is read at a length where it is there; only `helm-longctx fetch` gets it.
        any_length: whether it can be generated, for any length.
        chat: whether the official code uses the model's chat template.
        arguments: the arguments of run entries that it takes besides `EVERY_TASK`: `seed`, `shots`, `labels`,
            `context`, `judge`; and `protocol` where `variants` has several. Others are refused.
        variants: what each value of `protocol` means.
        most_samples: the largest `num_samples`: what a generator can make; None where the data itself ends.
        official_judge: the benchmark's own, of whom a part of the score comes; None if nobody judges. The `judge`
            argument can name another.
        judge_sources: what a judge reads besides, by what it is: its `rubric`, the `keypoints` of summaries.
        record: what `score` reads of a record besides prediction and references, and its kind; a record may lack it.
        cut: what of a prompt that is too long is cut: the end of its context, its middle, or nothing: it is then sent
            as it is.
        prefix_scored: whether the answer prefix of a completion stands before the output when it is scored.
        repeats: how often the official protocol asks each question; a score is the mean.
        alias: what run entries call it, where that is not its name.
        unscored: why the task has no `longctx_score`, for people; only where `headline` is empty.
    """

    name: str
    title: str
    template: Template
    sizes: Mapping[int, int]
    unit: str
    load: Loader
    score: Scorer
    headline: tuple[str, ...]
    metrics: tuple[str, ...]
    max_tokens: int | Mapping[int, int]
    sources: Callable[[Any], tuple[Source, ...]] = lambda length: ()
    optional_sources: Callable[[Any], tuple[Source, ...]] = lambda length: ()
    num_samples: int = 100
    shots: int = 0
    any_length: bool = False
    chat: bool = False
    arguments: tuple[str, ...] = ()
    variants: Mapping[Protocol, Variant] = field(default_factory=lambda: {"paper": Variant()})
    most_samples: int | None = None
    official_judge: str | None = None
    judge_sources: Mapping[str, Source] = field(default_factory=dict)
    cut: Cut = "context"
    record: Mapping[str, Shape] = field(default_factory=dict)
    prefix_scored: bool = True
    repeats: int = 1
    alias: str = ""
    unscored: str = ""

    @property
    def argument(self) -> str:
        """What run entries call it."""
        return self.alias or self.name

    def exists_at(self, length: int | None) -> bool:
        """Whether it can be asked at a length; a task without lengths can."""
        return not self.sizes or self.any_length or length in self.sizes

    def prompt(self, example: Example, system: str | None = None) -> Prompt:
        """What a model is asked, with the system message of a protocol that has one."""
        prompt = Prompt(example.messages) if example.messages else self.template.render(example.fields)
        return prompt.with_system(system) if system else prompt

    def check_record(self, record: Record, where: str) -> None:
        """Refuse a record that `score` cannot read.

        Args:
            where: it stands, for the error.

        Raises:
            InputError: a field is of another kind than the task's metric reads.
        """
        for name, shape in self.record.items():
            if record.get(name) is not None:
                shape.check(f"{where}: {name}", record[name])

    @property
    def closed_book(self) -> bool:
        """Whether it can be asked without its context (`context=none`)."""
        return "context" in self.arguments

    @property
    def judged(self) -> bool:
        """Whether a part of the score comes from a judge, whom the `judge` argument names."""
        return self.official_judge is not None

    @property
    def taken(self) -> frozenset[str]:
        """Every argument of run entries that has a meaning for it."""
        further = (["protocol"] if len(self.variants) > 1 else []) + (["judge"] if self.judged else [])
        return frozenset((*EVERY_TASK, *self.arguments, *further))

    def variant(self, settings: Settings) -> Variant:
        """How its prompts are sent: as the entry's protocol says, if that has a meaning for it."""
        return self.variants.get(settings.protocol, self.variants["paper"])

    def output_tokens(self, settings: Settings) -> int:
        """The official output budget."""
        official = self.max_tokens if isinstance(self.max_tokens, int) else self.max_tokens[settings.level]
        return self.variant(settings).max_tokens or official

    def budget(self, settings: Settings) -> int:
        """Output tokens of a request: the official budget, and what a thinking model gets to think."""
        return self.output_tokens(settings) + settings.thinking_tokens

    def scores(self, record: Record) -> Scores:
        """Official metrics and `longctx_score`; what cannot be computed is absent."""
        scores = {name: float(value) for name, value in self.score(record).items()}
        if self.headline and all(name in scores for name in self.headline):
            scores[MAIN_METRIC] = sum(scores[name] for name in self.headline) / len(self.headline)
        return scores

    def sample(self, settings: Settings) -> int:
        """How many examples are wanted, where the data has so many."""
        return settings.num_samples or self.num_samples

    def demonstrations(self, settings: Settings) -> int:
        """How many of them stand before the question."""
        return self.shots if settings.shots is None else settings.shots

    def all_sources(self, length: int | None) -> list[Source]:
        """Whatever can be got for it at a length."""
        return [*self.sources(length), *self.optional_sources(length), *self.judge_sources.values()]

    def paths(self, length: int | None) -> list[str]:
        """Files under the data root that the task reads at a length, in the order of its sources."""
        return [p for sources in (self.sources, self.optional_sources) for s in sources(length) for p in s.paths]


@dataclass(frozen=True)
class Category:
    """Tasks that are run and averaged together.

    Args:
        name: the run entry is `<benchmark>_<name>`; empty if the benchmark has but one category.
        tasks: those whose unweighted mean is the category's score. At a length at which some do not exist, the others.
        variants: further tasks, run only by name.
        averaged: whether the published tables have it as a column.
        judge: class of the annotator that judges its answers, as `module.Class`; empty if nobody does.
    """

    name: str
    title: str
    tasks: tuple[Task, ...]
    variants: tuple[Task, ...] = ()
    averaged: bool = True
    judge: str = ""

    def tasks_at(self, length: int | None) -> tuple[Task, ...]:
        """The tasks whose mean is the category's score at a length: those that exist there."""
        return tuple(task for task in self.tasks if task.exists_at(length))


@dataclass(frozen=True)
class Published:
    """What others published of a model in one category at one length.

    Args:
        model: as it is called there.
        category: its name; empty if the benchmark has but one.
        scores: by task, in 0…1; the category's own, where tasks are not published, under an empty name.
    """

    model: str
    category: str
    length: int | None
    scores: Mapping[str, float]


@dataclass(frozen=True)
class Benchmark:
    """A table of tasks with a name.

    Args:
        name: folder and scenario name, e.g. `helmet`.
        title: for people.
        revision: repository and commit that the prompts and metrics follow; part of every run spec.
        comparability: raised when a change of ours moves scores; part of every run spec, and in the folder's README.
        url: the official code at that commit.
        categories: the table, in the order of the published ones. A task can stand in several.
        task_argument: the argument of run entries that names a task; no key of HELM's `RUN_EXPANDERS`.
        metrics: what the names mean that the tasks' scorers return.
        axis: what a length means; None if the benchmark has no lengths.
        baselines: how models without a neural network answer, by task.
        published: results that can be put beside one's own.
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
    published: Callable[[], tuple[Published, ...]] = tuple

    @cached_property
    def entries(self) -> dict[str, Category]:
        """Run-entry names and the category that each runs."""
        return {"_".join(filter(None, (self.name, category.name))): category for category in self.categories}

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """Every task once."""
        rows = (task for category in self.categories for task in (*category.tasks, *category.variants))
        return tuple({task.name: task for task in rows}.values())

    def task(self, name: str) -> Task:
        """The task of that name.

        Raises:
            KeyError: there is none.
        """
        return {task.name: task for task in self.tasks}[name]

    def metric(self, name: str) -> Metric:
        """The metric of that name.

        Raises:
            KeyError: there is none.
        """
        return {metric.name: metric for metric in self.metrics}[name]

    @cached_property
    def lengths(self) -> list[int]:
        """Every length that some task has a size for, ascending."""
        return sorted({length for task in self.tasks for length in task.sizes})
