"""Reads parsed issues of the Treasury Bulletin, and chooses the pages of a context.

Source: databricks/officeqa at 7b9a3c1, corpus_scripts/transform_scripts/transform_files_page_level.py (`process_file`).
Tables are written here with the cells as they are: the official script reads them with pandas, which changes numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

from helm_longctx.data.jsonl import read_object
from helm_longctx.tasks import InputError
from helm_longctx.tasks.token_estimate import estimate_tokens

_LINE_END = re.compile(r"\r\n?")
_SPACES = re.compile(r"\s+")
_MOST_SPANNED = 100
"""Most rows or columns that a cell can cover. A damaged document could fill the memory otherwise."""


class DocumentPage(NamedTuple):
    """A page of a document.

    Args:
        number: the number in the document. None for what stands before the first page.
        text: its text with a line for its number.
    """

    number: int | None
    text: str


class _TableReader(HTMLParser):
    """Reads the rows of the tables in an HTML text. A cell over several rows or columns is repeated in each of them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[list[list[str]]] = []
        self._row: list[str] | None = None
        self._cell: list[str] | None = None
        self._spans = (1, 1)
        self._waiting: dict[int, tuple[int, str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
            self._waiting = {}
        elif tag == "tr" and self.tables:
            self._end_row()
            self._row = []
        elif tag in ("td", "th") and self._row is not None:
            self._end_cell()
            self._cell = []
            given = dict(attrs)
            self._spans = _span(given, "rowspan"), _span(given, "colspan")
        elif tag == "br" and self._cell is not None:
            self._cell.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._end_cell()
        elif tag in ("tr", "table"):
            self._end_row()

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def _end_cell(self) -> None:
        if self._cell is None or self._row is None:
            return
        text = _SPACES.sub(" ", "".join(self._cell)).strip()
        self._cell = None
        self._add_waiting()
        rows, columns = self._spans
        for _ in range(columns):
            if rows > 1:
                self._waiting[len(self._row)] = (rows - 1, text)
            self._row.append(text)

    def _add_waiting(self) -> None:
        """Add cells of earlier rows that cover this one, up to the next free column."""
        assert self._row is not None
        while (column := len(self._row)) in self._waiting:
            rows, text = self._waiting.pop(column)
            if rows > 1:
                self._waiting[column] = (rows - 1, text)
            self._row.append(text)

    def _end_row(self) -> None:
        self._end_cell()
        if self._row is None:
            return
        self._add_waiting()
        if self._row:
            self.tables[-1].append(self._row)
        self._row = None


def _span(attributes: Mapping[str, str | None], name: str) -> int:
    value = attributes.get(name) or "1"
    if not value.isascii() or not value.isdigit():
        return 1
    # A number of many digits would take long to read.
    return min(max(int(value[:6]), 1), _MOST_SPANNED)


def write_tables(content: str) -> list[str]:
    """Return the tables in an HTML text as Markdown; the text itself in a block of code if it has none."""
    reader = _TableReader()
    reader.feed(content)
    reader.close()
    tables = [table for table in reader.tables if table]
    if not tables:
        return [f"```html\n{content.strip()}\n```"]
    return [_write_table(table) for table in tables]


def _write_table(rows: Sequence[Sequence[str]]) -> str:
    width = max(map(len, rows))
    lines = []
    for row in rows:
        cells = [cell.replace("|", "\\|") for cell in row]
        cells += [""] * (width - len(cells))
        lines.append(f"| {' | '.join(cells)} |")
    lines.insert(1, f"| {' | '.join(['---'] * width)} |")
    return "\n".join(lines)


def _write_content(content: str) -> list[str]:
    """Return the lines of an element."""
    if "<table" in content.lower():
        lines = []
        for table in write_tables(content):
            lines += [table, ""]
        return lines
    text = _LINE_END.sub("\n", content.strip())
    return [*text.split("\n"), ""]


def _page_of(element: Mapping[str, Any]) -> int | None:
    boxes = element.get("bbox")
    if not isinstance(boxes, list) or not boxes or not isinstance(boxes[0], dict):
        return None
    number = boxes[0].get("page_id")
    return number if isinstance(number, int) else None


def read_pages(path: Path) -> list[DocumentPage]:
    """Read the pages of a parsed document in their order.

    Raises:
        InputError: the file is no parsed document.
    """
    document = read_object(path).get("document")
    elements = document.get("elements") if isinstance(document, dict) else None
    if not isinstance(elements, list):
        raise InputError(f"{path}: it has no list of elements under document")
    numbers: list[int | None] = []
    pages: list[list[str]] = []
    for element in elements:
        content = element.get("content") if isinstance(element, dict) else None
        if not isinstance(content, str) or not content.strip():
            continue
        number = _page_of(element)
        current = numbers[-1] if numbers else None
        if number is not None and number != current:
            numbers.append(number)
            pages.append([f"--- PAGE {number} ---", ""])
        elif not numbers:
            numbers.append(None)
            pages.append([])
        pages[-1] += _write_content(content)
    texts = map("\n".join, pages)
    named = []
    for number, text in zip(numbers, texts, strict=True):
        named.append(DocumentPage(number=number, text=text))
    return named


def join_pages(pages: Iterable[DocumentPage]) -> str:
    """Return pages as one text, as the official script writes them."""
    parts: list[str] = []
    has_page = False
    for page in pages:
        if parts:
            parts.append("\n\n" if has_page else "\n")
        parts.append(page.text)
        has_page |= page.number is not None
    return "".join(parts)


class PagedDocument(NamedTuple):
    """A document with the pages that a question is about.

    Args:
        wanted: the numbers of these pages.
    """

    name: str
    pages: Sequence[DocumentPage]
    wanted: frozenset[int]


class ChosenPages(NamedTuple):
    """The text of the chosen pages.

    Args:
        start: where the first of the pages is that the question is about. None if they are several or missing.
    """

    text: str
    start: int | None


def make_context(sources: Sequence[PagedDocument], tokens: float) -> ChosenPages:
    """Return the pages that a question is about, and their neighbours up to about so many tokens.

    A page is taken the sooner the nearer it is to a wanted one, in all documents alike, so that a longer context has all
    pages of a shorter one.
    """
    chosen = set()
    rest = []
    for document, source in enumerate(sources):
        places = []
        for index, page in enumerate(source.pages):
            if page.number in source.wanted:
                places.append(index)
                chosen.add((document, index))
                tokens -= estimate_tokens(page.text)
        for index in range(len(source.pages)):
            distance = min((abs(index - other) for other in places), default=index)
            if distance or not places:
                rest.append((distance, document, index))
    for _, document, index in sorted(rest):
        tokens -= estimate_tokens(sources[document].pages[index].text)
        if tokens < 0:
            break
        chosen.add((document, index))
    return _write_context(sources, chosen)


def _write_context(
    sources: Sequence[PagedDocument],
    chosen: set[tuple[int, int]],
) -> ChosenPages:
    text = ""
    starts = []
    for document, source in enumerate(sources):
        pages = []
        for index, page in enumerate(source.pages):
            if (document, index) in chosen:
                pages.append(page)
        heading = f"### {source.name}\n\n"
        text += ("\n\n" if text else "") + heading
        for number, page in enumerate(pages):
            if page.number in source.wanted:
                before = join_pages(pages[:number])
                starts.append(len(text) + len(before))
        text += join_pages(pages)
    return ChosenPages(text, starts[0] if len(starts) == 1 else None)
