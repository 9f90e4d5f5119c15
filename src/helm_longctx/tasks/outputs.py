"""Answers and scores in the files of other programs, before they become runs."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helm_longctx.failures import Failure
from helm_longctx.tasks.publications import Published


@dataclass(frozen=True)
class Output:
    """A model's answer to one example.

    Args:
        id: the example's id: the one of this package if the file says which example it is.
        error: why there is no answer.
        failure: the kind of this failure. None if the file does not name it.
        finish_reason: why the answer ended, as HELM calls it, such as `length`. Empty if it is not known.
        group: the name of what the example shares with others of its task; see `Example.group`.
        notes: the judges' annotations, by the name of the annotator. Empty if there was no judge.
        is_generated: whether this package made the question in place of the benchmark's own.
        location: where it stands, such as `file: row 3`. Errors start with it.
    """

    id: str
    prediction: str | None
    references: Sequence[str]
    record: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""
    repeat: int = 0
    error: str = ""
    failure: Failure | None = None
    finish_reason: str = ""
    input_tokens: int | None = None
    group: str = ""
    depth: float | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    is_generated: bool = False
    location: str = ""


def make_jury(
    judge: str,
    reply: Any,
    verdicts: Mapping[str, Any],
    model: str = "",
) -> dict[str, Any]:
    """Return what a file says of a judge in the form of our judges' annotations.

    Args:
        reply: the reply, or the replies by part.
        verdicts: the verdicts by part, None for a part without one.
        model: the judge's model, if its name is not the deployment's.
    """
    failed = float(None in verdicts.values())
    return {
        "replies": {judge: reply},
        "verdicts": {judge: verdicts},
        "judges": {judge: model or judge},
        "failed": failed,
    }


@dataclass(frozen=True)
class OutputRun:
    """The answers of one model to one task at one length.

    Args:
        model: the model's name in the file. Empty if the file has none.
    """

    entry: str
    model: str
    outputs: Sequence[Output]


@dataclass(frozen=True)
class OutputScore:
    """A score of a run entry without its answers; `context` is `none` for a closed-book score."""

    entry: str
    location: str
    row: Published
    context: str = "full"


RunOrScore = OutputRun | OutputScore


PACKED = ".gz"
"""The end of the names of files that are packed with gzip."""


@dataclass(frozen=True)
class OutputReader:
    """Reads the files that a program writes.

    Args:
        names: a pattern that matches the names of the files.
        read: (file, run entry that the user names, or an empty text) → the file's content. If the file is malformed, it
            raises an `InputError` that names the file and the row.
        choose: (files in a folder) → the files that are read; the others have the same content.
    """

    title: str
    names: re.Pattern[str]
    read: Callable[[Path, str], Iterator[RunOrScore]]
    choose: Callable[[Sequence[Path]], Iterable[Path]] = tuple

    def files(self, path: Path) -> list[Path]:
        """Return the files to read: `path` itself, or those in the folder `path` and the folders in it."""
        if not path.is_dir():
            return [path]
        return list(
            self.choose([file for file in sorted(path.rglob("*")) if self.fits(file)])
        )

    def fits(self, path: Path) -> bool:
        """Whether the file's name is one that the program gives, or that with `.gz` after it."""
        name = path.name.removesuffix(PACKED)
        return path.is_file() and self.names.fullmatch(name) is not None
