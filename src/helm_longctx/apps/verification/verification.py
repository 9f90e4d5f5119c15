"""Compares scores of published outputs with the printed tables, cell by cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from importlib import import_module

from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.data.web import RepositoryFolder, WebFile
from helm_longctx.errors import InputError
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.proofs import (
    Compute,
    MissingFileError,
    OutputScores,
    PrintedScore,
    Proof,
    is_printed_as,
)

_MOST_NAMES = 3
"""Number of missing files that an error names."""


class ScoreVerdict(Enum):
    """What is known of a printed score. The value is how tables name it."""

    EQUAL = "equal"
    EXPLAINED = "explained"
    DIFFERENT = "different"
    NO_FILE = "no file"
    NO_OUTPUTS = "no outputs published"


@dataclass(frozen=True)
class VerifiedScore:
    """A printed score with the one that the outputs have.

    Args:
        percent: the score of the outputs, if there is one.
        reason: why it differs from the printed one, or why there is none.
        is_computed: whether the reason was checked by a computation that gives the printed score.
    """

    cell: PrintedScore
    percent: float | None
    verdict: ScoreVerdict
    reason: str = ""
    is_computed: bool = False


@dataclass(frozen=True)
class Verification:
    """The verified table of a benchmark.

    Args:
        outputs: number of outputs that were scored.
        files: number of files that they are in.
        missing: the files that could not be had.
        other: the files and folders whose content is not that of the pinned commit, as git's ids show.
    """

    benchmark: Benchmark
    proof: Proof
    cells: Sequence[VerifiedScore]
    outputs: int
    files: int
    missing: Sequence[str]
    other: Sequence[str]

    @cached_property
    def counts(self) -> Counter[ScoreVerdict]:
        """The number of cells by their verdict."""
        return Counter(cell.verdict for cell in self.cells)

    @property
    def is_passed(self) -> bool:
        """Whether no score differs from the printed one without a reason."""
        return not self.counts[ScoreVerdict.DIFFERENT]


def find_proof(benchmark: Benchmark) -> Proof:
    """Return the published outputs of a benchmark. It must have some."""
    module, _, name = benchmark.proof.rpartition(".")
    proof: Proof = getattr(import_module(module), name)
    return proof


def verify_benchmark(benchmark: Benchmark, root: DataRoot) -> Verification:
    """Score a benchmark's published outputs, and compare them with the printed table.

    Raises:
        InputError: the files cannot be downloaded, or a mirror has no file of the printed table.
    """
    proof = find_proof(benchmark)
    command = f"helm-longctx verify {benchmark.name}"
    if not root.mirror:
        ensure(proof.sources, root, command)
    paths: list[str] = []
    for source in proof.sources:
        paths += source.paths
    missing = []
    for path in paths:
        if not root.has(path):
            missing.append(path)
    if len(missing) < len(paths):
        cells = list(proof.read_cells(root))
    else:
        cells = []
    if not cells:
        # Hundreds of names would not fit into one line.
        raise root.missing_error(missing[:_MOST_NAMES], command)
    scores = OutputScores(root, proof.read_outputs)
    verified = [_verify_cell(cell, scores) for cell in cells]
    return Verification(
        benchmark=benchmark,
        proof=proof,
        cells=verified,
        outputs=sum(scores.outputs.values()),
        files=len(scores.outputs),
        missing=missing,
        other=[*_find_other_content(proof, root)],
    )


def _find_other_content(proof: Proof, root: DataRoot) -> Iterator[str]:
    """Yield what of the files under the data root is not the content of the pinned commit, or cannot be compared.

    A mirror can have files that another program cut, and their scores would be taken for those of the published outputs.
    """
    for source in proof.sources:
        if not isinstance(source, RepositoryFolder | WebFile):
            continue
        # A missing file is listed as such.
        is_missing = isinstance(source, WebFile) and not root.has(source.path)
        if not is_missing and not source.is_pinned_content(root):
            yield source.path


def _verify_cell(cell: PrintedScore, scores: OutputScores) -> VerifiedScore:
    """Compare a printed score with the score of its outputs."""
    if cell.compute is None:
        return VerifiedScore(cell, None, ScoreVerdict.NO_OUTPUTS)
    reason = cell.reason
    try:
        percent = cell.compute(scores)
    except MissingFileError as error:
        return VerifiedScore(cell, None, ScoreVerdict.NO_FILE, str(error))
    except InputError as error:
        if reason and reason.compute is None:
            return VerifiedScore(cell, None, ScoreVerdict.EXPLAINED, reason.text)
        return VerifiedScore(cell, None, ScoreVerdict.DIFFERENT, str(error))
    if is_printed_as(percent, cell.text):
        return VerifiedScore(cell, percent, ScoreVerdict.EQUAL)
    if reason and reason.compute is None:
        return VerifiedScore(cell, percent, ScoreVerdict.EXPLAINED, reason.text)
    if reason and reason.compute and _gives(reason.compute, scores, cell.text):
        return VerifiedScore(
            cell, percent, ScoreVerdict.EXPLAINED, reason.text, is_computed=True
        )
    return VerifiedScore(cell, percent, ScoreVerdict.DIFFERENT)


def _gives(compute: Compute, scores: OutputScores, text: str) -> bool:
    try:
        return is_printed_as(compute(scores), text)
    except InputError:
        return False


def group_reasons(
    verification: Verification,
) -> Iterator[tuple[str, list[VerifiedScore]]]:
    """Yield each reason with the cells that it explains."""
    by_reason: dict[str, list[VerifiedScore]] = {}
    for cell in verification.cells:
        if cell.verdict is ScoreVerdict.EXPLAINED:
            by_reason.setdefault(cell.reason, []).append(cell)
    yield from by_reason.items()
