"""A report as data: pages of sections with texts, tables and figures; and their CSV, safe to open in spreadsheets.

Each output format renders the same document. The `kind` of a block selects its part of the templates.
"""

import csv
import json
import math
import re
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import chain, groupby
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import orjson

from helm_longctx._version import VERSION
from helm_longctx.documents.numbers import (
    DASH,
    Bounded,
    add_in_brackets,
    add_mark,
    format_ends,
    format_percent,
)
from helm_longctx.errors import InputError
from helm_longctx.writing import replace_page, replacing

T = TypeVar("T")

TableRow = Mapping[str, object]
"""A row of a figure's data."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Args:
        value: the unrounded number, if there is one. The table is sorted by it, and data files have it. Scores are in
            0…1.
        detail: a small text after the text, such as an interval.
        note: explanation of the cell (on pages a tooltip).
        tag: `best` or `caveats`, shown by type and colour on pages. In the cell of a model `own`, `unranked` (an own
            one without a rank) or `floor`, shown in the whole row.
    """

    text: str
    value: float | None = None
    detail: str = ""
    note: str = ""
    link: str = ""
    tag: str = ""

    @property
    def line(self) -> str:
        """The text with the detail in brackets."""
        return add_in_brackets(self.text, self.detail)


def number_cell(
    value: float | None,
    show: Callable[[float], str] = format_percent,
    detail: str = "",
    note: str = "",
    caveats: str = "",
) -> Cell:
    """Return the cell of a number, with a mark and a note if it has caveats, or a dash if there is none."""
    if value is None or math.isnan(value):
        return Cell(DASH, note=note)
    notes = "; ".join(filter(None, (note, caveats)))
    return Cell(
        add_mark(show(value), caveats),
        value,
        detail,
        notes,
        tag="caveats" if caveats else "",
    )


def interval_cell(
    interval: Bounded | None,
    show: Callable[[float], str] = format_percent,
    missing: str = "",
) -> Cell:
    """Return the cell of a mean with its interval, or a dash.

    Args:
        missing: why there is none.
    """
    if interval is None:
        return Cell(DASH, note=missing)
    ends = format_ends(interval, show)
    return number_cell(
        interval.mean, show, ends, note=missing if math.isnan(interval.mean) else ""
    )


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        is_number: whether the column is aligned to the right and sorted from large to small.
        is_ranked: whether the rows are sorted by this column at first.
        folds: whether a terminal may break its texts inside of words. Names of models stay whole.
    """

    title: str
    note: str = ""
    is_number: bool = True
    is_ranked: bool = False
    folds: bool = False


def text_columns(*titles: str) -> list[Column]:
    """Return columns of texts without notes."""
    return [Column(title, is_number=False) for title in titles]


@dataclass(frozen=True)
class Table:
    """A table. Its name is unique in the report, and the stem of the CSV file.

    Raises:
        ValueError: a row has not one cell for each column.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    about: str = ""
    search: bool = False
    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.name!r}: row {number} has {len(row)} cells, but there"
                    f" are {len(self.columns)} columns"
                )

    @property
    def header(self) -> list[str]:
        """The titles of the columns."""
        return [column.title for column in self.columns]

    @property
    def bodies(self) -> list[tuple[str, list[Sequence[Cell]]]]:
        """The rows in groups that stay apart when readers sort: of the user's models, of others, and of floors."""

        def kind_of(row: Sequence[Cell]) -> str:
            for cell in row:
                if cell.tag in ("own", "unranked", "floor"):
                    return cell.tag
            return "other"

        return [(kind, list(rows)) for kind, rows in groupby(self.rows, key=kind_of)]

    def plain_rows(self) -> list[list[str | float]]:
        """Return the rows for a CSV file: texts and unrounded numbers. A number that is missing is an empty text."""
        rows = []
        for row in self.rows:
            values: list[str | float] = []
            for cell, column in zip(row, self.columns, strict=True):
                if not column.is_number:
                    values.append(cell.text)
                elif cell.value is None:
                    values.append("")
                else:
                    # Nine digits hide the noise of floating-point sums, and no table shows more.
                    values.append(round(cell.value, 9))
            rows.append(values)
        return rows


def text_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    about: str = "",
    right: Collection[str] = (),
) -> Table:
    """Return a table of texts alone."""
    heads = []
    for name in columns:
        heads.append(Column(name, is_number=name in right, folds=name not in right))
    return Table(
        title, title, heads, [[Cell(text) for text in row] for row in rows], about
    )


def tabulate(
    name: str,
    title: str,
    columns: Sequence[tuple[Column, Callable[[T], Cell]]],
    items: Sequence[T],
    about: str = "",
) -> Table:
    """Return a table with a row for each item. Columns come with what makes their cells; empty ones are left out."""
    rows = []
    for item in items:
        rows.append([cell(item) for _, cell in columns])
    used = []
    for index in range(len(columns)):
        if any(row[index].text != DASH for row in rows):
            used.append(index)
    return Table(
        name,
        title,
        columns=[columns[index][0] for index in used],
        rows=[[row[index] for index in used] for row in rows],
        about=about,
    )


@dataclass(frozen=True)
class Figure:
    """A plot.

    Args:
        about: text that says what the plot shows and how to read it, also for screen readers.
        spec: the Vega-Lite specification, whose data set has the name `rows`.
        by_model: whether the rows have a `model`, so that readers can choose models.
    """

    name: str
    title: str
    about: str
    spec: Mapping[str, Any]
    rows: Sequence[TableRow]
    by_model: bool = False
    kind: ClassVar[str] = "figure"

    @property
    def header(self) -> list[str]:
        """The names of all fields of the rows."""
        # Rows of a layer can lack fields of another layer.
        names: dict[str, None] = {}
        for row in self.rows:
            names.update(dict.fromkeys(row))
        return list(names)

    def plain_rows(self) -> list[list[Any]]:
        """Return the rows for a CSV file."""
        header = self.header
        return [list(map(row.get, header)) for row in self.rows]

    def full_spec(self, rows: Iterable[TableRow] | None = None) -> dict[str, Any]:
        """Return the specification with its data."""
        return {
            **self.spec,
            "datasets": {"rows": list(self.rows if rows is None else rows)},
        }


@dataclass(frozen=True)
class HeadlineAnswer:
    """The answer to the first question of readers: which model is better, and how certain that is.

    Args:
        certainty: text that says with which models the best one is tied, if they were compared.
        is_sure: whether the best model is compared with others and tied with none.
    """

    question: str
    verdict: str
    certainty: str
    is_sure: bool
    note: str = ""
    kind: ClassVar[str] = "answer"


Block = Table | Figure | HeadlineAnswer


@dataclass(frozen=True)
class Section:
    """A part of a page. `choice` is the length that it is about, if readers choose one of several."""

    name: str
    title: str
    blocks: Sequence[Block]
    about: str = ""
    choice: str = ""


@dataclass(frozen=True)
class Page:
    """A page of the report.

    Args:
        choices: the values of `Section.choice`. The first one is shown at first.
        models: the models that readers can show or hide, and whether each is shown at first.
    """

    file: str
    title: str
    group: str
    sections: Sequence[Section]
    about: str = ""
    choices: Sequence[str] = ()
    models: Mapping[str, bool] = field(default_factory=dict)

    @property
    def blocks(self) -> list[Block]:
        """The blocks of all sections."""
        return list(chain.from_iterable(section.blocks for section in self.sections))


def _describe_making() -> str:
    return f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC, helm-longctx {VERSION}"


@dataclass(frozen=True)
class Report:
    """The whole report.

    Args:
        about: a sentence that says how all numbers are to be read.
        has_scores: whether `data` has the files `scores.csv` and `scores.json`.
        made: when the report was made, and by which version of this package.
    """

    title: str
    suite: str
    about: str
    pages: Sequence[Page]
    has_scores: bool = True
    made: str = field(default_factory=_describe_making)

    @property
    def groups(self) -> list[str]:
        """The benchmarks, each once."""
        return list(dict.fromkeys([page.group for page in self.pages]))


def write_data(block: Block, folder: Path) -> None:
    """Write the data of a plot as CSV and JSON, and of a table as CSV."""
    if isinstance(block, HeadlineAnswer):
        return
    write_csv(folder / f"{block.name}.csv", block.header, block.plain_rows())
    if isinstance(block, Figure):
        rows = dump_json(list(block.rows), orjson.OPT_INDENT_2)
        replace_page(folder / f"{block.name}.json", rows)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write a CSV file, completely or not at all, and return the number of rows.

    The file has a byte-order mark, because spreadsheets misread Chinese text without it. Texts that a spreadsheet would
    compute are quoted (`_quote_formula`); numbers are not.
    """
    count = 0
    # The csv module writes the line ends. Answers of models can have lone surrogates. UTF-8 does not allow them.
    with (
        replacing(path) as part,
        part.open(
            "w",
            encoding="utf-8-sig",
            errors="surrogatepass",
            newline="",
        ) as file,
    ):
        table = csv.writer(file)
        table.writerow(map(_quote_formula, columns))
        for row in rows:
            cells = list(row)
            for index, cell in enumerate(cells):
                if isinstance(cell, str) and _is_formula(cell):
                    cells[index] = f"'{cell}"
            table.writerow(cells)
            count += 1
    return count


# Source: OWASP, CSV Injection. Quotation marks before such a start are matched, so that quoting can be undone.
_FORMULA = re.compile(r"'*(?:\s*[-=+@＝＋－＠]|[\t\r\n])")

_is_formula = _FORMULA.match
"""Whether a spreadsheet would compute a text. It is a method in C, because reports have 100,000 cells."""


def _quote_formula(value: Any) -> Any:
    """Return a cell with `'` before a text that a spreadsheet would compute, such as `=1+1`; another cell unchanged.

    A text that already has such a quotation mark gets one more.
    """
    if isinstance(value, str) and _FORMULA.match(value):
        return f"'{value}"
    return value


def read_csv(path: Path, own_column: str = "") -> Iterator[dict[str, Any]]:
    """Yield the rows of a CSV file as dictionaries.

    Args:
        own_column: a column of files that `write_csv` has made. Only in these does `'` before a text mean that it is
            quoted. Without it, all files are taken for such.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with (
            _long_fields(),
            path.open(encoding="utf-8-sig", errors="surrogatepass", newline="") as file,
        ):
            table = csv.DictReader(file, strict=True)
            is_quoted = not own_column or own_column in (table.fieldnames or ())
            for row in table:
                if is_quoted:
                    row = {name: unquote_formula(value) for name, value in row.items()}
                yield row
    except (OSError, csv.Error, UnicodeError) as error:
        raise InputError(f"{path}: not a readable table: {error}") from error


_LONGEST_FIELD = 1 << 28
"""Largest number of characters of a field in a CSV file, such as a prompt."""


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let `csv` read the longest fields in the block. Its limit is one for the process."""
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def unquote_formula(value: Any) -> Any:
    """Return the cell from which `_quote_formula` made a value."""
    is_quoted = (
        isinstance(value, str) and value.startswith("'") and _FORMULA.match(value)
    )
    return value[1:] if is_quoted else value


def dump_json(value: Any, option: int = 0) -> bytes:
    """Serialize a value. NaN and infinity become null, and lone surrogates become question marks."""
    option |= orjson.OPT_NON_STR_KEYS
    try:
        return orjson.dumps(value, option=option)
    except TypeError:  # orjson refuses lone surrogates
        clean = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return orjson.dumps(json.loads(clean), option=option)
