"""The tool that mutates modules makes changes that can be noticed, and notices them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.mutants.__main__ import SURVIVORS, is_listed
from tests.mutants.choosing import choose_tests, find_statement
from tests.mutants.measuring import MeasuredFile
from tests.mutants.mutate import list_mutants
from tests.mutants.rooms import (
    MODULES,
    PACKAGE,
    ROOT,
    SOURCE,
    TABLES,
    TESTS,
    list_modules,
)

RANKING = PACKAGE / "results/statistics/ranking.py"


def test_patterns_name_files() -> None:
    """Each pattern of modules and of tests matches a file, and each module is mutated once."""
    modules = list_modules()
    assert len(set(modules)) == len(modules) > 40
    assert [pattern for pattern in MODULES if not list(PACKAGE.glob(pattern))] == []
    tests = ROOT / "tests"
    assert [pattern for pattern in TESTS if not list(tests.glob(pattern))] == []
    assert all((ROOT / path).exists() for path in TABLES)


SAMPLE = """LIMIT = 3

@cache
def count(
    text, limit=LIMIT
):
    total = 0
    for word in text.split(
        " "
    ):
        if word:
            total += (
                1
            )
    try:
        check(total)
    except ValueError:
        return 0
    return total
"""


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        (1, None),
        (3, None),
        (5, None),
        (7, {7}),
        (9, {8, 9, 10}),
        (11, {11}),
        (13, {12, 13, 14}),
        (16, {16}),
        (17, {17}),
        (18, {18}),
        (19, {19}),
    ],
)
def test_the_statement_at_a_line(line: int, lines: set[int] | None) -> None:
    """The lines of a statement do not include the statements in it, and lines that an import executes have none."""
    assert find_statement(ast.parse(SAMPLE), line) == lines


def test_tests_of_a_change() -> None:
    """The tests that execute the statement come first, those of the quickest file before others; then the rest of the files."""
    line = _find_body_line()
    module = "results/statistics/ranking.py"
    slow = MeasuredFile(
        path="slow.py",
        digest="",
        seconds={"a": 5.0, "b": 1.0},
        lines={"a": {module: [line]}, "b": {module: [line]}},
    )
    quick = MeasuredFile(
        path="quick.py",
        digest="",
        seconds={"c": 1.0, "d": 2.0},
        lines={"c": {}, "d": {module: [line]}},
    )
    other = MeasuredFile(
        path="other.py", digest="", seconds={"e": 1.0}, lines={"e": {}}
    )
    files = [slow, quick, other]
    assert choose_tests(RANKING, line, files) == ["d", "a", "b", "c"]
    assert choose_tests(RANKING, 1, files) == ["d", "a", "b", "c"]


def _find_body_line() -> int:
    """Return a line in the first function of a module."""
    tree = ast.parse(RANKING.read_text())
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    return function.body[-1].lineno


def test_a_mutant_changes_one_place() -> None:
    """A mutant differs from its module in the lines that it names, and mutants differ from each other."""
    mutants = list(list_mutants(RANKING))
    source = RANKING.read_text()
    for mutant in mutants[:: len(mutants) // 10]:
        before, after = mutant.change()
        assert before != after
        assert before.split()[0] in source.splitlines()[mutant.line - 1]
        compile(mutant.source(), str(RANKING), "exec")
    assert len({mutant.digest() for mutant in mutants[:20]}) == 20


def test_annotations_are_left_alone(tmp_path: Path) -> None:
    """Annotations are never run, so no test could notice that they change; arithmetic is not replaced by operators of bits."""
    path = tmp_path / "module.py"
    path.write_text(
        "def add(a: int | None, b: int) -> int | None:\n    total: int | str = a + b\n    return total\n"
    )
    names = [mutant.operator for mutant in list_mutants(path)]
    assert names
    assert all(name.startswith("core/ReplaceBinaryOperator_Add_") for name in names)
    assert not any("Bit" in name or "Shift" in name for name in names)


def test_listed_survivors_have_reasons() -> None:
    """Each change that no test can notice has a reason, and those of a module still stand in it."""
    listed = yaml.safe_load(SURVIVORS.read_text())
    for module, rows in listed.items():
        assert all(len(row["reason"].split()) > 3 for row in rows), module
        source = (
            " ".join((PACKAGE / module).read_text().split())
            if module != "everywhere"
            else ""
        )
        assert not source or not [
            row["before"] for row in rows if row["before"] not in source
        ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("pairs = zip(a, b, strict=True)", "pairs = zip(a, b, strict=False)", True),
        ("pairs = zip(a, b, strict=True)", "pairs = zip(a, a, strict=True)", False),
        ("@lru_cache(maxsize=9)", "", True),
        ("@property", "", False),
    ],
)
def test_changes_that_count_nowhere(before: str, after: str, expected: bool) -> None:
    """A check that sequences are equally long, and a cache, change no result."""
    assert is_listed("some/module.py", before, after) is expected


TRY = """
import helm.benchmark.model_deployment_registry
import hypothesis
import pytest
from tests.mutants.run import run_tests
from tests.mutants.rooms import PACKAGE
path = PACKAGE / 'tasks/words.py'
source = path.read_text()
test = 'tests/tasks/test_words.py::test_cut_is_jiebas'
for change, seconds in (('', 300), ('raise ValueError', 300), ('while True: pass', 2)):
    outcome = run_tests(path, f'{source}\\n{change}', [test], seconds)
    print(outcome.passed)
broken = f'{source}\\ncut = None'
print(run_tests(path, broken, [test], 300).failed == (test,))
"""


def test_mutants_are_noticed(tmp_path: Path) -> None:
    """Tests that pass with a module fail with its changed source, which stands in no file, and an endless loop is ended.

    The failing test is named.
    """
    program = tmp_path / "try.py"
    program.write_text(TRY)
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": os.pathsep.join((str(SOURCE), str(ROOT)))},
    )
    assert done.stdout.split() == ["True", "False", "False", "True"], done.stderr
