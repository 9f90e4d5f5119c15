"""Tests of tables, whichever renderer shows them."""

from __future__ import annotations

import pytest

from helm_longctx.documents.document import Cell, Column, Table

COLUMNS = [Column("Task", is_number=False), Column("Score")]


@pytest.mark.parametrize("cells", [1, 3])
def test_a_row_with_a_cell_too_few_or_too_many_is_refused(cells: int) -> None:
    """A table whose row lacks a cell, or has one without a column, names itself and the row."""
    rows = [[Cell("a"), Cell("1")], [Cell("b")] * cells]
    line = f"table 'scores': row 1 has {cells} cells, but there are 2 columns"
    with pytest.raises(ValueError, match=line):
        Table("scores", "Scores", COLUMNS, rows)
