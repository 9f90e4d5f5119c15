"""Tests a round of most kinds of `make chaos`, and tests that a round finds faults of the runner."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.__main__ import ROUNDS
from tests.chaos.chaos import ENTRIES, Chaos, ChaosError, Run, Tally, chaos
from tests.chaos.server import tag


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chaos]:
    """Start one server for all tests."""
    with chaos(tmp_path_factory.mktemp("chaos")) as started:
        yield started


ELSEWHERE = ("ray", "slow", "send", "collect")
LONG = ("report", "jury")
CASES = [
    pytest.param(kind, 1, marks=pytest.mark.long if kind in LONG else ())
    for kind in ROUNDS
    if kind not in ELSEWHERE
]


@pytest.mark.parametrize(("kind", "seed"), [("runs", 2), *CASES])
def test_rounds(made: Chaos, kind: str, seed: int, tmp_path: Path) -> None:
    """No answer is lost or paid for twice, and the results are equal to the results of an undisturbed run.

    Two kinds are left to `tests/runner/machines` (workers of Ray) and `tests/runner/batches`, and slow judges take too long.
    Kinds that take ten seconds have the marker `long`; `make chaos` runs all.
    """
    ROUNDS[kind](made, random.Random(seed), tmp_path / "round")


def test_what_it_would_see(made: Chaos, tmp_path: Path) -> None:
    """A round fails if a request is asked again although it was answered, and if an answer differs."""
    run = Run(made.server, tmp_path, ENTRIES[0], random.Random(0), Tally())
    run.attempt_calmly()
    expected = run.results()
    (state,) = tmp_path.glob("benchmark_output/runs/s/*/scenario_state.json")
    first = made.server.calls[0]
    state.write_text(state.read_text().replace(tag(first.prompt), "#other#"))
    assert [
        name for name, value in run.results().items() if value != expected[name]
    ] == ["answers"]
    run.journaled = {tag(first.prompt)}
    with pytest.raises(ChaosError, match="1 requests were asked again"):
        run.attempt_calmly()
