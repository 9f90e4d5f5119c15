"""`list`, `fetch` and `confs`: print the task table, download its data, and write it as run-entry files."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from helm_longctx.config.shared import OutputPath, entry_file
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.documents.document import text_table
from helm_longctx.documents.terminal import print_table
from helm_longctx.environment import page_address
from helm_longctx.errors import InputError, shorten, suggest
from helm_longctx.redaction.abbreviation import escape_invisible
from helm_longctx.tasks.benchmark import Benchmark, Category
from helm_longctx.tasks.data_cards import make_cards
from helm_longctx.tasks.data_checks import DataCheck, SourceShape, check_data
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.lengths import length_label, parse_length
from helm_longctx.tasks.metric_names import headline_text
from helm_longctx.tasks.registry import BENCHMARKS, about_of, parse_entries
from helm_longctx.tasks.task import Task
from helm_longctx.tasks.validation import list_entries
from helm_longctx.writing import replace_file

_ABOUT = """Name the models: helm-run --models-to-run …
# Made from the task table by `helm-longctx confs FOLDER`; do not edit."""


def list_tasks(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Benchmarks, run entries or tasks. [default: list the benchmarks]",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List the tasks of all benchmarks.")
    ] = False,
    length: Annotated[
        str, typer.Option(help="Length for which to check the data.")
    ] = "128k",
    data: Annotated[
        bool,
        typer.Option(
            "--data", help="List the sources and licenses of the data instead."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the table as JSON.")
    ] = False,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """List the benchmarks, or tasks with lengths, metric, output budget, and whether their data is present."""
    named_tasks = _find_tasks(names or [])
    if data:
        _print_data(
            {benchmark.name: benchmark for benchmark, *_ in named_tasks}, as_json
        )
        return
    root = DataRoot.find(output_path)
    tokens = parse_length(length, "list")
    if not (names or every or as_json):
        _print_benchmarks(root)
        return
    rows = []
    for benchmark, entry, task in named_tasks:
        rows.append(
            {
                "entry": entry,
                "task": task.argument,
                "lengths": _span(_find_lengths(benchmark, task, root)),
                "metric": headline_text(task),
                "max_tokens": _range(task.max_tokens),
                "samples": _range(task.num_samples),
                "data": _data(task, tokens, root),
            }
        )
    if as_json:
        _print_json(rows)
    else:
        origin = "" if root.mirror else " (cache)"
        _print_rows(rows, f"Data at {length}: {root.path}{origin}")


def _print_data(benchmarks: Mapping[str, Benchmark], as_json: bool) -> None:
    """Print the sources and the licenses of the data."""
    cards = []
    for benchmark in benchmarks.values():
        cards += make_cards(benchmark)
    if as_json:
        _print_json(cards)
        return
    if not cards:
        print("The data of these tasks is generated, or your own.")
        return
    rows = []
    for card in cards:
        size = card.size or "unknown"
        times = ", ".join(card.times)
        rows.append((card.benchmark, card.page, card.license, size, card.seen, times))
    columns = ("benchmark", "data", "license", "size", "seen", "fetched")
    print_table(text_table("Data", columns, rows))
    print(
        "Revisions, digests and known faults:"
        f" {page_address('reference/data')}, or with --json"
    )


def _print_benchmarks(root: DataRoot) -> None:
    rows = []
    for benchmark in BENCHMARKS:
        lengths: list[int] = []
        for task in benchmark.tasks:
            lengths += _find_lengths(benchmark, task, root)
        rows.append(
            {
                "benchmark": benchmark.name,
                "tasks": len(benchmark.tasks),
                "lengths": _span(lengths),
                "about": about_of(benchmark),
            }
        )
    _print_rows(rows, "Benchmarks")
    print(
        "The tasks of a benchmark: helm-longctx list NAME. All tasks: helm-longctx list --all"
    )


def _find_tasks(names: Sequence[str]) -> list[tuple[Benchmark, str, Task]]:
    """Return the tasks with each of their run entries: those that have one of the names, or all if there is no name."""
    tasks = []
    for benchmark in BENCHMARKS:
        for entry, category in benchmark.entries.items():
            for task in (*category.tasks, *category.variants):
                labels = {benchmark.name, entry, task.argument, task.name}
                tasks.append((labels, (benchmark, entry, task)))
    known = set().union(*(labels for labels, _ in tasks))
    for name in names:
        if name not in known:
            benchmarks = ", ".join(benchmark.name for benchmark in BENCHMARKS)
            question = suggest(name, sorted(known), most=3)
            give = f"{question} Give" if question else "; give"
            raise InputError(
                f"list: NAME={shorten(name)} is unknown{give} {benchmarks}, or their"
                " run entries or tasks"
            )
    return [row for labels, row in tasks if not names or labels & set(names)]


def _print_rows(rows: Sequence[Mapping[str, Any]], title: str) -> None:
    cells = [list(map(str, row.values())) for row in rows]
    print_table(text_table(title, list(rows[0]), cells))


def _span(lengths: Sequence[int]) -> str:
    if lengths:
        return f"{length_label(min(lengths))}-{length_label(max(lengths))}"
    return "none"


def _find_lengths(benchmark: Benchmark, task: Task, root: DataRoot) -> list[int]:
    """Return the lengths at which a task's data can be had: from the publisher, or because it is here."""

    def is_here(length: int) -> bool:
        return all(source.is_present(root) for source in task.sources(length))

    lengths = benchmark.lengths_of(task)
    shown = []
    for length in lengths:
        if task.is_published_at(length) or is_here(length):
            shown.append(length)
    return shown


def _range(number: int | Mapping[int, int]) -> int | str:
    """Return a number; the smallest and the largest if it depends on the length."""
    if isinstance(number, int):
        return number
    return f"{min(number.values())}-{max(number.values())}"


def _data(task: Task, length: int, root: DataRoot) -> str:
    if not task.exists_at(length):
        return "none at this length"
    sources = [*task.sources(length), *task.optional_sources(length)]
    if sources and all(source.is_present(root) for source in sources):
        return "here"
    if not task.sources(length):
        return "generated"
    if root.mirror:
        return "missing"
    if task.is_published_at(length):
        return "fetched on first use"
    return "only in a mirror"


def conf_files(benchmarks: Iterable[Benchmark]) -> dict[str, str]:
    """Return files by name: for each benchmark and length, and for each task that not every machine can score."""
    files: dict[str, str] = {}
    for benchmark in benchmarks:
        lengths: list[int] | list[None] = benchmark.lengths or [None]
        for length in lengths:
            label = "" if length is None else length_label(length)
            at = f"length={label}," if label else ""
            whole = []
            for name, category in benchmark.entries.items():
                if _is_published(category, length):
                    whole.append(name)
            lists = {
                ("", benchmark.title): [f"{name}:{at}model=text" for name in whole]
            }
            for name, category in benchmark.entries.items():
                for task in category.variants:
                    if task.check_machine and task.exists_at(length):
                        entry = f"{name}:{benchmark.task_argument}={task.argument},{at}model=text"
                        lists[task.name, f"{benchmark.title}, {task.title}"] = [entry]
            for (part, title), entries in lists.items():
                if not entries:
                    continue
                about = f"{title}{f' at {label}' if label else ''}. {_ABOUT}"
                words = []
                for word in (benchmark.name, part, label):
                    if word:
                        words.append(word)
                files["_".join(words) + ".conf"] = entry_file(about, entries)
    return files


def _is_published(category: Category, length: int | None) -> bool:
    """Whether a category has a mean at a length, and all of its data is published."""
    tasks = category.tasks_at(length)
    if not category.averaged or not tasks or category.needs_path:
        return False
    return all(task.is_published_at(length) for task in tasks)


def confs(
    folder: Annotated[
        Path, typer.Argument(file_okay=False, help="Folder to write to.")
    ],
) -> None:
    """Write files of run entries for `helm-run --conf-paths`, one for each benchmark and length."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in conf_files(BENCHMARKS).items():
        replace_file(folder / name, text.encode())
        print(folder / name)


_Entries = Annotated[
    list[str] | None,
    typer.Argument(
        help="Run entries without a model, e.g. helmet_rag:length=8k. [default with --check: all]"
    ),
]


def fetch(
    entries: _Entries = None,
    to: Annotated[
        Path | None,
        typer.Option(
            file_okay=False, help="Write to this mirror folder instead of the cache."
        ),
    ] = None,
    output_path: OutputPath = Path("benchmark_output"),
    *,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Download nothing. Compare a row of each file, numbers of rows,"
            " digests and commits with the code.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --check: print the result as JSON.")
    ] = False,
) -> None:
    """Download and check the data that entries need, and store it in the cache or in a mirror folder.

    Name all entries in one command: files that are in the same archive are then read in one pass. With --check nothing
    is stored. The exit status is then 1 if a file has vanished or differs, if a loader refuses a row, or if a
    repository has moved or needs a login that the data card does not name.
    """
    if not entries and not check:
        raise InputError(
            "fetch: ENTRY is missing; give run entries (`helm-longctx list` names them), or --check"
        )
    names = entries or []
    checked: list[Entry] = []
    for name in names:
        checked += parse_entries(name)
    if as_json and not check:
        raise InputError("fetch: --json needs --check")
    if check:
        every: list[Entry] = []
        for benchmark in BENCHMARKS:
            every += list_entries(benchmark)
        check_result = check_data(checked or every)
        if as_json:
            _print_check_json(check_result)
        else:
            _print_check(check_result)
        if not check_result.has_passed:
            raise typer.Exit(1)
        return
    # `mirror=False`, because nothing is ever downloaded into a mirror.
    root = DataRoot(to, mirror=False) if to else DataRoot.find(output_path)
    # Entries can share sources.
    sources = {}
    for entry in checked:
        for task in entry.tasks:
            for source in task.all_sources(entry.settings.length):
                sources[tuple(source.paths)] = source
    command = f"helm-longctx fetch {' '.join(names)}"
    if root.mirror:
        command += f" --to {root.path}"
    ensure(sources.values(), root, command)
    for paths in sources:
        for path in paths:
            print(root / path)
    for entry in checked:
        at = f" at {entry.label}" if entry.label else ""
        for task in entry.tasks:
            if task.generated == "never" or task.paths(entry.settings.length):
                continue
            official = entry.benchmark.find_official_entry(
                entry.name, task, entry.settings.length
            )
            advice = f"; {official} asks the benchmark's own" if official else ""
            print(
                f"{task.name}{at} has no official data, so similar examples will be"
                f" generated{advice}"
            )


def _print_check(check: DataCheck) -> None:
    """Print the files, the repositories, and what a release manager has to do."""
    print_table(text_table("Data on the hub", SourceShape._fields, check.shapes))
    counts = Counter(shape.result for shape in check.shapes)
    print("; ".join(f"{result}: {count}" for result, count in counts.items()))
    rows = []
    for state in check.repositories:
        rows.append((state.page, state.pin[:7] or "none", state.head[:7], state.result))
    if rows:
        print_table(text_table("Repositories", ("page", "pin", "head", "result"), rows))
    # Servers choose the names of files and repositories.
    for line in check.notes:
        print(f"Note: {_write_in_line(line)}")
    for line in check.todo:
        print(f"To do: {_write_in_line(line)}")


def _write_in_line(text: str) -> str:
    return escape_invisible(text).replace("\n", "\\n")


def _print_check_json(check: DataCheck) -> None:
    """Print the check for programs."""
    content = {
        "checked": date.today().isoformat(),
        "has_passed": check.has_passed,
        "passed_pages": check.passed_pages,
        "files": [shape._asdict() for shape in check.shapes],
        "repositories": [state._asdict() for state in check.repositories],
        "todo": check.todo,
    }
    _print_json(content)


def _print_json(content: object) -> None:
    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    sys.stdout.buffer.write(orjson.dumps(content, option=option))
