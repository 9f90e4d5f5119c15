"""Makes the mutants of a module: one operator of cosmic-ray at one place each."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from tests.mutants.rooms import PACKAGE

_OF_BITS = re.compile(r"ReplaceBinaryOperator_\w+_(RShift|LShift|BitOr|BitAnd|BitXor)$")
"""Operators that put an operation on bits in the place of arithmetic. With floats any test that runs the line fails."""


@dataclass(frozen=True)
class Mutant:
    """A module with one change.

    Args:
        path: the module.
        operator: the name of cosmic-ray's operator.
        occurrence: number of the place among those where the operator applies.
        line: the line of the place.
    """

    path: Path
    operator: str
    occurrence: int
    line: int

    @property
    def module(self) -> str:
        """The path in the package, with slashes."""
        return self.path.relative_to(PACKAGE).as_posix()

    def source(self) -> str:
        """Return the changed source of the module."""
        operator = get_operator(self.operator)()
        source = mutate_code(
            self.path.read_text(encoding="utf-8"), operator, self.occurrence
        )
        assert source is not None
        return str(source)

    def change(self) -> tuple[str, str]:
        """Return the lines that differ, before and after, without their indentation."""
        before, after = (
            text.splitlines()
            for text in (self.path.read_text(encoding="utf-8"), self.source())
        )
        start = next(
            i
            for i, pair in enumerate(zip(before, after, strict=False))
            if pair[0] != pair[1]
        )
        end = next(
            i
            for i, pair in enumerate(zip(before[::-1], after[::-1], strict=False))
            if pair[0] != pair[1]
        )
        changed = (
            lines[start : max(len(lines) - end, start + 1)] for lines in (before, after)
        )
        old, new = (" ".join(line.strip() for line in lines) for lines in changed)
        return old, new

    def digest(self) -> str:
        """Return a digest of the module's name and changed source."""
        return hashlib.sha256(f"{self.module}\n{self.source()}".encode()).hexdigest()[
            :16
        ]


def list_mutants(path: Path) -> Iterator[Mutant]:
    """Yield the mutants of a module, except those of annotations, which are never run."""
    source = path.read_text(encoding="utf-8")
    nodes = list(ast_nodes(get_ast(source)))
    lines = _annotations(source)
    for name in operator_names():
        if _OF_BITS.search(name) or get_operator(name).arguments():
            continue
        operator = get_operator(name)()
        places = [
            start for node in nodes for start, _ in operator.mutation_positions(node)
        ]
        for occurrence, (line, column) in enumerate(places):
            if not any(first <= (line, column) < last for first, last in lines):
                yield Mutant(path, name, occurrence, line)


def _annotations(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the start and end of each annotation."""
    spans = []
    for node in ast.walk(ast.parse(source)):
        annotation = getattr(node, "returns", None) or getattr(node, "annotation", None)
        if isinstance(annotation, ast.expr):
            start = (annotation.lineno, annotation.col_offset)
            end = (annotation.end_lineno or 0, annotation.end_col_offset or 0)
            spans.append((start, end))
    return spans
