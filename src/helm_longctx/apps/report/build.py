"""Builds a report from a suite's runs and the published results. The last page of a board is about its runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from helm_longctx._version import VERSION
from helm_longctx.apps.app import ReportPage, find_apps
from helm_longctx.apps.report.instances import helm_page, page_name, write_instance_pages
from helm_longctx.apps.report.leaderboard import first_models
from helm_longctx.documents.document import (
    Cell,
    Column,
    Figure,
    Page,
    Report,
    Section,
    Table,
    number_cell,
    text_columns,
)
from helm_longctx.documents.numbers import MARK, count, decimals, percent
from helm_longctx.documents.paper import write_document
from helm_longctx.documents.site import write_site
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, label, make_boards, own_boards, published_boards
from helm_longctx.results.cells import caveat_kinds
from helm_longctx.results.comparability import describe
from helm_longctx.results.reading import Result, Run, read_results
from helm_longctx.results.score_rows import write_scores
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.metric_names import CONDITIONS, PLAIN_NUMBERS

Links = Callable[[Run], tuple[str, str]]
"""(run) → the addresses of its instances in the report and of its page in HELM; empty if there is no such page."""


_LEFT_OUT = ("depth", "published", "subsampled", "generated_data", "num_instances", "price_date")


def condition_sections(board: Board, links: Links) -> list[Section]:
    """Return a table with a row for each of the user's runs; nothing without runs."""
    if not board.runs:
        return []
    # Statistics that are 0 in all runs have no column.
    names = [name for name in CONDITIONS if name not in _LEFT_OUT and any(_mean(rows, name) for _, rows in board.runs)]
    heads = [
        *text_columns("Model", "Run entry", "Length"),
        Column("Answers", "Answers with a score, of all answers."),
        *(Column(CONDITIONS[name][0], CONDITIONS[name][1]) for name in names),
        Column("HELM", "The run's page in HELM, if its server's address was given.", is_number=False),
        Column(f"{MARK} Not comparable", "Why the run's scores do not compare with others.", is_number=False),
    ]
    rows = [_row(run, results, names, links) for run, results in board.runs]
    name = f"runs-{board.file_name}"
    about = (
        "Shares are in percent of the requests, tokens are means, and the cost is the cost of the whole run. The run"
        " entry leads to the run's instances."
    )
    table = Table(f"{name}-table", "Runs", heads, rows, about, search=True)
    return [Section(name, "Runs, failures and costs", [table])]


def _row(run: Run, results: Sequence[Result], names: Sequence[str], links: Links) -> list[Cell]:
    instances, page = links(run)
    first, answers = results[0], [answer for each in results for answer in each.answers]
    scored = sum(each.score is not None for each in answers)
    caveats = [caveat for each in results for caveat in each.caveats]
    # The cost is the sum over all answers of the run, and the other statistics are means.
    costs = [answer.values["cost"] for answer in answers if "cost" in answer.values]
    total = sum(costs) if costs else None
    numbers = []
    for name in names:
        value = total if name == "cost" else _mean(results, name)
        show = decimals if name in PLAIN_NUMBERS else percent
        numbers.append(number_cell(value, count if name.endswith("_tokens") else show))
    return [
        Cell(first.model),
        Cell(run.entry + (" (closed book)" if first.context == "none" else ""), link=instances),
        Cell(label(first.length), first.length or 0),
        Cell(f"{scored} of {len(answers)}", scored),
        *numbers,
        Cell("open" if page else "", link=page),
        Cell(caveat_kinds(caveats), note="; ".join(describe(caveats)), tag="lacking" if caveats else ""),
    ]


def _mean(results: Sequence[Result], name: str) -> float | None:
    values = [each.statistics[name].interval.mean for each in results if name in each.statistics]
    return sum(values) / len(values) if values else None


def write_report(
    suite: Path | None, benchmarks: Iterable[Benchmark], folder: Path, kind: str, *, published: bool, server: str
) -> Path:
    """Write a report and return the file to open first.

    Args:
        suite: the suite's folder; None for published results alone.
        server: base address of helm-server for links to its pages; empty for none.

    Raises:
        InputError: there are no scores; a file of a run is damaged; or Chromium is missing for `pdf`.
    """
    benchmarks = tuple(benchmarks)
    boards = published_boards(benchmarks) if published and not suite else []
    if suite:
        # A suite can have published results, too.
        results = [each for each in read_results(suite, benchmarks) if published or not each.is_published]
        boards = own_boards(make_boards(results, benchmarks, published))
    if not any(board.scores for board in boards):
        raise InputError(f"{suite or 'report'} has no scores to report; first use helm-longctx run with it")
    folder.mkdir(parents=True, exist_ok=True)

    def links(run: Run) -> tuple[str, str]:
        return page_name(run), helm_page(server, run)

    pages = sorted((page for app in find_apps() for page in app.pages), key=lambda page: page.place)
    first, *rest = [made for board in boards for made in _pages(board, pages, links)]
    for page in pages:
        if page.whole and (sections := page.sections(boards)):
            rest.append(Page(f"{page.name}.html", page.title, "All benchmarks", sections))
    made = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC, helm-longctx {VERSION}"
    name = suite.name if suite else ""
    # Servers and browsers open `index.html` of a folder.
    report = Report(
        f"Long-context report: {name or 'published results'}", name, made, [replace(first, file="index.html"), *rest]
    )
    write_scores(boards, folder / "data")
    if kind != "html":
        return write_document(report, folder, kind)
    index, *_ = write_site(report, folder)
    write_instance_pages(report, boards, folder, server)
    return index


def _pages(board: Board, pages: Iterable[ReportPage], links: Links) -> Iterator[Page]:
    """Yield the pages about a board. The last one lists its runs, with links to their own pages."""
    of_board = [(page.name, page.title, page.sections(board)) for page in pages if not page.whole]
    models = first_models(board)
    for part, title, sections in [*of_board, ("runs", "Runs", condition_sections(board, links))]:
        if not sections:
            continue
        chosen = {section.choice for section in sections}
        lengths = [label(length) for length in board.lengths if length is not None and label(length) in chosen]
        file = "-".join(filter(None, (board.file_name, part))) + ".html"
        choices = lengths if len(lengths) > 1 else []  # a single length is no choice
        yield Page(file, title, board.title, sections, "", choices, choose_models(models, sections))


def choose_models(models: Mapping[str, bool], sections: Sequence[Section]) -> dict[str, bool]:
    """Return the models that readers can choose on a page: those in the data of its plots."""
    figures = [block for section in sections for block in section.blocks if isinstance(block, Figure)]
    names = {row["model"] for figure in figures if figure.by_model for row in figure.rows}
    found = {model: shown for model, shown in models.items() if model in names}
    # Without a model that is shown at first, a plot would be empty.
    return found if any(found.values()) else dict.fromkeys(found, True)
