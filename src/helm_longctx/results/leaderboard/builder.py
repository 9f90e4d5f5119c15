"""Builds HELM's tables from the members of groups: HELM's headings and rows, with our cells for our results."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from helm.benchmark.model_metadata_registry import ModelMetadata
from helm.benchmark.presentation.schema import MetricNameMatcher, RunGroup, Schema
from helm.benchmark.presentation.summarize import (
    MODEL_HEADER_CELL_VALUE,
    AggregationStrategy,
    Summarizer,
    compute_aggregate_row_means,
    compute_aggregate_row_win_rates,
    get_benchmarking_url,
    get_coarse_adapter_spec,
    get_method_display_name,
    get_model_metadata_for_adapter_spec,
)
from helm.benchmark.presentation.table import Cell, HeaderCell, Hyperlink, Table

from helm_longctx.helm_api import AdapterSpec, get_all_models
from helm_longctx.results.leaderboard.members import Member
from helm_longctx.results.leaderboard.tables import (
    ModelCell,
    ScoreCell,
    arrange_table,
    cell_score,
    make_cell,
    mark_table,
)
from helm_longctx.results.reading import Result
from helm_longctx.tasks.groups import shorten_name
from helm_longctx.tasks.metric_names import is_share
from helm_longctx.tasks.registry import find_benchmark

MethodDescription = tuple[tuple[str, Any], ...]
"""What HELM calls a method: the fields of the adapter that distinguish the rows of a table, with their values."""

_MODEL_KEYS = ("model_deployment", "model")

_LONGEST_NAME = 150
"""Longest name of a table, of which HELM makes the name of a file."""


def _method_of(member: Member, keys: Sequence[str]) -> MethodDescription:
    """Return the row of a member in a table whose rows differ by some fields of the adapter."""
    if member.run and not set(keys) <= set(_MODEL_KEYS):
        spec = get_coarse_adapter_spec(
            member.run.run_spec.adapter_spec, adapter_keys_shown=keys
        )
        return tuple((key, getattr(spec, key)) for key in keys)
    known = {"model_deployment": member.deployment, "model": member.model}
    return tuple((key, known[key]) for key in keys if key in known)


def _find_distinctions(
    descriptions: Sequence[Mapping[str, Any]],
    first_keys: Sequence[str],
) -> list[dict[str, Any]]:
    """Return of each description the fewest leading fields that no other description has with the same values.

    Fields with one value in all descriptions are left out. Descriptions that cannot be told apart keep all others. The
    result is that of HELM's `unique_simplification`, whose time grows with the square of the number of descriptions.

    Args:
        first_keys: the fields that lead, in this order. The others follow in the description's own order.
    """
    common = set()
    for key, value in descriptions[0].items():
        if all(key in other and other[key] == value for other in descriptions):
            common.add(key)
    shortened = []
    for description in descriptions:
        kept = {key: value for key, value in description.items() if key not in common}
        shortened.append(kept)

    @cache
    def count(keys: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
        return Counter(_pick(fields, keys) for fields in shortened)

    told_apart = []
    for fields in shortened:
        leading = [key for key in first_keys if key in fields]
        others = [key for key in fields if key not in first_keys]
        keys = (*leading, *others)
        chosen = fields
        for number in range(1, len(keys) + 1):
            some = keys[:number]
            if count(some)[_pick(fields, some)] == 1:
                chosen = {key: fields[key] for key in some}
                break
        told_apart.append(chosen)
    return told_apart


def _pick(fields: Mapping[str, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    """Return the values of some fields, None for one that is missing."""
    return tuple(fields.get(key) for key in keys)


@cache
def fill_in(
    matcher: MetricNameMatcher,
    environment: tuple[tuple[str, str], ...],
) -> MetricNameMatcher:
    """Fill in a column's name and split. The result is kept, because HELM compiles a template for each of them."""
    return matcher.substitute(dict(environment))


def environment_of(group: RunGroup) -> tuple[tuple[str, str], ...]:
    """Return the variables that `fill_in` needs."""
    return tuple(sorted(group.environment.items()))


def file_name(name: str) -> str:
    """Return the name of a table as part of a file's name. Those with juries would be too long."""
    # The title of a column can have a judge, whose name has a slash.
    return shorten_name(name.replace("/", "_"), _LONGEST_NAME)


def find_model(model: str, deployment: str) -> ModelMetadata:
    """Return what HELM knows of a model, registered by its own name or by its deployment's."""
    return get_model_metadata_for_adapter_spec(
        AdapterSpec(model=model, model_deployment=deployment)
    )


def title_models(members: Iterable[Member]) -> dict[str, str]:
    """Return the title of each model. Models with the same title, such as `my/x` and `other/x`, have their names."""
    models = {}
    for member in members:
        metadata = find_model(member.model, member.deployment)
        models[metadata.name] = metadata.display_name or metadata.name
    counts = Counter(models.values())
    titles = {}
    for name, title in models.items():
        titles[name] = title if counts[title] == 1 else name
    return titles


class _TableColumn(NamedTuple):
    """A column of a table: a statistic of the runs in a group."""

    group: str
    matcher: MetricNameMatcher
    head: HeaderCell


@dataclass(frozen=True)
class TableBuilder:
    """Builds the tables of a schema.

    Args:
        theirs: the groups of the user's schema or of HELM's, whose tables look as HELM's.
        titles: the title of each model.
        helm: HELM's summarizer. It makes the cells of other packages' scenarios.
    """

    schema: Schema
    theirs: frozenset[str]
    titles: Mapping[str, str]
    helm: Summarizer

    def make_table(
        self,
        *,
        name: str,
        title: str,
        rows: Mapping[MethodDescription, Sequence[Member]],
        columns: Sequence[tuple[RunGroup, str]],
        is_scenario_table: bool = False,
        aggregation_strategies: Sequence[str] = (),
        sub_split: str | None = None,
    ) -> Table:
        """Return a table with a row for each method and a column for each statistic.

        Ours has the models that have a value in it, in the order of the first column, with marks.

        Args:
            columns: groups of runs, each with the name of a group of statistics.
            is_scenario_table: whether the names of models link to runs, and not the cells.
            sub_split: the task of which the table is, or None for all.
        """
        heads = self._make_columns(columns, sub_split)
        is_theirs = all(group.name in self.theirs for group, _ in columns)
        if not is_theirs:
            name = file_name(name)
            names = {head.matcher.name for head in heads}
            filled = {}
            for method, members in rows.items():
                if any(_has_statistic(member, names, sub_split) for member in members):
                    filled[method] = members
            rows = filled
        if not rows or not columns:
            return Table("empty", [], [])
        table = self._fill_table(
            name,
            title,
            rows,
            heads,
            columns[0][0],
            is_scenario_table,
            aggregation_strategies,
        )
        if is_theirs:
            return table
        return mark_table(arrange_table(table))

    def _make_columns(
        self,
        columns: Sequence[tuple[RunGroup, str]],
        sub_split: str | None,
    ) -> list[_TableColumn]:
        is_of_several = len({group.name for group, _ in columns}) > 1
        heads = []
        for group, metric_group in columns:
            # A group can have the basic statistics of a detailed group.
            if metric_group.replace("_detailed", "") not in group.metric_groups:
                continue
            for metric in self.schema.name_to_metric_group[metric_group].metrics:
                matcher = fill_in(metric, environment_of(group))
                if sub_split is not None:
                    matcher = replace(matcher, sub_split=sub_split)
                if matcher.name in self.schema.name_to_metric:
                    head = self._make_heading(group, matcher, is_of_several)
                    heads.append(
                        _TableColumn(
                            group=group.name,
                            matcher=matcher,
                            head=head,
                        )
                    )
        return heads

    def _make_heading(
        self,
        group: RunGroup,
        matcher: MetricNameMatcher,
        is_of_several: bool,
    ) -> HeaderCell:
        metric = self.schema.name_to_metric[matcher.name]
        title = metric.get_short_display_name()
        metadata = {"metric": title, "run_group": group.get_short_display_name()}
        about = group.short_description or group.description or ""
        description = f"{about}\n\n" if about else ""
        description += (
            f"{metric.display_name or metric.name}: {metric.description or ''}"
        )
        if matcher.perturbation_name is not None:
            perturbation = self.schema.name_to_perturbation[matcher.perturbation_name]
            short = perturbation.get_short_display_name()
            title += f" ({short})"
            description += (
                f"\n- Perturbation {perturbation.display_name or perturbation.name}:"
                f" {perturbation.description or '???'}"
            )
            metadata["perturbation"] = short
        if is_of_several:
            title = f"{group.get_short_display_name()} - {title}"
        return HeaderCell(
            title,
            description=description,
            lower_is_better=metric.lower_is_better,
            metadata=metadata,
        )

    def _fill_table(
        self,
        name: str,
        title: str,
        rows: Mapping[MethodDescription, Sequence[Member]],
        columns: Sequence[_TableColumn],
        group: RunGroup,
        is_scenario_table: bool,
        aggregation_strategies: Sequence[str],
    ) -> Table:
        order = {model: index for index, model in enumerate(get_all_models())}

        def find_order(method: MethodDescription) -> tuple[int, str]:
            deployment = dict(method).get("model_deployment", "")
            return order.get(deployment, -1), deployment

        methods = sorted(rows, key=find_order)
        # Besides the model, a row names the fields in which the methods differ.
        descriptions = []
        for method in methods:
            fields = {}
            for key, value in method:
                if value is not None:
                    fields[key] = value
            descriptions.append(fields)
        infos = _find_distinctions(descriptions, _MODEL_KEYS)
        lines = []
        for method, info in zip(methods, infos, strict=True):
            members = rows[method]
            model = find_model(members[0].model, members[0].deployment).name
            first: Cell = ModelCell(
                get_method_display_name(self.titles.get(model, model), info),
                description="",
                is_published=members[0].is_published or None,
            )
            if is_scenario_table:
                names = [member.name for member in members]
                first = replace(
                    first, href=_runs_url(group, title, names), run_spec_names=names
                )
            cells = []
            for column in columns:
                inside = []
                for member in members:
                    if column.group in member.groups:
                        inside.append(member)
                # HELM shows the mean over all tasks of bAbI, and not the mean of this and of single tasks.
                if "babi" in column.group and "task:" not in name:
                    inside = [member for member in inside if "task=all" in member.name]
                cells.append(
                    self._make_cell(inside, column.matcher, model, is_scenario_table)
                )
            lines.append([first, *cells])
        table = Table(
            title=title,
            header=[
                HeaderCell(MODEL_HEADER_CELL_VALUE),
                *(column.head for column in columns),
            ],
            rows=lines,
            links=_comparison_links(group, title, rows) if is_scenario_table else [],
            name=name,
        )
        _add_aggregates(table, aggregation_strategies)
        _make_best_bold(table)
        return table

    def _make_cell(
        self,
        members: Sequence[Member],
        matcher: MetricNameMatcher,
        model: str,
        is_scenario_table: bool,
    ) -> Cell:
        """Return the cell of a statistic, with its interval, and why the score is not comparable or why there is none."""
        results: list[Result] = []
        for member in members:
            results += member.results
        if not results:
            return ScoreCell(None)
        if not results[0].benchmark:
            if any(self.theirs.intersection(member.groups) for member in members):
                return self._make_helm_cell(members, matcher, model, is_scenario_table)
            return self._make_other_cell(members, matcher)
        interval, caveats, notes = cell_score(results, matcher)
        names: dict[str, None] = {}
        for member in members:
            names |= dict.fromkeys(member.run_names)
        return make_cell(
            interval,
            caveats,
            is_share=is_share(find_benchmark(results[0].benchmark), matcher.name),
            run_names=list(names),
            notes=notes,
        )

    def _make_helm_cell(
        self,
        members: Sequence[Member],
        matcher: MetricNameMatcher,
        model: str,
        is_scenario_table: bool,
    ) -> Cell:
        is_hidden = (
            model in Summarizer.LOGPROBS_ISSUE_MODELS
            and matcher.name in Summarizer.LOGPROBS_ISSUE_METRICS
        )
        runs = []
        for member in members:
            if member.run:
                runs.append(member.run)
        cell: Cell = self.helm.create_cell(
            runs, matcher, "", is_hidden, is_scenario_table
        )
        return cell

    def _make_other_cell(
        self,
        members: Sequence[Member],
        matcher: MetricNameMatcher,
    ) -> Cell:
        """Return HELM's cell of another package's scenario, with an interval if a single run is in the mean."""
        runs = []
        results: list[Result] = []
        for member in members:
            stats = member.run.stats if member.run else ()
            if any(matcher.matches(stat.name) for stat in stats):
                runs.append(member.run)
                results += member.results
        if not runs:
            return ScoreCell(None)
        cell: Cell = self.helm.create_cell(runs, matcher, None)
        statistics = [result.statistics.get(matcher.name) for result in results]
        if len(statistics) != 1 or statistics[0] is None:
            return cell
        return make_cell(
            replace(statistics[0].interval, mean=cell.value),
            [],
            is_share=False,
            run_names=cell.run_spec_names,
        )


def _has_statistic(member: Member, names: Iterable[str], sub_split: str | None) -> bool:
    tasks = []
    for name in names:
        if name in member.statistics:
            tasks.append(member.statistics[name])
    return any(sub_split is None or sub_split in of for of in tasks)


def _runs_url(group: RunGroup, title: str, names: Sequence[str]) -> str:
    return get_benchmarking_url(
        {"group": group.name, "subgroup": title, "runSpecs": json.dumps(names)}
    )


def _comparison_links(
    group: RunGroup,
    title: str,
    rows: Mapping[MethodDescription, Sequence[Member]],
) -> list[Hyperlink]:
    """Return a link to a page that compares all runs, as HELM makes it for two to five."""
    names = []
    for members in rows.values():
        for member in members:
            names.append(member.name)
    if not 2 <= len(names) <= 5:
        return []
    return [Hyperlink(text="compare all", href=_runs_url(group, title, names))]


def _add_aggregates(table: Table, strategies: Sequence[str]) -> None:
    """Add HELM's columns of win rates and means after the models."""
    columns = []
    for strategy in strategies:
        if strategy == AggregationStrategy.WIN_RATE:
            head = HeaderCell(
                "Mean win rate",
                description="How many models this model outperforms on average (over columns).",
                lower_is_better=False,
            )
            columns.append((head, compute_aggregate_row_win_rates(table)))
        else:
            head = HeaderCell(
                "Mean score",
                description="The mean of the scores from all columns.",
                lower_is_better=table.header[0].lower_is_better,
            )
            columns.append((head, compute_aggregate_row_means(table)))
    # A single model outperforms none. HELM's first page shows this column, which would be empty.
    shown = []
    for head, values in columns:
        if any(value is not None for value in values):
            shown.append((head, values))
    for index, (head, values) in enumerate(shown, 1):
        table.header.insert(index, head)
        for row, value in zip(table.rows, values, strict=True):
            row.insert(index, Cell(value))


def _make_best_bold(table: Table) -> None:
    for index, head in enumerate(table.header):
        values = []
        for row in table.rows:
            if _is_number(row[index].value):
                values.append(float(row[index].value))
        if head.lower_is_better is None or not values:
            continue
        best = min(values) if head.lower_is_better else max(values)
        for row in table.rows:
            if row[index].value == best:
                style = {**(row[index].style or {}), "font-weight": "bold"}
                row[index] = replace(row[index], style=style)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def collect_rows(
    members: Iterable[Member],
    keys: Sequence[str],
) -> dict[MethodDescription, list[Member]]:
    """Return the members of each row, each member once."""
    rows: dict[MethodDescription, dict[Member, None]] = defaultdict(dict)
    for member in members:
        rows[_method_of(member, keys)][member] = None
    return {method: list(of_row) for method, of_row in rows.items()}
