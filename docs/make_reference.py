"""Writes all texts that follow from the code: `python docs/make_reference.py`, or `make reference`.

These are the pages in docs/reference/, the lists of benchmarks in README.md, docs/index.md, NOTICE and CITATION.cff,
and NeMo Evaluator's list of evaluations. What a list says about a benchmark is in the benchmark's folder: in its table,
in the docstring of its `__init__.py`, and in its README.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from core_evals.helm_longctx.framework import make_framework
from helm_longctx.apps.reproduction.protocols import describe_runs
from helm_longctx.apps.verification.verification import find_proof
from helm_longctx.cli.main import COMMANDS, EXIT_STATUSES, PANELS, load_parser
from helm_longctx.data.download import Source
from helm_longctx.results.effective_context import effective_context_schema
from helm_longctx.tasks.benchmark import Benchmark, Evidence
from helm_longctx.tasks.data_cards import NEWEST, DataCard, find_origin, make_cards
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.metric_names import headline_text
from helm_longctx.tasks.registry import (
    BENCHMARKS,
    FOLDER,
    ReleaseRow,
    benchmarks_in,
    find_protocols,
    read_folders,
)
from helm_longctx.tasks.task import EVERY_TASK, Task

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/helm_longctx/benchmarks")

DIRECTION = {None: "", True: "lower is better", False: "higher is better"}
WIDTH = 120
MOST_CHECKS = 4
_CITATION = re.compile(
    r"(?P<authors>.+?)(?: \((?P<year>\d{4})\))?: \*(?P<title>[^*]+)\*(?: \((?P<notes>[^)]+)\))?, (?P<url>\S+)"
)
OTHER_SCENARIOS = ("HELM's own scenarios, with our runner and pages", "HELM's own", "")


def files() -> dict[str, str]:
    """Return the content of each file by its path in the repository."""
    reference = {
        "tasks": _tasks(),
        "metrics": _metrics(),
        "data": _data(),
        "releases": _releases(),
        "commands": _commands(),
    }
    return {
        **{
            f"docs/reference/{name}.md": "\n".join(lines).rstrip() + "\n"
            for name, lines in reference.items()
        },
        "docs/reference/effective-context.schema.json": effective_context_schema(),
        "README.md": _with_published(_with_benchmarks("README.md", "")),
        "docs/index.md": _with_benchmarks("docs/index.md", "../"),
        "NOTICE": _notice(),
        "CITATION.cff": _citations(),
        "src/core_evals/helm_longctx/framework.yml": make_framework(),
        "model_deployments.yaml": _read(
            "src/helm_longctx/models/model_deployments.yaml"
        ),
    }


def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _with_benchmarks(path: str, to_root: str) -> str:
    """Replace a page's table of benchmarks, whose first column is called `benchmark`, and their number in a link."""
    rows = [*(row for _, row in sorted(_benchmark_rows(to_root))), OTHER_SCENARIOS]
    table = "\n".join(_table(("benchmark", "run entries", "lengths"), rows))
    page = re.sub(r"\[\d+ benchmarks\]", f"[{len(rows) - 1} benchmarks]", _read(path))
    return re.sub(
        r"\| benchmark \| run entries \|(.*\n\|)*.*\n",
        lambda match: table,
        page,
        count=1,
    )


def _benchmark_rows(to_root: str) -> Iterator[tuple[tuple[bool, str], tuple[str, ...]]]:
    """Yield a row for each folder, after its place: benchmarks that lead come first, the others follow by name."""
    for module, folder in _find_folders().items():
        benchmarks = benchmarks_in(module)
        title, _, about = (
            (sys.modules[module].__doc__ or "")
            .partition("\n")[0]
            .rstrip(".")
            .partition(": ")
        )
        link = f"[{title}]({to_root}{folder.as_posix()}/README.md)"
        entries = " ".join(
            f"`{entry}`"
            for benchmark in benchmarks
            for entry in benchmark.shown_entries
        )
        place = (not any(benchmark.leads for benchmark in benchmarks), title.lower())
        yield place, (f"{link}: {about}", entries, _range(benchmarks[0]))


def _find_folders() -> dict[str, Path]:
    """Return the folders of our benchmarks, relative to the repository, by module."""
    return {
        module: SOURCE / folder.relative_to(FOLDER)
        for module, folder in read_folders().items()
    }


def _range(benchmark: Benchmark) -> str:
    """Return the shortest and the longest length of a benchmark with their unit."""
    lengths = [
        length for task in benchmark.tasks for length in benchmark.lengths_of(task)
    ]
    if not (benchmark.axis and lengths):
        return "none"
    unit = re.split(r" of |, ", benchmark.axis.unit)[0]
    return f"{length_label(min(lengths))} to {length_label(max(lengths))} {unit}"


def _with_published(readme: str) -> str:
    """Write into the README how many models with published results each benchmark has. Floors are not models."""
    models = {
        each.title: {row.model for row in each.published()} - {*each.floors}
        for each in BENCHMARKS
    }
    counts = [
        f"{len(names)} for {title}" for title, names in sorted(models.items()) if names
    ]
    text = f"`helm-longctx reference` adds results of models: {', '.join(counts[:-1])} and {counts[-1]}."
    item = f"- **Published results beside yours.** {text}"
    lines = textwrap.fill(
        item,
        WIDTH,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    return re.sub(
        r"- \*\*Published results beside yours\.\*\*.*\n(  .*\n)*",
        lambda match: f"{lines}\n",
        readme,
    )


def _notice() -> str:
    """Return NOTICE with the texts of others that the benchmarks' READMEs list."""
    head, mark, rest = _read("NOTICE").partition("with their sources:\n\n")
    _, end, last = rest.partition("Benchmark data is not part")
    return head + mark + "".join(_notice_rows()) + end + last


def _citations() -> str:
    """Return CITATION.cff with the publications that the benchmarks' READMEs have, and then HELM's."""
    head, mark, rest = _read("CITATION.cff").partition("references:\n")
    helm = rest[rest.rindex("  - type:") :]
    texts = (
        " ".join(_section(folder, "Citation").split())
        for folder in _find_folders().values()
    )
    return (
        head
        + mark
        + "".join("".join(_reference(text)) for text in texts if text)
        + helm
    )


def _reference(text: str) -> Iterator[str]:
    """Yield the lines of a reference. The text is `authors (year): *title* (notes), address`; data can lack a year."""
    match = _CITATION.fullmatch(text)
    if not match:
        raise ValueError(
            f"'{text}' is not a citation; write: authors (year): *title* (notes), address"
        )
    yield f"  - type: {'article' if match['year'] else 'data'}\n"
    yield f'    title: "{match["title"]}"\n'
    yield f'    notes: "{match["notes"]}"\n' if match["notes"] else ""
    yield "    authors:\n"
    for author in match["authors"].split("; "):
        family, _, given = author.partition(", ")
        person = (
            f"family-names: {family}, given-names: {given}"
            if given
            else f'name: "{family}"'
        )
        yield f"      - {{{person}}}\n"
    yield f"    year: {match['year']}\n" if match["year"] else ""
    yield f'    url: "{match["url"]}"\n'


def _section(folder: Path, title: str) -> str:
    """Return a section of the README of a benchmark's folder; empty if it has none of that title."""
    return (
        _read(f"{folder.as_posix()}/README.md")
        .partition(f"\n## {title}\n")[2]
        .partition("\n## ")[0]
    )


def _notice_rows() -> Iterator[str]:
    for folder in _find_folders().values():
        for item in re.findall(
            r"^- (.*(?:\n  .*)*)", _section(folder, "Text of others"), re.MULTILINE
        ):
            names, _, source = " ".join(item.split()).partition(": ")
            for name in re.findall(r"`([^`]+)`", names):
                yield f"{name if (ROOT / name).exists() else (folder / name).as_posix()}\n"
            yield textwrap.fill(
                source,
                WIDTH,
                initial_indent="  ",
                subsequent_indent="  ",
                break_on_hyphens=False,
            )
            yield "\n\n"


def _tasks() -> Iterator[str]:
    yield "# Tasks\n"
    yield "This page lists all tasks by benchmark. A run entry without a task runs all tasks of its category that"
    yield "have no asterisk. Tasks with an asterisk run only if the entry names them. Every task takes the arguments"
    yield f"{', '.join(f'`{name}`' for name in EVERY_TASK)} ([their meaning](../run-entries.md)); tasks without"
    yield "lengths take no `length`. A version names the official code with a benchmark's prompts and metrics.\n"
    for benchmark in BENCHMARKS:
        yield f"## {benchmark.title}\n"
        yield f"{benchmark.description}. Version: [{benchmark.revision}]({benchmark.url}).\n"
        yield from _table(
            (
                "entry",
                f"`{benchmark.task_argument}`",
                "lengths",
                "sample",
                "output tokens",
                "score",
                "arguments",
            ),
            (
                _task_row(entry, task, benchmark, is_variant=task in category.variants)
                for entry, category in benchmark.entries.items()
                for task in (*category.tasks, *category.variants)
            ),
        )


def _task_row(
    entry: str, task: Task, benchmark: Benchmark, is_variant: bool
) -> tuple[str, ...]:
    further = sorted(task.all_arguments.difference(EVERY_TASK))
    return (
        f"`{entry}`",
        f"`{task.argument}`{' *' if is_variant else ''}",
        _lengths(task, benchmark),
        _numbers(task.num_samples)
        + (f" at {task.depths} depths" if task.depths > 1 else ""),
        _numbers(task.max_tokens),
        headline_text(task),
        ", ".join(f"`{name}`" for name in further),
    )


def _numbers(number: int | Mapping[int, int]) -> str:
    return ", ".join(
        map(str, sorted({number} if isinstance(number, int) else {*number.values()}))
    )


def _lengths(task: Task, benchmark: Benchmark) -> str:
    if task.any_length and (axis := benchmark.axis):
        return f"any, {length_label(axis.shortest)} to {length_label(axis.longest)}"
    return ", ".join(length_label(length) for length in sorted(task.sizes)) or "none"


def _metrics() -> Iterator[str]:
    yield "# Metrics\n"
    yield "This page lists all official metrics by benchmark. `stats.json`, exports and pages use these official names."
    yield "`longctx_score` is each task's headline metric under a common name, from 0 to 1.\n"
    for benchmark in BENCHMARKS:
        yield f"## {benchmark.title}\n"
        yield from _table(
            ("metric", "meaning", "values", "tasks"),
            (
                (
                    f"`{metric.name}`",
                    metric.description,
                    _values(metric.range, metric.lower_is_better),
                    _users(benchmark, metric.name),
                )
                for metric in benchmark.metrics
            ),
        )


FIRST = "first fetch"
"""Stands in the table of data where nothing is pinned: the content of the first fetch is recorded."""


def _data() -> Iterator[str]:
    yield "# Data cards\n"
    yield "This page lists where the data of each benchmark comes from. Nothing of it is part of this package. A run"
    yield "fetches what it needs into the cache ([Data](../data.md)). *Pin* is the commit or version that is fetched, and"
    yield f"*digest* the value that the content is compared with. *{FIRST}* says that none is known: then the newest"
    yield "content is fetched, its commit and SHA-256 are recorded, and a later fetch of other content is warned of."
    yield "*Evidence* is what public material, read on that day, says of the files; material without an address was"
    yield "found by a search of public code. *Last check* is when `helm-longctx fetch --check` last compared a row and"
    yield "found no difference. `helm-longctx list --data --json` prints all digests and files.\n"
    cards: dict[str, list[DataCard]] = defaultdict(list)
    for benchmark in BENCHMARKS:
        for card in make_cards(benchmark):
            cards[card.page].append(card)
    checked = json.loads(_read("docs/data-checks.json"))
    head = (
        "source",
        "used by",
        "pin",
        "digest",
        "rows",
        "license",
        "gated",
        "evidence",
        "last check",
    )
    yield from _table(
        head,
        (
            _source_row(page, cards[page], checked.get(page, "never"))
            for page in sorted(cards)
        ),
    )
    yield "## Published outputs\n"
    yield "`helm-longctx verify` fetches the outputs of real models, and the tables that were printed of them"
    yield "([Proof](../proof.md)). *Digest* is git's name of a folder or of a file at the pinned commit.\n"
    columns = ("source", "used by", "pin", "digest", "files", "license", "published by")
    yield from _table(columns, _proof_rows())
    for benchmark in BENCHMARKS:
        yield f"## {benchmark.title}\n"
        if own := make_cards(benchmark):
            columns = ("source", "size", "seen", "files", "fetched", "tasks")
            yield from _table(
                columns, (_card(card, len(benchmark.tasks)) for card in own)
            )
        else:
            yield "The data is generated, or is the user's own.\n"
        if faults := [f"- {fault}." for card in own for fault in card.faults]:
            yield "\n".join(["Known faults:\n", *faults, ""])
        yield from (f"Not seen: {card.unseen}\n" for card in own if card.unseen)


def _proof_rows() -> Iterator[tuple[str, ...]]:
    """Yield a row for each repository with published outputs of a benchmark."""
    for benchmark in BENCHMARKS:
        if not benchmark.proof:
            continue
        proof = find_proof(benchmark)
        by_page: dict[str, list[Source]] = defaultdict(list)
        for source in proof.sources:
            by_page[find_origin(source).page].append(source)
        for page, sources in by_page.items():
            origins = [find_origin(source) for source in sources]
            files = sum(len(source.paths) for source in sources)
            yield (
                f"<{page}>",
                f"`{benchmark.name}`",
                ", ".join(_unique(origin.revision for origin in origins)),
                _name_digests(_unique(origin.check for origin in origins)),
                f"{files:,}",
                proof.license,
                "the authors" if proof.is_by_authors else "a user of the official code",
            )


def _source_row(page: str, cards: Sequence[DataCard], checked: str) -> tuple[str, ...]:
    """Return the row of a publisher's page, of which several benchmarks can have a card."""
    evidence = {item: None for card in cards for item in card.evidence}
    return (
        f"<{page}>",
        ", ".join(f"`{card.benchmark}`" for card in cards),
        ", ".join(_unique(_name_pin(pin) for card in cards for pin in card.revisions)),
        _name_digests(_unique(check for card in cards for check in card.checks)),
        "; ".join(_unique(card.rows for card in cards if card.rows)) or "not known",
        "; ".join(_unique(card.license for card in cards)),
        "yes" if any(card.gated for card in cards) else "no",
        "; ".join(map(_name_evidence, evidence)) or "none",
        checked,
    )


def _unique(values: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(values)]


def _name_pin(revision: str) -> str:
    """Return a pin for the table."""
    return (
        FIRST
        if NEWEST in revision or revision.startswith(("the newest", "the file"))
        else revision
    )


def _name_digests(checks: Sequence[str]) -> str:
    """Return digests for the table: of many their number, and of a long one its start."""
    known = [
        digest
        for check in checks
        for digest in check.split(", ")
        if _DIGEST.search(digest)
    ]
    short = [_DIGEST.sub(lambda match: f"{match[0][:8]}…", digest) for digest in known]
    if len(short) > MOST_CHECKS:
        short = [f"{len(short)} values of {short[0].rsplit(' ', 1)[0]}"]
    others = [check for check in checks if not _DIGEST.search(check)]
    named = [FIRST if "first fetch" in check else check for check in others]
    return ", ".join(_unique([*short, *named]))


_DIGEST = re.compile("[0-9a-f]{40,64}")


def _name_evidence(evidence: Evidence) -> str:
    where = f"<{evidence.address}>, " if evidence.address else ""
    return f"{evidence.what} ({where}{evidence.read})"


def _card(card: DataCard, tasks: int) -> tuple[str, ...]:
    return (
        f"<{card.page}>",
        card.size or "unknown",
        card.seen,
        str(len(card.files)),
        ", ".join(card.times),
        "all"
        if len(card.tasks) == tasks
        else ", ".join(f"`{name}`" for name in card.tasks),
    )


def _releases() -> Iterator[str]:
    yield "# Published numbers of releases\n"
    yield "This page lists the rows of [the ledger](../reproduce.md#the-ledger), with what can be run. Tables of papers"
    yield "are not here. ‡ marks a number that another source prints otherwise.\n"
    places = [
        ReleaseRow(benchmark, protocol, row)
        for benchmark in BENCHMARKS
        for protocol in find_protocols(benchmark)
        if not protocol.is_table
        for row in protocol.rows
    ]
    rows: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for each in places:
        key = (
            each.row.vendor,
            each.row.model,
            each.row.effort,
            each.protocol.family,
            describe_runs(each),
        )
        rows[(*key, each.row.source.title)][each.protocol.point] = each.row.number_text
    yield f"{len(places)} numbers of {len({each.row.model for each in places})} models.\n"
    for vendor in sorted({key[0] for key in rows}, key=str.lower):
        yield f"## {vendor}\n"
        yield from _table(
            ("model", "effort", "number", "published", "can be run", "source"),
            (
                (
                    model,
                    effort,
                    family,
                    ", ".join(f"{point}: {text}" for point, text in values.items()),
                    runs,
                    source,
                )
                for (maker, model, effort, family, runs, source), values in sorted(
                    rows.items()
                )
                if maker == vendor
            ),
        )


def _values(limits: tuple[float, float] | None, lower_is_better: bool | None) -> str:
    span = f"{limits[0]:g} to {limits[1]:g}" if limits else "no bound"
    return ", ".join(filter(None, (span, DIRECTION[lower_is_better])))


def _users(benchmark: Benchmark, metric: str) -> str:
    users = [task.name for task in benchmark.tasks if metric in task.metrics]
    return (
        "all"
        if len(users) == len(benchmark.tasks)
        else ", ".join(f"`{name}`" for name in users)
    )


def _commands() -> Iterator[str]:
    yield "# Commands\n"
    yield from _table(
        ("exit status", "meaning"),
        ((str(status), text) for status, text in EXIT_STATUSES.items()),
    )
    yield "`helm-longctx --install-completion` installs completion for the shell that you use.\n"
    parser: Any = load_parser()
    for panel in PANELS:
        yield f"## {panel}\n"
        for command in (each for each in COMMANDS if each.panel == panel):
            yield from _command(
                f"helm-longctx {command.name}", parser.commands[command.name]
            )


def _command(name: str, command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=name)
    yield f"### {name}\n"
    yield f"{_text(command.help)}\n"
    yield f"    {' '.join((name, *command.collect_usage_pieces(context)))}\n"
    rows = [_parameter(each) for each in command.params if each.name != "help"]
    if rows:
        yield from _table(("argument or option", "meaning"), rows)
    if command.epilog:
        yield f"{command.epilog.replace('helm-longctx', '`helm-longctx', 1)}`\n"
    for child, each in getattr(command, "commands", {}).items():
        yield from _command(f"{name} {child}", each)


def _parameter(parameter: Any) -> tuple[str, str]:
    names = ", ".join(
        f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts)
    )
    default = parameter.default
    given = (
        f" Default: `{default}`."
        if default not in (None, "", False, ()) and not callable(default)
        else ""
    )
    return names + (" (required)" if parameter.required else ""), _text(
        getattr(parameter, "help", "") or ""
    ) + given


def _text(text: str) -> str:
    return " ".join(
        text.replace("\\[", "[").split()
    )  # the help's markup needs the backslash


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(_text(cell).replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


if __name__ == "__main__":
    from publication import write_words  # beside this file

    write_words()
    for path, text in files().items():
        (ROOT / path).write_text(text, encoding="utf-8")
