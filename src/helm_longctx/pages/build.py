"""Builds a report from a suite's runs and the published results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from helm_longctx._version import VERSION
from helm_longctx.errors import InputError
from helm_longctx.pages.comparison import comparison_sections
from helm_longctx.pages.conditions import Links, condition_sections
from helm_longctx.pages.document import Page, Report, Section
from helm_longctx.pages.files import write_document
from helm_longctx.pages.instances import helm_page, page_name, write_instance_pages
from helm_longctx.pages.leaderboard import leaderboard_sections, leading_models
from helm_longctx.pages.lengths import depth_sections, length_sections
from helm_longctx.pages.results import Board, Run, label, read_boards, show_model
from helm_longctx.pages.site import write_site
from helm_longctx.pages.tasks import task_sections
from helm_longctx.protocol.benchmark import Benchmark


def write_report(
    suite: Path | None, benchmarks: Iterable[Benchmark], folder: Path, kind: str, *, published: bool, server: str
) -> Path:
    """Write a report and return the file to open first.

    Args:
        suite: the suite's folder; None for published results alone.
        folder: the folder to write to; it is created.
        kind: `html`, `markdown`, `latex` or `pdf`.
        published: whether to show published results.
        server: base address of helm-server for links to its pages; empty for none.

    Raises:
        InputError: there are no scores; a file of a run is damaged; or Chromium is missing for `pdf`.
    """
    boards = [board for board in read_boards(suite, benchmarks, published) if board.results]
    # The report opens with a benchmark that has published results to compare with, if there is one.
    boards.sort(key=lambda board: not board.benchmark.published())
    if not boards:
        raise InputError(f"{suite or 'report'} has no scores to report; run helm-run with this --suite first")
    folder.mkdir(parents=True, exist_ok=True)

    def links(run: Run) -> tuple[str, str]:
        return page_name(run), helm_page(server, run)

    report = _make_report(boards, suite.name if suite else "", links)
    if kind != "html":
        return write_document(report, folder, kind)
    index, *_ = write_site(report, folder)
    write_instance_pages(report, boards, folder, server)
    return index


def _make_report(boards: Sequence[Board], suite: str, links: Links) -> Report:
    first, *rest = [page for board in boards for page in _pages(board, links)]
    made = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC, helm-longctx {VERSION}"
    title = f"Long-context report: {suite}" if suite else "Long-context report: published results"
    # Servers and browsers open `index.html` of a folder.
    return Report(title, suite, made, [replace(first, file="index.html"), *rest])


def _pages(board: Board, links: Links) -> list[Page]:
    name = board.benchmark.name
    # With a single length there is nothing to choose.
    lengths = [label(length) for length in board.lengths] if len(board.lengths) > 1 else []
    parts: list[tuple[str, str, Sequence[Section], bool]] = [
        ("", "Leaderboard", leaderboard_sections(board), True),
        ("length", "Length", length_sections(board), False),
        ("depth", "Depth", depth_sections(board), False),
        ("comparison", "Comparison", comparison_sections(board), True),
        ("tasks", "Correlations", task_sections(board), True),
        ("runs", "Runs", condition_sections(board, links), False),
    ]
    models = {show_model(model): shown for model, shown in leading_models(board)}
    return [
        Page(
            "-".join(filter(None, (name, part))) + ".html",
            title,
            board.benchmark.title,
            sections,
            # The choices are the lengths at which the page has a section, in order.
            choices=[each for each in lengths if any(each == s.choice for s in sections)] if by_length else [],
            models=models if any(getattr(block, "by_model", False) for s in sections for block in s.blocks) else {},
        )
        for part, title, sections, by_length in parts
        if sections
    ]
