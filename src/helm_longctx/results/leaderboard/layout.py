"""Arranges HELM's tables: headings, columns and rows with scores, and the order of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from helm.benchmark.presentation.schema import RunGroup
from helm.benchmark.presentation.table import Cell, HeaderCell, Table

from helm_longctx.results.leaderboard.marks import count_missing
from helm_longctx.results.reading import PUBLISHED

MOST_PUBLISHED = 5
"""Largest number of published models in a table that also has the user's, which are then in view without scrolling."""

MOST_COLUMNS = 9
"""Largest number of scores in a row that fit into a window of 1,500 pixels."""


def arrange_table(table: Table) -> Table:
    """Shorten the headings, omit columns and rows without a value, and sort the rows by the first column of scores.

    HELM's front end also sorts by this column. A mean over fewer tasks comes after those over more. Rows without a
    value come last, sorted by the next columns. Beside
    the user's models, whose names are bold, only the best published ones are kept, so that the user's are in view.
    """
    rows = [row for row in table.rows if any(map(_has_value, row[1:]))]
    rows.sort(key=lambda row: [_rank(title, cell) for title, cell in zip(table.header[1:], row[1:], strict=True)])
    published = [row for row in rows if _is_published(row)]
    if len(published) < len(rows):
        # The rows' identities are compared, because equal scores make equal rows.
        hidden = set(map(id, published[MOST_PUBLISHED:]))
        rows = [_mark_own(row) if published else row for row in rows if id(row) not in hidden]
    # The first column has the models' names.
    places = [0, *(place for place in range(1, len(table.header)) if any(_has_value(row[place]) for row in rows))]
    header = _shorten([table.header[place] for place in places]) if rows else []
    return replace(table, header=header, rows=[[row[place] for place in places] for row in rows])


def _has_value(cell: Cell) -> bool:
    return cell.value is not None


def _is_published(row: Sequence[Cell]) -> bool:
    return str(row[0].value).startswith(PUBLISHED)


def count_own(table: Table) -> int:
    """Return the number of the user's models in a table."""
    return sum(not _is_published(row) for row in table.rows)


def _mark_own(row: list[Cell]) -> list[Cell]:
    return row if _is_published(row) else [replace(row[0], style={"font-weight": "bold"}), *row[1:]]


def _rank(title: HeaderCell, cell: Cell) -> tuple[bool, int, float]:
    if not _has_value(cell):
        return True, 0, 0.0
    # `False` sorts before `True`, so cells with a value come first.
    return False, count_missing(cell), float(cell.value) if title.lower_is_better else -float(cell.value)


def _shorten(header: Sequence[HeaderCell]) -> list[HeaderCell]:
    """Return headings without the metric or the group that all columns share.

    HELM's front end cuts a heading of more than 30 characters.
    """
    columns = [title.metadata for title in header if title.metadata]
    groups = len({column["run_group"] for column in columns}) > 1
    metrics = len({column["metric"] for column in columns}) > 1
    names = ["run_group"] * (groups or not metrics) + ["metric"] * metrics
    return [
        replace(title, value=" ".join(title.metadata[name] for name in names)) if title.metadata else title
        for title in header
    ]


def index_table(title: str, groups: Sequence[RunGroup], models: Sequence[int]) -> Table:
    """Return a table of groups in their order, with the numbers of their models.

    HELM's front end sorts by the second column, which is therefore the place in the order. It links a cell there to
    all predictions if the cell has no list of runs.
    """
    header = [
        HeaderCell("Group"),
        HeaderCell("No.", lower_is_better=True),
        HeaderCell("Description"),
        HeaderCell("Models"),
    ]
    rows = [
        [
            # The page of groups opens this address, and the selector takes it as the group's name.
            Cell(group.display_name, href=group.name),
            Cell(place, run_spec_names=[]),
            Cell(group.description, markdown=True),
            Cell(count),
        ]
        for place, (group, count) in enumerate(zip(groups, models, strict=True), 1)
    ]
    return Table(title, header, rows)
