"""The data of run entries: the command that fetches them, whose questions they ask, and the digest of own files."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot, digest_files
from helm_longctx.errors import InputError
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.task import Task


def ensure_data(entry: Entry, root: DataRoot) -> None:
    """Fetch the data that an entry needs and that the root lacks, or raise an `InputError`."""
    ensure(entry.sources, root, fetch_command([entry], root))


def digest_own_files(tasks: Iterable[Task], path: str | None) -> str | None:
    """Return the digest of the files that tasks read in the user's folder, or None if there are no such files."""
    names = sorted({name for task in tasks for name in task.own_files})
    if path:
        return digest_files(Path(path) / name for name in names)
    return None


def fetch_command(entries: Iterable[Entry], root: DataRoot) -> str:
    """Return the command that fetches the data of several entries."""
    return fetch_line((entry.description for entry in entries), root)


def fetch_line(entries: Iterable[str], root: DataRoot | None = None) -> str:
    """Return the command that fetches the data of run entries into a root. The entries are texts.

    Without a root it is the mirror that the environment names, or the cache.
    """
    if root is None:
        # The mirror can be no folder, which commands that read it report.
        with suppress(InputError):
            root = DataRoot.find()
    target = f" --to {root.path}" if root and root.mirror else ""
    return f"helm-longctx fetch {' '.join(entries)}{target}"


def find_official_entries(entry: Entry, root: DataRoot) -> dict[str, str]:
    """Return the tasks of an entry whose questions would be generated, by name.

    Each has the run entry that asks the benchmark's own questions; an empty text if there is none.
    """
    length = entry.settings.length
    official = {}
    for task in entry.tasks:
        if task.is_generated(length, root):
            official[task.name] = entry.benchmark.find_official_entry(
                entry.name, task, length
            )
    return official


def check_own_questions(
    protocols: Mapping[str, Iterable[Entry]],
    root: DataRoot,
) -> None:
    """Check that the questions of protocols are their benchmarks' own.

    Args:
        protocols: by name, each with its entries.

    Raises:
        InputError: questions would be generated, whose scores cannot be compared with published ones.
    """
    lacking = []
    needed: dict[str, None] = {}
    for name, entries in protocols.items():
        official: dict[str, str] = {}
        for entry in entries:
            official |= find_official_entries(entry, root)
        if official:
            lacking.append(repr(name))
            needed |= dict.fromkeys(text for text in official.values() if text)
    if lacking:
        raise InputError(
            f"{', '.join(lacking)} cannot compare: generated questions, because the benchmark's own are missing;"
            f" get them with `{fetch_line(needed, root)}`, or give --generated to ask generated ones all the same"
        )
