"""A few rounds of `make chaos`, and whether it would see a fault of the runner."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.chaos import ENTRIES, Chaos, ChaosError, Run, Tally, chaos
from tests.chaos.server import tag


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chaos]:
    """One server and one process that forks, for all tests."""
    with chaos(tmp_path_factory.mktemp("chaos")) as started:
        yield started


@pytest.mark.parametrize("seed", [1, 2])
def test_rounds(made: Chaos, seed: int) -> None:
    """The results are those of an undisturbed run, and no answer of the journal was asked for again."""
    rounds = made.tally.rounds
    made.round(seed)
    assert made.tally.rounds == rounds + 1


def test_what_it_would_see(made: Chaos, tmp_path: Path) -> None:
    """A request that is asked again though it was answered, and an answer that is another."""
    run = Run(made.forks, made.server, tmp_path, ENTRIES[0], random.Random(0), Tally())
    run.attempt_calmly()
    expected = run.results()
    (state,) = tmp_path.glob("benchmark_output/runs/s/*/scenario_state.json")
    first = made.server.calls[0]
    state.write_text(state.read_text().replace(tag(first.prompt), "#other#"))
    assert [name for name, value in run.results().items() if value != expected[name]] == ["answers"]
    run.journaled = {tag(first.prompt)}
    with pytest.raises(ChaosError, match="1 requests were asked again"):
        run.attempt_calmly()
