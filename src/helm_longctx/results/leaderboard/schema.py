"""Makes the schema of HELM's pages: the statistics, and groups by benchmark, length, category and task."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.errors import InputError
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.results.boards import OVERALL, Board, label
from helm_longctx.tasks.benchmark import Benchmark, Category
from helm_longctx.tasks.groups import group_name
from helm_longctx.tasks.metric_names import (
    CONDITIONS,
    DEPTHS,
    depth_score,
    headline_text,
    metric_fields,
    task_score,
)
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from helm_longctx.tasks.task import MAIN_METRIC

_Group = dict[str, Any]

KINDS = (
    "leaderboards",
    "by length",
    "at one length",
    "tasks by length",
    "tasks at one length",
)
"""Last words of the categories of groups, the most important first. HELM's pages select groups by category."""


class Conditions(NamedTuple):
    """The conditions that the scores in a column share.

    Args:
        judge: the judge, empty for the official one.
    """

    length: int | None
    closed: bool = False
    judge: str = ""

    def describe(self, title: str) -> str:
        """Return a column's heading, whose last word is the length."""
        judge = f"by {self.judge}" if self.judge else ""
        return " ".join(filter(None, (title, judge, label(self.length))))


class BoardSection(NamedTuple):
    """The scores of a benchmark, or of one set of the user's questions, with context or without.

    Args:
        board: the board of the scores, or None if there are none yet.
        columns: the conditions of its scores, by length, the official judge before others.
    """

    benchmark: Benchmark
    board: Board | None
    closed: bool
    columns: Sequence[Conditions]

    @property
    def title(self) -> str:
        """The title of its tables."""
        return f"{(self.board or self.benchmark).title}{' closed book' if self.closed else ''}"

    def name(self, part: str, at: Conditions) -> str:
        """Return the group of a category, a task or, for an empty `part`, the benchmark."""
        return group_name(
            self.benchmark,
            part,
            label(at.length),
            at.closed,
            at.judge,
            folder=self.board.folder_at(at.length) if self.board else "",
            metric=self.board.metric if self.board else "",
        )


def all_sections(benchmarks: Iterable[Benchmark]) -> list[BoardSection]:
    """Return the sections of all scores that runs at the standard lengths can have."""
    sections = []
    for benchmark in benchmarks:
        lengths = benchmark.lengths if benchmark.axis else [None]
        for closed in (False, True):
            columns = [Conditions(length, closed) for length in lengths]
            sections.append(BoardSection(benchmark, None, closed, columns))
    return sections


def _board_sections(boards: Sequence[Board]) -> list[BoardSection]:
    """Return the sections of a suite's scores."""
    sections = []
    for board in boards:
        results = list(board.categories)
        for _, of_run in board.runs:
            results += of_run
        conditions = set()
        for result in results:
            closed = result.context == "none"
            judge = result.run.judge if result.run else ""
            conditions.add(Conditions(result.length, closed, judge))
            conditions.add(Conditions(result.length, closed))
        columns = sorted(
            conditions, key=lambda column: (column.length or 0, column.judge)
        )
        for closed in sorted({column.closed for column in columns}):
            of = [column for column in columns if column.closed == closed]
            sections.append(BoardSection(board.benchmark, board, closed, of))
    return sections


def suite_schema(boards: Sequence[Board]) -> dict[str, Any]:
    """Return the schema of a suite's scores: only the groups and the statistics that there are."""
    statistics: set[str] = set()
    groups: set[str] = set()
    for board in boards:
        groups.update(_group_names(board))
        for _, results in board.runs:
            for result in results:
                statistics.update(result.statistics)
        for result in board.tasks:
            if result.is_published:
                statistics.update(result.statistics)
    return make_schema(_board_sections(boards), groups, statistics)


def _group_names(board: Board) -> Iterator[str]:
    """Yield the groups of a board's runs, and those in which its published and its overall scores are shown."""
    for run, _ in board.runs:
        yield from run.spec["groups"]
    for result in (*board.tasks, *board.categories, *board.overalls):
        category = board.benchmark.entries.get(result.entry)
        if result.is_published or (category is None and result.has_score):
            parts = [category.name if category else OVERALL]
            if result.task:
                parts.append(result.task)
            for part in parts:
                yield group_name(
                    board.benchmark, part, label(result.length), metric=board.metric
                )


def make_schema(
    sections: Iterable[BoardSection],
    run_groups: Collection[str] | None = None,
    statistics: Collection[str] | None = None,
) -> dict[str, Any]:
    """Return a HELM schema as plain data.

    The leaderboards of all sections come before the groups of their categories and tasks.

    Args:
        run_groups: restricts the schema to these groups, such as the groups of a suite's runs, or None for all.
        statistics: restricts the columns to these statistics, such as those that a suite's runs have, or None for all.
    """
    sections = list(sections)
    # The boards of own questions have the tasks of their runs, so the registry's benchmarks are used.
    benchmarks = []
    for name in dict.fromkeys(section.benchmark.name for section in sections):
        benchmarks.append(find_benchmark(name))
    # Benchmarks share statistics, and a schema has each of them once.
    fields = {}
    for benchmark in benchmarks:
        for field in metric_fields(benchmark):
            fields[field["name"]] = field
    metric_groups = [
        _metric_group("score", "Score", ["${main_name}"]),
        _metric_group("by_depth", "By depth", [depth_score(depth) for depth in DEPTHS]),
    ]
    for benchmark in benchmarks:
        for category in benchmark.categories:
            names: dict[str, None] = {}
            for task in (*category.tasks, *category.variants):
                names |= dict.fromkeys(task.metrics)
            name = _official_name(benchmark, category)
            metric_groups.append(_metric_group(name, "Official metrics", names))
    metric_groups.append(_metric_group("conditions", "Conditions", CONDITIONS))
    if statistics is not None:
        metric_groups = [_restrict(group, statistics) for group in metric_groups]
    groups_by_kind: list[list[_Group]] = [[] for _ in KINDS]
    for section in sections:
        of_section = _groups(section, run_groups)
        for groups, of_kind in zip(groups_by_kind, of_section, strict=True):
            groups += of_kind
    return {
        "metrics": list(fields.values()),
        "perturbations": [],
        "metric_groups": metric_groups,
        "run_groups": list(chain.from_iterable(groups_by_kind)),
    }


def read_helm_schema(path: str | Path | None) -> dict[str, Any]:
    """Read a schema file of HELM as plain data; without a path, the one that `helm-summarize` takes.

    Raises:
        InputError: the file is missing, or is not a schema.
    """
    from dacite import DaciteError, from_dict
    from helm.benchmark.presentation.schema import Schema, get_default_schema_path

    path = path or get_default_schema_path()
    content = read_yaml(Path(path))
    try:
        from_dict(Schema, content)
    except (DaciteError, TypeError, AttributeError, KeyError) as error:
        raise InputError(
            f"{path} is not a schema of HELM: {describe_error(error)}"
        ) from error
    groups = content.get("metric_groups", ())
    groups = [_restrict_to(content, group) for group in groups]
    return {"run_groups": [], **content, "metric_groups": groups}


def _restrict_to(schema: Mapping[str, Any], group: _Group) -> _Group:
    """Omit the columns of statistics and perturbations that a schema does not define. HELM's own schema has such."""
    fields = {field["name"] for field in schema.get("metrics") or ()}
    perturbations = {None, "${main_perturbation}"}
    for perturbation in schema.get("perturbations") or ():
        perturbations.add(perturbation["name"])
    kept = []
    for column in group.get("metrics", ()):
        is_metric = column["name"] in fields or "${" in column["name"]
        if is_metric and column.get("perturbation_name") in perturbations:
            kept.append(column)
    return {**group, "metrics": kept}


def merge_schemas(
    ours: dict[str, Any],
    theirs: dict[str, Any],
    *,
    theirs_first: bool = False,
) -> dict[str, Any]:
    """Return a schema with the fields and groups of our schema and of a user's or HELM's.

    A group with the name and the title of one of ours is ours, so a schema that we printed can be merged again. If
    another metric group has the name of one of ours, ours gets another name. The other schema's fields replace ours,
    because they are the headings of its tables.
    """
    titles = {}
    for group in (*ours["metric_groups"], *ours["run_groups"]):
        titles[group["name"]] = group["display_name"]
    rest: dict[str, list[_Group]] = {part: [] for part in _GROUPS}
    for part, others in rest.items():
        for group in theirs.get(part, ()):
            if titles.get(group["name"]) != group.get("display_name", ""):
                others.append(group)
    taken = {group["name"] for group in rest["metric_groups"]} & titles.keys()
    other_names = {group["name"] for group in rest["run_groups"]}

    def rename(names: Iterable[str]) -> list[str]:
        return [f"longctx_{name}" if name in taken else name for name in names]

    run_groups = []
    for group in ours["run_groups"]:
        if group["name"] in other_names:
            continue
        group = dict(group)
        for field in _METRIC_GROUPS & group.keys():
            group[field] = rename(group[field])
        run_groups.append(group)
    metric_groups = []
    for group in ours["metric_groups"]:
        metric_groups.append({**group, "name": rename([group["name"]])[0]})
    fields = {}
    for field in (*ours["metrics"], *theirs.get("metrics", ())):
        fields[field["name"]] = field
    return {
        "metrics": list(fields.values()),
        "perturbations": theirs.get("perturbations", []),
        "metric_groups": [*rest["metric_groups"], *metric_groups],
        "run_groups": [*rest["run_groups"], *run_groups]
        if theirs_first
        else [*run_groups, *rest["run_groups"]],
    }


_GROUPS = {"metric_groups", "run_groups"}

_METRIC_GROUPS = {"metric_groups", "subgroup_metric_groups_hidden"}
"""Fields of a run group with names of metric groups."""


def omit_ours(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without the groups that `helm-longctx schema` printed into it, of which a suite has only some."""
    printed = make_schema(all_sections(BENCHMARKS))
    titles = set()
    for part in _GROUPS:
        for group in printed[part]:
            titles.add((group["name"], group["display_name"]))
    rest = dict(schema)
    for part in _GROUPS & schema.keys():
        rest[part] = []
        for group in schema[part]:
            if (group["name"], group.get("display_name")) not in titles:
                rest[part].append(group)
    return rest


def restrict_groups(schema: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return a schema with only these run groups and the groups that contain them, at any depth."""
    kept = set(names)
    count = -1
    while count < len(kept):
        count = len(kept)
        for group in schema["run_groups"]:
            if kept.intersection(group.get("subgroups", ())):
                kept.add(group["name"])
    groups = []
    for group in schema["run_groups"]:
        if group["name"] in kept:
            subgroups = []
            for name in group.get("subgroups", ()):
                if name in kept:
                    subgroups.append(name)
            groups.append({**group, "subgroups": subgroups})
    return {**schema, "run_groups": groups}


def restrict_columns(
    schema: dict[str, Any],
    statistics: Collection[str],
) -> dict[str, Any]:
    """Return a schema with only the columns of these statistics."""
    groups = []
    for group in schema["metric_groups"]:
        groups.append(_restrict(group, statistics))
    return {**schema, "metric_groups": groups}


def add_groups(schema: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Add groups without tables for names that a schema lacks, so that HELM does not warn of their runs."""
    missing = sorted({*names} - {group["name"] for group in schema["run_groups"]})
    added = []
    for name in missing:
        added.append(
            {"name": name, "display_name": name, "category": "Groups without tables"}
        )
    return {**schema, "run_groups": [*schema["run_groups"], *added]}


def fit_helm(
    schema: dict[str, Any],
    boards: Sequence[Board] | None = None,
) -> dict[str, Any]:
    """Return our schema for HELM's own summarizer: it warns of each statistic in a table that a run lacks.

    A group of a suite shows what all of its runs have. Without a suite, it shows only scores. Instead of sub-splits
    there are the groups of tasks.
    """
    shared: dict[str, set[str]] = {}
    for board in boards or ():
        for run, results in board.runs:
            statistics: set[str] = set()
            for result in results:
                statistics.update(result.statistics)
            for group in run.spec["groups"]:
                shared[group] = shared.get(group, statistics) & statistics
    columns = {}
    for group in schema["metric_groups"]:
        columns[group["name"]] = {column["name"] for column in group["metrics"]}

    def fit(group: _Group) -> _Group:
        main = group["environment"]["main_name"]
        names = set(shared.get(group["name"], {main}))
        if main in names:
            names.add("${main_name}")
        shown = []
        for name in group.get("metric_groups", ()):
            if columns[name] <= names:
                shown.append(name)
        fitted = {**group, "metric_groups": shown}
        fitted.pop("sub_splits", None)
        return fitted

    return {**schema, "run_groups": [fit(group) for group in schema["run_groups"]]}


def _official_name(benchmark: Benchmark, category: Category) -> str:
    return "_".join(filter(None, ("official", benchmark.name, category.name)))


def _metric_group(name: str, title: str, metrics: Iterable[str]) -> _Group:
    # There is no mean over columns, because models with fewer columns would not be comparable.
    return {
        "name": name,
        "display_name": title,
        "aggregation_strategies": [],
        "metrics": [{"name": metric, "split": "${main_split}"} for metric in metrics],
    }


def _restrict(group: _Group, statistics: Collection[str]) -> _Group:
    """Omit the columns of statistics that no run has."""
    # `${main_name}` stands for the main statistic of each group, and HELM fills it in.
    names = {*statistics, "${main_name}"}
    kept = []
    for column in group["metrics"]:
        if column["name"] in names:
            kept.append(column)
    return {**group, "metrics": kept}


def _groups(
    section: BoardSection,
    chosen: Collection[str] | None,
) -> list[list[_Group]]:
    """Return the groups of a section, a list for each of `KINDS`."""

    def make_leaves(
        make: Callable[[BoardSection, Conditions], Iterator[_Group]],
    ) -> list[_Group]:
        leaves = []
        for at in section.columns:
            for leaf in make(section, at):
                if chosen is None or leaf["name"] in chosen:
                    leaves.append(leaf)
        return leaves

    means = [*make_leaves(_overall_leaf), *make_leaves(_category_leaves)]
    tasks = make_leaves(_task_leaves)
    leaderboards = list(_leaderboards(section, means))
    names = {group["name"] for group in leaderboards}
    # The page of a category's only task would repeat the category's.
    titles = {category.title for category in section.benchmark.categories}
    others = [leaf for leaf in tasks if leaf["title"] not in titles]
    lists = [
        leaderboards,
        list(_by_length(section, means)),
        [leaf for leaf in means if leaf["name"] not in names],
        list(_by_length(section, others)),
        tasks,
    ]
    kinds = []
    for groups, kind in zip(lists, KINDS, strict=True):
        of_kind = []
        for group in groups:
            shown = {**group, "category": f"{section.title} {kind}"}
            # These fields are only needed to combine groups.
            for name in ("at", "part", "title"):
                shown.pop(name, None)
            of_kind.append(shown)
        kinds.append(of_kind)
    return kinds


def _overall_leaf(section: BoardSection, at: Conditions) -> Iterator[_Group]:
    benchmark = section.benchmark
    # With a single category, the overall score is that category's.
    has_folder = section.board is not None and bool(section.board.folder)
    if (
        benchmark.overall
        and len(benchmark.categories) > 1
        and not (at.closed or at.judge or has_folder)
    ):
        about = (
            f"Mean of all categories, for models with complete categories{_about(at)}."
        )
        yield _leaf(section, OVERALL, benchmark.overall, at, about) | {
            "metric_groups": ["score"]
        }


def _category_leaves(section: BoardSection, at: Conditions) -> Iterator[_Group]:
    for category in section.benchmark.categories:
        tasks = category.tasks_at(at.length)
        if not tasks or (at.closed and not all(task.closed_book for task in tasks)):
            continue
        about = f"Mean of {', '.join(task.title for task in tasks)}{_about(at)}."
        short = category.title or (
            section.benchmark.overall or "Overall" if len(tasks) > 1 else section.title
        )
        yield {
            **_leaf(section, category.name, category.title, at, about),
            "short_display_name": at.describe(short),
            "metric_groups": [
                "score",
                "by_depth",
                _official_name(section.benchmark, category),
                "conditions",
            ],
            "sub_splits": [task.name for task in (*category.tasks, *category.variants)],
        }


def _task_leaves(section: BoardSection, at: Conditions) -> Iterator[_Group]:
    for task in section.benchmark.tasks:
        if (task.closed_book or not at.closed) and task.exists_at(at.length):
            about = f"{task.title}: {headline_text(task)}{_about(at)}."
            leaf = _leaf(section, task.name, task.title, at, about) | {
                "metric_groups": ["score"]
            }
            yield leaf | {
                "environment": {
                    **leaf["environment"],
                    "main_name": task_score(task.name),
                }
            }


def _about(at: Conditions) -> str:
    return (f", at {label(at.length)}" if at.length else "") + (
        f", judged by {at.judge}" if at.judge else ""
    )


def _leaf(
    section: BoardSection,
    part: str,
    title: str,
    at: Conditions,
    about: str,
) -> _Group:
    """Return a group of one column, with the fields `at`, `part` and `title` by which groups are combined."""
    return {
        "name": section.name(part, at),
        "display_name": at.describe(f"{section.title} {title}".strip()),
        "short_display_name": at.describe(title),
        "description": about,
        "environment": {"main_name": MAIN_METRIC, "main_split": "test"},
        **({} if section.benchmark.axis else {"taxonomy": _taxonomy(section, title)}),
        **{"at": at, "part": part, "title": title},
    }


def _taxonomy(section: BoardSection, title: str) -> dict[str, str]:
    """Return what HELM's page of scenarios shows; a group without it is not on that page."""
    return {"task": title or section.title, "what": section.benchmark.title}


def _leaderboards(section: BoardSection, leaves: list[_Group]) -> Iterator[_Group]:
    """Yield the tables of all categories: of all lengths, and of each length. Those in the mean come first."""
    averaged = {OVERALL}
    for category in section.benchmark.categories:
        if category.averaged:
            averaged.add(category.name)
    leaves = sorted(
        leaves, key=lambda leaf: (leaf["at"].length or 0, leaf["part"] not in averaged)
    )
    whole = Conditions(None, section.closed)
    yield from _combine(section, "", "", whole, leaves, section.benchmark.description)
    if not section.benchmark.axis:
        return
    for length in dict.fromkeys(at.length for at in section.columns):
        at = whole._replace(length=length)
        of = [leaf for leaf in leaves if leaf["at"].length == length]
        about = f"{section.title} at {label(length)}."
        yield from _combine(section, "", "", at, of, about)


def _by_length(section: BoardSection, leaves: list[_Group]) -> Iterator[_Group]:
    """Yield the tables of one category or task at all lengths."""
    if not section.benchmark.axis:
        return
    for part, title in dict.fromkeys((leaf["part"], leaf["title"]) for leaf in leaves):
        of = []
        for leaf in leaves:
            if leaf["part"] == part:
                of.append(leaf)
        # The table of a benchmark's only category is its leaderboard.
        if part:
            yield from _combine(
                section,
                part,
                title,
                of[0]["at"]._replace(length=None, judge=""),
                of,
                f"{title}.",
            )


def _combine(
    section: BoardSection,
    part: str,
    title: str,
    at: Conditions,
    leaves: list[_Group],
    about: str,
) -> Iterator[_Group]:
    """Yield the group that has these leaves as columns. A leaf with that group's name is that group."""
    name = section.name(part, at)
    names = []
    for leaf in leaves:
        if leaf["name"] != name:
            names.append(leaf["name"])
    if whole := next((leaf for leaf in leaves if leaf["name"] == name), None):
        yield {**whole, "subgroups": names} if names else whole
    elif leaves:
        benchmark = section.benchmark
        hidden = []
        for category in benchmark.categories:
            hidden.append(_official_name(benchmark, category))
        group = {
            "name": name,
            "display_name": at.describe(f"{section.title} {title}".strip()),
            "description": about,
            "environment": leaves[0]["environment"],
            "subgroups": names,
            "subgroup_metric_groups_hidden": hidden,
        }
        if at.length is None:
            group["taxonomy"] = _taxonomy(section, title)
        yield group
