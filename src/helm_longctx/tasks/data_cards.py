"""Describes the data of benchmarks: from where, under which license, checked by what, and fetched when.

Also compares the first rows of data on the hub with what the loaders of tasks expect.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import orjson

from helm_longctx.data.download import Source, explain_failure
from helm_longctx.data.hub import HubDataset, HubFile, HubRows, HubZip
from helm_longctx.data.release import PinnedFile, ReleaseFile
from helm_longctx.data.root import DataRoot
from helm_longctx.data.web import BucketFile, RepositoryFolder, WebFile
from helm_longctx.data.wheel import SentenceModel, WheelFile
from helm_longctx.errors import InputError, ShapeError
from helm_longctx.tasks.benchmark import Benchmark, Terms
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Task

NEWEST = "the newest commit at the download, which is recorded"

HUB_CHECK = "the hub's SHA-256"

_HUB_PAGE = "https://huggingface.co/datasets/"

_GITHUB = re.compile(
    r"https://(?:raw|media)\.githubusercontent\.com/(?:media/)?([^/]+/[^/]+)/([^/]+)/"
)

_HUB = re.compile(
    r"https://huggingface\.co/datasets/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/"
)

BEFORE_RUN = "before a run"
ON_REQUEST = "only by helm-longctx fetch"
FOR_JUDGES = "when answers are judged"

NOT_STATED = "not stated"

NOT_SEEN = "not seen"


@dataclass
class DataCard:
    """The data that a benchmark has from one publisher.

    Args:
        license: the license of the data; `not stated` if the publisher names none.
        faults: known wrong keys and other faults, a sentence each.
        seen: when its rows were compared with the loaders; `not seen` for data on a hub that never were, and empty for
            other data.
        unseen: what of the data was never read for this package, and what the loaders follow instead; a sentence.
        checks: the values with which content is compared, or who states them.
    """

    benchmark: str
    page: str
    license: str
    size: str
    faults: tuple[str, ...]
    seen: str
    unseen: str = ""
    revisions: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def make_cards(benchmark: Benchmark) -> list[DataCard]:
    """Return a card for each publisher of a benchmark's data; none if all its data is generated or the user's own."""
    cards: dict[str, DataCard] = {}
    for task, time, source in _list_sources(benchmark):
        origin = find_origin(source)
        about = benchmark.data.get(origin.page, Terms(NOT_STATED))
        seen = about.seen or (NOT_SEEN if origin.page.startswith(_HUB_PAGE) else "")
        terms = (about.license, about.size, about.faults, seen, about.unseen)
        new = DataCard(benchmark.name, origin.page, *terms)
        card = cards.setdefault(origin.page, new)
        found = (
            (card.revisions, [origin.revision]),
            (card.checks, [origin.check]),
            (card.times, [time]),
            (card.tasks, [task.name]),
            (card.files, source.paths),
        )
        for known, values in found:
            known += [value for value in values if value not in known]
    return list(cards.values())


def _list_sources(benchmark: Benchmark) -> Iterator[tuple[Task, str, Source]]:
    """Yield each source of each task at each of its lengths, with the time when it is fetched."""
    for task in benchmark.tasks:
        lengths: Iterable[int | None] = sorted(task.sizes) or (None,)
        for length in lengths:
            yield from ((task, BEFORE_RUN, source) for source in task.sources(length))
            yield from ((task, ON_REQUEST, source) for source in task.optional_sources(length))
        yield from ((task, FOR_JUDGES, source) for source in task.judge_sources.values())


class Origin(NamedTuple):
    """Where a source comes from, what is fetched of it, and the value or the server that checks it."""

    page: str
    revision: str
    check: str


def find_origin(source: Source) -> Origin:
    """Return where a source comes from. Raises a `TypeError` if the source is of an unknown kind."""
    match source:
        case ReleaseFile():
            return Origin(
                _HUB_PAGE + source.release.repo, f"{source.release.archive}, {NEWEST}", HUB_CHECK
            )
        case HubDataset():
            return Origin(_HUB_PAGE + source.repo_id, NEWEST, HUB_CHECK)
        case HubZip():
            return Origin(_HUB_PAGE + source.repo, source.commit[:7] or NEWEST, HUB_CHECK)
        case HubFile():
            page = (
                _HUB_PAGE + source.repo
                if source.kind == "dataset"
                else f"https://huggingface.co/{source.repo}"
            )
            check = f"SHA-256 {source.sha256}" if source.sha256 else HUB_CHECK
            return Origin(page, source.commit[:7] or NEWEST, check)
        case HubRows():
            return Origin(_HUB_PAGE + source.repo, source.commit[:7], HUB_CHECK)
        case RepositoryFolder():
            return Origin(
                f"https://github.com/{source.repo}", source.commit[:7], f"git tree {source.tree}"
            )
        case WheelFile():
            return Origin(
                f"https://pypi.org/project/{source.project}/",
                source.version,
                f"SHA-256 {source.sha256}",
            )
        case SentenceModel():
            return Origin(
                f"https://pypi.org/project/{source.project}/",
                source.version,
                "SHA-256 of each file",
            )
        case BucketFile():
            page = f"https://console.cloud.google.com/storage/browser/{source.bucket}"
            return Origin(
                page, "the newest generation at the download, which is recorded", "the bucket's MD5"
            )
        case PinnedFile():
            return _of_address(source.url, f"SHA-256 {source.sha256}")
        case WebFile():
            return _of_address(source.url, f"git blob {source.blob}" if source.blob else "nothing")
    raise TypeError(f"{type(source).__name__} is no known kind of source")


def _of_address(url: str, check: str) -> Origin:
    """Return the origin of a file on a server: the repository at GitHub or on the hub, or the folder of the file."""
    if match := _GITHUB.match(url):
        repo, revision = match.groups()
        is_commit = re.fullmatch("[0-9a-f]{40}", revision)
        return Origin(
            f"https://github.com/{repo}", revision[:7] if is_commit else f"branch {revision}", check
        )
    if match := _HUB.match(url):
        return Origin(_HUB_PAGE + match["repo"], match["revision"][:7], check)
    return Origin(url.rpartition("/")[0], "the file at the address", check)


class Shape(NamedTuple):
    """How a source's first rows compare with a loader.

    Args:
        entry: the run entry.
        source: the source.
        columns: the columns that were found, each with its type.
        result: "same"; "differs"; "not read" for a refused request, or if no row can be read by itself; "one row" if
            the loader needs more than the row that was read.
        why: what differs, or why it was not read.
    """

    entry: str
    source: str
    columns: str
    result: Literal["same", "differs", "not read", "one row"]
    why: str = ""


def check_shapes(entries: Iterable[Entry]) -> Iterator[Shape]:
    """Read a row of each source of run entries over the network, and give it to the loaders."""
    seen: set[tuple[str, ...]] = set()
    for entry in entries:
        for task in entry.tasks:
            sources = [*task.all_sources(entry.settings.length)]
            key = (task.name, *(path for source in sources for path in source.paths))
            if key in seen or not sources:
                continue
            seen.add(key)
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder)
                shapes = [_peek(f"{entry.name}:{task.name}", source, root) for source in sources]
                if all(shape.result == "same" for shape in shapes):
                    result: Literal["same", "differs", "one row"] = "same"
                    why = ""
                    try:
                        next(load_examples(task, entry.settings, DataRoot(root, mirror=True)), None)
                    except InputError as error:
                        result = "differs" if isinstance(error, ShapeError) else "one row"
                        why = str(error)
                    shapes = [
                        shape._replace(result=result, why=why.replace(f"{root}/", ""))
                        for shape in shapes
                    ]
            yield from shapes


def _peek(entry: str, source: Source, root: Path) -> Shape:
    """Write the first rows of a source into a data root."""
    shape = Shape(
        entry, source.label, "", "not read", "no row of it can be read without the whole file"
    )
    try:
        files = source.first_rows()
    except ShapeError as error:
        return shape._replace(result="differs", why=str(error))
    except Exception as error:  # of huggingface_hub, requests and pyarrow
        return shape._replace(why=explain_failure(error, root, source.refusal, source.remedy))
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    rows = [
        orjson.loads(content)
        for name, content in files.items()
        if not name.endswith("features.json")
    ]
    columns = {
        name: type(value).__name__
        for row in rows
        for name, value in (row[0] if isinstance(row, list) else row).items()
    }
    text = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return shape._replace(columns=text, result="same", why="") if files else shape
