"""Describes the data of benchmarks: from where, under which license, checked by what, and fetched when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from helm_longctx.data.download import Source, UnpublishedFile
from helm_longctx.data.hub import HubDataset, HubFile, HubFiles, HubRows, HubZip
from helm_longctx.data.release import PinnedFile, ReleaseFile
from helm_longctx.data.web import BucketFile, RepositoryFolder, WebFile, pin_address
from helm_longctx.data.wheel import SentenceModel, WheelFile
from helm_longctx.tasks.benchmark import Benchmark, Evidence, Terms
from helm_longctx.tasks.task import Task

NEWEST = "the newest commit at the first fetch, which is recorded"

FIRST_FETCH = "the SHA-256 of the first fetch, which is recorded"
"""What a later fetch is compared with if nothing else is known."""

_HUB_CHECK = "the hub's SHA-256 at the first fetch, which is recorded"

_HUB_PAGE = "https://huggingface.co/datasets/"

BEFORE_RUN = "before a run"
ON_REQUEST = "only by helm-longctx fetch"
FOR_JUDGES = "when answers are judged"

_NOWHERE = "nowhere"
"""The page of files that their publisher does not serve."""

_NOT_STATED = "not stated"

_NOT_SEEN = "not seen"


@dataclass
class DataCard:
    """The data that a benchmark has from one publisher.

    Args:
        license: the license of the data; `not stated` if the publisher names none.
        faults: known wrong keys and other faults, a sentence each.
        seen: when its rows were compared with the loaders; `not seen` for data on a hub that never were, and empty for
            other data.
        unseen: what of the data was never read for this package, and what the loaders follow instead; a sentence.
        gated: whether access needs a login and the publisher's consent.
        rows: the numbers of rows that a fetch or the data card expects, in words, if they are known.
        evidence: what in public material says that the pinned files are the right ones.
        checks: the values with which content is compared, or who states them.
    """

    benchmark: str
    page: str
    license: str
    size: str
    faults: tuple[str, ...]
    seen: str
    unseen: str = ""
    gated: bool = False
    rows: str = ""
    evidence: tuple[Evidence, ...] = ()
    revisions: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def make_cards(benchmark: Benchmark) -> list[DataCard]:
    """Return a card for each publisher of a benchmark's data, so none if all of it is generated or the user's own."""
    cards: dict[str, DataCard] = {}
    splits: dict[str, dict[str, int]] = defaultdict(dict)
    for task, time, source in _list_sources(benchmark):
        if not source.is_published:
            continue
        origin = find_origin(source)
        about = benchmark.data.get(origin.page, Terms(_NOT_STATED))
        seen = about.seen or (_NOT_SEEN if origin.page.startswith(_HUB_PAGE) else "")
        card = cards.setdefault(
            origin.page,
            DataCard(
                benchmark=benchmark.name,
                page=origin.page,
                license=about.license,
                size=about.size,
                faults=about.faults,
                seen=seen,
                unseen=about.unseen,
                gated=about.gated,
                rows=about.rows,
                evidence=about.evidence,
            ),
        )
        splits[origin.page] |= _count_rows(source)
        for known, values in (
            (card.revisions, [origin.revision]),
            (card.checks, [origin.check]),
            (card.times, [time]),
            (card.tasks, [task.name]),
            (card.files, source.paths),
        ):
            known += [value for value in values if value not in known]
    for page, card in cards.items():
        card.rows = card.rows or _describe_rows(splits[page])
    return list(cards.values())


_MOST_SPLITS = 4
"""Number of splits whose rows are listed one by one."""


def _count_rows(source: Source) -> dict[str, int]:
    """Return the numbers of rows that a fetch of a source checks, by the name of the split."""
    match source:
        case HubDataset():
            config = f"{source.config} " if source.config else ""
            sizes = {}
            for split, rows in source.splits.items():
                if rows:
                    sizes[f"{config}{split}"] = rows
            return sizes
        case HubRows() if source.rows is not None:
            return {source.path: source.rows}
    return {}


def _describe_rows(splits: Mapping[str, int]) -> str:
    if len(splits) > _MOST_SPLITS:
        return f"{sum(splits.values()):,} in {len(splits)} splits or files"
    return ", ".join(f"{split} {rows:,}" for split, rows in splits.items())


def _list_sources(benchmark: Benchmark) -> Iterator[tuple[Task, str, Source]]:
    """Yield each source of each task at each of its lengths, with the time when it is fetched."""
    for task in benchmark.tasks:
        lengths: Iterable[int | None] = sorted(task.sizes) or (None,)
        for length in lengths:
            yield from ((task, BEFORE_RUN, source) for source in task.sources(length))
            for source in task.optional_sources(length):
                yield (task, ON_REQUEST, source)
        for source in task.judge_sources.values():
            yield (task, FOR_JUDGES, source)


class Origin(NamedTuple):
    """Where a source comes from, what is fetched of it, and the value or the server that checks it."""

    page: str
    revision: str
    check: str


def find_origin(source: Source) -> Origin:
    """Return where a source comes from. Raises a `TypeError` if the source is of an unknown kind."""
    match source:
        case UnpublishedFile():
            return Origin(_NOWHERE, "not published", "nothing")
        case ReleaseFile():
            release = source.release
            revision = release.commit[:7] or NEWEST
            check = f"SHA-256 {release.sha256}" if release.sha256 else _HUB_CHECK
            return Origin(
                _HUB_PAGE + release.repo, f"{release.archive}, {revision}", check
            )
        case HubDataset():
            check = _list_digests(source.sha256.values()) or _HUB_CHECK
            return Origin(
                _HUB_PAGE + source.repo_id, source.commit[:7] or NEWEST, check
            )
        case HubZip():
            check = f"SHA-256 {source.sha256}" if source.sha256 else _HUB_CHECK
            return Origin(_HUB_PAGE + source.repo, source.commit[:7] or NEWEST, check)
        case HubFile():
            page = f"https://huggingface.co/{source.repo}"
            if source.kind == "dataset":
                page = _HUB_PAGE + source.repo
            check = f"SHA-256 {source.sha256}" if source.sha256 else _HUB_CHECK
            return Origin(page, source.commit[:7] or NEWEST, check)
        case HubRows() | HubFiles():
            return Origin(_HUB_PAGE + source.repo, source.commit[:7], _HUB_CHECK)
        case RepositoryFolder():
            page = f"https://github.com/{source.repo}"
            return Origin(page, source.commit[:7], f"git tree {source.tree}")
        case WheelFile():
            page = f"https://pypi.org/project/{source.project}/"
            return Origin(page, source.version, f"SHA-256 {source.sha256}")
        case SentenceModel():
            page = f"https://pypi.org/project/{source.project}/"
            return Origin(page, source.version, "SHA-256 of each file")
        case BucketFile():
            page = f"https://console.cloud.google.com/storage/browser/{source.bucket}"
            revision = "the newest generation at the download, which is recorded"
            return Origin(page, revision, "the bucket's MD5")
        case PinnedFile():
            return _of_address(source.url, f"SHA-256 {source.sha256}")
        case WebFile():
            check = f"git blob {source.blob}" if source.blob else FIRST_FETCH
            return _of_address(source.url, check)
    raise TypeError(f"{type(source).__name__} is no known kind of source")


def _list_digests(digests: Iterable[str]) -> str:
    """Return digests as a text. Without any, it is empty."""
    return ", ".join(f"SHA-256 {digest}" for digest in digests)


def _of_address(url: str, check: str) -> Origin:
    """Return the origin of a file on a server: the repository at GitHub or on the hub, or the folder of the file."""
    pin = pin_address(url, "")
    if pin is None:
        return Origin(url.rpartition("/")[0], "the file at the address", check)
    page = _HUB_PAGE if pin.kind == "dataset" else "https://github.com/"
    return Origin(page + pin.repo, pin.commit[:7] or "a branch", check)
