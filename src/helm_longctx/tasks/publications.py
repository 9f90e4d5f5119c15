"""What publications say: scores, properties of their models, and how a score was measured.

A benchmark's folder can have the file `protocols.yaml`. A reader can check it line by line against the sources. Its
mapping `sources` says where numbers were published. Each item of the list `protocols` is a family of protocols that
differ in one point, such as the length; `Protocol` is one of them. Its `rows` are the ledger of published numbers. All
values of the file are read as text, so a number keeps the digits of its source.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from helm_longctx.data.tables import read_table
from helm_longctx.data.yaml_files import read_package_yaml
from helm_longctx.errors import InputError
from helm_longctx.tasks.lengths import parse_length

FILE = "protocols.yaml"

_Aggregation = Literal["mean over questions", "mean over entries", "area over lengths"]
"""How one number is made of the scores of a protocol's run entries."""

_POINT = "{point}"
"""Stands in the names and titles of a family for the name of each point."""

NO_REASONING = "none"
"""The effort of a model that does not reason, or whose reasoning is turned off."""

_LENGTH = re.compile(r"\blength=([^,]+)")


@dataclass(frozen=True)
class Published:
    """The published results of a model in one category at one length.

    Args:
        scores: scores by task, 0…1. If only the category's score was published, its key is the empty name.
        source: the file from which a score of somebody's run was imported without its answers. Empty for scores that
            the benchmark's authors published.
        samples: number of questions of each score; 0 if it is not known, None if it is the tasks' own.
        metrics: the official metrics of tasks whose score is the mean of several, 0…1.
        scorer: the value of `scorer` that made the scores. Empty for the tasks' default.
    """

    model: str
    category: str
    length: int | None
    scores: Mapping[str, float]
    source: str = ""
    samples: int | None = None
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    scorer: str = ""

    def update(self, later: Published) -> Published:
        """Return a later row with what it lacks of this one. Scores of tasks replace their category's score."""
        has_tasks = any(later.scores)
        kept = {}
        for task, score in self.scores.items():
            if task or not has_tasks:
                kept[task] = score
        metrics = dict(self.metrics)
        for task, of_task in later.metrics.items():
            metrics[task] = {**self.metrics.get(task, {}), **of_task}
        return replace(later, scores={**kept, **later.scores}, metrics=metrics)


@dataclass(frozen=True)
class ModelProperties:
    """What a publication says about a model. A text is empty, and a number None, if it says nothing.

    Args:
        window: the training length in tokens or, if that is unknown, the context window that the maker claims.
        positions: how positions are encoded or extrapolated.
        parameters: billions of parameters; of a mixture of experts the active ones, and after a slash all of them.
        instruct: whether the publication calls the model instruction-tuned.
        in_figures: whether the publication's figures have the model among the instruction-tuned ones.
        source: the table from which the other fields are, `instruct` excepted.
    """

    family: str
    window: int | None
    architecture: str
    positions: str
    parameters: str
    instruct: bool
    source: str
    in_figures: bool = False

    @property
    def active(self) -> float | None:
        """Billions of active parameters: all of them, except in mixtures of experts."""
        if self.parameters:
            return float(self.parameters.partition("/")[0])
        return None


@dataclass(frozen=True)
class PrintedCorrelation:
    """A rank correlation over models that a publication prints.

    Args:
        figure: the number of the figure or table.
        row, columns: tasks or run entries. Of several columns it is the mean of their correlations with the row.
        rho: Spearman's correlation, with two digits.
    """

    figure: str
    length: int
    row: str
    columns: tuple[str, ...]
    rho: float
    source: str


def read_correlations(package: str) -> tuple[PrintedCorrelation, ...]:
    """Read `correlations.csv`, a file of a benchmark's package."""
    correlations = []
    for row in read_table(package, "correlations.csv"):
        correlations.append(
            PrintedCorrelation(
                figure=row["figure"],
                length=parse_length(row["length"]),
                row=row["row"],
                columns=tuple(row["columns"].split()),
                rho=float(row["rho"]),
                source=row["source"],
            )
        )
    return tuple(correlations)


def read_models(package: str) -> dict[str, ModelProperties]:
    """Read the models' properties in `models.csv`, a file of a benchmark's package, by published name."""
    models = {}
    for row in read_table(package, "models.csv"):
        models[row["model"]] = ModelProperties(
            family=row["family"],
            architecture=row["architecture"],
            positions=row["positions"],
            parameters=row["parameters"],
            source=row["source"],
            window=parse_length(row["window"]) if row["window"] else None,
            instruct=row["instruct"] == "1",
            in_figures=row["instruct"] == "1" and row.get("figures") != "0",
        )
    return models


KINDS = (
    "model card",
    "system card",
    "report",
    "announcement",
    "leaderboard",
    "repository",
    "ledger",
)
"""Kinds of sources. A ledger lists what others published."""

CONFIDENCE = {"H": "stated on the page", "P": "read in a picture", "M": "second hand"}
"""How sure a row is. It is stated on the page if the page was read, or if two independent copies of it agree; a single
copy is second hand."""

_CONDITIONS = (
    "temperature",
    "top_p",
    "trials",
    "tools",
    "context",
    "context management",
    "output tokens",
    "judge",
)
"""What a row can say about its own conditions, as the source states them."""

_OBSTACLES = ("no protocol", "private judge", "tools", "data withheld")
"""Why nobody else can run a protocol. "No protocol" is a task for us: to find out how the number was measured."""


@dataclass(frozen=True)
class PublicationSource:
    """Where numbers were published.

    Args:
        title, page, date: the page's title, address and date, YYYY-MM-DD. The date is "unknown" if no copy gives it.
        settings: what the page says about its settings, as the copies that were read quote or summarize it. Empty if
            they say nothing.
        kind: one of `KINDS`.
        read: the day on which the page or the copy was read, at the latest.
        copy: the copy that was read. Empty if the page itself or several copies of it were.
        unit: "fraction" if the page prints numbers from 0 to 1.
    """

    title: str
    page: str
    date: str
    settings: str = ""
    kind: str = ""
    read: str = ""
    copy: str = ""
    unit: Literal["percent", "fraction"] = "percent"

    def __post_init__(self) -> None:
        """Raise ValueError for another kind or unit."""
        if self.kind not in ("", *KINDS) or self.unit not in ("percent", "fraction"):
            raise ValueError(
                f"a source has the kind {self.kind!r} and the unit {self.unit!r}"
            )

    def percent(self, text: str) -> Decimal:
        """Return a number of the page in percent, with its digits: 0.915 is 91.5."""
        return Decimal(text).scaleb(2 if self.unit == "fraction" else 0)


@dataclass(frozen=True)
class Reported:
    """A published number.

    Args:
        value: the number, 0 to 100.
        effort: the reasoning effort, `NO_REASONING`, or empty if the page does not say it.
        confidence: one of `CONFIDENCE`.
        text: the number in percent with the digits of its source. Empty for a mean of published numbers.
        conditions: what the source states about this number, by one of `_CONDITIONS`.
        also: the number in percent in other sources.
    """

    model: str
    value: float
    effort: str
    confidence: str
    source: PublicationSource
    text: str = ""
    vendor: str = ""
    conditions: Mapping[str, str] = field(default_factory=dict)
    also: Mapping[PublicationSource, Decimal] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The model with its effort, such as `GPT-5.5 (xhigh)`."""
        if self.effort not in ("", NO_REASONING):
            return f"{self.model} ({self.effort})"
        return self.model

    @property
    def number_text(self) -> str:
        """The number as its source prints it: 74.0, not 74. A ‡ says that another source has another number."""
        return (self.text or f"{self.value:g}") + (" ‡" if self.differences else "")

    @property
    def differences(self) -> dict[PublicationSource, Decimal]:
        """The other sources whose number differs by more than rounding to the digits of the coarser one."""
        own = Decimal(self.text or repr(self.value))
        others = {}
        for source, other in self.also.items():
            if not is_rounded(own, other):
                others[source] = other
        return others

    @property
    def origin(self) -> str:
        """Where and when it was published, how sure it is, and what other sources print."""
        others = []
        for source, number in self.differences.items():
            others.append(f"{source.title}: {number:f}")
        same = []
        for source in self.also:
            if source not in self.differences:
                same.append(source.title)
        also = [f"also in {', '.join(same)}"] if same else []
        stated = [f"{name} {text}" for name, text in self.conditions.items()]
        how = "; ".join(
            [
                CONFIDENCE[self.confidence],
                *also,
                *(["but " + "; ".join(others)] if others else []),
                *stated,
            ]
        )
        return f"{self.source.title}, {self.source.date} ({how})"


def is_rounded(one: Decimal, other: Decimal) -> bool:
    """Whether two printed numbers can be one number that was rounded to their digits."""
    coarser = max(min(int(number.as_tuple().exponent), 0) for number in (one, other))
    return abs(one - other) <= Decimal(1).scaleb(coarser) / 2


@dataclass(frozen=True)
class Protocol:
    """A reported protocol.

    Args:
        name: the name that users type, such as `openai mrcr v2 8-needle 4k-8k`.
        family: the title of the protocols that differ only in their point.
        point: the name of this one in its family. Empty if the family has one.
        aggregation: how the number is made of the scores of the entries.
        metric: the metric. Empty for the tasks' scores.
        temperature: the temperature of requests. None if the page does not say it. Then it is the task's.
        output_tokens: the output budget. None if the page does not say it. Then it is the task's.
        judge: the judge that is reported. Empty without one. It is not in the run entries, because the user chooses it.
        samples: the number of questions. None if it is not known.
        asks_all: whether all questions of the data are asked, so as many as a whole run has.
        not_stated: what else the page does not say, so that no result is comparable.
        is_table: whether the rows are the benchmark's published table.
        obstacle: why nobody else can run it: one of `_OBSTACLES`, a colon, the details. Then it can lack entries.
    """

    name: str
    title: str
    family: str
    point: str
    about: str
    entries: tuple[str, ...]
    aggregation: _Aggregation
    metric: str = ""
    trials: int | None = None
    temperature: float | None = None
    output_tokens: int | None = None
    judge: str = ""
    samples: int | None = None
    asks_all: bool = False
    not_stated: tuple[str, ...] = ()
    rows: tuple[Reported, ...] = ()
    is_table: bool = False
    obstacle: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for another obstacle."""
        if self.obstacle and self.obstacle.partition(":")[0] not in _OBSTACLES:
            raise ValueError(
                f"{self.name} has the obstacle {self.obstacle!r}, not one of"
                f" {', '.join(_OBSTACLES)}"
            )

    @cached_property
    def run_entries(self) -> tuple[str, ...]:
        """The run entries with the protocol's conditions. HELM's own arguments set the temperature and the budget."""
        conditions = {
            "repeats": self.trials if (self.trials or 1) > 1 else None,
            "temperature": self.temperature,
            "num_output_tokens": self.output_tokens,
        }
        stated = []
        for name, value in conditions.items():
            if value is not None:
                stated.append(f"{name}={value}")
        return tuple(_add_arguments(entry, stated) for entry in self.entries)

    @property
    def conditions(self) -> list[str]:
        """The conditions for readers. What the page does not say is named, too."""
        if not self.trials:
            trials = "the task's trials"
        elif self.trials > 1:
            trials = f"{self.trials} trials"
        else:
            trials = "one trial"
        temperature = "temperature not stated"
        if self.temperature is not None:
            temperature = f"temperature {self.temperature:g}"
        budget = "output budget not stated"
        if self.output_tokens is not None:
            budget = f"{self.output_tokens:,} output tokens"
        lines = [
            self.aggregation,
            f"metric {self.metric}" if self.metric else "",
            trials,
            temperature,
            budget,
            f"judge {self.judge}" if self.judge else "",
        ]
        return [line for line in lines if line] + [
            f"{what} not stated" for what in self.not_stated
        ]


def _add_arguments(entry: str, arguments: Sequence[str]) -> str:
    """Return a run entry with further arguments."""
    if not arguments:
        return entry
    return f"{entry}{',' if ':' in entry else ':'}{','.join(arguments)}"


@cache
def read_protocols(
    package: str,
    published: Callable[[], tuple[Published, ...]] = tuple,
) -> tuple[Protocol, ...]:
    """Read a package's file of protocols, once in a process, with its published results, or raise an `InputError`."""
    path = Path(str(resources.files(package) / FILE))
    document = read_package_yaml(path)
    shared = read_package_yaml(Path(__file__).with_name("sources.yaml"))
    try:
        sources = {}
        for name, source in (shared | document["sources"]).items():
            sources[name] = PublicationSource(**source)
        protocols: list[Protocol] = []
        for family in document["protocols"]:
            protocols += _read_family(_with_table(family, published), sources)
        return tuple(protocols)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{path}: it does not have the form of a file of protocols ({what})"
        ) from error


def _with_table(
    family: Mapping[str, Any],
    published: Callable[[], tuple[Published, ...]],
) -> Mapping[str, Any]:
    """Return a family with the rows of the published table that its key `table` asks for, of models with all tasks."""
    if "table" not in family:
        return family
    table = family["table"]
    rows = []
    for row in published():
        if row.category == table["category"]:
            rows.append(row)
    points = {}
    for point, entry in family["points"].items():
        match = _LENGTH.search(entry)
        points[parse_length(match[1]) if match else None] = point
    tasks = {}
    for length in points:
        tasks[length] = max([len(row.scores) for row in rows if row.length == length])
    values: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.length in tasks and (
            "" in row.scores or len(row.scores) == tasks[row.length]
        ):
            values[row.model][points[row.length]] = round(
                100 * fmean(row.scores.values()), 6
            )
    shared = {"effort": NO_REASONING, "confidence": "H", "source": table["source"]}
    made = []
    for model, of_model in values.items():
        made.append({"model": model, "means": of_model, **shared})
    kept = {}
    for key, value in family.items():
        if key != "table":
            kept[key] = value
    return {**kept, "rows": made, "is_table": True}


_READERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("trials", "output_tokens", "samples"), int),
    "temperature": float,
    "asks_all": "true".__eq__,
}
"""How the text of the keys of a protocol is read that are no text."""


def _read_family(
    family: Mapping[str, Any],
    sources: Mapping[str, PublicationSource],
) -> Iterator[Protocol]:
    shared = dict(family)
    name, title, points, rows = (
        shared.pop(key) for key in ("name", "title", "points", "rows")
    )
    shared["not_stated"] = tuple(shared.get("not_stated", ()))
    if unknown := shared.keys() - {column.name for column in fields(Protocol)}:
        raise ValueError(f"{name} has the unknown key {min(unknown)}")
    shared |= {
        key: read(shared[key]) for key, read in _READERS.items() if key in shared
    }
    for point, entries in points.items():
        if not entries and "obstacle" not in shared:
            raise ValueError(f"{name} has no run entries at {point}, and no obstacle")
        rows_at_point = []
        for row in rows:
            if point in row.get("values", row.get("means", ())):
                rows_at_point.append(_read_row(row, point, sources))
        yield Protocol(
            name=name.replace(_POINT, point),
            title=title.replace(_POINT, point),
            family=title.replace(_POINT, "").strip(" ,"),
            point=point,
            entries=(entries,) if isinstance(entries, str) else tuple(entries),
            rows=tuple(rows_at_point),
            **shared,
        )


_ROW = {
    "model",
    "vendor",
    "effort",
    "source",
    "confidence",
    "values",
    "means",
    "also",
    "conditions",
}


def _read_row(
    row: Mapping[str, Any],
    point: str,
    sources: Mapping[str, PublicationSource],
) -> Reported:
    """Read a row of a family at one of its points. `means` are numbers that were computed here."""
    conditions = row.get("conditions", {})
    if unknown := (row.keys() - _ROW) | (conditions.keys() - {*_CONDITIONS}):
        raise ValueError(
            f"the row of {row['model']} has the unknown key {min(unknown)}"
        )
    source = sources[row["source"]]
    effort = row.get("effort", "")
    confidence = row["confidence"]
    if confidence not in CONFIDENCE:
        raise ValueError(
            f"the row of {row['model']} has the confidence {confidence!r}, not one of"
            f" {', '.join(CONFIDENCE)}"
        )
    if "means" in row:
        return Reported(row["model"], row["means"][point], effort, confidence, source)
    number = source.percent(row["values"][point])
    also = {}
    for name, values in row.get("also", {}).items():
        if point in values:
            also[sources[name]] = sources[name].percent(values[point])
    return Reported(
        row["model"],
        float(number),
        effort,
        confidence,
        source,
        text=f"{number:f}",
        vendor=row.get("vendor", ""),
        conditions=conditions,
        also=also,
    )
