"""Compares the data that publishers serve today with what the loaders and the pins of this package expect.

Nothing is stored. Of each file a row is read and given to the task's loader; numbers of rows and digests are compared
where they are known; and the newest commit of each repository is compared with the pinned one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson

from helm_longctx.data.download import (
    Pin,
    Source,
    explain_failure,
    fetch_description,
    run_within,
    status_of,
)
from helm_longctx.data.hub import Kind, list_commits, read_repository
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, PreconditionError, ShapeError, list_first
from helm_longctx.tasks.data_cards import find_origin
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.loading import load_examples

_GITHUB_API = "https://api.github.com"
"""Server that knows the commits of repositories on GitHub."""

_MOST_NAMED = 5
"""Number of changed files that a line names."""

_SECONDS = 600.0
"""Seconds that a question about a source may take, with all attempts."""

CheckResult = Literal["same", "differs", "vanished", "gated", "not read", "one row"]

_FAILING: frozenset[CheckResult] = frozenset(("differs", "vanished"))
"""The results with which the exit status is 1."""

_SHAPE_TODO: Mapping[CheckResult, str] = {
    "differs": "compare the file with the loader; correct the loader or the pin",
    "vanished": "find where the file is now, or say on the benchmark's page that only"
    " mirrors have it",
    "gated": "say `gated: true` in the data card, and how a user gets access",
}
"""What a release manager has to do about the result of a file."""


_NEEDS_WHOLE_FILE = "no row of it can be read without the whole file"


class SourceShape(NamedTuple):
    """How a source's first rows compare with a loader.

    Args:
        entry: the run entry.
        source: the source.
        columns: the columns of the row, each with its type.
        result: "same"; "differs" for other columns, types, digests or numbers of rows, and for a row that the loader
            refuses; "vanished" for a file or repository that does not exist; "gated" for one that needs a login; "not
            read" for another failure, or if no row can be read by itself; "one row" if the loader needs more than the
            row that was read.
        why: what differs, or why it was not read.
    """

    entry: str
    source: str
    columns: str
    result: CheckResult
    why: str = ""


class RepositoryState(NamedTuple):
    """How a repository's newest commit compares with the pinned one.

    Args:
        pin: the pinned commit. Empty if none is.
        head: the newest commit. Empty if the repository was not read.
        result: "same"; "newer" if only other files changed since the pin; "changed" if files that are read changed;
            "unpinned"; "moved" to another name; "gated" if it is, and the data card does not say so, or the other way
            round; "vanished"; "not read".
        about: what changed, in words.
        todo: what a release manager has to do. Empty for nothing.
    """

    page: str
    pin: str
    head: str
    result: Literal[
        "same", "newer", "changed", "unpinned", "moved", "gated", "vanished", "not read"
    ]
    about: str = ""
    todo: str = ""


_FAILING_STATES = frozenset(("moved", "gated", "vanished"))
"""The results of repositories with which the exit status is 1. A pinned commit stays readable when others follow."""


@dataclass(frozen=True)
class DataCheck:
    """The result of a check.

    Args:
        gated: the pages whose data cards say that access needs a login.
    """

    shapes: list[SourceShape]
    repositories: list[RepositoryState]
    gated: frozenset[str] = frozenset()
    pages: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_passed(self) -> bool:
        """Whether nothing makes the exit status 1."""
        has_failing_shape = any(map(self._fails, self.shapes))
        states = {state.result for state in self.repositories}
        return not has_failing_shape and states.isdisjoint(_FAILING_STATES)

    def _fails(self, shape: SourceShape) -> bool:
        return shape.result in _FAILING or self.is_newly_gated(shape)

    def is_newly_gated(self, shape: SourceShape) -> bool:
        """Whether a file needs a login, and the data card does not say so."""
        return (
            shape.result == "gated"
            and self.pages.get(shape.source, "") not in self.gated
        )

    @property
    def passed_pages(self) -> list[str]:
        """The publishers' pages of which at least one row was compared and nothing failed."""
        compared = set()
        failed = set()
        for state in self.repositories:
            if state.result in _FAILING_STATES:
                failed.add(state.page)
        for shape in self.shapes:
            page = self.pages.get(shape.source, "")
            if shape.result == "same":
                compared.add(page)
            if self._fails(shape):
                failed.add(page)
        return sorted(compared - failed - {""})

    @property
    def notes(self) -> list[str]:
        """What is worth knowing and asks for nothing, a line for each file or repository."""
        lines = []
        for shape in self.shapes:
            if shape.result == "not read" and shape.why != _NEEDS_WHOLE_FILE:
                lines.append(f"{shape.source}: not read: {shape.why}")
        for state in self.repositories:
            if state.about and not state.todo:
                lines.append(f"{state.page}: {state.about}")
        return list(dict.fromkeys(lines))

    @property
    def todo(self) -> list[str]:
        """What a release manager has to do, a line for each file or repository."""
        lines = []
        for shape in filter(self._fails, self.shapes):
            reason = shape.why or shape.result
            lines.append(f"{shape.source}: {reason}; {_SHAPE_TODO[shape.result]}")
        for state in self.repositories:
            if state.todo:
                about = f"{state.about}; " if state.about else ""
                lines.append(f"{state.page}: {about}{state.todo}")
        return list(dict.fromkeys(lines))


def check_data(entries: Iterable[Entry]) -> DataCheck:
    """Check the data of run entries over the network."""
    entries = [*entries]
    sources = _find_sources(entries)
    gated: set[str] = set()
    for entry in entries:
        terms_by_page = entry.benchmark.data
        gated |= {page for page, terms in terms_by_page.items() if terms.gated}
    pages = {source.label: find_origin(source).page for source in sources}
    return DataCheck(
        shapes=[*check_shapes(entries)],
        repositories=[*check_repositories(sources, frozenset(gated))],
        gated=frozenset(gated),
        pages=pages,
    )


def _find_sources(entries: Iterable[Entry]) -> list[Source]:
    """Return each source of run entries once."""
    sources: dict[tuple[str, ...], Source] = {}
    for entry in entries:
        for task in entry.tasks:
            for source in task.all_sources(entry.settings.length):
                sources.setdefault(tuple(source.paths), source)
    return [source for source in sources.values() if source.is_published]


def check_shapes(entries: Iterable[Entry]) -> Iterator[SourceShape]:
    """Read a row of each source of run entries over the network, and give it to the loaders."""
    seen: set[tuple[str, ...]] = set()
    # Many tasks can name a source. Its digests and numbers of rows are compared once.
    compared: dict[tuple[str, ...], _Finding] = {}
    for entry in entries:
        for task in entry.tasks:
            every = task.all_sources(entry.settings.length)
            sources = [source for source in every if source.is_published]
            key = (task.name, *(path for source in sources for path in source.paths))
            if key in seen or not sources:
                continue
            seen.add(key)
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder)
                shapes = []
                for source in sources:
                    paths = tuple(source.paths)
                    if paths not in compared:
                        compared[paths] = _compare(source, root)
                    shapes.append(
                        _peek(
                            f"{entry.name}:{task.name}", source, root, compared[paths]
                        )
                    )
                if all(shape.result == "same" for shape in shapes):
                    result, why = _load_first(entry, task, root)
                    explained = []
                    for shape in shapes:
                        explained.append(shape._replace(result=result, why=why))
                    shapes = explained
            yield from shapes


def _load_first(entry: Entry, task: Any, root: Path) -> tuple[CheckResult, str]:
    """Give the rows under a data root to a task's loader. Return the result, and why the loader refused them."""
    try:
        next(load_examples(task, entry.settings, DataRoot(root, mirror=True)), None)
    except PreconditionError as error:
        return "one row", str(error).replace(f"{root}/", "")
    except InputError as error:
        return "differs", str(error).replace(f"{root}/", "")
    return "same", ""


class _Finding(NamedTuple):
    """What is wrong with a source: a result other than "same", and why; "same" if nothing is."""

    result: CheckResult
    why: str = ""


def _compare(source: Source, root: Path) -> _Finding:
    """Compare what is known of a source with what its server has."""
    try:
        differences = run_within(_SECONDS, source.find_differences)
    except Exception as error:  # of huggingface_hub, requests and pyarrow
        return _find_reason(source, root, error)
    if differences:
        return _Finding("differs", "; ".join(differences))
    return _Finding("same")


def _find_reason(source: Source, root: Path, error: Exception) -> _Finding:
    """Say what an error means for a source."""
    if isinstance(error, ShapeError):
        return _Finding("differs", str(error))
    why = explain_failure(error, root, source.refusal, source.remedy)
    return _Finding(_classify(error), why)


def _peek(
    entry: str,
    source: Source,
    root: Path,
    compared: _Finding,
) -> SourceShape:
    """Write the first rows of a source into a data root, unless something is wrong with it already."""
    shape = SourceShape(
        entry=entry,
        source=source.label,
        columns="",
        result="not read",
        why=_NEEDS_WHOLE_FILE,
    )
    if compared.result != "same":
        return shape._replace(result=compared.result, why=compared.why)
    try:
        files = run_within(_SECONDS, source.first_rows)
    except Exception as error:  # of huggingface_hub, requests and pyarrow
        finding = _find_reason(source, root, error)
        return shape._replace(result=finding.result, why=finding.why)
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    columns: dict[str, str] = {}
    for name, content in files.items():
        if name.endswith("features.json"):
            continue
        row = orjson.loads(content)
        first = row[0] if isinstance(row, list) else row
        columns |= {column: type(value).__name__ for column, value in first.items()}
    text = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    if files:
        return shape._replace(
            columns=text,
            result="same",
            why="",
        )
    return shape


def _classify(error: Exception) -> Literal["vanished", "gated", "not read"]:
    """Say of an error whether the file or repository does not exist, or needs a login."""
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    # The error for a gated repository is also one for a missing repository, so it is asked for first.
    if isinstance(error, GatedRepoError):
        return "gated"
    if isinstance(
        error, EntryNotFoundError | RepositoryNotFoundError | RevisionNotFoundError
    ):
        return "vanished"
    status = status_of(error)
    headers = getattr(getattr(error, "response", None), "headers", {})
    # The hub answers with 401 for a repository that does not exist, too, and says so in a header.
    if status in (404, 410) or headers.get("X-Error-Code") == "RepoNotFound":
        return "vanished"
    return "gated" if status in (401, 403) else "not read"


def check_repositories(
    sources: Iterable[Source],
    gated: frozenset[str] = frozenset(),
) -> Iterator[RepositoryState]:
    """Compare the newest commit of each repository with the pinned one.

    Args:
        gated: the pages of repositories that are known to need a login.
    """
    pins: dict[tuple[str, str, str], Pin] = {}
    pages: dict[tuple[str, str, str], str] = {}
    for source in sources:
        pin = source.pin
        if pin is None:
            continue
        key = (str(pin.kind), pin.repo, pin.commit)
        known = pins.get(key, Pin(pin.repo, pin.kind, pin.commit, files=()))
        digests = pin.digests or dict.fromkeys(pin.files, "")
        pins[key] = replace(
            known,
            files=(*known.files, *pin.files),
            digests={**known.digests, **digests},
        )
        pages[key] = find_origin(source).page
    for key, pin in pins.items():
        page = pages[key]
        try:
            look = _look_at_github if pin.kind == "github" else _look_at_hub
            seen = run_within(_SECONDS, partial(look, pin))
            yield _judge(page, pin, seen, is_gated=page in gated)
        except Exception as error:  # of huggingface_hub and requests
            yield _explain(page, pin, error, is_gated=page in gated)


class _Look(NamedTuple):
    """What a server says of a repository.

    Args:
        name: its present name, `owner/name`.
        newer: number of commits since the pin. None if the pin is not among the commits, or nothing is pinned.
        changed: the files that changed since the pin.
    """

    name: str
    head: str
    is_gated: bool
    newer: int | None
    changed: tuple[str, ...]


def _look_at_hub(pin: Pin) -> _Look:
    kind: Kind = "model" if pin.kind == "model" else "dataset"
    head = read_repository(pin.repo, None, kind, with_ids=True)
    newer = None
    changed: set[str] = set()
    # Of some pins only the first digits are known.
    if pin.commit and not head.commit.startswith(pin.commit):
        commits = list_commits(pin.repo, kind)
        matches = []
        for commit in commits:
            if commit.startswith(pin.commit):
                matches.append(commit)
        newer = commits.index(matches[0]) if matches else None
        revision = matches[0] if matches else pin.commit
        pinned = read_repository(pin.repo, revision, kind, with_ids=True)
        before = pinned.files
        after = head.files
        names = before.keys() | after.keys()
        changed = set()
        for name in names:
            if before.get(name) != after.get(name):
                changed.add(name)
    return _Look(
        name=head.name,
        head=head.commit,
        is_gated=head.is_gated,
        newer=newer,
        changed=tuple(sorted(changed)),
    )


def _look_at_github(pin: Pin) -> _Look:
    def ask(path: str) -> dict[str, Any]:
        answer = fetch_description(f"{_GITHUB_API}/repos/{pin.repo}{path}").content
        if not isinstance(answer, dict):
            raise TypeError("a description is an object")
        return answer

    about = ask("")
    branch = about["default_branch"]
    head = ask(f"/commits/{branch}")["sha"]
    newer = None
    changed: tuple[str, ...] = ()
    if pin.commit and pin.commit != head:
        comparison = ask(f"/compare/{pin.commit}...{branch}")
        newer = comparison["ahead_by"]
        changed = tuple(
            sorted(file["filename"] for file in comparison.get("files", ()))
        )
        if not isinstance(newer, int) or newer < 0:
            raise ValueError("a number of commits is a whole number")
    if not isinstance(head, str) or not isinstance(about["full_name"], str):
        raise TypeError("names are texts")
    return _Look(
        name=about["full_name"],
        head=head,
        is_gated=False,
        newer=newer,
        changed=changed,
    )


def _judge(
    page: str,
    pin: Pin,
    look: _Look,
    is_gated: bool,
) -> RepositoryState:
    """Say what a repository's state means for a release."""
    state = RepositoryState(
        page=page,
        pin=pin.commit,
        head=look.head,
        result="same",
    )
    if look.name.lower() != pin.repo.lower():
        about = f"it is called {look.name} now"
        return state._replace(
            result="moved",
            about=about,
            todo=f"name the repository {look.name} in the source and the data card",
        )
    if look.is_gated != is_gated:
        now = "needs a login now" if look.is_gated else "needs no login any more"
        todo = f"say `gated: {str(look.is_gated).lower()}` in the data card"
        return state._replace(
            result="gated",
            about=f"it {now}",
            todo=todo,
        )
    if not pin.commit and pin.digests and all(pin.digests.values()):
        about = "no commit is pinned, and the content is compared with its digest"
        return state._replace(result="unpinned", about=about)
    if not pin.commit:
        todo = f"compare the files, and pin {look.head}"
        return state._replace(
            result="unpinned",
            about="no commit is pinned",
            todo=todo,
        )
    if look.head.startswith(pin.commit):
        return state
    ours = []
    for name in look.changed:
        if name.startswith(pin.files):
            ours.append(name)
    if look.newer is None:
        count = "newer commits, of which the pin is none"
    else:
        count = _count(look.newer)
    about = f"{count}, files changed: {_name_some(look.changed)}"
    if not ours:
        return state._replace(result="newer", about=about)
    todo = f"compare {_name_some(ours)} at {look.head[:7]}; raise the pin, and the comparability if scores change"
    return state._replace(
        result="changed",
        about=about,
        todo=todo,
    )


_NUMBERS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
)


def _count(commits: int) -> str:
    if commits < len(_NUMBERS):
        number = _NUMBERS[commits]
    else:
        number = str(commits)
    return f"{number} {'commit' if commits == 1 else 'commits'} newer"


def _name_some(names: Iterable[str]) -> str:
    return list_first(names, _MOST_NAMED) or "none"


def _explain(
    page: str,
    pin: Pin,
    error: Exception,
    is_gated: bool,
) -> RepositoryState:
    """Return the state of a repository that could not be read."""
    state = RepositoryState(
        page=page,
        pin=pin.commit,
        head="",
        result="not read",
    )
    kind = _classify(error)
    status = status_of(error)
    why = f"{type(error).__name__}{f', status {status}' if status else ''}"
    if isinstance(error, InputError):
        why = str(error)
    elif isinstance(error, (LookupError, TypeError, ValueError)) and status is None:
        why = f"the server's description has an unexpected form ({why})"
    # GitHub refuses with 403 who asks too often.
    if kind == "gated" and (is_gated or pin.kind == "github"):
        return state._replace(about=why)
    if kind == "gated":
        return state._replace(
            result="gated",
            about="it needs a login now",
            todo=_SHAPE_TODO["gated"],
        )
    if kind == "vanished":
        return state._replace(
            result="vanished",
            about=why,
            todo=_SHAPE_TODO["vanished"],
        )
    return state._replace(about=why)
