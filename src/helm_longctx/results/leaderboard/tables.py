"""Makes the cells of HELM's tables, arranges these, and writes intervals and marks into them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from helm.benchmark.presentation.schema import MetricNameMatcher, RunGroup
from helm.benchmark.presentation.table import Cell, HeaderCell, Table

from helm_longctx.documents.numbers import (
    MARK,
    add_mark,
    format_decimals,
    format_ends,
    format_percent,
    format_range,
)
from helm_longctx.results.boards import average, mean_over_tasks, tasks_of
from helm_longctx.results.cells import score_notes
from helm_longctx.results.comparability import (
    Caveat,
    ColumnReason,
    describe,
    describe_columns,
)
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.intervals import Interval, mean_of_means
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.runs.files import SCENARIO, read_json, reading
from helm_longctx.tasks.metric_names import CONDITIONS, DEPTHS, depth_score, task_score
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import MAIN_METRIC, Task
from helm_longctx.writing import replace_file

_DEPTH_SCORES = tuple(map(depth_score, DEPTHS))


def cell_score(
    results: Sequence[Result],
    matcher: MetricNameMatcher,
) -> tuple[Interval, Sequence[Caveat], list[str]]:
    """Return the statistic of results that a column of HELM's tables has, and why it is not comparable.

    Also return what a score would be without a limit on tokens, and without known errors.
    """
    name = matcher.name
    if whole := next((result for result in results if not result.task), None):
        if name == MAIN_METRIC:
            return whole.interval, whole.caveats, score_notes(whole)
        return mean_of_means([]), whole.caveats, []
    tasks = _column_tasks(results, matcher)
    names = {task.name for task in tasks}
    measured = set()
    for result in results:
        if name in result.statistics:
            measured.add(result.task)
    tasks_with = []
    for task in tasks:
        if task.name in measured:
            tasks_with.append(task)
    if name == MAIN_METRIC or name in map(task_score, names):
        interval, caveats = mean_over_tasks(tasks, results, name)
        rows = [result for result in results if result.task in names]
        # Such notes are about answers, and published scores have none.
        if not rows or all(result.is_published for result in results):
            return interval, caveats, []
        return interval, caveats, score_notes(average(rows[0].entry, tasks, rows))
    if name in (*CONDITIONS, *_DEPTH_SCORES):
        caveats = () if name in CONDITIONS else mean_over_tasks(tasks, results)[1]
        return mean_over_tasks(tasks_with, results, name)[0], caveats, []
    # An official metric is only expected of the tasks that have it.
    official = []
    for task in tasks:
        if name in task.metrics:
            official.append(task)
    interval, caveats = mean_over_tasks(official or tasks_with, results, name)
    return interval, caveats, []


def _column_tasks(results: Sequence[Result], matcher: MetricNameMatcher) -> list[Task]:
    """Return the tasks that a column is about: the one that it names, or the tasks of the category."""
    benchmark = find_benchmark(results[0].benchmark)
    if matcher.sub_split:
        return [benchmark.task(matcher.sub_split)]
    # HELM's schema cannot name a sub-split in a column, so a task's score also has its own name.
    named = _tasks_by_score(benchmark.name).get(matcher.name)
    if named:
        return [named]
    return list(tasks_of(benchmark.entries[results[0].entry], results))


@cache
def _tasks_by_score(benchmark: str) -> dict[str, Task]:
    return {task_score(task.name): task for task in find_benchmark(benchmark).tasks}


NOTES = f"{MARK} Not comparable"
"""Title of the column with the reasons."""

_MOST = 3
"""Largest number of columns, and of tasks, that a reason names. With more, a row would be higher than the page."""


@dataclass(frozen=True)
class ModelCell(Cell):
    """A cell with the name of a model.

    Args:
        is_published: true if the row's scores were published, or None for a model that was run here.
    """

    is_published: bool | None = None


@dataclass(frozen=True)
class ScoreCell(Cell):
    """A cell with a statistic.

    HELM's front end shows and sorts only `value`, so `value` becomes a text with the interval and the mark.

    Args:
        number: the value, for programs: a score is in 0 to 1, or None if there is none.
        is_share: whether people read the value in percent.
        caveats: the reasons why the score is not comparable, or why there is none, or None if it is comparable.
    """

    number: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    is_share: bool = True
    caveats: list[Caveat] | None = None


def make_cell(
    interval: Interval,
    caveats: Sequence[Caveat],
    *,
    is_share: bool = True,
    run_names: list[str] | None = None,
    notes: Sequence[str] = (),
) -> ScoreCell:
    """Return the cell of a statistic, whose value `mark_table` makes a text, with links to runs if they are named."""
    if math.isnan(interval.mean):
        # If parts of a mean are missing, the reasons why others are not comparable do not explain it.
        absent = []
        for caveat in caveats:
            if caveat.kind in ("missing", "judges"):
                absent.append(caveat)
        return ScoreCell(None, caveats=absent or list(caveats) or None)
    about = [f"n = {interval.n}"] if interval.n else []
    has_ends = not math.isnan(interval.high - interval.low)
    if has_ends:
        digits = None if is_share else 4
        ends = format_ends(interval, lambda end: _text(end, digits))
        about.append(f"{LEVEL_TEXT} interval: {ends}")
    about += notes
    if caveats:
        about.append(f"{NOTES}: {'; '.join(describe(caveats))}")
    return ScoreCell(
        interval.mean,
        description="\n".join(about),
        style={},
        run_spec_names=run_names,
        number=interval.mean,
        low=interval.low if has_ends else None,
        high=interval.high if has_ends else None,
        n=interval.n or None,
        is_share=is_share,
        caveats=list(caveats) or None,
    )


def mark_table(table: Table) -> Table:
    """Write values, intervals and marks as texts, and add a last column with the reasons.

    A marked score is never the best of its column.
    """
    notes = [_note(table.header, row) for row in table.rows]
    columns = []
    for title, cells in zip(table.header, zip(*table.rows, strict=True), strict=True):
        if any(isinstance(cell, ScoreCell) for cell in cells):
            columns.append(_mark_column(cells, title.lower_is_better))
        else:
            columns.append(list(cells))
    rows = []
    for index in range(len(table.rows)):
        rows.append([column[index] for column in columns])
    header = list(table.header)
    if any(notes):
        rows = [[*row, Cell(note)] for row, note in zip(rows, notes, strict=True)]
        about = "Why scores with a mark do not compare with published ones, and with others in the table"
        header.append(HeaderCell(NOTES, description=about))
    return replace(table, header=header, rows=rows)


def tag_run(run: Path, reasons: Sequence[str]) -> None:
    """Tag a run's scenario with reasons against a comparison. Raises an `InputError` if `scenario.json` is damaged."""
    path = run / SCENARIO
    if not path.is_file():
        return
    scenario = read_json(path)
    with reading(path):
        # The tags of an earlier call are removed, because their reasons may no longer apply.
        tags = []
        for tag in scenario["tags"]:
            if not tag.startswith(MARK):
                tags.append(tag)
    tags += [f"{MARK} {reason}" for reason in reasons]
    if tags != scenario["tags"]:
        changed = {**scenario, "tags": tags}
        replace_file(path, orjson.dumps(changed, option=orjson.OPT_INDENT_2))


def _note(header: Sequence[HeaderCell], row: Sequence[Cell]) -> str | None:
    """Return why scores of a row are missing or not comparable, each reason with its columns and tasks."""
    reasons = []
    for title, cell in zip(header, row, strict=True):
        for caveat in _caveats_of(cell):
            if cell.value is not None:
                reason = caveat.text
            else:
                reason = f"none, because of {caveat.text}"
            reasons.append(ColumnReason(str(title.value), reason, caveat.task))
    return describe_columns(reasons, _MOST) or None


def _caveats_of(cell: Cell) -> list[Caveat]:
    return getattr(cell, "caveats", None) or []


def _mark_column(cells: Sequence[Cell], lower_is_better: bool | None) -> list[Cell]:
    """Convert a column's values to texts of equal width that the front end sorts in the order of the numbers."""
    with_value = [cell for cell in cells if cell.value is not None]
    comparable = []
    for cell in with_value:
        if not _caveats_of(cell):
            comparable.append(float(cell.value))
    best = None
    if comparable and lower_is_better is not None:
        best = min(comparable) if lower_is_better else max(comparable)
    digits = None  # percent with one decimal
    if not all(getattr(cell, "is_share", True) for cell in with_value):
        largest = max(abs(float(cell.value)) for cell in with_value)
        if largest >= 100:
            digits = 0
        elif largest >= 1:
            digits = 2
        else:
            digits = 4
    # The front end sorts texts by character, so numbers need the same number of digits before the point.
    width = max(
        (len(_text(float(cell.value), digits)) for cell in with_value), default=0
    )
    marked = []
    for cell in cells:
        if cell.value is not None:
            # The more tasks a mean lacks, the more spaces are before it, so that it comes after the means of more tasks.
            times = 1 if lower_is_better else 1 + _count_missing(cell)
            cell = _text_cell(cell, width * times, digits, best)
        marked.append(cell)
    return marked


def _count_missing(cell: Cell) -> int:
    """Return the number of tasks that a cell's mean lacks."""
    return sum(caveat.kind == "missing" for caveat in _caveats_of(cell))


def _text_cell(
    cell: Cell,
    width: int,
    digits: int | None,
    best: float | None,
) -> Cell:
    number = float(cell.value)
    # HELM also considers marked scores for the bold best score.
    style = dict(cell.style or {})
    style.pop("font-weight", None)
    if not _caveats_of(cell) and number == best:
        style["font-weight"] = "bold"
    low = getattr(cell, "low", None)
    high = getattr(cell, "high", None)
    tail = add_mark("", _caveats_of(cell))
    if low is not None and high is not None:
        # The word joiner keeps both ends in one line.
        ends = format_range(low, high, lambda end: _text(end, digits))
        tail += f" ({ends})".replace("–", "–\u2060")
    # The front end omits the zeros at the end of a number alone.
    if not tail and digits is None:
        tail = " %"
    text = f"{_text(number, digits):>{width}}{tail}"
    # HELM's `Cell` is a frozen dataclass, so a cell with other values is a new one.
    values: dict[str, Any] = {"number": number}
    for field in fields(cell):
        values[field.name] = getattr(cell, field.name)
    return ScoreCell(**{**values, "value": text, "style": style})


def _text(number: float, digits: int | None) -> str:
    if digits is None:
        return format_percent(number)
    return format_decimals(number, digits)


MOST_PUBLISHED = 5
"""Largest number of published models in a table that also has the user's, so that these are in view without scrolling."""

MOST_COLUMNS = 9
"""Largest number of scores in a row that fit into a window of 1,500 pixels."""


def arrange_table(table: Table) -> Table:
    """Shorten the headings, omit columns and rows without a value, and sort the rows by the first column of scores.

    HELM's front end also sorts by this column. A mean over fewer tasks comes after those over more. Rows without a
    value come last, sorted by the next columns. Beside
    the user's models, whose names are bold, only the best published ones are kept, so that the user's are in view.
    """
    rows = []
    for row in table.rows:
        if any(map(_has_value, row[1:])):
            rows.append(row)
    rows.sort(key=lambda row: list(map(_rank, table.header[1:], row[1:])))
    published = [row for row in rows if _is_published(row)]
    if len(published) < len(rows):
        # The rows' identities are compared, because equal scores make equal rows.
        hidden = set(map(id, published[MOST_PUBLISHED:]))
        rows = [row for row in rows if id(row) not in hidden]
        if published:
            bold = {"font-weight": "bold"}
            for index, row in enumerate(rows):
                if not _is_published(row):
                    rows[index] = [replace(row[0], style=bold), *row[1:]]
    # The first column has the models' names.
    filled = [0]
    for index in range(1, len(table.header)):
        if any(_has_value(row[index]) for row in rows):
            filled.append(index)
    if rows:
        header = _shorten([table.header[index] for index in filled])
    else:
        header = []
    rows = [[row[index] for index in filled] for row in rows]
    return replace(table, header=header, rows=rows)


def _has_value(cell: Cell) -> bool:
    return cell.value is not None


def _is_published(row: Sequence[Cell]) -> bool:
    return isinstance(row[0], ModelCell) and bool(row[0].is_published)


def count_own(table: Table) -> int:
    """Return the number of the user's models in a table."""
    return sum(not _is_published(row) for row in table.rows)


def _rank(title: HeaderCell, cell: Cell) -> tuple[bool, int, float]:
    if not _has_value(cell):
        return True, 0, 0.0
    # `False` sorts before `True`, so cells with a value come first.
    return (
        False,
        _count_missing(cell),
        float(cell.value) if title.lower_is_better else -float(cell.value),
    )


def _shorten(header: Sequence[HeaderCell]) -> list[HeaderCell]:
    """Return headings without what all columns share, because HELM's front end cuts them after 30 characters."""
    columns = [title.metadata for title in header if title.metadata]
    groups = len({column["run_group"] for column in columns}) > 1
    metrics = len({column["metric"] for column in columns}) > 1
    names = ["run_group"] * (groups or not metrics) + ["metric"] * metrics
    short = []
    for title in header:
        if title.metadata:
            words = " ".join(title.metadata[name] for name in names)
            title = replace(title, value=words)
        short.append(title)
    return short


def index_table(title: str, groups: Sequence[RunGroup], models: Sequence[int]) -> Table:
    """Return a table of groups in their order, with the numbers of their models.

    HELM's front end sorts by the second column, so that is the number of the group. It links a cell there to
    all predictions if the cell has no list of runs.
    """
    header = [
        HeaderCell("Group"),
        HeaderCell("No.", lower_is_better=True),
        HeaderCell("Description"),
        HeaderCell("Models"),
    ]
    rows: list[list[Cell]] = []
    for group, count in zip(groups, models, strict=True):
        row = [
            # The page of groups opens this address, and the selector takes it as the group's name.
            Cell(group.display_name, href=group.name),
            Cell(len(rows) + 1, run_spec_names=[]),
            Cell(group.description, markdown=True),
            Cell(count),
        ]
        rows.append(row)
    return Table(title, header, rows)
