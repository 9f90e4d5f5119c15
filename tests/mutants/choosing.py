"""Chooses the tests of a mutant: those that execute the changed statement, quickest file first."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Set
from pathlib import Path

from tests.mutants.measuring import MeasuredFile
from tests.mutants.rooms import PACKAGE, TABLES

BUDGET = 40
"""Processor seconds of the tests that execute the statement. A file that would need more is left out."""

REST_BUDGET = 15
"""Processor seconds of the other tests of the same files."""


def choose_tests(path: Path, line: int, files: Collection[MeasuredFile]) -> list[str]:
    """Return pytest's names of the tests that may notice a change at a line of a module, in the order of their run.

    The tests that execute the statement come first. The others of their files follow, because what a file
    keeps, such as a cached result, counts for the first test that needs it.
    """
    module = path.relative_to(PACKAGE).as_posix()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    statement = find_statement(tree, line)
    chosen = _find_tests(module, statement, files) if statement else []
    if not chosen:
        # An import executes the line, itself or by a call, so each test that calls a function of the module depends on it.
        chosen = _find_tests(module, _list_body_lines(tree), files)
        for file in files:
            if file.path in TABLES:
                tests = list(file.lines)
                chosen.append((_add_seconds(file, tests), file.path, tests))
    chosen.sort()
    by_path = {file.path: file for file in files}
    names: list[str] = []
    left = float(BUDGET)
    for seconds, _, tests in chosen:
        if names and seconds > left:
            break
        names += tests
        left -= seconds
    left = float(REST_BUDGET)
    for _, file_path, tests in chosen:
        file = by_path[file_path]
        others = [test for test in file.lines if test not in tests]
        seconds = _add_seconds(file, others)
        if seconds <= left:
            names += others
            left -= seconds
    return names


def _find_tests(
    module: str, lines: Set[int], files: Collection[MeasuredFile]
) -> list[tuple[float, str, list[str]]]:
    """Return the tests that execute one of the lines of a module, by file, with their seconds and the file's path."""
    chosen = []
    for file in files:
        tests = [
            test
            for test, executed in file.lines.items()
            if not lines.isdisjoint(executed.get(module, ()))
        ]
        if tests:
            chosen.append((_add_seconds(file, tests), file.path, tests))
    return chosen


def _add_seconds(file: MeasuredFile, tests: Collection[str]) -> float:
    return sum(file.seconds[test] for test in tests)


def find_statement(tree: ast.Module, line: int) -> set[int] | None:
    """Return the lines of the innermost statement at a line, without the statements in it; None if an import executes it."""
    function = next(
        (
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and _start(node.body[0]) <= line <= _end(node)
        ),
        None,
    )
    if function is None:
        return None
    heads = [head for head in _list_heads(function.body) if line in head]
    return set(min(heads, key=len))


def _list_heads(body: list[ast.stmt]) -> Iterator[range]:
    """Yield the lines of each statement, of a compound one those before its first statement."""
    for statement in body:
        inner = [
            node
            for node in ast.iter_child_nodes(statement)
            if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case)
        ]
        end = _end(statement)
        if inner:
            end = max(min(_start(node) for node in inner) - 1, statement.lineno)
        yield range(_start(statement), end + 1)
        yield range(_start(statement), _end(statement) + 1)
        for node in inner:
            if isinstance(node, ast.stmt):
                yield from _list_heads([node])
            else:
                yield range(_start(node), _start(node.body[0]))
                yield from _list_heads(node.body)


def _list_body_lines(tree: ast.Module) -> set[int]:
    """Return the lines in the bodies of a module's functions."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines.update(range(_start(node.body[0]), _end(node) + 1))
        elif isinstance(node, ast.Lambda):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _start(node: ast.AST) -> int:
    """Return the first line of a statement, a handler or a case, its decorators included."""
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    decorators = getattr(node, "decorator_list", [])
    return int(min(part.lineno for part in (*decorators, node)))


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno
