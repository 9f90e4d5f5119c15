"""A report as data: pages of sections with texts, tables and figures. Each output format renders the same document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, object]
"""A row of a figure's data."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Args:
        text: the text in the cell.
        sort: the value by which the table is sorted; None for the text.
        detail: a small text after the text, such as an interval.
        note: explanation of the cell, which is a tooltip on pages.
        link: address of the page to which the cell leads.
        tag: `best`, `tied` or `lacking`, which pages show by type and colour.
    """

    text: str
    sort: float | None = None
    detail: str = ""
    note: str = ""
    link: str = ""
    tag: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        note: explanation of the column, which is a tooltip on pages.
        is_number: whether the column is aligned to the right and sorted from large to small.
    """

    title: str
    note: str = ""
    is_number: bool = True


@dataclass(frozen=True)
class Table:
    """A table.

    Args:
        name: name that is unique in the report, and the stem of the CSV file.
        rows: the rows, in the order in which they are shown.
        search: whether readers can search the rows by text.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    about: str = ""
    search: bool = False

    @property
    def kind(self) -> str:
        """Selects the template."""
        return "table"

    @property
    def header(self) -> list[str]:
        """The titles of the columns."""
        return [column.title for column in self.columns]

    def plain_rows(self) -> list[list[str]]:
        """Return the rows as text for a CSV file, with unrounded numbers."""
        # Nine digits hide the noise of floating-point sums, and no table shows more.
        return [[cell.text if cell.sort is None else repr(round(cell.sort, 9)) for cell in row] for row in self.rows]


@dataclass(frozen=True)
class Figure:
    """A plot.

    Args:
        name: name that is unique in the report, and the stem of the data files.
        about: text that says what the plot shows and how to read it, also for screen readers.
        spec: the Vega-Lite specification, whose data set has the name `rows`.
        rows: the data.
        by_model: whether the rows have a `model`, so that readers can choose models.
    """

    name: str
    title: str
    about: str
    spec: Mapping[str, Any]
    rows: Sequence[Row]
    by_model: bool = False

    @property
    def kind(self) -> str:
        """Selects the template."""
        return "figure"

    @property
    def header(self) -> list[str]:
        """The names of all fields of the rows."""
        # Rows of a layer can lack fields of another layer.
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def plain_rows(self) -> list[list[str]]:
        """Return the rows as text, with an empty text for None."""
        header = self.header
        return [["" if row.get(name) is None else str(row.get(name)) for name in header] for row in self.rows]

    def full_spec(self, rows: Iterable[Row] | None = None) -> dict[str, Any]:
        """Return the specification with its data."""
        return {**self.spec, "datasets": {"rows": list(self.rows if rows is None else rows)}}


@dataclass(frozen=True)
class Answer:
    """The answer to the first question of readers: which model is better, and how certain that is.

    Args:
        question, verdict: the question, and the answer in a sentence.
        certainty: text that says how certain the answer is, and why.
        is_sure: whether no other model is tied with the best.
        note: text about the limits of the answer.
    """

    question: str
    verdict: str
    certainty: str
    is_sure: bool
    note: str = ""

    @property
    def kind(self) -> str:
        """Selects the template."""
        return "answer"


Block = Table | Figure | Answer


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Args:
        choice: the length that the section is about, if readers choose one of several sections.
    """

    name: str
    title: str
    blocks: Sequence[Block]
    about: str = ""
    choice: str = ""


@dataclass(frozen=True)
class Page:
    """A page of the report.

    Args:
        file: the name of its file.
        group: the benchmark to which it belongs.
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
        return [block for section in self.sections for block in section.blocks]


@dataclass(frozen=True)
class Report:
    """The whole report.

    Args:
        suite: the suite's name; empty for published results alone.
        made: the time at which it was made, and the version of this package.
    """

    title: str
    suite: str
    made: str
    pages: Sequence[Page]

    @property
    def groups(self) -> list[str]:
        """The benchmarks, each once."""
        return list(dict.fromkeys(page.group for page in self.pages))
