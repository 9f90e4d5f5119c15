"""Builds a report from a suite's runs and the published results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from helm_longctx._version import VERSION
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, label, make_boards, own_boards, published_boards
from helm_longctx.results.reading import Run, read_results
from helm_longctx.results.report.comparison import comparison_sections
from helm_longctx.results.report.conditions import Links, condition_sections
from helm_longctx.results.report.document import Figure, Page, Report, Section
from helm_longctx.results.report.files import write_document
from helm_longctx.results.report.heat import heat_sections
from helm_longctx.results.report.instances import helm_page, page_name, write_instance_pages
from helm_longctx.results.report.judged import judged_sections
from helm_longctx.results.report.leaderboard import first_models, leaderboard_sections
from helm_longctx.results.report.lengths import depth_sections, length_sections
from helm_longctx.results.report.models import model_sections
from helm_longctx.results.report.pooling import NAME, pooling_sections
from helm_longctx.results.report.reliability import reliability_sections
from helm_longctx.results.report.reported import reported_sections
from helm_longctx.results.report.scrutiny import scrutiny_sections
from helm_longctx.results.report.site import write_scores, write_site
from helm_longctx.results.report.sweeps import sweep_sections
from helm_longctx.results.report.tasks import task_sections
from helm_longctx.tasks.benchmark import Benchmark


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
    boards = list(_read_boards(suite, benchmarks, published))
    if not any(board.scores for board in boards):
        raise InputError(f"{suite or 'report'} has no scores to report; first use helm-longctx run with it")
    folder.mkdir(parents=True, exist_ok=True)

    def links(run: Run) -> tuple[str, str]:
        return page_name(run), helm_page(server, run)

    report = _make_report(boards, suite.name if suite else "", links)
    write_scores(boards, folder / "data")
    if kind != "html":
        return write_document(report, folder, kind)
    index, *_ = write_site(report, folder)
    write_instance_pages(report, boards, folder, server)
    return index


def _read_boards(suite: Path | None, benchmarks: Iterable[Benchmark], published: bool) -> Iterable[Board]:
    benchmarks = tuple(benchmarks)
    if suite is None:
        return published_boards(benchmarks) if published else []
    # A suite can have published results, too.
    results = [each for each in read_results(suite, benchmarks) if published or not each.is_published]
    return own_boards(make_boards(results, benchmarks, published))


def _make_report(boards: Sequence[Board], suite: str, links: Links) -> Report:
    first, *rest = [page for board in boards for page in _pages(board, links)]
    if pooled := pooling_sections(boards):
        rest.append(Page(f"{NAME}.html", "All instances", "All benchmarks", pooled))
    made = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC, helm-longctx {VERSION}"
    title = f"Long-context report: {suite}" if suite else "Long-context report: published results"
    # Servers and browsers open `index.html` of a folder.
    return Report(title, suite, made, [replace(first, file="index.html"), *rest])


def _pages(board: Board, links: Links) -> list[Page]:
    parts: list[tuple[str, str, Sequence[Section]]] = [
        ("", "Leaderboard", leaderboard_sections(board)),
        ("length", "Length", length_sections(board)),
        ("heat", "Heat tables", heat_sections(board)),
        ("depth", "Depth", depth_sections(board)),
        ("complexity", "Complexity", sweep_sections(board)),
        ("reported", "Reported", reported_sections(board)),
        ("comparison", "Comparison", comparison_sections(board)),
        ("tasks", "Correlations", task_sections(board)),
        ("models", "Models", model_sections(board)),
        ("judged", "Judged scores", judged_sections(board)),
        ("scrutiny", "Cut answers and errors", scrutiny_sections(board)),
        ("reliability", "Reliability", reliability_sections(board)),
        ("runs", "Runs", condition_sections(board, links)),
    ]
    models = first_models(board)
    return [
        Page(
            "-".join(filter(None, (board.file_name, part))) + ".html",
            title,
            board.title,
            sections,
            choices=_choices(board, sections),
            models=_models(models, sections),
        )
        for part, title, sections in parts
        if sections
    ]


def _choices(board: Board, sections: Sequence[Section]) -> list[str]:
    """Return the lengths at which a page has a section, ascending; nothing for a single one, which is no choice."""
    chosen = {section.choice for section in sections}
    lengths = [label(length) for length in board.lengths if length is not None and label(length) in chosen]
    return lengths if len(lengths) > 1 else []


def _models(models: Mapping[str, bool], sections: Sequence[Section]) -> dict[str, bool]:
    """Return the models that readers can choose on a page: those in the data of its plots."""
    blocks = [block for section in sections for block in section.blocks]
    names = {row["model"] for block in blocks if isinstance(block, Figure) and block.by_model for row in block.rows}
    found = {model: shown for model, shown in models.items() if model in names}
    # Without a model that is shown at first, a plot would be empty.
    return found if any(found.values()) else dict.fromkeys(found, True)
