"""The task model: a task with its examples, prompts, scores and lengths. `benchmark.py` has the benchmarks of tasks.

No other module has facts about a task.

**What scorers read.** `Task.score` gets a `ScorerInput`, a mapping with these fields:

- `prediction`: the output, a string with the white space that the model wrote. If the prompt was sent in completion
  form and the task has `prefix_scored`, the prompt's answer prefix is put before the output, without a separator. If
  the output has a `</think>`, the prediction is only the text after the last one, stripped, without the answer prefix.
- `references`: the list `Example.references`.
- every item of `Example.record`.
- if the task is judged, the annotation of the answer by the task's annotator.
- `scorer`, if the run entry names one of the task's `scorers`.

`helm-longctx score` reads them from a file, a line for each. A scorer returns the official metrics by name, without
those that have no value for this answer. It reads only this mapping, and accepts every `prediction`. Beside it is
`Task.can_read`: whether the prediction has what the scorer compares. The statistic `unread` counts the answers without
it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from helm_longctx.data.download import Source
from helm_longctx.data.root import DataRoot
from helm_longctx.environment import require
from helm_longctx.errors import InputError, PreconditionError, bad_argument, shorten
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks.counting import Codec, CountTokens
from helm_longctx.tasks.judgement import Judgement
from helm_longctx.tasks.prompt import (
    QUESTIONS,
    FollowUp,
    Message,
    RenderedPrompt,
    Template,
)
from helm_longctx.tasks.request_settings import (
    DEFAULT_REQUEST,
    MetricArgument,
    RequestSettings,
)

ProtocolArgument = Literal["paper", "current", "api"]
Labels = Literal["integer", "natural_label"]
Context = Literal["full", "none"]
Chats = Literal["truncated", "full"]
_CutRule = Literal["context", "middle", "middle_joined", "context_middle", "nothing"]
_Generation = Literal["never", "without_files", "always"]

EVERY_TASK = (
    "length",
    "num_samples",
    "style",
    "thinking_tokens",
    "truncation",
    "repeats",
    "top_p",
    "top_k",
    "min_p",
    "sampling_seed",
    "retry_cut",
    "metric",
)
"""The run-entry arguments that every task takes."""

PLAIN = "plain"
"""The value of `method` that stands for the task's own prompts."""

GENERATED_SOURCE: Literal["generated"] = "generated"
"""The source of an example that this package made instead of the benchmark's own. See `Example.source`."""

MAIN_METRIC = "longctx_score"
"""The name of every task's official headline metric in statistics, 0…1."""


TEXT_GROUP = "text "
"""Start of the name of a group that several tasks can share: a digest of the text, such as a book, follows."""


def text_group(text: str) -> str:
    """Return the name of the group of examples about a text."""
    return f"{TEXT_GROUP}{digest(text)[:12]}"


@dataclass(frozen=True)
class Example:
    """One test item, independent of any model.

    Args:
        id: name that is unique in the task, and the same each time the same data is loaded.
        fields: values of the template's placeholders. The question, if there is one, is the field `question`, `query`
            or `input`.
        references: accepted answers, as the official code has them.
        depth: position of the evidence in the context, 0 (start) to 1 (end). None if there is no such position.
        source: "official" if the question is the benchmark's own, from its files or drawn as the official code draws
            it; "hub" if it is from the benchmark's data on the hub; "generated" if this package made it instead of the
            benchmark's own question.
        input_tokens: length of the completion prompt if it was counted, with the counter named `counter`.
        record: the fields that the scored record has in addition to prediction and references.
        group: the name of what the example shares with others of its task, such as a book, a set of documents, or a
            question that is asked at several depths. Scores in a group are not independent. Empty if it shares nothing.
            If other tasks can have the same text, the name is its `text_group`.
        follow_up: the second request, if the first answer is not the one that is scored.
        context: [start, end) of the part of the first user turn that may be cut, in characters, for tasks without a
            template. None if no part may.
        reserved: tokens of the model's window that the official code leaves free in addition to that part, for tasks
            with the cut `context_middle`.
        answer_tokens: about how many tokens a good answer has, where no reference tells; for estimates.
        errata: the rules of the benchmark's `errata.jsonl` by which the example has a known error.
        read: tokens of the context that had come when the question was asked, and whether its evidence was among them
            (None if that is unknown). None if the whole context is there at once. For `stream=`.
        marks: starts of the parts of the context, in characters, with what is known of each, such as the date of a
            session. Empty if the context has no parts. For methods that read a context in parts.
        template: the template of the prompt, if a method does not use the task's.
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
    max_tokens: int | None = None
    context: tuple[int, int] | None = None
    reserved: int = 0
    answer_tokens: int | None = None
    errata: tuple[str, ...] = ()
    read: tuple[int, bool | None] | None = None
    marks: Sequence[tuple[int, Mapping[str, Any]]] = ()
    template: Template | None = None

    @property
    def question(self) -> str | None:
        """The question, if there is one."""
        return next(
            (self.fields[name] for name in QUESTIONS if name in self.fields), None
        )


@dataclass(frozen=True)
class Reasoning:
    """How a benchmark asks for reasoning before the answer, and the output budget of that request."""

    ask: Callable[[Example], Example]
    max_tokens: int


@dataclass(frozen=True)
class Variant:
    """How the official code sends a task's prompts under one protocol.

    Args:
        stop: stop sequences of completions. Chats and thinking models get none (HELMET eval.py:74).
        max_tokens: the output budget. None for the task's own.
        num_samples: the sample size by length. Empty for the task's own.
    """

    stop: tuple[str, ...] = ()
    system: str | None = None
    temperature: float = 0.0
    max_tokens: int | None = None
    num_samples: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """The checked arguments of a run entry. `None` stands for the official configuration's value.

    `counter` and `codec` are not arguments. They are made from the tokenizer that `count_with` names, for tasks whose
    examples are generated to fit a length.
    """

    length: int | None
    shots: int | None = None
    seed: int = 42
    texts: int = 1
    num_samples: int | None = None
    protocol: ProtocolArgument = "paper"
    labels: Labels = "integer"
    context: Context = "full"
    chats: Chats = "truncated"
    thinking_tokens: int = 0
    judge: str = "auto"
    repeats: int | None = None
    retry_cut: int | None = None
    count_with: str | None = None
    depth: int | None = None
    path: str | None = None
    scorer: str = ""
    request: RequestSettings = DEFAULT_REQUEST
    stream: int | None = None
    method: str = PLAIN
    method_arguments: Mapping[str, Any] = field(default_factory=dict)
    counter: CountTokens | None = None
    codec: Codec | None = None

    @property
    def level(self) -> int:
        """The length. The benchmark must have lengths."""
        assert self.length is not None
        return self.length

    def count_tokens(self, task: str) -> CountTokens:
        """Return the counter of tokens. Raises an `InputError` if the run entry of the task names no tokenizer."""
        if self.counter is None:
            raise PreconditionError(
                f"{task}: count_with is missing; give the name or the folder of a tokenizer"
            )
        return self.counter


AnswerKind = Literal[
    "label",
    "lookup",
    "span",
    "label_or_span",
    "ranking",
    "citation",
    "choice",
    "summary",
    "frequency",
    "chain",
]
"""How the lexical model finds an answer in the context.

- `label`: the label of the most similar demonstrations.
- `lookup`: the value after the question's words.
- `span`: names and numbers near the question's words.
- `label_or_span`: a label if the context has demonstrations, otherwise a span.
- `ranking`: the passages that share the most words with the question, in order.
- `citation`: a sentence of each of those passages, with its number.
- `choice`: the option whose words stand near the question's words.
- `summary`: first sentences of several parts of the text.
- `frequency`: the most frequent words.
- `chain`: the variables that hold a value.
"""

AnswerReader = Callable[[Sequence[Message]], str | None]
"""(conversation) → its answer, or None if the conversation does not belong to the task."""


@dataclass(frozen=True)
class Baseline:
    """How `longctx/lexical` and `longctx/null` answer a task.

    Args:
        kind: how the lexical model finds an answer. It reads the fields of the task's template; if that is not enough,
            or the task has no template, this is a function of the benchmark.
        constant: the answer of the null model to every question.
    """

    kind: AnswerKind | AnswerReader
    constant: str


@dataclass(frozen=True)
class Shape:
    """A kind of value that is read from a file, such as a field of a scored record.

    Args:
        about: its description in errors, e.g. `a list of texts`.
    """

    about: str
    fits: Callable[[Any], bool]

    def check(self, name: str, value: Any) -> None:
        """Raise an `InputError` that starts with `name` if a value is of another kind."""
        if not self.fits(value):
            raise InputError(f"{name} must be {self.about}, found {shorten(value)}")


def is_text(value: Any) -> bool:
    """Whether a value is a string."""
    return isinstance(value, str)


def is_whole(value: Any) -> bool:
    """Whether a value is an integer. `True` and `False` are not, although they are integers in Python."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value is a number; `True` and `False` are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def are_all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Make a check for lists whose items all pass the check `fits`."""
    return lambda value: isinstance(value, list) and all(map(fits, value))


TEXT = Shape("text", is_text)
TEXTS = Shape("a list of texts", are_all(is_text))

ScorerInput = Mapping[str, Any]
"""What a scorer reads of an answered question. The docstring of this module lists its fields."""

MetricValues = dict[str, float]
"""The value of each of a task's metrics, by name."""

Loader = Callable[["Task", Settings, DataRoot], Iterable[Example]]
"""(task, settings, data root) → the examples. It raises an `InputError` if data is missing or malformed, or does not
suffice for the settings, or if a package or tokenizer that it needs is missing."""
Scorer = Callable[[ScorerInput], MetricValues]
_Reads = Callable[[ScorerInput], bool]
"""(record) → whether the scorer finds in the prediction what it compares, such as a letter or the required line."""

MOST_SCORED = 1 << 19
"""Characters of an answer that are scored, eight times the longest output of a benchmark. Some metrics take time that
grows with the square of the length, so an answer of 50 MB would stop a run."""


def limit_prediction(record: ScorerInput) -> ScorerInput:
    """Return a record with no more of its prediction than is scored."""
    if len(record["prediction"]) <= MOST_SCORED:
        return record
    return {**record, "prediction": record["prediction"][:MOST_SCORED]}


UNREAD = "unread"
"""The statistic that is 1 for an answer in which there is nothing that the scorer could read."""


def has_text(record: ScorerInput) -> bool:
    """Whether a prediction has a text. That is all that a scorer of whole texts needs."""
    return bool(record["prediction"].strip())


@dataclass(frozen=True)
class Task:
    """One row of a benchmark's table.

    Args:
        name: the task's name in statistics and, without `alias`, in run entries, e.g. `json_kv`.
        sizes: the number of units (pairs, shots, documents) at each length. Empty if the benchmark has no lengths.
        load: loads examples in the official order. It reads files and uses no HELM type.
        score: computes the official metrics of a scored record, by name, mostly in 0…1. It is a pure function. The
            docstring of this module lists the fields of the record.
        can_read: whether the scorer finds in the prediction of a scored record what it compares. A prediction without
            it nearly always scores 0, whether the answer is right or not. By default every text can be read.
        headline: the official metrics whose mean is `longctx_score`, nearly always one. Empty if the official headline
            metric is not computed here; `unscored` then says why.
        max_tokens: output budget in tokens, for all lengths or by length; the largest one if examples have their own.
        num_samples: the official sample size, for all lengths or by length. A length that is missing has the longest
            one's.
        depths: the number of depths of the evidence at which each of the `num_samples` questions is asked.
        shots: the official number of demonstrations before the question.
        sources: the data that the task needs at a length.
        optional_sources: data that the task uses at a length if it exists. Only `helm-longctx fetch` downloads it.
        own_files: the names of the files that the task reads in the user's folder `path`, if they exist. A run is made
            again when they have changed.
        any_length: whether the task exists at each length in the range of the benchmark's axis, not only in `sizes`.
        chat: whether the official code uses the model's chat template.
        arguments: the run-entry arguments that the task takes in addition to `EVERY_TASK`: `seed`, `shots`, `labels`,
            `context`, `chats`, `count_with`, `depth`, `path`. A task with an `official_judge` also takes `judge`, one with
            several `variants` takes `protocol`, one with `scorers` takes `scorer`, and one with a context and a
            question takes `method`. Other arguments are refused.
        variants: the variant that each value of `protocol` selects.
        most_samples: the largest `num_samples` of a task that can be generated. None if the data sets the limit.
        official_judge: the judge that the benchmark uses for a part of the score. None if no judge is needed. The
            `judge` argument can name another.
        judgement: how language models judge the answers, or None if none does, or if the category's annotator knows it.
        judge_prompt: the name of the judge's prompt. Tasks of a benchmark that have one send the same requests to the
            model, and differ only in how the answers are judged. Empty for other tasks.
        judge_sources: the files that a judge needs, by role: its `rubric`, the `keypoints` of summaries.
        record_shapes: the kinds of the optional fields that `score` reads from a record.
        cut: the part of a prompt that is cut if the prompt is too long: the end of its `context`; its `middle`, after
            which the two halves are decoded separately, or with `middle_joined` together; the middle of its context
            (`context_middle`), decoded together; or `nothing`.
        prefix_scored: whether a completion is scored with the answer prefix before the output, as some official codes
            do.
        repeats: how often the official protocol asks each question. A score is the mean of the answers.
        trait: a property that some tasks of the benchmark have and others do not, by which scores can be split.
        alias: the task's name in run entries, if it differs from `name`.
        short_name: another name that run entries can give. The run has the usual one.
        unscored: the reason why the task has no `longctx_score`; only if `headline` is empty.
        check_machine: checks that answers can be scored on this machine, before anything is sent, and raises an
            `InputError` if not. None if every machine can. Such a task is one of `Category.variants`.
        extras: the extras of this package that the task needs, to be loaded or scored.
        baseline: how the baseline models answer the task. None if they do not.
        reasoning: the prompts for reasoning before the answer (`method=cot`). None if there are none.
        question_only: our prompt of the question alone (`method=question_only`). None if there is none.
        metric: the value of `metric` if a run entry has none.
        generated: when this package makes the questions instead of the benchmark's own: never, if the files of
            `optional_sources` are missing, or always. Questions that are drawn as the official code draws them are the
            benchmark's own.
        official_task: the name in run entries of the task that asks the benchmark's own questions, if the questions of
            this task are always generated.
        scorers: the official scorers by the values of `scorer`, if the authors changed theirs; `score` is the first.
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
    # These are functions of the length, because an official release has different files for each length. The type is
    # Any, because benchmarks without lengths pass None and the functions of the others declare `int`.
    sources: Callable[[Any], tuple[Source, ...]] = lambda length: ()
    optional_sources: Callable[[Any], tuple[Source, ...]] = lambda length: ()
    own_files: tuple[str, ...] = ()
    num_samples: int | Mapping[int, int] = 100
    depths: int = 1
    shots: int = 0
    any_length: bool = False
    chat: bool = False
    arguments: tuple[str, ...] = ()
    variants: Mapping[ProtocolArgument, Variant] = field(
        default_factory=lambda: {"paper": Variant()}
    )
    most_samples: int | None = None
    official_judge: str | None = None
    judgement: Judgement | None = None
    judge_prompt: str = ""
    judge_sources: Mapping[str, Source] = field(default_factory=dict)
    cut: _CutRule = "context"
    record_shapes: Mapping[str, Shape] = field(default_factory=dict)
    prefix_scored: bool = False
    repeats: int = 1
    trait: str = ""
    alias: str = ""
    short_name: str = ""
    unscored: str = ""
    check_machine: Callable[[], None] | None = None
    extras: tuple[str, ...] = ()
    baseline: Baseline | None = None
    reasoning: Reasoning | None = None
    question_only: Template | None = None
    metric: MetricArgument = "score"
    can_read: _Reads = has_text
    generated: _Generation = "never"
    official_task: str = ""
    scorers: Mapping[str, Scorer] = field(default_factory=dict)

    @property
    def argument(self) -> str:
        """The task's name in run entries."""
        return self.alias or self.name

    def exists_at(self, length: int | None) -> bool:
        """Whether the task exists at a length. A task without sizes belongs to a benchmark without lengths."""
        return not self.sizes or self.any_length or length in self.sizes

    def is_published_at(self, length: int | None) -> bool:
        """Whether the publisher serves the data that the task needs at a length. If not, only mirrors can have it."""
        return all(source.is_published for source in self.sources(length))

    def prompt(self, example: Example, system: str | None = None) -> RenderedPrompt:
        """Make the prompt of an example, after a system message if the protocol has one."""
        if example.messages:
            own = RenderedPrompt(example.messages, context=example.context)
        else:
            own = None
        prompt = own or (example.template or self.template).render(example.fields)
        return prompt.with_system(system) if system else prompt

    def check_extras(self) -> None:
        """Check that the extras of the task are installed."""
        for extra in self.extras:
            require(extra, self.name)

    def check_record(self, record: ScorerInput, where: str) -> None:
        """Raise an `InputError` that starts with `where` if `score` cannot read a record."""
        for name, shape in self.record_shapes.items():
            # A field can be absent: `score` then omits the metrics that need it.
            if record.get(name) is not None:
                shape.check(f"{where}: {name}", record[name])
        scorer = record.get("scorer")
        if self.scorers and scorer is not None and scorer not in self.scorers:
            raise bad_argument(where, "scorer", scorer, tuple(self.scorers))

    @property
    def is_self_contained(self) -> bool:
        """Whether the task's examples can be generated without any file and without a tokenizer."""
        needs_files = self.own_files or self.sources(min(self.sizes, default=None))
        return not needs_files and "count_with" not in self.arguments

    def is_generated(self, length: int | None, root: DataRoot) -> bool:
        """Whether a run that reads its data from `root` asks questions that are not the benchmark's own."""
        if self.generated == "without_files":
            return not any(root.has(path) for path in self.paths(length))
        return self.generated == "always"

    @property
    def closed_book(self) -> bool:
        """Whether the task can be run without its context (`context=none`)."""
        return "context" in self.arguments

    @property
    def has_question(self) -> bool:
        """Whether the task has a context and a question about it, so that methods can ask it in another way."""
        return self.template.has_question

    @property
    def has_judge(self) -> bool:
        """Whether a judge decides a part of the score."""
        return self.official_judge is not None

    def is_official(self, judge: str) -> bool:
        """Whether a `judge` argument means the official judge, on any host: `azure/X` is the same as `openai/X`."""
        # With `none` the judged metrics are absent, so scores of different judges cannot be mixed.
        if judge in ("auto", "none") or self.official_judge is None:
            return True
        # A plus sign joins the judges of a jury.
        return (
            "+" not in judge
            and judge.rpartition("/")[2] == self.official_judge.rpartition("/")[2]
        )

    @property
    def all_arguments(self) -> frozenset[str]:
        """All run-entry arguments that the task takes."""
        # A task with one variant has the same prompts under all protocols.
        asks = dict.fromkeys(("method", "stream"), self.has_question)
        further = {
            "protocol": len(self.variants) > 1,
            "judge": self.has_judge,
            "scorer": bool(self.scorers),
            **asks,
        }
        taken = [name for name, takes in further.items() if takes]
        return frozenset([*EVERY_TASK, *self.arguments, *taken])

    def variant(self, settings: Settings) -> Variant:
        """Return the variant of the entry's protocol; the variant of `paper` if the task does not have the protocol.

        Some tasks of a category can have a protocol that others do not have.
        """
        return self.variants.get(settings.protocol, self.variants["paper"])

    def output_tokens(self, settings: Settings) -> int:
        """Return the official output budget."""
        if isinstance(self.max_tokens, int):
            official = self.max_tokens
        else:
            official = self.max_tokens[settings.level]
        return self.variant(settings).max_tokens or official

    def budget(self, settings: Settings, example: Example | None = None) -> int:
        """Return the output budget of a request, or the task's largest one, with the tokens for thinking."""
        own = example.max_tokens if example else None
        return (own or self.output_tokens(settings)) + settings.thinking_tokens

    def record_fields(self, settings: Settings) -> dict[str, Any]:
        """Return the fields that a run entry adds to the records of the task's answers."""
        if self.scorers and settings.scorer:
            return {"scorer": settings.scorer}
        return {}

    def is_other_scorer(self, scorer: str) -> bool:
        """Whether a value of `scorer` selects another scorer than the default one for this task."""
        return self.scorers.get(scorer, self.score) is not self.score

    def scores(self, record: ScorerInput) -> MetricValues:
        """Return the official metrics and `longctx_score`. A metric that cannot be computed is absent.

        At most `MOST_SCORED` characters of the prediction are read.
        """
        scorer = self.scorers.get(record.get("scorer", ""), self.score)
        scores = {}
        for name, value in scorer(limit_prediction(record)).items():
            scores[name] = float(value)
        if (mean := self.headline_mean(scores)) is not None:
            scores[MAIN_METRIC] = mean
        return scores

    def headline_mean(self, scores: MetricValues) -> float | None:
        """`longctx_score` from the official metrics of an answer or of a run, or None if one of them is missing."""
        if not self.headline or not all(name in scores for name in self.headline):
            return None
        # A mean of only some parts would be on another scale.
        return sum(scores[name] for name in self.headline) / len(self.headline)

    def sample(self, settings: Settings) -> int:
        """Return the number of examples to load. The data can have fewer."""
        return settings.num_samples or self.official_sample(settings)

    def official_sample(self, settings: Settings) -> int:
        """Return the official sample size."""
        official = self.variant(settings).num_samples or self.num_samples
        if isinstance(official, int):
            return official
        return official.get(settings.level, official[max(official)])

    def demonstrations(self, settings: Settings) -> int:
        """Return the number of demonstrations before the question."""
        if settings.shots is None:
            return self.shots
        return settings.shots

    def all_sources(self, length: int | None) -> list[Source]:
        """Return all data that can be fetched for the task at a length."""
        return [
            *self.sources(length),
            *self.optional_sources(length),
            *self.judge_sources.values(),
        ]

    def only_file(self, settings: Settings, root: DataRoot) -> Path:
        """Return the only file that the task reads at the length of a run entry."""
        (path,) = self.paths(settings.length)
        return root / path

    def paths(self, length: int | None) -> list[str]:
        """Return the paths under the data root that the task reads at a length, in the order of its sources."""
        paths: list[str] = []
        for sources in (self.sources, self.optional_sources):
            for source in sources(length):
                paths += source.paths
        return paths
