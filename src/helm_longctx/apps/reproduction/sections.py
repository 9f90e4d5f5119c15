"""The page of numbers that model releases report: own scores beside them, each protocol apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

from helm_longctx.apps.reproduction.reproduction import Measurement, measure, published_interval
from helm_longctx.documents.document import Cell, Column, Figure, Section, Table, text_columns
from helm_longctx.documents.numbers import MARK, marked, percent, range_text
from helm_longctx.documents.plots import over_time
from helm_longctx.results.boards import Board, show_model
from helm_longctx.tasks.publications import Protocol
from helm_longctx.tasks.registry import find_protocols

ABOUT = (
    "A number of a release is what its page reports by this protocol, and protocols are never mixed. Intervals of"
    f" published numbers are the widest that their samples allow. {MARK} marks an own score that departs from the"
    " protocol; its note says how."
)


UNKNOWN = "unknown"
"""The date of a page whose date no copy gives."""

OVER_TIME = (
    "Numbers that releases and ledgers print, by the day of their page. Protocols measure different things, so the plot"
    " has a row for each of them, and there is no ranking."
)

_HEADS = (
    Column("Date", is_number=False),
    Column("Model", is_number=False),
    Column("Vendor", is_number=False),
    Column("Protocol", is_number=False),
    Column("Published", "‡ Another source prints another number, which the note has."),
    Column("Open", "Why nobody else can run the protocol, or what its page does not say.", is_number=False),
)


def reported_sections(board: Board) -> list[Section]:
    """Return a section for each family of reported protocols of which the user's models have numbers."""
    results = [each for _, rows in board.runs for each in rows]
    families: dict[str, list[tuple[Protocol, list[Measurement]]]] = {}
    # The published tables of benchmarks are on the leaderboard.
    for protocol in find_protocols(board.benchmark) if board.runs and not board.folder else ():
        if protocol.rows and not protocol.is_table and (found := measure(protocol, board.benchmark, results)):
            families.setdefault(protocol.family, []).append((protocol, found))
    own = [_make_section(board, family, points) for family, points in families.items()]
    return [*own, *_published_sections(board)]


def _make_section(board: Board, family: str, points: Sequence[tuple[Protocol, list[Measurement]]]) -> Section:
    name = f"reported-{board.file_name}-{re.sub('[^a-z0-9]+', '-', family.lower())}".strip("-")
    own = list(dict.fromkeys(each.model for _, found in points for each in found))
    published = list(dict.fromkeys(row.label for protocol, _ in points for row in protocol.rows))
    columns = [*text_columns("Reported"), *(Column(show_model(model)) for model in own), *map(Column, published)]
    rows = []
    for protocol, found in points:
        measured, reported = ({each: Cell("") for each in names} for names in (own, published))
        for each in found:
            interval, tag = each.interval, "lacking" if each.reasons else ""
            ends = range_text(interval.low, interval.high) or "unknown"
            text, note = marked(percent(interval.mean), each.reasons), "; ".join(each.reasons)
            measured[each.model] = Cell(text, interval.mean, ends, note, tag=tag)
        for row in protocol.rows:
            interval = published_interval(row, protocol, found)
            ends = range_text(interval.low, interval.high) or "unknown"
            note = f"{row.origin}. {row.source.settings}".strip()
            reported[row.label] = Cell(row.number_text, interval.mean, ends, note)
        rows.append([Cell(protocol.point or protocol.title), *measured.values(), *reported.values()])
    first = points[0][0]
    about = f"{first.about} Conditions: {'; '.join(first.conditions)}. {ABOUT}"
    return Section(name, family, [Table(name, family, columns, rows, about)])


def _published_sections(board: Board) -> list[Section]:
    """Return a section with all published numbers of a benchmark over time, if it has a ledger."""
    protocols = [each for each in find_protocols(board.benchmark) if not each.is_table and not board.folder]
    rows = sorted(
        ((protocol, row) for protocol in protocols for row in protocol.rows),
        key=lambda each: (each[1].source.date, each[0].title, -each[1].value),
    )
    if not rows:
        return []
    name = f"published-{board.file_name}"
    cells = [
        [
            Cell(row.source.date),
            Cell(row.label),
            Cell(row.vendor),
            Cell(protocol.title),
            Cell(row.number_text, row.value / 100, "", row.origin),
            Cell(protocol.obstacle or ", ".join(f"not stated: {what}" for what in protocol.not_stated)),
        ]
        for protocol, row in rows
    ]
    points = [
        {"date": row.source.date, "score": row.value / 100, "model": row.label, "protocol": protocol.family}
        for protocol, row in rows
        if row.source.date != UNKNOWN
    ]
    table = Table(f"{name}-table", "All published numbers", _HEADS, cells, OVER_TIME, search=True)
    figure = Figure(f"{name}-plot", "Published numbers over time", OVER_TIME, over_time(), points)
    return [Section(name, "Published over time", [figure, table] if points else [table])]
