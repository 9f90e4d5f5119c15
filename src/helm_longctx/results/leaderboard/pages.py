"""Writes what helm-server shows of a suite, from its results: tables, groups, schema, and the pages of runs.

HELM's own summarizer makes what is not about scores (lists of runs and models, costs), and the values of other packages'
scenarios.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import helm_longctx.helm.codec  # noqa: F401

# The module above must be imported before HELM's.
# isort: split
import orjson
from dacite import from_dict
from helm.benchmark.presentation.schema import (
    ALL_GROUPS,
    BY_GROUP,
    Field,
    RunGroup,
    Schema,
    get_adapter_fields,
    get_default_schema_path,
)
from helm.benchmark.presentation.summarize import (
    AggregationStrategy,
    Run,
    Summarizer,
    dict_to_str,
    get_scenario_name,
)
from helm.benchmark.presentation.table import Hyperlink, Table, table_to_latex
from helm.benchmark.scenarios.scenario import ScenarioSpec
from tqdm import tqdm

from helm_longctx.errors import InputError
from helm_longctx.helm_api import asdict_without_nones
from helm_longctx.results.boards import Suite, make_suite, tasks_of
from helm_longctx.results.comparability import describe
from helm_longctx.results.leaderboard.builder import (
    TableBuilder,
    collect_rows,
    file_name,
    find_model,
    title_models,
)
from helm_longctx.results.leaderboard.display import write_display
from helm_longctx.results.leaderboard.members import (
    Member,
    find_first_group,
    list_members,
)
from helm_longctx.results.leaderboard.schema import (
    KINDS,
    merge_schemas,
    omit_ours,
    read_helm_schema,
    restrict_groups,
    suite_schema,
)
from helm_longctx.results.leaderboard.tables import (
    MOST_COLUMNS,
    MOST_PUBLISHED,
    count_own,
    index_table,
    tag_run,
)
from helm_longctx.results.reading import Result, read_results
from helm_longctx.results.suite import PAGES, PAGES_RECORD, SCENARIO_CLASS, report_link
from helm_longctx.runs.files import RUN_SPEC, STATS
from helm_longctx.runs.shown_models import shown_model
from helm_longctx.tasks.metric_names import task_score
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from helm_longctx.tasks.stored_entry import read_entry
from helm_longctx.writing import replace_file, replace_page

_MAIN = "Main leaderboard"
"""Category of the group with which HELM's pages open."""

MOST_OPTIONS = 59
"""Largest number of groups in the selector of HELM's pages."""


def write_leaderboard(
    results: Suite,
    suite: str,
    output_path: Path,
    schema_path: Path | None = None,
) -> None:
    """Write the tables and pages of a suite as `helm-summarize`, with filled registries, from its results."""
    helm = Summarizer(
        release=None,
        suites=None,
        suite=suite,
        schema_path=str(schema_path) if schema_path else None,
        output_path=str(output_path),
        verbose=False,
        num_threads=2,
        allow_unknown_models=True,
    )
    _write_release(helm, results)


def _write_release(
    helm: Summarizer,
    suite: Suite | None = None,
    skip_completed: bool = False,
) -> None:
    """Write the pages of a suite or of a release of several suites.

    Args:
        helm: HELM's summarizer of the suites. It says where their runs and their pages are.
        suite: the results of the suites; None to read them.

    Raises:
        InputError: there is no finished run, or a file of a run is damaged.
    """
    _read_runs(helm)
    suite = suite or _read_suites(helm)
    members = list_members(helm.runs, suite)
    if not helm.runs and not suite.boards:
        raise InputError(
            f"{helm.run_release_path} has no finished run; first use helm-longctx run with it"
        )
    Path(helm.run_release_path).mkdir(parents=True, exist_ok=True)
    pages = _Pages(helm, suite, members)
    pages.write_schema()
    pages.write_runs(skip_completed)
    helm.write_executive_summary()
    helm.write_runs()
    helm.write_run_specs()
    helm.write_runs_to_run_suites()
    pages.write_groups()
    helm.write_cost_report()


class LongContextSummarizer:
    """What `helm-summarize --summarizer-class-name` calls in place of HELM's summarizer. It has the same two functions.

    Args:
        options: the options of HELM's summarizer.
    """

    def __init__(self, **options: Any):
        self._helm = Summarizer(**options)

    def run_pipeline(self, skip_completed: bool) -> None:
        """Write our tables and pages, with those of HELM's own scenarios."""
        _write_release(self._helm, skip_completed=skip_completed)


def _read_suites(helm: Summarizer) -> Suite:
    results = []
    for suite in helm.run_suite_paths:
        results += read_results(Path(suite), BENCHMARKS, keep_answers=False)
    return make_suite(results, BENCHMARKS)


def _read_runs(helm: Summarizer) -> None:
    """Let HELM's summarizer have the finished runs of its suites.

    Damaged runs are left out, as in all other tables: `read_results` warns of them.
    """
    helm.runs = []
    helm.runs_to_run_suites = {}
    for suite, path in zip(helm.suites, helm.run_suite_paths, strict=True):
        for spec_path in sorted(Path(path).glob(f"*/{RUN_SPEC}")):
            if not (spec_path.parent / STATS).is_file():
                continue
            try:
                run = _read_run(helm, spec_path.parent)
            except (ValueError, KeyError, TypeError):
                continue
            helm.runs.append(run)
            helm.runs_to_run_suites[run.run_spec.name] = suite


def _read_run(helm: Summarizer, path: Path) -> Run:
    """Read a run, whose model has the name that all tables show."""
    run: Run = helm.read_run(str(path))
    spec = run.run_spec
    adapter = spec.adapter_spec
    entry = read_entry(spec)
    adapter = replace(
        adapter,
        model=shown_model(adapter.model, entry),
        model_deployment=shown_model(adapter.model_deployment, entry),
    )
    return replace(run, run_spec=replace(spec, adapter_spec=adapter))


class _Pages:
    """The groups of a suite with their tables, and the schema that names them.

    Args:
        helm: HELM's summarizer, with the runs.
        members: what the groups contain.
    """

    def __init__(
        self,
        helm: Summarizer,
        suite: Suite,
        members: Sequence[Member],
    ):
        self._helm = helm
        self._boards = suite.boards
        self._members = members
        self._by_group: dict[str, list[Member]] = defaultdict(list)
        for member in members:
            for group in member.groups:
                self._by_group[group].append(member)
        self._is_chosen = helm.schema_path not in (None, get_default_schema_path())
        self._theirs: frozenset[str] = frozenset()
        self._others: frozenset[str] = frozenset()
        self.schema = self._make_schema()
        self._hides_runs = any(
            group.visibility != ALL_GROUPS for group in self.schema.run_groups
        )
        self._titles = title_models(members)
        self._builder = TableBuilder(
            schema=self.schema,
            theirs=self._theirs,
            titles=self._titles,
            helm=helm,
        )

    # The schema

    def _make_schema(self) -> Schema:
        """Join the schema of the suite's results with the user's or HELM's, and put the first table first."""
        ours = suite_schema(self._boards)
        names = {group["name"] for group in ours["run_groups"]}
        others = set()
        for run in self._helm.runs:
            if not names.intersection(run.run_spec.groups):
                others.update(run.run_spec.groups)
        if self._is_chosen or others:
            theirs = read_helm_schema(self._helm.schema_path)
            if self._is_chosen:
                theirs = omit_ours(theirs)
            else:
                theirs = restrict_groups(theirs, others)
            ours = merge_schemas(ours, theirs, theirs_first=self._is_chosen)
            self._theirs = (
                frozenset(group["name"] for group in theirs["run_groups"]) - names
            )
        schema = replace(from_dict(Schema, ours), adapter=get_adapter_fields())
        # Ours come first: without a run of our benchmarks, HELM would give its scenarios our columns.
        schema = self._complete_schema(
            self._add_other_scenarios(schema), self._helm.runs
        )
        first = find_first_group(self._boards)
        groups = []
        for group in schema.run_groups:
            if group.name == first:
                group = replace(group, category=_MAIN)
            groups.append(group)
        # The front end opens with the first group. The sort is stable.
        groups.sort(
            key=lambda group: (
                not (self._is_chosen and group.name in self._theirs),
                group.name != first,
                not group.category.endswith(KINDS[0]),
            )
        )
        self._helm.schema = replace(schema, run_groups=groups)
        schema = replace(schema, run_groups=[self._describe(group) for group in groups])
        self._helm.schema = schema
        return schema

    def _complete_schema(self, schema: Schema, runs: Sequence[Run]) -> Schema:
        """Return a schema with what HELM adds: groups and columns for runs, if the schema has none."""
        own = self._helm.runs
        self._helm.runs = runs
        self._helm.schema = schema
        self._helm.fix_up_schema()
        self._helm.runs = own
        completed: Schema = self._helm.schema
        return completed

    def _add_other_scenarios(self, schema: Schema) -> Schema:
        """Add the groups and columns that HELM finds for runs of scenarios that are not in the schema."""
        runs = []
        for run in self._helm.runs:
            groups = run.run_spec.groups
            if groups and schema.name_to_run_group.keys().isdisjoint(groups):
                runs.append(run)
        if not runs:
            return schema
        completed = self._complete_schema(Schema(), runs)
        self._others = frozenset(group.name for group in completed.run_groups)
        mains = set()
        for group in completed.run_groups:
            if name := group.environment.get("main_name"):
                mains.add(name)
        fields = {name: Field(name) for name in sorted(mains)}
        fields |= {metric.name: metric for metric in completed.metrics}
        return replace(
            schema,
            metrics=list((fields | schema.name_to_metric).values()),
            metric_groups=[*schema.metric_groups, *completed.metric_groups],
            run_groups=[*completed.run_groups, *schema.run_groups],
        )

    def _describe(self, group: RunGroup) -> RunGroup:
        """Add to a group's description how many published models its tables have, and the address of the report."""
        if group.name in self._theirs:
            return group
        if not self._has_page(group):
            # HELM's page of scenarios would link to it.
            return replace(group, taxonomy=None)
        members = self._members_of(self._helm.expand_subgroups(group))
        models = {member.model for member in members}
        published = set()
        for member in members:
            if member.is_published:
                published.add(member.model)
        # The descriptions of benchmarks are titles of papers.
        notes = [f"{(group.description or '').rstrip('.')}."]
        if len(published) > MOST_PUBLISHED and models > published:
            notes.append(
                f"The tables have your models and the {MOST_PUBLISHED} best of"
                f" {len(published)} published ones."
            )
        if self._helm.suite and group.category.endswith((KINDS[0], _MAIN)):
            notes += report_link(Path(self._helm.output_path), self._helm.suite)
        return replace(group, description=" ".join(notes))

    def write_schema(self) -> None:
        """Check the schema as HELM does, and write it with the models."""
        self._helm._run_schema_validation()  # HELM's option `--schema-validation`
        content = asdict_without_nones(self.schema)
        content["models"] = self._model_fields()
        # The next summarize reads this file, so it is never a part of one.
        path = Path(self._helm.run_release_path) / "schema.json"
        replace_file(path, _dump_json(content))

    def _model_fields(self) -> list[dict[str, Any]]:
        """Return what the page of models shows. HELM's has only registered models, and is blank without one."""
        fields: list[dict[str, Any]] = self._helm.get_model_field_dicts()
        for field in fields:
            title = self._titles.get(field["name"])
            if title == field["name"]:
                field["display_name"] = title
                field["short_display_name"] = title
        names = set()
        for run in self._helm.runs:
            adapter = run.run_spec.adapter_spec
            if run.run_spec.groups:
                names.add(find_model(adapter.model, adapter.model_deployment).name)
        for name in sorted(names - {field["name"] for field in fields}):
            fields.append(
                {
                    "name": name,
                    "display_name": name,
                    "short_display_name": name,
                    "creator_organization": name.partition("/")[0],
                    "description": "",
                }
            )
        return fields

    # Members of groups

    def _members_of(self, groups: Iterable[RunGroup]) -> list[Member]:
        members: dict[Member, None] = {}
        for group in groups:
            members |= dict.fromkeys(self._by_group[group.name])
        return list(members)

    def _shown_members(
        self,
        members: Iterable[Member],
        group: RunGroup,
    ) -> list[Member]:
        """Return the members that a group shows. Only other schemas can have groups that hide runs."""
        if not self._hides_runs:
            return list(members)
        shown = []
        for member in members:
            runs = [member.run]
            if not member.run or self._helm.filter_runs_by_visibility(runs, group):
                shown.append(member)
        return shown

    def _expand(self, group: RunGroup) -> list[RunGroup]:
        """Return the groups that are a group's columns; of a category, the mean and its tasks."""
        groups: list[RunGroup] = self._helm.expand_subgroups(group)
        if group.name in self._theirs:
            # A user's table can have columns of several benchmarks, whose short titles are the same.
            for index, column in enumerate(groups):
                if column.name not in self._theirs:
                    groups[index] = replace(column, short_display_name=None)
            return groups
        splits = group.sub_splits
        if not splits or any(column.sub_splits != splits for column in groups):
            return groups
        columns = []
        for column in groups:
            if self._has_one_task(column):
                # The mean of a single task would repeat the task.
                column = replace(column, metric_groups=column.metric_groups[1:])
            columns.append(column)
        names: set[str] = set()
        for member in self._members_of(groups):
            names.update(member.groups[1:])
        for task in self.schema.run_groups:
            if task.name in names:
                columns.append(task)
        return columns

    def _has_one_task(self, category: RunGroup) -> bool:
        results = []
        for member in self._by_group[category.name]:
            results += [result for result in member.results if result.task]
        if not results:
            return False
        first = results[0]
        entry = find_benchmark(first.benchmark).entries[first.entry]
        return len(tasks_of(entry, results)) == 1

    def _has_page(self, group: RunGroup) -> bool:
        """Return whether a group is shown alone: a task that only published models have is a column of its category."""
        return (
            group.name in self._theirs
            or not group.category.endswith(KINDS[3:])
            or self._has_own(group)
        )

    def _has_own(self, group: RunGroup) -> bool:
        members = self._members_of(self._helm.expand_subgroups(group))
        return not all(member.is_published for member in members)

    # Tables

    def make_tables(self, group: RunGroup) -> list[Table]:
        """Return the tables of a group; none if it has no page."""
        if not self._has_page(group):
            return []
        is_ours = group.name not in self._others and group.name not in self._theirs
        is_single = (
            group.subgroup_display_mode == BY_GROUP or len(self._expand(group)) == 1
        )
        if is_single and not is_ours:
            return [table for table in self._scenario_tables(group) if table.rows]
        if group.name in self._theirs:
            return self._metric_tables(group)
        tables = self._part_tables(group) or self._metric_tables(group)
        tasks = group.sub_splits or () if self._has_own(group) else ()
        task_tables = [self._task_table(group, task) for task in tasks]
        task_tables = [table for table in task_tables if table.rows]
        return [*tables, *(task_tables if len(task_tables) > 1 else ())]

    def _metric_tables(self, group: RunGroup) -> list[Table]:
        """Return a table of each group of statistics. Of published models alone there are only scores."""
        subgroups = self._expand(group)
        metric_groups = self._metric_groups(group, subgroups)
        members = self._shown_members(self._members_of(subgroups), group)
        rows = collect_rows(members, group.adapter_keys_shown)
        tables = []
        for name in metric_groups if rows else ():
            metric_group = self.schema.name_to_metric_group[name]
            strategies = metric_group.aggregation_strategies
            if strategies is None:
                if metric_group.hide_win_rates:
                    strategies = []
                else:
                    strategies = [AggregationStrategy.WIN_RATE]
            table = self._builder.make_table(
                name=name,
                title=metric_group.get_short_display_name(),
                rows=rows,
                columns=[(subgroup, name) for subgroup in subgroups],
                aggregation_strategies=strategies,
            )
            if len(table.header) > 1:
                tables.append(table)
        return tables

    def _metric_groups(
        self,
        group: RunGroup,
        subgroups: Sequence[RunGroup],
    ) -> list[str]:
        """Return the groups of statistics that are tables of a group: its own, or those of its subgroups."""
        hidden = group.subgroup_metric_groups_hidden
        if group.name not in self._theirs and not self._has_own(group):
            # Published results have no conditions, and a task's only official metric is its score.
            groups = self._helm.expand_subgroups(group)
            results: list[Result] = []
            for member in self._members_of(groups):
                results += member.results
            shown = ["score"]
            names: dict[str, None] = {}
            for subgroup in groups:
                names |= dict.fromkeys(subgroup.metric_groups)
            for name in names:
                if name in hidden:
                    continue
                columns = self.schema.name_to_metric_group[name].metrics
                metrics = {metric.name for metric in columns}
                counts = []
                for result in results:
                    counts.append(len(metrics & result.statistics.keys()))
                if any(count > 1 for count in counts):
                    shown.append(name)
            return shown
        if group.metric_groups:
            return list(group.metric_groups)
        names = {}
        for subgroup in subgroups:
            names |= dict.fromkeys(subgroup.metric_groups)
        # A group with all details replaces the basic one.
        shown = [name for name in names if f"{name}_detailed" not in names]
        return [name for name in shown if name not in hidden]

    def _scenario_tables(self, group: RunGroup) -> list[Table]:
        """Return HELM's tables of a group without columns of other groups: one of each scenario, and one of all."""
        tables: list[Table] = []
        for subgroup in self._expand(group):
            columns = [(subgroup, name) for name in subgroup.metric_groups]
            by_scenario: dict[ScenarioSpec, list[Member]] = defaultdict(list)
            for member in self._by_group[subgroup.name]:
                by_scenario[_scenario_of(member)].append(member)
            of_subgroup: list[Table] = []
            scenarios = 0
            for scenario in by_scenario:
                inside = []
                for member in self._by_group[group.name]:
                    if _scenario_of(member) == scenario:
                        inside.append(member)
                rows = collect_rows(
                    self._shown_members(inside, group), group.adapter_keys_shown
                )
                if not rows or not columns:
                    continue
                scenarios += 1
                of_subgroup += self._tables_of_scenario(group, subgroup, scenario, rows)
            members = self._shown_members(self._by_group[subgroup.name], group)
            rows = collect_rows(members, group.adapter_keys_shown)
            if scenarios > 1 and rows and columns:
                whole = self._builder.make_table(
                    name=subgroup.name,
                    title=str(subgroup.display_name),
                    rows=rows,
                    columns=columns,
                )
                of_subgroup.insert(0, whole)
            tables += of_subgroup
        return tables

    def _tables_of_scenario(
        self,
        group: RunGroup,
        subgroup: RunGroup,
        scenario: ScenarioSpec,
        rows: Any,
    ) -> list[Table]:
        columns = [(subgroup, name) for name in subgroup.metric_groups]
        name = get_scenario_name(subgroup, scenario)
        title = dict_to_str(scenario.args)
        if group.name not in name:
            title = f"{subgroup.display_name} {title}"
        whole = self._builder.make_table(
            name=name,
            title=title,
            rows=rows,
            columns=columns,
            is_scenario_table=True,
        )
        parts = []
        for sub_split in subgroup.sub_splits or ():
            parts.append(
                self._builder.make_table(
                    name=f"{subgroup.name}:sub_split={sub_split}",
                    title=f"{subgroup.display_name} (sub-split: {sub_split})",
                    rows=rows,
                    columns=columns,
                    sub_split=sub_split,
                )
            )
        return [whole, *parts]

    def _part_tables(self, group: RunGroup) -> list[Table]:
        """Return the tables of a group with too many columns: the scores of each part over lengths, and the others."""
        parts: dict[str, list[str]] = defaultdict(list)
        if len(group.subgroups) > MOST_COLUMNS:
            for subgroup in self._helm.expand_subgroups(group):
                # The last word of a heading is the length.
                title = subgroup.get_short_display_name().rpartition(" ")[0]
                parts[title].append(subgroup.name)
        if len(parts) in (0, 1, len(group.subgroups)):
            return []
        scores = []
        for title, names in parts.items():
            # The first table has the scores.
            for table in self._metric_tables(replace(group, subgroups=names))[:1]:
                name = file_name(f"{table.name}_{title}")
                scores.append(replace(table, title=title, name=name))
        # The sort is stable.
        scores.sort(key=lambda table: -count_own(table))
        most = MOST_PUBLISHED if scores and count_own(scores[0]) else None
        tables = []
        for table in scores:
            if not count_own(table):
                table = replace(table, rows=table.rows[:most])
            if table.rows:
                tables.append(table)
        return [*tables, *self._metric_tables(group)[1:]]

    def _task_table(self, category: RunGroup, task: str) -> Table:
        return self._builder.make_table(
            name=f"{category.name}:sub_split={task}",
            title=str(self.schema.name_to_metric[task_score(task)].display_name),
            rows=collect_rows(
                self._by_group[category.name], category.adapter_keys_shown
            ),
            columns=[(category, name) for name in category.metric_groups],
            sub_split=task,
        )

    def make_index(self) -> list[Table]:
        """Return the tables of the most important groups, also the selector of the leaderboard."""
        by_category: dict[str, list[RunGroup]] = defaultdict(list)
        for group in self.schema.run_groups:
            of_category = by_category[group.category]
            if self._has_page(group):
                of_category.append(group)
        tables: list[Table] = []
        titles: set[str | None] = set()
        for category, groups in by_category.items():
            new = [group for group in groups if group.display_name not in titles]
            titles.update(group.display_name for group in new)
            if len(titles) > MOST_OPTIONS:
                break
            if new:
                counts = [self._count_models(group) for group in new]
                tables.append(index_table(category, new, counts))
        return tables

    def _count_models(self, group: RunGroup) -> int:
        members = self._members_of(self._helm.expand_subgroups(group))
        return len({member.model for member in members})

    # Files

    def write_groups(self) -> None:
        """Write the tables of all groups under HELM's names, and last the index."""
        folder = Path(self._helm.run_release_path) / "groups"
        _write_json(
            folder.with_name("groups_metadata.json"),
            self._helm.create_groups_metadata(),
        )
        for group in self.schema.run_groups:
            tables = self.make_tables(group)
            for table in tables:
                name = f"{group.name}_{table.name}"
                latex = folder / "latex" / f"{name}.tex"
                as_json = folder / "json" / f"{name}.json"
                for text, path in (("LaTeX", latex), ("JSON", as_json)):
                    table.links.append(Hyperlink(text=text, href=str(path)))
                latex.parent.mkdir(parents=True, exist_ok=True)
                text = table_to_latex(table, f"{table.name} ({group.name})")
                replace_page(latex, text.encode())
                _write_json(as_json, table)
            if tables:
                _write_json(folder / f"{group.name}.json", tables)
        _write_json(folder.with_name(PAGES), self.make_index())
        if self._is_chosen:
            chosen = str(Path(self._helm.schema_path).resolve())
        else:
            chosen = None
        record = _dump_json({"schema_path": chosen})
        replace_file(folder.with_name(PAGES_RECORD), record)

    def write_runs(self, skip_completed: bool) -> None:
        """Write the pages of all runs, in at most two threads, because more only need more memory."""

        def write(member: Member) -> None:
            run = member.run
            if run is None:
                return
            path = Path(run.run_path)
            write_display(path, run.run_spec, self.schema, skip_completed)
            if results := [result for result in member.results if result.benchmark]:
                tag_run(
                    path, describe(caveat for row in results for caveat in row.caveats)
                )

        runs = [member for member in self._members if member.run]
        _call_all(write, runs, min(self._helm.num_threads, 2))


def _call_all(
    write: Callable[[Member], None],
    runs: Sequence[Member],
    threads: int,
) -> None:
    with ThreadPoolExecutor(threads) as pool:
        list(tqdm(pool.map(write, runs), "Pages of runs", len(runs), disable=None))


_NO_SCENARIO = ScenarioSpec(SCENARIO_CLASS)


def _scenario_of(member: Member) -> ScenarioSpec:
    if member.run:
        return member.run.run_spec.scenario_spec
    return _NO_SCENARIO


def _write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_page(path, _dump_json(content))


def _dump_json(content: Any) -> bytes:
    return orjson.dumps(content, _to_plain, orjson.OPT_PASSTHROUGH_DATACLASS)


def _to_plain(record: object) -> list[Any] | dict[str, Any]:
    if isinstance(record, tuple):  # a caveat
        return list(record)
    return {name: value for name, value in vars(record).items() if value is not None}
