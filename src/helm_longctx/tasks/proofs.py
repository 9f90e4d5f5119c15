"""Published outputs of real models, and the scores that were printed of them.

A benchmark's folder can have the module `proof.py`, whose `PROOF` says where the outputs and the printed table are, and
how to read both. `helm-longctx verify` scores the outputs and compares the scores with the table, cell by cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from helm_longctx.data.download import Source
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.task import ScorerInput, Task

_Scorer = Callable[[ScorerInput], float]
"""(record) → 0…1"""

TOLERANCE = 1e-9
"""Difference in percentage points that sums of floating-point numbers can have in another order."""


class MissingFileError(InputError):
    """A file of outputs is not under the data root."""


@dataclass(frozen=True)
class ScoredOutputs:
    """The outputs of a model to a task, ready to be scored."""

    task: Task
    records: Sequence[ScorerInput]


_Read = Callable[[DataRoot, str], ScoredOutputs]
"""(data root, path under it) → the outputs of the file, or an `InputError`"""


class OutputScores:
    """The mean scores of files of outputs, each read and scored once.

    Args:
        read: reads a file under the data root. It raises an `InputError` if the file is malformed.

    Attributes:
        outputs: number of outputs of each file that was scored, by path.
        missing: the files that are not there.
        unreadable: the files that cannot be read, with the reason.
    """

    def __init__(self, root: DataRoot, read: _Read):
        self.root = root
        self.outputs: dict[str, int] = {}
        self.missing: list[str] = []
        self.unreadable: dict[str, str] = {}
        self._read = read
        self._means: dict[str, float] = {}

    def percent(
        self,
        path: str,
        scorer: _Scorer | None = None,
        read: _Read | None = None,
    ) -> float:
        """Return the mean score of a file in percent.

        Args:
            scorer: another scorer than the task's.
            read: another reader of the file.

        Raises:
            MissingFileError: the file is not under the data root.
            InputError: the file is malformed.
        """
        is_usual = scorer is None and read is None
        if is_usual and path in self._means:
            return self._means[path]
        outputs = self._open(path, read or self._read)
        score = scorer or (lambda record: outputs.task.scores(record)["longctx_score"])
        mean = 100 * fmean([score(record) for record in outputs.records])
        if is_usual:
            self._means[path] = mean
            self.outputs[path] = len(outputs.records)
        return mean

    def mean(self, paths: Collection[str]) -> float:
        """Return the mean over files of their mean scores in percent."""
        return fmean([self.percent(path) for path in paths])

    def _open(self, path: str, read: _Read) -> ScoredOutputs:
        if not self.root.has(path):
            if path not in self.missing:
                self.missing.append(path)
            raise MissingFileError(f"{path} is missing")
        try:
            return read(self.root, path)
        except InputError as error:
            self.unreadable[path] = str(error)
            raise


Compute = Callable[[OutputScores], float]
"""(scores of files) → a score in percent, or a `MissingFileError` or an `InputError`"""


@dataclass(frozen=True)
class Reason:
    """Why a printed score is not the one that the outputs have.

    Args:
        compute: how the printed score was made. None if that is not known.
    """

    text: str
    compute: Compute | None = None


@dataclass(frozen=True)
class PrintedScore:
    """A cell of a printed table.

    Args:
        column: the task, and the length or the form of the prompt if there are several.
        text: the score in percent as it is printed, such as `92.71%` or `< 5%`.
        compute: computes the score from the outputs. None if no outputs were published.
        reason: why the score differs from the outputs. None if it should be equal.
    """

    model: str
    column: str
    text: str
    compute: Compute | None
    reason: Reason | None = None


@dataclass(frozen=True)
class Proof:
    """Published outputs with their printed scores.

    Args:
        title: what was published, and by whom.
        page: the address of the repository at the pinned commit.
        sources: the files. They are downloaded and checked. In a mirror some may be missing.
        read_cells: yields the cells of the printed tables.
        read_outputs: reads a file of outputs.
        license: the license of the outputs.
        is_by_authors: whether the benchmark's authors published them; otherwise a user of their code did.
    """

    title: str
    page: str
    sources: Sequence[Source]
    read_cells: Callable[[DataRoot], Iterator[PrintedScore]]
    read_outputs: _Read
    license: str
    is_by_authors: bool = True


_NUMBER = re.compile(r"(?P<less><?)\s*(?P<number>-?\d+(?:\.(?P<decimals>\d+))?)\s*%?")


def is_printed_as(percent: float, text: str) -> bool:
    """Whether a score rounds to the printed one, or is below the printed bound.

    Raises:
        ValueError: the text is not a number such as `92.71%`, or a bound such as `< 5%`.
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a printed score")
    number = float(match["number"])
    if match["less"]:
        return percent < number
    half_a_digit = 0.5 * 10.0 ** -len(match["decimals"] or "")
    return abs(number - percent) <= half_a_digit + TOLERANCE
