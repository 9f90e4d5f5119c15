"""A small part of `make fuzz` in the ordinary suite, and that wrong outcomes are found at all."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import NoReturn

import pytest

from helm_longctx.errors import InputError
from tests.fuzz import archives, commands, judges, loaders, records
from tests.fuzz.cases import SEED, Done, HangError, Kind, check_line, run_case, run_forked

SLOW = ("judge-check", "rejudge", "summarize", "export")
CASES = [
    *((loaders.KIND, loader, 50) for loader in loaders.KIND.targets),
    *((judges.KIND, reader, 200) for reader in judges.KIND.targets),
    *((archives.KIND, maker, 5) for maker in archives.KIND.targets),
    *((commands.KIND, command, 1 + (command not in SLOW)) for command in commands.KIND.targets),
    (records.KIND, "score", 20),
]


@pytest.mark.parametrize(("kind", "target", "count"), CASES, ids=lambda value: getattr(value, "name", str(value)))
def test_mutated_input(kind: Kind, target: str, count: int) -> None:
    """No traceback, no hang, no wrong status."""
    failures = [run_case(kind, target, number, SEED) for number in range(count)]
    assert [failure for failure in failures if failure] == []


def test_every_task_has_fabricated_data() -> None:
    """A task without it is never fuzzed: `BUILDERS` lacks what fabricates its benchmark."""
    assert [name for name, (_, task) in loaders.TASKS.items() if not loaders.fabricated(task)] == []


def test_a_case_is_the_same_again() -> None:
    """The seed and the case's name alone make it."""
    drawn: list[float] = []
    kind = Kind("kind", ("x",), 1, lambda target, rng: drawn.append(rng.random()))
    for number, seed in ((3, 1), (4, 1), (3, 1), (3, 2)):
        run_case(kind, "x", number, seed)
    assert drawn[0] == drawn[2]
    assert len(set(drawn)) == 3


def test_a_hang_and_an_error_are_failures() -> None:
    """Each with the name of its case."""

    def fail(target: str, rng: random.Random) -> NoReturn:
        if target == "error":
            raise KeyError("x")
        time.sleep(60)
        raise AssertionError

    for target, told in (("error", "KeyError: 'x'"), ("hang", "HangError: no outcome after")):
        failure = run_case(Kind("kind", ("error", "hang"), 1, fail), target, 7, SEED, limit=0.2)
        assert failure
        assert failure.case == f"kind/{target}/7"
        assert told in failure.about


@pytest.mark.parametrize(
    "done",
    [
        Done(70, b"", "x"),
        Done(-11, b"", ""),
        Done(2, b"", ""),
        Done(0, b"", "helm-longctx: error: x\n"),
        Done(1, b"", "helm-longctx: error: x\n"),
        Done(2, b"", "helm-longctx: error: x\nhelm-longctx: error: y\n"),
        Done(1, b"", "Traceback (most recent call last):\nKeyError\n"),
    ],
)
def test_wrong_outcomes_of_commands(done: Done) -> None:
    """A crash, a status without a word, an error with another status than 2, a traceback."""
    with pytest.raises(AssertionError):
        commands.check(done, ["list"])


def test_wrong_errors() -> None:
    """Several lines, or none."""
    for message in ("", "a\nb", "x" * 5000):
        with pytest.raises(AssertionError):
            check_line(InputError(message))


def test_a_process_that_hangs_is_ended(tmp_path: Path) -> None:
    """A process that takes too long ends with the case."""
    with pytest.raises(HangError):
        run_forked(lambda: time.sleep(60), tmp_path, 0.2)
    assert run_forked(lambda: print("out"), tmp_path) == Done(0, b"out\n", "")


def test_mutated_lines_write_nowhere_else() -> None:
    """No mutated line names a folder outside that of its case: they run as whoever runs the tests."""
    assert not any(map(commands._leads_elsewhere, ("a/b", "..", "x:a=1,b=c/d", "/dev/null", "-o", "/proc/none/x")))
    assert all(
        map(commands._leads_elsewhere, ("/", "/tmp", "-o/tmp", "../..", "a/../../b", "--to=/x", "/dev/null/../x"))
    )
