"""`report` builds a site or a document: pages from a suite's results, and pages to look into runs, with all answers.

Prompts are shown elided. What a list needs is in one file, and the texts are in further files that the page loads
when an instance is opened. They are scripts, since without a server a browser reads no other files.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import typer

from helm_longctx.apps.app import ReportPage, find_apps
from helm_longctx.apps.report.leaderboard import first_models
from helm_longctx.apps.report.links import link_unread, page_name
from helm_longctx.config.shared import OutputPath, complete_suite
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
from helm_longctx.documents.numbers import (
    MARK,
    format_count,
    format_decimals,
    format_percent,
)
from helm_longctx.documents.site import (
    safe_json,
    write_document,
    write_page,
    write_site,
)
from helm_longctx.environment import require
from helm_longctx.errors import InputError
from helm_longctx.results.boards import (
    FLOORS,
    Board,
    label,
    make_boards,
    own_boards,
    published_boards,
)
from helm_longctx.results.cells import caveat_kinds, write_scores
from helm_longctx.results.comparability import describe
from helm_longctx.results.reading import Result, Run, read_results
from helm_longctx.results.statistics.level import ABOUT_SCORES
from helm_longctx.results.suite import report_path, suite_folder
from helm_longctx.runs.files import STATES, reading
from helm_longctx.runs.prompts import (
    elide,
    elide_messages,
    evidence_of,
    instance_names,
)
from helm_longctx.runs.records import Record
from helm_longctx.runs.scores import Score, read_scored_records, read_steps
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.metric_names import CONDITIONS, GENERATED_DATA
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.sample import RecordKey
from helm_longctx.tasks.task import UNREAD
from helm_longctx.writing import replace_page

_CHUNK = 25
"""Number of instances whose texts are in one file."""

_MOST_MODELS = 400
"""Models of one's own that a report can have. It compares each with each other one, which takes time and memory that
grow with the square of their number."""

_PREVIEW = 160
"""Number of characters of a question and of an answer in the list."""

_FLAGS = {
    "request_too_long": "too long",
    "request_refused": "refused",
    "request_failed": "failed",
    "prompt_cut": "prompt cut",
    "prompt_cut_by_server": "prompt cut by the server",
    "answer_empty": "empty",
    UNREAD: "unread",
    "answer_in_reasoning": "answer in the reasoning field",
    "reasoning_suspected": "may contain reasoning",
    "output_truncated": "output cut",
    "thinking_unfinished": "thinking unfinished",
    "judge_failed": "no verdict",
}
"""Statistics by which answers can be filtered, with their names on the page."""


_OwnRun = tuple[Run, Sequence[Result]]


@dataclass
class _Instance:
    """An instance with the answers of all models, as data for the page.

    Args:
        prompts: the different prompts that were sent, each a list of roles and elided texts.
        answers: the answers by the number of the run.
    """

    question: str
    references: list[str]
    depth: float | None
    prompts: list[list[tuple[str, str]]] = field(default_factory=list)
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)


def _helm_page(server: str, run: Run, instance: str = "") -> str:
    """Return the address of a run's page in HELM, or of an instance on it, empty without a server."""
    if not server:
        return ""
    at = f"?instance={quote(instance, safe='')}" if instance else ""
    return f"{server.rstrip('/')}/#/runs/{quote(run.path.name)}{at}"


def write_instance_pages(
    report: Report,
    boards: Sequence[Board],
    folder: Path,
    server: str,
) -> list[Path]:
    """Write a page for each run entry. Raises an `InputError` if a file of a run is damaged."""
    entries: dict[tuple[str, str], list[_OwnRun]] = {}
    for board in boards:
        for run, results in board.runs:
            if (run.path / STATES).is_file():
                entries.setdefault((board.title, page_name(run)), []).append(
                    (run, results)
                )
    for (group, name), runs in entries.items():
        # The page shows the answers of the first runs at first.
        ordered = sorted(runs, key=lambda run: run[1][0].model in FLOORS)
        _write_page(report, group, ordered, folder / name, server)
    return [folder / name for _, name in entries]


def _write_page(
    report: Report,
    group: str,
    runs: Sequence[_OwnRun],
    path: Path,
    server: str,
) -> None:
    instances: dict[RecordKey, _Instance] = {}
    for number, (run, _) in enumerate(runs):
        _add_run(instances, number, run, server)
    texts = _folder_of(path)
    texts.mkdir(parents=True, exist_ok=True)
    for chunk, start in enumerate(range(0, len(instances), _CHUNK)):
        content = safe_json(
            list(map(vars, islice(instances.values(), start, start + _CHUNK)))
        )
        script = f"addTexts({chunk}, {content});\n"
        replace_page(texts / f"{chunk}.js", script.encode(errors="replace"))
    rows = []
    for key, instance in instances.items():
        answers = []
        for number in range(len(runs)):
            answers.append(instance.answers.get(number))
        rows.append(
            {
                "id": key[1],
                "task": key[0],
                "repeat": key[2],
                "depth": instance.depth,
                "question": instance.question[:_PREVIEW],
                "answers": [
                    answer
                    and [
                        answer["score"],
                        answer["flags"],
                        (answer.get("text") or answer.get("error") or "")[:_PREVIEW],
                    ]
                    for answer in answers
                ],
            }
        )
    index = {
        "chunk": _CHUNK,
        "flags": _FLAGS,
        "folder": texts.name,
        "runs": [
            {
                "name": run[0].path.name,
                "model": run[1][0].model,
                "page": _helm_page(server, run[0]),
            }
            for run in runs
        ],
        "rows": rows,
    }
    script = f"window.INDEX = {safe_json(index)};\n"
    replace_page(texts / "index.js", script.encode(errors="replace"))
    title = runs[0][0].shared_name
    write_page(
        path,
        "instances.html",
        report=report,
        page=None,
        active=group,
        title=title,
        folder=texts.name,
    )


def _folder_of(path: Path) -> Path:
    """Return the folder with the texts of a page."""
    return path.with_suffix("")


def _add_run(
    instances: dict[RecordKey, _Instance],
    number: int,
    run: Run,
    server: str,
) -> None:
    """Add a run's answers, holding one of them in memory at a time."""
    rows: list[tuple[str, str | None, str]] = []
    keys: list[RecordKey] = []
    benchmarks = [run.entry.benchmark] if run.entry else []
    for record, score in read_scored_records(run.path, benchmarks):
        # The report has no scores of HELM's perturbed copies.
        if not record.is_perturbed:
            with reading(run.path / STATES):
                _add_record(instances, number, record, score)
                keys.append(record.key)
                rows.append(
                    (record.instance, record.task or None, record.prompt_digest)
                )
    for key, steps in read_steps(run.path):
        if key in instances:
            instances[key].answers[number]["steps"] = [*map(_step, steps)]
    # Names need all rows of a run, because the names of equal ids differ by a number.
    for key, name in zip(keys, instance_names(rows), strict=True):
        instances[key].answers[number] |= {
            "name": name,
            "helm": _helm_page(server, run, key[1]),
        }


def _add_record(
    instances: dict[RecordKey, _Instance],
    number: int,
    record: Record,
    score: Score | None,
) -> None:
    evidence = evidence_of(record.references, record.sample)
    if record.key not in instances:
        references = [elide(reference) for reference in record.references]
        instances[record.key] = _Instance(
            elide(record.question), references, score.depth if score else None
        )
    request = record.request
    prompts = instances[record.key].prompts
    prompt = [("", elide(request["prompt"], evidence))]
    if messages := request.get("messages"):
        prompt = []
        for elide_message in elide_messages(messages, evidence):
            prompt.append((elide_message["role"], elide_message["content"]))
    # Prompts depend on the model's tokenizer and style. Equal prompts are stored once.
    if prompt not in prompts:
        prompts.append(prompt)
    values = score.values if score else {}
    texts = {
        "text": record.text,
        "thinking": record.reasoning,
        "error": _describe_error(record),
    }
    instances[record.key].answers[number] = {
        "score": None
        if score is None or score.score is None
        else round(score.score, 4),
        "flags": [flag for flag in _FLAGS if values.get(flag)],
        "metrics": {name: round(value, 4) for name, value in values.items()},
        "prompt": prompts.index(prompt),
        **{name: elide(str(text)) for name, text in texts.items() if text},
    }


def _describe_error(record: Record) -> str:
    answer = record.answer
    if answer.is_answered:
        return ""
    return str(answer.problem)


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a request of a method: what it was for and cost in a line, and its texts."""
    usage = step["usage"]
    dollars = step["dollars"]
    if usage and usage["cached_tokens"]:
        cached = f" ({usage['cached_tokens']:,} cached)"
    else:
        cached = ""
    facts = [
        step["label"] or "request",
        f"{usage['input_tokens']:,}{cached} + {usage['output_tokens']:,} tokens"
        if usage
        else "",
        "" if step["seconds"] is None else f"{step['seconds']:.1f} s",
        "" if dollars is None else f"${dollars:.4f}",
        "shared with an earlier question, which has paid for it"
        if step["shared"]
        else "",
    ]
    calls = "".join(f"\n[{call['name']} {call['arguments']}]" for call in step["calls"])
    return {
        "facts": " · ".join(filter(None, facts)),
        "prompt": [(message["role"], message["content"]) for message in step["prompt"]],
        "text": elide(step["error"] or step["text"] + calls),
    }


_FORMATS: Mapping[str, Callable[[float], str]] = {
    "share": format_percent,
    "tokens": format_count,
    "number": format_decimals,
}
"""Functions that write a condition's number, by its unit."""

_LEFT_OUT = (
    "depth",
    "published",
    "subsampled",
    GENERATED_DATA,
    "num_instances",
    "price_date",
)


def _condition_sections(board: Board, server: str) -> list[Section]:
    """Return a table with a row for each of the user's runs, or nothing without runs."""
    if not board.runs:
        return []
    # Statistics that are 0 in all runs have no column.
    names = []
    for name in CONDITIONS:
        means = [_mean(rows, name) for _, rows in board.runs]
        if name not in _LEFT_OUT and any(means):
            names.append(name)
    heads = [
        *text_columns("Model", "Run entry", "Length"),
        Column("Answers", "Answers with a score, of all answers."),
        *(
            Column(CONDITIONS[name].title, CONDITIONS[name].description)
            for name in names
        ),
        Column(
            "HELM",
            "The run's page in HELM, if its server's address was given.",
            is_number=False,
        ),
        Column(
            f"{MARK} Not comparable",
            "Why the run's scores do not compare with others.",
            is_number=False,
        ),
    ]
    rows = []
    for run, results in board.runs:
        rows.append(_row(run, results, names, _helm_page(server, run)))
    name = f"runs-{board.file_name}"
    about = (
        "Shares are in percent of the requests, tokens are means, and the cost is the"
        " cost of the whole run. The run entry leads to the run's instances."
    )
    table = Table(f"{name}-table", "Runs", heads, rows, about, search=True)
    return [Section(name, "Runs, failures and costs", [table])]


def _row(
    run: Run,
    results: Sequence[Result],
    names: Sequence[str],
    page: str,
) -> list[Cell]:
    first = results[0]
    answers = list(chain.from_iterable(result.answers for result in results))
    scored = sum(answer.score is not None for answer in answers)
    caveats = list(chain.from_iterable(result.caveats for result in results))
    # The cost is the sum over all answers of the run, and the other statistics are means.
    costs = []
    for answer in answers:
        if "cost" in answer.values:
            costs.append(answer.values["cost"])
    total = sum(costs) if costs else None
    numbers = []
    for name in names:
        value = total if name == "cost" else _mean(results, name)
        cell = number_cell(value, _FORMATS[CONDITIONS[name].unit])
        is_linked = name == UNREAD and bool(value)
        numbers.append(replace(cell, link=link_unread(first)) if is_linked else cell)
    return [
        Cell(first.model),
        Cell(
            run.shared_name + (" (closed book)" if first.context == "none" else ""),
            link=page_name(run),
        ),
        Cell(label(first.length), first.length or 0),
        Cell(f"{scored} of {len(answers)}", scored),
        *numbers,
        Cell("open" if page else "", link=page),
        Cell(
            caveat_kinds(caveats),
            note="; ".join(describe(caveats)),
            tag="caveats" if caveats else "",
        ),
    ]


def _mean(results: Sequence[Result], name: str) -> float | None:
    values = []
    for result in results:
        if name in result.statistics:
            values.append(result.statistics[name].interval.mean)
    if values:
        return sum(values) / len(values)
    return None


def write_report(
    suite: Path | None,
    benchmarks: Iterable[Benchmark],
    folder: Path,
    kind: str,
    *,
    published: bool,
    server: str,
) -> Path:
    """Write a report and return the file to open first.

    Args:
        suite: the suite's folder, or None for published results alone.
        server: base address of helm-server for links to its pages, empty for none.

    Raises:
        InputError: there are no scores; there are too many models; a file of a run is damaged; or Chromium is missing
            for `pdf`.
    """
    benchmarks = tuple(benchmarks)
    boards = published_boards(benchmarks) if published and not suite else []
    if suite:
        # A suite can have published results, too.
        results = []
        for result in read_results(suite, benchmarks, most_models=_MOST_MODELS):
            if published or not result.is_published:
                results.append(result)
        boards = own_boards(make_boards(results, benchmarks, published))
    if not any(board.scores for board in boards):
        raise InputError(
            f"{suite or 'report'} has no scores to report; first use helm-longctx run with it"
        )
    folder.mkdir(parents=True, exist_ok=True)
    pages = list(chain.from_iterable(app.pages for app in find_apps()))
    pages.sort(key=lambda page: page.position)
    first, *rest = chain.from_iterable(_pages(board, pages, server) for board in boards)
    for page in pages:
        if page.whole and (sections := page.sections(boards)):
            rest.append(
                Page(f"{page.name}.html", page.title, "All benchmarks", sections)
            )
    name = suite.name if suite else ""
    # Servers and browsers open `index.html` of a folder.
    report = Report(
        title=f"Long-context report: {name or 'published results'}",
        suite=name,
        about=ABOUT_SCORES,
        pages=[replace(first, file="index.html"), *rest],
    )
    write_scores(boards, folder / "data")
    if kind != "html":
        return write_document(report, folder, kind)
    index, *_ = write_site(report, folder)
    write_instance_pages(report, boards, folder, server)
    return index


def _pages(board: Board, pages: Iterable[ReportPage], server: str) -> Iterator[Page]:
    """Yield the pages about a board. The last one lists its runs, with links to their own pages."""
    of_board = []
    for page in pages:
        if not page.whole:
            of_board.append((page.name, page.title, page.sections(board)))
    models = first_models(board)
    for part, title, sections in [
        *of_board,
        ("runs", "Runs", _condition_sections(board, server)),
    ]:
        if not sections:
            continue
        chosen = {section.choice for section in sections}
        lengths = []
        for length in board.lengths:
            if length is not None and label(length) in chosen:
                lengths.append(label(length))
        file = "-".join(filter(None, (board.file_name, part))) + ".html"
        choices = lengths if len(lengths) > 1 else []  # a single length is no choice
        yield Page(
            file,
            title,
            board.title,
            sections,
            "",
            choices,
            choose_models(models, sections),
        )


def choose_models(
    models: Mapping[str, bool],
    sections: Sequence[Section],
) -> dict[str, bool]:
    """Return the models that readers can choose on a page: those in the data of its plots."""
    figures = []
    for section in sections:
        for block in section.blocks:
            if isinstance(block, Figure):
                figures.append(block)
    names = set()
    for figure in figures:
        if figure.by_model:
            for row in figure.rows:
                names.add(row["model"])
    named = {}
    for model, shown in models.items():
        if model in names:
            named[model] = shown
    # Without a model that is shown at first, a plot would be empty.
    if any(named.values()):
        return named
    return dict.fromkeys(named, True)


Format = Literal["html", "markdown", "latex", "pdf"]


def report(
    suite: Annotated[
        str | None,
        typer.Option(
            help="Name of the suite. [default: none, only published results]",
            autocompletion=complete_suite,
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            file_okay=False,
            help="Folder to write to. [default: `reports/SUITE` in the output folder]",
        ),
    ] = None,
    published: Annotated[
        bool, typer.Option(help="Show published results next to the suite's results.")
    ] = True,
    format: Annotated[
        Format, typer.Option(help="Format of the report. `pdf` needs Chromium.")
    ] = "html",
    server: Annotated[
        str,
        typer.Option(
            help="Address of helm-server, e.g. http://localhost:8000, for links to its pages."
        ),
    ] = "",
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    r"""Write a report that compares the models and shows the answers of their runs.

    The site needs no server and no network: open index.html. Needs an extra: pip install 'helm-longctx\[report]'.
    """
    require("report", "report")
    if server and not server.startswith(("http://", "https://")):
        raise InputError(
            f"report: server={server!r} is invalid; give an address such as http://localhost:8000"
        )
    folder = suite_folder(output_path, suite) if suite else None
    if to is None and folder is None:
        raise InputError(
            "report: to is missing; without --suite, name a folder with --to"
        )
    target = to or report_path(output_path, str(suite))
    print(
        write_report(
            folder, BENCHMARKS, target, format, published=published, server=server
        )
    )
    if to is None and format == "html":
        print(
            f"To link it from HELM's pages: helm-longctx summarize --suite {suite}"
            f" --output-path {output_path}"
        )
