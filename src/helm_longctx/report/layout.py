"""Arranges HELM's tables: headings, columns and rows with scores, and the order of rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from helm.benchmark.presentation.schema import RunGroup
from helm.benchmark.presentation.table import Cell, HeaderCell, Table


def arrange_table(table: Table) -> Table:
    """Shorten the headings, omit columns and rows without a value, and sort the rows by the first column of scores.

    HELM's front end also sorts by this column. Rows without a value there come last, sorted by the next columns.
    """
    # The first column has the models' names.
    places = [0, *(place for place in range(1, len(table.header)) if any(_has_value(row[place]) for row in table.rows))]
    rows = [[_unlink(row[place]) for place in places] for row in table.rows if any(map(_has_value, row[1:]))]
    header = [_shorten(table.header[place]) for place in places] if rows else []
    rows.sort(key=lambda row: [_rank(title, cell) for title, cell in zip(header[1:], row[1:], strict=True)])
    return replace(table, header=header, rows=rows)


def _has_value(cell: Cell) -> bool:
    return cell.value is not None


def _unlink(cell: Cell) -> Cell:
    """Remove links to computed results, which have no page and an empty name."""
    if cell.run_spec_names is None or all(cell.run_spec_names):
        return cell
    names = [name for name in cell.run_spec_names if name]
    return replace(cell, run_spec_names=names or None, href=cell.href if names else None)


def _rank(title: HeaderCell, cell: Cell) -> tuple[bool, float]:
    if not _has_value(cell):
        return True, 0.0
    # `False` sorts before `True`, so cells with a value come first.
    return False, float(cell.value) if title.lower_is_better else -float(cell.value)


def _shorten(title: HeaderCell) -> HeaderCell:
    """Return a heading without `Score`, which is the table's title, and with the depth beside the length.

    HELM's front end cuts a heading of more than 30 characters.
    """
    value = str(title.value).removesuffix(" - Score").replace(" - @", " @")
    return replace(title, value=value)


def select_groups(groups: Sequence[RunGroup], present: Collection[str]) -> list[RunGroup]:
    """Omit the groups without runs, because their pages would be empty.

    Args:
        present: the groups that have runs.
    """
    leaves = {group.name for group in groups if not group.subgroups}
    left_out = leaves - set(present)
    kept = (replace(group, subgroups=[n for n in group.subgroups if n not in left_out]) for group in groups)
    return [group for group in kept if group.subgroups or group.name in present]
