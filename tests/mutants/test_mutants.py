"""The tool that mutates modules makes changes that can be noticed, and notices them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from tests.mutants.__main__ import SURVIVORS, is_listed
from tests.mutants.mutate import list_mutants
from tests.mutants.rooms import PACKAGE, ROOT, SOURCE, list_rooms

RANKING = PACKAGE / "results/statistics/ranking.py"


def list_files(arguments: Iterable[str]) -> list[str]:
    """Return the files among arguments of pytest."""
    return [argument for argument in arguments if argument.startswith("tests/")]


def test_each_module_has_tests() -> None:
    """Each module that is mutated exists once in the list, and so do its tests."""
    rooms = list(list_rooms())
    assert len({path for path, _ in rooms}) == len(rooms) > 40
    missing = [
        str(path)
        for path, tests in rooms
        if not tests or not all((ROOT / test).exists() for test in list_files(tests))
    ]
    assert not missing


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


def test_mutants_are_noticed(tmp_path: Path) -> None:
    """Tests that pass with a module fail with its changed source, which stands in no file, and an endless loop is ended."""
    program = tmp_path / "try.py"
    program.write_text(
        "from tests.mutants.run import run_tests\n"
        "from tests.mutants.rooms import PACKAGE\n"
        "path = PACKAGE / 'tasks/words.py'\n"
        "source = path.read_text()\n"
        "tests = ('tests/tasks/test_words.py',)\n"
        "print(run_tests(path, source, tests, 300), run_tests(path, source + '\\nraise ValueError', tests, 300),"
        " run_tests(path, source + '\\nwhile True: pass', tests, 3))\n"
    )
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": os.pathsep.join((str(SOURCE), str(ROOT)))},
    )
    assert done.stdout.split() == ["True", "False", "None"], done.stderr
