"""Tests a small part of `make fuzz`, and tests that wrong outcomes are found at all."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import NoReturn

import pytest
import vl_convert

from helm_longctx.cli.main import COMMANDS
from helm_longctx.errors import InputError
from tests.fuzz import archives, commands, judges, loaders, records, replies
from tests.fuzz.cases import (
    SEED,
    Done,
    HangError,
    Kind,
    check_line,
    run_case,
    run_forked,
)

SLOW = (
    "judge-check",
    "rejudge",
    "summarize",
    "export",
    "run",
    "batch",
    "report",
    "demo",
)
CASES = [
    *((loaders.KIND, loader, 50) for loader in loaders.LOADERS),
    *((loaders.KIND, results, 8) for results in loaders.BATCHES),
    *((replies.KIND, protocol, 30) for protocol in replies.KIND.targets),
    *((judges.KIND, reader, 200) for reader in judges.KIND.targets),
    *((archives.KIND, maker, 5) for maker in archives.KIND.targets),
    *(
        (commands.KIND, command, 1 + (command not in SLOW))
        for command in commands.KIND.targets
    ),
    (records.KIND, "score", 20),
]


@pytest.mark.parametrize(
    ("kind", "target", "count"),
    CASES,
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_mutated_input(kind: Kind, target: str, count: int) -> None:
    """No case ends with a traceback, a hang or a wrong status."""
    failures = [run_case(kind, target, number, SEED) for number in range(count)]
    assert [failure for failure in failures if failure] == []


def test_every_task_has_fabricated_data() -> None:
    """Every task has fabricated data, because a task without `build_<name>` in its benchmark's `fabricate.py` is never fuzzed."""
    assert [
        name
        for name, (_, task) in loaders.TASKS.items()
        if not loaders.fabricated_files(task)
    ] == []


def test_every_command_is_fuzzed() -> None:
    """`LINES` has valid lines of each command of the help."""
    names = {command.name for command in COMMANDS}
    assert names == {name.split()[0] for name in commands.LINES} - {"general"}


def test_a_case_is_the_same_again() -> None:
    """A case depends only on the seed and its name."""
    drawn: list[float] = []
    kind = Kind("kind", ("x",), 1, lambda target, rng: drawn.append(rng.random()))
    for number, seed in ((3, 1), (4, 1), (3, 1), (3, 2)):
        run_case(kind, "x", number, seed)
    assert drawn[0] == drawn[2]
    assert len(set(drawn)) == 3


def test_a_hang_and_an_error_are_failures() -> None:
    """A hang and an unexpected error are failures that name the case."""

    def fail(target: str, rng: random.Random) -> NoReturn:
        if target == "error":
            raise KeyError("x")
        time.sleep(60)
        raise AssertionError

    for target, told in (
        ("error", "KeyError: 'x'"),
        ("hang", "HangError: no outcome after"),
    ):
        failure = run_case(
            Kind("kind", ("error", "hang"), 1, fail), target, 7, SEED, limit=0.2
        )
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
    """A crash, a traceback, a status without a message, and an error with a status other than 2 are wrong outcomes."""
    with pytest.raises(AssertionError):
        commands.check(done, ["list"])


def test_wrong_errors() -> None:
    """An error without text, with several lines or with too long a line is wrong."""
    for message in ("", "a\nb", "x" * 5000):
        with pytest.raises(AssertionError):
            check_line(InputError(message))


def test_a_process_that_hangs_is_ended(tmp_path: Path) -> None:
    """A process that waits or computes for too long is ended together with its case."""

    def compute() -> None:
        while True:
            pass

    for act in (lambda: time.sleep(60), compute):
        with pytest.raises(HangError):
            run_forked(act, tmp_path, 0.2)
    assert run_forked(lambda: print("out"), tmp_path) == Done(0, b"out\n", "")


def test_a_process_can_draw(tmp_path: Path) -> None:
    """A process of its own can draw a plot although the process of the tests has drawn one before."""
    spec = {
        "data": {"values": [{"a": 1}]},
        "mark": "point",
        "encoding": {"x": {"field": "a", "type": "quantitative"}},
    }
    vl_convert.vegalite_to_svg(spec)
    done = run_forked(
        lambda: print(vl_convert.vegalite_to_svg(spec, config={})), tmp_path, 60
    )
    assert done.status == 0, done.err
    assert done.out.startswith(b"<svg")


def test_mutated_lines_write_nowhere_else() -> None:
    """No mutated line names a folder outside its own, because the commands have the rights of the person who runs the tests."""
    assert not any(
        map(
            commands._leads_elsewhere,
            ("a/b", "..", "x:a=1,b=c/d", "/dev/null", "-o", "/proc/none/x"),
        )
    )
    assert all(
        map(
            commands._leads_elsewhere,
            ("/", "/tmp", "-o/tmp", "../..", "a/../../b", "--to=/x", "/dev/null/../x"),
        )
    )
