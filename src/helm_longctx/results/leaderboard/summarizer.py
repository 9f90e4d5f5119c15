"""`helm-summarize --summarizer-class-name helm_longctx.results.leaderboard.LongContextSummarizer`."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import helm_longctx.helm.codec  # noqa: F401

# The module above must be imported before HELM's.
# isort: split
import orjson
from dacite import from_dict
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.presentation.schema import (
    ALL_GROUPS,
    BY_GROUP,
    Field,
    MetricNameMatcher,
    RunGroup,
    Schema,
    get_adapter_fields,
    get_default_schema_path,
)
from helm.benchmark.presentation.summarize import (
    Run,
    Summarizer,
    get_coarse_adapter_spec,
    get_model_metadata_for_adapter_spec,
)
from helm.benchmark.presentation.table import Cell, Hyperlink, Table, table_to_latex
from tqdm import tqdm

from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, Suite, make_boards, tasks_of
from helm_longctx.results.comparability import describe
from helm_longctx.results.leaderboard.display import write_display
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
    ScoreCell,
    SuiteScores,
    arrange_table,
    cell_score,
    index_table,
    make_cell,
    mark_table,
    tag_run,
)
from helm_longctx.results.reading import Result, read_results
from helm_longctx.results.suite import PAGES, PAGES_RECORD, report_link
from helm_longctx.runs.files import RUN_SPEC, STATS
from helm_longctx.runs.shown_models import shown_model
from helm_longctx.tasks.groups import shorten_name
from helm_longctx.tasks.metric_names import is_share, task_score
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from helm_longctx.tasks.stored_entry import read_entry

MAIN = "Main leaderboard"
"""Category of the group with which HELM's pages open."""

MOST_OPTIONS = 59
"""Largest number of groups in the selector of HELM's pages."""


def write_leaderboard(
    results: Sequence[Result],
    boards: Sequence[Board],
    suite: str,
    output_path: Path,
    schema_path: Path | None = None,
) -> None:
    """Write the tables and pages of a suite as `helm-summarize`, with filled registries, from its results."""
    summarizer = LongContextSummarizer(
        release=None,
        suites=None,
        suite=suite,
        schema_path=str(schema_path) if schema_path else None,
        output_path=str(output_path),
        verbose=False,
        num_threads=2,
        allow_unknown_models=True,
    )
    summarizer.found = Suite(results, boards)
    summarizer.run_pipeline(skip_completed=False)


class ColumnMatcher(MetricNameMatcher):
    """HELM's matcher with a cache: HELM compiles a template for each column of each table."""

    def substitute(self, environment: dict[str, str]) -> MetricNameMatcher:
        """Fill in the name and the split."""
        return _substitute(MetricNameMatcher(**vars(self)), tuple(sorted(environment.items())))


@cache
def _substitute(
    matcher: MetricNameMatcher, environment: tuple[tuple[str, str], ...]
) -> MetricNameMatcher:
    return matcher.substitute(dict(environment))


_LONGEST_NAME = 150
"""Longest name of a table."""


class LongContextSummarizer(Summarizer):
    """HELM's summarizer with our scores, published results, small pages for long prompts, and marks.

    A cell has the score of the runs that count, as everywhere; HELM's summarizer averages all runs of a cell. The
    groups of the user's schema, or of HELM's, are shown as HELM shows them.
    """

    runs: list[Run]
    schema: Schema
    _theirs: frozenset[str] | set[str] = frozenset()
    """The groups of the user's schema or of HELM's."""
    _others: Collection[str] = ()
    """The groups of scenarios that are in no schema."""

    def read_runs_for_suite(self, suite: str, run_suite_path: str) -> None:
        """Load the finished runs of a suite. Damaged runs are left out, as in all other tables."""
        for spec_path in sorted(Path(run_suite_path).glob(f"*/{RUN_SPEC}")):
            if not (spec_path.parent / STATS).is_file():
                continue
            try:
                run = self.read_run(str(spec_path.parent))
            except InputError:
                continue  # `read_results` warns of it
            self.runs.append(run)
            self.runs_to_run_suites[run.run_spec.name] = suite

    def read_run(self, run_path: str) -> Run:
        """Read a run's spec and statistics. Raises an `InputError` if the spec or the statistics are damaged."""
        try:
            run: Run = super().read_run(run_path)
            spec = run.run_spec
            adapter = run.run_spec.adapter_spec
            entry = read_entry(spec)
            # Under the name that all tables show, the model has a row of its own.
            names = {
                name: str(shown_model(getattr(adapter, name), entry))
                for name in ("model", "model_deployment")
            }
            return replace(run, run_spec=replace(spec, adapter_spec=replace(adapter, **names)))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{run_path}: run_spec.json or stats.json is damaged; repeat that run"
            ) from error

    def group_runs(self) -> None:
        """Group the runs, the published results and the overall scores. The latter two are in no other list of runs."""
        own = self.runs
        self.runs = [*own, *self._scores.helm_runs]
        models = [
            get_model_metadata_for_adapter_spec(run.run_spec.adapter_spec) for run in self.runs
        ]
        shown = {model.name: model for model in models}
        titles = Counter(each.display_name for each in shown.values())
        for each in shown.values():
            if titles[each.display_name] > 1:
                # HELM's pages would show `my/x` and `other/x` as `x`.
                each.display_name = each.name
        super().group_runs()
        self.runs = own

    def fix_up_schema(self) -> None:
        """Join the schema of the suite's results with the user's or HELM's, and put the first table first."""
        if not self.runs and not self._scores.boards:
            raise InputError(
                f"{self.run_release_path} has no finished run; first use helm-longctx run with it"
            )
        ours = suite_schema(self._scores.boards)
        is_chosen = self.schema_path not in (None, get_default_schema_path())
        names = {group["name"] for group in ours["run_groups"]}
        others = {
            name
            for run in self.runs
            if not names & {*run.run_spec.groups}
            for name in run.run_spec.groups
        }
        if is_chosen or others:
            theirs = read_helm_schema(self.schema_path)
            theirs = omit_ours(theirs) if is_chosen else restrict_groups(theirs, others)
            ours = merge_schemas(ours, theirs, theirs_first=is_chosen)
            self._theirs = {each["name"] for each in theirs["run_groups"]} - names
        self.schema = replace(from_dict(Schema, ours), adapter=get_adapter_fields())
        # Ours come first: without a run of our benchmarks, HELM would give its scenarios our columns.
        self._add_other_scenarios()
        super().fix_up_schema()
        for group in self.schema.metric_groups:
            group.metrics[:] = [ColumnMatcher(**vars(metric)) for metric in group.metrics]
        first = self._scores.first
        groups = [
            replace(run_group, category=MAIN) if run_group.name == first else run_group
            for run_group in self.schema.run_groups
        ]
        # The front end opens with the first group. The sort is stable.
        groups.sort(
            key=lambda each: (
                not (is_chosen and each.name in self._theirs),
                each.name != first,
                not each.category.endswith(KINDS[0]),
            )
        )
        self.schema = replace(self.schema, run_groups=[self._describe(group) for group in groups])

    def _describe(self, group: RunGroup) -> RunGroup:
        """Add to a group's description how many published models its tables have, and the address of the report."""
        if group.name in self._theirs:
            return group
        if not self._has_page(group):
            return replace(
                group, taxonomy=None
            )  # so that HELM's page of scenarios does not link to it
        models = self._models(group)
        published = models & self._scores.published
        # The descriptions of benchmarks are titles of papers.
        notes = [f"{(group.description or '').rstrip('.')}."]
        if len(published) > MOST_PUBLISHED and models > published:
            notes.append(
                f"The tables have your models and the {MOST_PUBLISHED} best of {len(published)} published ones."
            )
        if self.suite and group.category.endswith((KINDS[0], MAIN)):
            notes += report_link(Path(self.output_path), self.suite)
        return replace(group, description=" ".join(notes))

    def _add_other_scenarios(self) -> None:
        """Add the groups and columns that HELM finds for runs of scenarios that are not in the schema."""
        own = self.runs
        schema = self.schema
        self.runs = [
            run
            for run in own
            if run.run_spec.groups
            and not any(name in schema.name_to_run_group for name in run.run_spec.groups)
        ]
        if self.runs:
            self.schema = Schema()
            super().fix_up_schema()
            self._others = {group.name for group in self.schema.run_groups}
            mains = {
                name
                for group in self.schema.run_groups
                if (name := group.environment.get("main_name"))
            }
            fields = {name: Field(name) for name in sorted(mains)} | {
                metric.name: metric for metric in self.schema.metrics
            }
            self.schema = replace(
                schema,
                metrics=list((fields | schema.name_to_metric).values()),
                metric_groups=[*schema.metric_groups, *self.schema.metric_groups],
                run_groups=[*self.schema.run_groups, *schema.run_groups],
            )
        self.runs = own

    def expand_subgroups(self, group: RunGroup) -> list[RunGroup]:
        """Return the groups that are a group's columns; of a category, the mean and its tasks."""
        groups: list[RunGroup] = super().expand_subgroups(group)
        if group.name in self._theirs:
            # A user's table can have columns of several benchmarks, whose short titles are the same.
            return [
                each if each.name in self._theirs else replace(each, short_display_name=None)
                for each in groups
            ]
        if not group.sub_splits or any(each.sub_splits != group.sub_splits for each in groups):
            return groups
        # The mean of a single task would repeat the task.
        means = [
            replace(each, metric_groups=each.metric_groups[self._has_one_task(each) :])
            for each in groups
        ]
        names = {name for run in self._runs_of(groups) for name in run.run_spec.groups[1:]}
        return [
            *means,
            *(run_group for run_group in self.schema.run_groups if run_group.name in names),
        ]

    def _has_one_task(self, category: RunGroup) -> bool:
        results = [each for each in self._scores.find(self._runs_of([category])) if each.task]
        first = next(iter(results), None)
        return (
            first is not None
            and len(tasks_of(find_benchmark(first.benchmark).entries[first.entry], results)) == 1
        )

    def _models(self, group: RunGroup) -> set[str]:
        groups = super().expand_subgroups(group)
        return {
            adapter.model for each in groups for adapter in self.group_adapter_to_runs[each.name]
        }

    def _runs_of(self, groups: Iterable[RunGroup]) -> list[Run]:
        return [
            run
            for group in groups
            for runs in self.group_adapter_to_runs[group.name].values()
            for run in runs
        ]

    def filter_runs_by_visibility(self, runs: list[Run], group: RunGroup) -> list[Run]:
        """Return all runs. HELM would look for groups that hide runs, which only other schemas can have."""
        if not self._hides_runs:
            return runs
        shown: list[Run] = super().filter_runs_by_visibility(runs, group)
        return shown

    @cached_property
    def _hides_runs(self) -> bool:
        return any(run_group.visibility != ALL_GROUPS for run_group in self.schema.run_groups)

    def get_model_field_dicts(self) -> list[dict[str, Any]]:
        """Return what the page of models shows. HELM's has only registered models, and is blank without one."""
        fields: list[dict[str, Any]] = super().get_model_field_dicts()
        adapters = [run.run_spec.adapter_spec for run in self.runs if run.run_spec.groups]
        names = {get_model_metadata_for_adapter_spec(adapter).name for adapter in adapters}
        for name in sorted(names - {field["name"] for field in fields}):
            titles = dict.fromkeys(("name", "display_name", "short_display_name"), name)
            fields.append(
                {**titles, "creator_organization": name.partition("/")[0], "description": ""}
            )
        return fields

    def check_metrics_defined(self) -> None:
        """Do nothing. HELM warns of each statistic without a column, but runs have many that no page shows."""

    def create_cell(
        self,
        runs: list[Run],
        matcher: MetricNameMatcher,
        additional_info: str | None,
        hide_value: bool = False,
        is_scenario_table: bool = False,
    ) -> Cell:
        """Make the cell of a statistic, with its interval, and why the score is not comparable or why there is none."""
        results = self._scores.find(runs)
        if results and not results[0].benchmark:
            if any(self._theirs & {*run.run_spec.groups} for run in runs):
                cell: Cell = super().create_cell(
                    runs, matcher, additional_info, hide_value, is_scenario_table
                )
                return cell
            return self._other_cell(runs, matcher)
        if not results:
            return ScoreCell(None)
        interval, caveats, notes = cell_score(results, matcher)
        # An overall score is not a run, and links to the runs that it is made of.
        names = (
            [run.run_spec.name for run in runs]
            if runs[0].run_spec.name
            else [run.name for result in results for run in result.runs]
        )
        in_percent = is_share(find_benchmark(results[0].benchmark), matcher.name)
        return make_cell(interval, caveats, is_share=in_percent, run_names=names, notes=notes)

    def _other_cell(self, runs: list[Run], matcher: MetricNameMatcher) -> Cell:
        """Make HELM's cell for runs of another package's scenario, with an interval if a single run is in the mean."""
        parts = [part for run in runs if (part := self._stats_by_name(run).get(matcher.name))]
        having = [part for part in parts if any(matcher.matches(stat.name) for stat in part.stats)]
        if not having:
            return ScoreCell(None)
        cell = super().create_cell(having, matcher, None)
        statistics = [each.statistics.get(matcher.name) for each in self._scores.find(having)]
        if len(statistics) != 1 or statistics[0] is None:
            return cell
        names = cell.run_spec_names
        return make_cell(
            replace(statistics[0].interval, mean=cell.value), [], is_share=False, run_names=names
        )

    def create_group_table(self, **options: Any) -> Table:
        """Make HELM's table of the models that have a value in it, arrange it, and add the marks."""
        columns = options["columns"]
        sub_split = options.get("sub_split")
        if all(group.name in self._theirs for group, _ in columns):
            table: Table = super().create_group_table(**options)
            return table
        names = {
            column.substitute(group.environment).name
            for group, metric_group in columns
            if metric_group in group.metric_groups
            for column in self.schema.name_to_metric_group[metric_group].metrics
        }
        rows = {
            adapter: runs
            for adapter, runs in options["adapter_to_runs"].items()
            if any(
                sub_split in (None, stat.name.sub_split)
                for run in runs
                for parts in [self._stats_by_name(run)]
                for name in names & parts.keys()
                for stat in parts[name].stats
            )
        }
        if not rows:
            return Table("empty", [], [])
        # HELM makes a file name of the names of the group and the table, which are long for a jury.
        options |= {"adapter_to_runs": rows, "name": _file_name(options["name"])}
        return mark_table(
            arrange_table(super().create_group_table(**options), self._scores.published)
        )

    def create_group_tables_by_subgroup(self, group: RunGroup) -> list[Table]:
        """Make the tables of a group without subgroups: HELM's if it is not ours; none if it has no page."""
        if not self._has_page(group):
            return []
        if group.name not in {*self._others, *self._theirs}:
            return self.create_group_tables_by_metric_group(group)
        return [table for table in super().create_group_tables_by_subgroup(group) if table.rows]

    def create_group_tables_by_metric_group(self, group: RunGroup) -> list[Table]:
        """Make a table of each metric group and, of a category with several tasks, one of each task.

        Instead of a table of scores that would be wider than a window, there is one of each part. Where there are
        only published models, there are only scores: a category's have a column of each task.
        """
        if group.name in self._theirs:
            return self._metric_tables(group)
        if not self._has_page(group):
            return []
        tables = self._part_tables(group) or self._metric_tables(group)
        tasks = [
            self._task_table(group, task) for task in group.sub_splits or () if self._has_own(group)
        ]
        tasks = [table for table in tasks if table.rows]
        return [*tables, *(tasks if len(tasks) > 1 else ())]

    def _has_page(self, group: RunGroup) -> bool:
        """Return whether a group is shown alone: a task that only published models have is a column of its category."""
        return (
            group.name in self._theirs
            or not group.category.endswith(KINDS[3:])
            or self._has_own(group)
        )

    def _has_own(self, group: RunGroup) -> bool:
        return not self._models(group) <= self._scores.published

    def _metric_tables(self, group: RunGroup) -> list[Table]:
        if group.name not in self._theirs and not self._has_own(group):
            # Published results have no conditions, and a task's only official metric is its score.
            groups = super().expand_subgroups(group)
            metrics = {
                name: {metric.name for metric in part.metrics}
                for name, part in self.schema.name_to_metric_group.items()
            }
            results = self._scores.find(self._runs_of(groups))
            hidden = group.subgroup_metric_groups_hidden
            parts = dict.fromkeys(
                name for each in groups for name in each.metric_groups if name not in hidden
            )
            shown = [
                part
                for part in parts
                if any(len(metrics[part] & result.statistics.keys()) > 1 for result in results)
            ]
            group = replace(group, metric_groups=["score", *shown])
        tables: list[Table] = super().create_group_tables_by_metric_group(group)
        return tables

    def _part_tables(self, group: RunGroup) -> list[Table]:
        """Return the tables of a group with too many columns: the scores of each part over lengths, and the others."""
        parts: dict[str, list[str]] = defaultdict(list)
        for each in super().expand_subgroups(group) if len(group.subgroups) > MOST_COLUMNS else ():
            # The last word of a heading is the length.
            parts[each.get_short_display_name().rpartition(" ")[0]].append(each.name)
        if len(parts) in (0, 1, len(group.subgroups)):
            return []
        scores = [
            replace(table, title=title, name=_file_name(f"{table.name}_{title}"))
            for title, names in parts.items()
            # The first table has the scores.
            for table in self._metric_tables(replace(group, subgroups=names))[:1]
        ]
        # The sort is stable.
        scores.sort(key=lambda table: -self._scores.count_own(table))
        most = MOST_PUBLISHED if scores and self._scores.count_own(scores[0]) else None
        scores = [
            table if self._scores.count_own(table) else replace(table, rows=table.rows[:most])
            for table in scores
        ]
        return [*(table for table in scores if table.rows), *self._metric_tables(group)[1:]]

    def _task_table(self, category: RunGroup, task: str) -> Table:
        rows: dict[AdapterSpec, list[Run]] = defaultdict(list)
        for adapter, runs in self.group_adapter_to_runs[category.name].items():
            rows[
                get_coarse_adapter_spec(adapter, adapter_keys_shown=category.adapter_keys_shown)
            ] += runs
        return self.create_group_table(
            title=self.schema.name_to_metric[task_score(task)].display_name,
            name=f"{category.name}:sub_split={task}",
            adapter_to_runs=rows,
            columns=[(category, name) for name in category.metric_groups],
            is_scenario_table=False,
            sub_split=task,
        )

    def create_index_tables(self) -> list[Table]:
        """Make the tables of the most important groups, which are also the selector of the leaderboard."""
        tables: list[Table] = []
        titles: set[str | None] = set()
        for category in dict.fromkeys(group.category for group in self.schema.run_groups):
            groups = [
                run_group
                for run_group in self.schema.run_groups
                if run_group.category == category and self._has_page(run_group)
            ]
            new = [each for each in groups if each.display_name not in titles]
            titles |= {each.display_name for each in new}
            if len(titles) > MOST_OPTIONS:
                break
            if new:
                tables.append(index_table(category, new, [len(self._models(each)) for each in new]))
        return tables

    def write_groups(self) -> None:
        """Write the tables of all groups under HELM's names. HELM's code needs several times as long for each cell."""
        folder = Path(self.run_release_path) / "groups"
        _write_json(folder.with_name("groups_metadata.json"), self.create_groups_metadata())
        for group in self.schema.run_groups:
            is_single = (
                group.subgroup_display_mode == BY_GROUP or len(self.expand_subgroups(group)) == 1
            )
            make = (
                self.create_group_tables_by_subgroup
                if is_single
                else self.create_group_tables_by_metric_group
            )
            tables: list[Table] = make(group)
            for table in tables:
                name = f"{group.name}_{table.name}"
                latex = folder / "latex" / f"{name}.tex"
                as_json = folder / "json" / f"{name}.json"
                links = (("LaTeX", latex), ("JSON", as_json))
                table.links.extend(Hyperlink(text=text, href=str(path)) for text, path in links)
                latex.parent.mkdir(parents=True, exist_ok=True)
                latex.write_text(
                    table_to_latex(table, f"{table.name} ({group.name})"), encoding="utf-8"
                )
                _write_json(as_json, table)
            if tables:
                _write_json(folder / f"{group.name}.json", tables)
        _write_json(folder.with_name(PAGES), self.create_index_tables())
        is_chosen = self.schema_path not in (None, get_default_schema_path())
        chosen = str(Path(self.schema_path).resolve()) if is_chosen else None
        _write_json(folder.with_name(PAGES_RECORD), {"schema_path": chosen})

    def write_run_display_json(self, skip_completed: bool) -> None:
        """Write the display files of all runs, in at most two threads, because more only need more memory."""

        def process(run: Run) -> None:
            write_display(Path(run.run_path), run.run_spec, self.schema, skip_completed)
            if results := [each for each in self._scores.find([run]) if each.benchmark]:
                tag_run(
                    Path(run.run_path),
                    describe(caveat for result in results for caveat in result.caveats),
                )

        with ThreadPoolExecutor(min(self.num_threads, 2)) as pool:
            list(tqdm(pool.map(process, self.runs), "Pages of runs", len(self.runs), disable=None))

    @cached_property
    def found(self) -> Suite:
        """The results of the suites, and their boards, which `write_leaderboard` gives."""
        suites = map(Path, self.run_suite_paths)
        results = [
            each for suite in suites for each in read_results(suite, BENCHMARKS, keep_answers=False)
        ]
        return Suite(results, make_boards(results, BENCHMARKS))

    @cached_property
    def _scores(self) -> SuiteScores:
        return SuiteScores(self.found, self.runs)

    def _stats_by_name(self, run: Run) -> dict[str, Run]:
        """Return the run with the statistics of one name, for each name."""
        # The copies of a run share its run spec, so the identity of the run spec is the key.
        if id(run.run_spec) not in self._parts:
            stats: dict[str, list[Stat]] = defaultdict(list)
            for stat in run.stats:
                stats[stat.name.name].append(stat)
            self._parts[id(run.run_spec)] = {
                name: replace(run, stats=each) for name, each in stats.items()
            }
        return self._parts[id(run.run_spec)]

    @cached_property
    def _parts(self) -> dict[int, dict[str, Run]]:
        return {}


def _write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(content, _to_plain, orjson.OPT_PASSTHROUGH_DATACLASS))


def _to_plain(record: object) -> list[Any] | dict[str, Any]:
    if isinstance(record, tuple):  # a caveat
        return list(record)
    return {name: value for name, value in vars(record).items() if value is not None}


def _file_name(name: str) -> str:
    # The title of a column can have a judge, whose name has a slash.
    return shorten_name(name.replace("/", "_"), _LONGEST_NAME)
