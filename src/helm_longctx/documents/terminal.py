"""Prints the blocks of a document in the terminal."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from helm_longctx.documents.document import Block, Column, HeadlineAnswer, Table
from helm_longctx.redaction.abbreviation import escape_invisible

_WIDTH = 120
"""Number of columns if standard output is not a terminal, where rich would assume 80."""

_FOLD = 12
"""Width to which a column of texts may be folded."""


def print_blocks(blocks: Iterable[Block | None]) -> None:
    """Print tables and answers. Figures are for pages, and None stands for a block without content."""
    for block in blocks:
        if isinstance(block, HeadlineAnswer):
            print(*filter(None, (block.verdict, block.certainty, block.note)), sep="\n")
        elif isinstance(block, Table):
            print_table(block)


def print_table(table: Table) -> None:
    """Print a table as wide as the terminal, and columns that do not fit in further tables of the same rows."""
    # Names of models are no markup.
    console = _Console(
        width=_find_width(),
        markup=False,
        emoji=False,
    )
    for grid in _grids(table, _find_width()):
        console.print(grid)
    if table.about:
        print(table.about)


def _find_width() -> int:
    """Return the width of the terminal, or 120 columns if standard output is not a terminal."""
    if sys.stdout.isatty():
        return Console().width
    return _WIDTH


def _grids(table: Table, width: int) -> Iterator[Grid]:
    columns = []
    for index, column in enumerate(table.columns):
        columns.append((column, [row[index].line for row in table.rows]))
    first = columns[0]
    first_width = _least_width(first[0], first[1])
    rest = columns[1:]
    while True:
        # The borders are a character, and a column's padding and right border are three.
        room = width - 4 - first_width
        taken = 0
        for column, cells in rest:
            room -= 3 + _least_width(column, cells)
            taken += room >= 0 or not taken
        shown = (first, *rest[:taken])
        grid = Grid(title=table.title, title_justify="left")
        for column, _ in shown:
            justify: Literal["left", "right"] = "right" if column.is_number else "left"
            grid.add_column(column.title, overflow="fold", justify=justify)
        for row in zip(*(cells for _, cells in shown), strict=True):
            grid.add_row(*row)
        yield grid
        rest = rest[taken:]
        if not rest:
            return


def _least_width(column: Column, cells: Sequence[str]) -> int:
    """Return the width that a column needs: of the longest word in its heading, and of its longest cell."""
    lines = chain.from_iterable(cell.split("\n") for cell in cells)
    longest = max(map(cell_len, lines), default=0)
    if column.folds:
        longest = min(longest, _FOLD)
    return max(*map(cell_len, column.title.split() or [""]), longest, 1)


class _Console(Console):
    """A console that shows control characters in texts as escapes, so that no name of a model controls the terminal."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text of a table. rich calls this for titles, headings and cells."""
        return super().render_str(escape_invisible(text), **options)
