"""A benchmark: its tasks in categories, its metrics, its published results and known errors, and what its folder says.

Everything that HELM needs is derived from these objects and from the tasks. No other module has facts about a
benchmark. A benchmark's folder has the file `benchmark.yaml`:

    name, title, description, comparability, task_argument, …    as in `Benchmark`
    revision    repository and commit; on GitHub they are also the `url`, unless the file has one
    axis        the arguments of `Axis`, with lengths such as `16m`; absent if the benchmark has no lengths
    data        the arguments of `Terms`, by address
    metrics     the arguments of `Metric`, by name, or nothing for the metrics of all judges
    task        the arguments of `Task` that the tasks share, for `task_fields`

The files `published.csv`, `models.csv`, `protocols.yaml`, `errata.jsonl`, `outputs.py`, `score_files.py` and
`proof.py` are recognized by their names. A line of `errata.jsonl` names questions by an `instance`, or by a `rule`: a
name that the benchmark's loader gives to the examples that it finds to be wrong (`Example.errata`).
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cache, cached_property, partial
from importlib import resources
from typing import Any

from helm_longctx.data.tables import read_table
from helm_longctx.data.yaml_files import parse_package_yaml
from helm_longctx.tasks.lengths import (
    INPUT_TOKENS,
    Axis,
    length_label,
    parse_length,
)
from helm_longctx.tasks.publications import (
    ModelProperties,
    PrintedCorrelation,
    Protocol,
    Published,
    read_correlations,
    read_models,
    read_protocols,
)
from helm_longctx.tasks.statistic_names import read_statistic
from helm_longctx.tasks.task import Task

ERRATA_FILE = "errata.jsonl"


@dataclass(frozen=True)
class Erratum:
    """A known error in the data of a benchmark, of which official scores know nothing.

    Args:
        since: the day since which it is known.
        instance: the name of the example. Empty for a rule.
        rule: the name that the loader gives to the examples with the error. Empty for an instance.
        length: the length at which the instance has the error. None for all.
    """

    task: str
    what: str
    source: str
    since: date
    instance: str = ""
    rule: str = ""
    length: int | None = None

    def concerns(
        self,
        instance: str,
        length: int | None,
        rules: Collection[str],
    ) -> bool:
        """Whether an instance of the task has the error."""
        if self.rule:
            is_named = self.rule in rules
        else:
            is_named = self.instance == instance
        return is_named and self.length in (None, length)


@cache
def read_errata(package: str) -> tuple[Erratum, ...]:
    """Read `errata.jsonl` of a benchmark's package. Raises a `ValueError` with the number of a wrong line."""
    text = (resources.files(package) / ERRATA_FILE).read_text(encoding="utf-8")
    errata = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            errata.append(_parse(number, line))
    return tuple(errata)


def _parse(number: int, line: str) -> Erratum:
    names = {column.name for column in fields(Erratum)}
    try:
        row: Mapping[str, Any] = json.loads(line)
        if unknown := set(row) - names:
            raise ValueError(
                f"{', '.join(sorted(unknown))} is unknown; the names are {', '.join(sorted(names))}"
            )
        if bool(row.get("instance")) == bool(row.get("rule")):
            raise ValueError("it must have either an instance or a rule")
        if not all(
            row[name] and isinstance(row[name], str)
            for name in ("task", "what", "source")
        ):
            raise ValueError("task, what and source must be texts")
        length = parse_length(row["length"]) if "length" in row else None
        return Erratum(
            **{**row, "since": date.fromisoformat(row["since"]), "length": length}
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{ERRATA_FILE}: line {number}: {error}") from error


@dataclass(frozen=True)
class Metric:
    """An official metric and its meaning.

    Args:
        range: smallest and largest value. None for counts and for metrics without bounds in the official code.
        success: whether each value is 0 or 1, so that repeats give pass@k.
        formerly: earlier names of the metric. Runs that have one of them are read as if they had today's.
    """

    name: str
    title: str
    description: str
    lower_is_better: bool | None = False
    range: tuple[float, float] | None = (0.0, 1.0)
    success: bool = False
    formerly: tuple[str, ...] = ()


@dataclass(frozen=True)
class Category:
    """Tasks that are run together and averaged.

    Args:
        name: the last part of the run entry `<benchmark>_<name>`. A category without a name has the benchmark's.
        tasks: the published tasks. Their unweighted mean is the category's score. If some do not exist at a length, the
            score is the mean of the others.
        variants: further tasks that run only if the entry names them. They are in no mean.
        averaged: whether the category is a column of the published tables.
        judge: the annotator that judges the answers, as `module.Class`. Empty if none does.
    """

    name: str = ""
    title: str = ""
    tasks: tuple[Task, ...] = ()
    variants: tuple[Task, ...] = ()
    averaged: bool = True
    # This is a path, not a class, because annotators import HELM and this module must not. The same holds for
    # `judge_checks` below.
    judge: str = ""

    @property
    def is_self_contained(self) -> bool:
        """Whether the category can be run without any file and without a tokenizer."""
        return all(task.is_self_contained for task in self.tasks)

    @cached_property
    def needs_path(self) -> bool:
        """Whether the questions are in the user's own files, named by the argument `path`."""
        return any("path" in task.arguments for task in self.tasks)

    def tasks_at(self, length: int | None) -> tuple[Task, ...]:
        """Return the tasks whose mean is the category's score at a length: those that exist there."""
        return tuple(task for task in self.tasks if task.exists_at(length))


@dataclass(frozen=True)
class Sweep:
    """Tasks that differ in one property, the easiest level first, so that a curve shows what it does to scores."""

    title: str
    about: str
    tasks: Mapping[str, str]


@dataclass(frozen=True)
class Evidence:
    """What in public material tells of the content of data that could not be read here.

    Args:
        what: what it says, in a few words.
        read: the day on which it was read, YYYY-MM-DD.
        address: where it stands. Empty for material that a search by content found without its address.
    """

    what: str
    read: str
    address: str = ""


@dataclass(frozen=True)
class Terms:
    """What a publisher says about data, and what is known of its faults.

    Args:
        size: size of the download, as text such as `36 MB`. Empty if it is not known.
        faults: known wrong keys and other faults, a sentence each.
        seen: the day on which `helm-longctx fetch --check` saw that a row has the loaders' columns. Empty if we never
            saw the data of a hub.
        unseen: what of the data we never read, so that the loader follows other descriptions; a sentence.
        gated: whether access needs a login and the publisher's consent.
        rows: the number of rows in words, where the sources do not state it.
        changed: the day on which the publisher changed the files to what is pinned, YYYY-MM-DD, if it is known.
            Numbers of an earlier day were made with other files.
        evidence: what in public material says that the pinned files are the right ones. Empty if nothing is known.
    """

    license: str
    size: str = ""
    faults: tuple[str, ...] = ()
    seen: str = ""
    unseen: str = ""
    gated: bool = False
    rows: str = ""
    changed: str = ""
    evidence: tuple[Evidence, ...] = ()


def read_published(
    package: str,
    categories: Iterable[Category] = (),
    best: float = 100,
) -> tuple[Published, ...]:
    """Read the published results in `published.csv`, a file of a benchmark's package.

    Its columns are `model`, `score`, and if there are lengths `length`. Scores of tasks have a column `task`, scores of
    several categories a column `category`, and scores of another number of questions than the tasks have a column
    `samples`, with 0 where the number is not known. A column `scorer` names the scorer of tasks that have several.

    Args:
        categories: all categories of the benchmark, if it has several.
        best: the best score in the file. It becomes 1.
    """
    category_of_task: dict[str, str] = {}
    for category in categories:
        category_of_task |= {task.name: category.name for task in category.tasks}
    results: dict[tuple[str, str, int | None, int | None, str], dict[str, float]]
    results = defaultdict(dict)
    for row in read_table(package, "published.csv"):
        task = row.get("task", "")
        length = parse_length(row["length"]) if "length" in row else None
        category_name = row.get("category") or category_of_task.get(task, "")
        samples = int(row["samples"]) if row.get("samples") else None
        key = (row["model"], category_name, length, samples, row.get("scorer", ""))
        results[key][task] = float(row["score"]) / best
    published = []
    for (model, category_name, length, samples, scorer), scores in results.items():
        published.append(
            Published(
                model,
                category_name,
                length,
                scores,
                samples=samples,
                scorer=scorer,
            )
        )
    return tuple(published)


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: its tasks, in categories, and everything that they share.

    Args:
        name: the name of its folder and scenario, e.g. `helmet`.
        revision: repository and commit that the prompts and metrics follow; part of every run spec.
        comparability: a number that is raised when our code gives other scores; part of every run spec. The README in
            the benchmark's folder lists the reasons.
        task_argument: the run-entry argument that selects a task, but not a key of HELM's `RUN_EXPANDERS`.
        axis: what the lengths count. None if the benchmark has no lengths.
        correlations: loads the correlations of tasks over models that the publication prints.
        protocols: loads the reported protocols: how published numbers of model releases were measured.
        floors: the published models that need no understanding, such as random guesses. They are not ranked.
        sweeps: tasks that differ in one property. Pages have curves over it.
        effective_score: the score below which the publication calls a length not effective, if it has one.
        overall: the publication's name of the mean over all averaged categories. Empty if there is no such mean.
        judge_checks: the function that makes the checks of `helm-longctx judge-check` from a data root, as
            `module.function`. Empty if there are none.
        data: the terms of the data, by the address of the publisher's page (`tasks/data_cards.py`).
        outputs: the `OutputReader` of the official code's files, as `module.NAME`. Empty if there is none.
        score_files: the function that writes a model's scores as the official code does, as `module.function`: (scores
            in percent by task and length, folder) → files. Empty if there is none.
        proof: the `Proof` of published outputs with printed scores, as `module.NAME`. Empty if there is none.
        category_argument: the argument of a run entry with the benchmark's name that selects a category, such as
            `language`: `oneruler:language=de` is `oneruler_de`. Empty if there is no such run entry.
        tables: the tables over several benchmarks that show its scores, such as `memory`.
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
    # These are functions, because only tables need the files. The defaults return an empty tuple and dictionary.
    published: Callable[[], tuple[Published, ...]] = tuple
    errata: Callable[[], tuple[Erratum, ...]] = tuple
    models: Callable[[], Mapping[str, ModelProperties]] = dict
    correlations: Callable[[], tuple[PrintedCorrelation, ...]] = tuple
    protocols: Callable[[], tuple[Protocol, ...]] = tuple
    floors: tuple[str, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    effective_score: float | None = None
    overall: str = ""
    judge_checks: str = ""
    data: Mapping[str, Terms] = field(default_factory=dict)
    outputs: str = ""
    proof: str = ""
    score_files: str = ""
    leads: bool = False
    category_argument: str = ""
    tables: tuple[str, ...] = ()

    @cached_property
    def entries(self) -> dict[str, Category]:
        """The category of each run-entry name."""
        entries = {}
        for category in self.categories:
            if category.name:
                name = f"{self.name}_{category.name}"
            else:
                name = self.name
            entries[name] = category
        return entries

    @property
    def shown_entries(self) -> list[str]:
        """The run entries as lists show them: one for each category, or one whose argument selects the category."""
        if self.category_argument:
            return [f"{self.name}:{self.category_argument}=…"]
        return list(self.entries)

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks, each once."""
        # By name, because a task can be in several categories. A dictionary keeps the order of the table.
        tasks: dict[str, Task] = {}
        for category in self.categories:
            tasks |= {task.name: task for task in (*category.tasks, *category.variants)}
        return tuple(tasks.values())

    def task(self, name: str) -> Task:
        """Find a task by name. Raises a `KeyError` if the benchmark has no task of that name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Task]:
        return {task.name: task for task in self.tasks}

    def metric(self, name: str) -> Metric:
        """Find a metric by name. Raises a `KeyError` if the benchmark has no metric of that name."""
        return {metric.name: metric for metric in self.metrics}[name]

    @cached_property
    def former_metrics(self) -> Mapping[str, str]:
        """The name of today of each metric that had another one."""
        names = {}
        for metric in self.metrics:
            for former in metric.formerly:
                names[former] = metric.name
        return names

    def current_name(self, statistic: str) -> str:
        """Return the name of today of a statistic in a run's files, such as a metric by one judge of a jury."""
        if not self.former_metrics:
            return statistic
        named = read_statistic(statistic)
        metric = self.former_metrics.get(named.metric, named.metric)
        return str(replace(named, metric=metric))

    @cached_property
    def lengths(self) -> list[int]:
        """All lengths at which some task has a size, ascending."""
        sizes: set[int] = set()
        return sorted(sizes.union(*(task.sizes for task in self.tasks)))

    def lengths_of(self, task: Task) -> list[int]:
        """Return the lengths of a task, ascending: its sizes, and the ends of the range if it exists at any length."""
        lengths = set(task.sizes)
        if self.axis and task.any_length:
            lengths |= {self.axis.shortest, self.axis.longest}
        return sorted(lengths)

    def find_official_entry(
        self,
        entry: str,
        task: Task,
        length: int | None,
    ) -> str:
        """Return the run entry that asks the benchmark's own questions in place of a task's generated ones.

        Returns:
            A text such as `helmet_recall:length=8k`, or an empty one if the benchmark has no such questions.
        """
        if not task.official_task:
            label = "" if length is None else f":length={length_label(length)}"
            if task.paths(length):
                return f"{entry}{label}"
            return ""
        official = next(
            other for other in self.tasks if other.argument == task.official_task
        )
        lengths = self.lengths_of(official)
        nearest = length if length in lengths else min(lengths, default=None)
        at = "" if nearest is None else f",length={length_label(nearest)}"
        return f"{entry}:{self.task_argument}={official.argument}{at}"


FILE = "benchmark.yaml"

_STRICT = "The judged score, with 0 for an answer without a verdict."
_SPREAD = "Difference between the highest and the lowest score of an answer by a jury's judges."
OF_JUDGES = {
    "judge_score_strict": Metric("judge_score_strict", "Judged score, strict", _STRICT),
    "judge_spread": Metric(
        "judge_spread", "Judges' spread", _SPREAD, lower_is_better=True
    ),
}


def _list_categories(
    parts: Sequence[Category] | Sequence[Task],
) -> tuple[Category, ...]:
    categories = []
    tasks = []
    for part in parts:
        if isinstance(part, Category):
            categories.append(part)
        else:
            tasks.append(part)
    if tasks:
        categories.insert(0, Category(tasks=tuple(tasks)))
    return tuple(categories)


@cache
def _read(package: str) -> Mapping[str, Any]:
    text = (resources.files(package) / FILE).read_text(encoding="utf-8")
    about: Mapping[str, Any] = parse_package_yaml(text)
    return about


def task_fields(package: str) -> dict[str, Any]:
    """Return the arguments of `Task` that the tasks of a package share."""
    return _with_tuples(_read(package)["task"])


def read_benchmark(
    package: str,
    parts: Sequence[Category] | Sequence[Task],
    metrics: Sequence[Metric] = (),
    data: Mapping[str, Terms] | None = None,
    **further: Any,
) -> Benchmark:
    """Make the benchmark of a package from its files. Metrics and terms are added; `further` replaces arguments.

    Args:
        parts: the categories, or the tasks of a benchmark without categories.
    """
    categories = _list_categories(parts)
    folder = resources.files(package)
    about = {}
    for name, value in _read(package).items():
        if name != "task":
            about[name] = value
    own = []
    for name, description in about.pop("metrics", {}).items():
        if description is None:
            own.append(OF_JUDGES[name])
        else:
            own.append(Metric(name, **_with_tuples(description)))
    terms = {}
    for address, card in about.pop("data", {}).items():
        terms[address] = _read_terms(card)
    axis: dict[str, Any] = {**about.pop("axis", {})}
    axis |= {
        name: parse_length(axis[name])
        for name in ("shortest", "longest")
        if name in axis
    }
    repository, _, commit = about["revision"].partition("@")
    arguments: dict[str, Any] = {
        "url": f"https://github.com/{repository}/tree/{commit}"
    }
    arguments |= _with_tuples(about)
    arguments["axis"] = Axis(**axis) if axis else None
    arguments["data"] = {**terms, **(data or {})}
    arguments["metrics"] = (*own, *metrics)
    # A report asks for the published results several times.
    published = cache(
        further.get("published") or partial(read_published, package, categories)
    )
    if "published" in further:
        further["published"] = published
    readers: dict[str, tuple[str, Callable[[], Any]]] = {
        "published": ("published.csv", published),
        "models": ("models.csv", partial(read_models, package)),
        "correlations": ("correlations.csv", partial(read_correlations, package)),
        "protocols": ("protocols.yaml", partial(read_protocols, package, published)),
        "errata": (ERRATA_FILE, partial(read_errata, package)),
    }
    for name, (file, read) in readers.items():
        if (folder / file).is_file():
            arguments[name] = read
    for name, attribute in (
        ("outputs", "READER"),
        ("proof", "PROOF"),
        ("score_files", "write_files"),
    ):
        has_module = (folder / f"{name}.py").is_file()
        arguments[name] = f"{package}.{name}.{attribute}" if has_module else ""
    arguments["categories"] = tuple(categories)
    return Benchmark(**{**arguments, **further})


def _read_terms(card: Mapping[str, Any]) -> Terms:
    """Read what `benchmark.yaml` says about the data of a publisher."""
    evidence = tuple(Evidence(**row) for row in card.get("evidence", ()))
    return Terms(**{**_with_tuples(card), "evidence": evidence})


def _with_tuples(about: Mapping[str, Any]) -> dict[str, Any]:
    given = {}
    for name, value in about.items():
        given[name] = tuple(value) if isinstance(value, list) else value
    return given
