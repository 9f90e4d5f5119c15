"""The baseline, published scores, samples and addresses of Ada-LEval."""

from __future__ import annotations

import pytest

from helm_longctx.benchmarks.ada_leval import BENCHMARK
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import ProtocolArgument, Settings
from tests.benchmarks.ada_leval.fabricate import SEEDS, build_ada_leval

MODES: dict[ProtocolArgument, str] = {"paper": "normal", "api": "less"}


@pytest.fixture(scope="module", params=SEEDS)
def data(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, DataRoot]:
    """Return a seed and the files that are fabricated with it."""
    return request.param, DataRoot(
        build_ada_leval(tmp_path_factory.mktemp("data"), request.param), mirror=True
    )


@pytest.mark.parametrize(("task", "least"), [("stackselect", 0.7), ("textsort", 1.0)])
def test_baseline_reads_the_prompts(
    task: str, least: float, data: tuple[int, DataRoot]
) -> None:
    """The baseline finds the order of the parts in every prompt of TSort and most accepted answers of BestAnswer, and
    does not answer other prompts."""
    row, (_, root) = BENCHMARK.task(task), data
    answer = BENCHMARK.task(task).baseline.kind
    assert callable(answer)
    scores = []
    for example in load_examples(row, Settings(8192), root):
        output = answer(row.prompt(example).messages)
        record = {
            **example.record,
            "prediction": output,
            "references": example.references,
        }
        scores.append(row.score(record)["accuracy"])
    assert sum(scores) / len(scores) >= least
    assert answer([{"role": "user", "content": "Sort: Part 1: x"}]) is None


def test_published_tables() -> None:
    """The published scores are the README's two tables and its row of random guesses."""
    rows = {
        (row.model, row.category, row.length): row.scores
        for row in BENCHMARK.published()
    }
    assert rows["GPT-4-Turbo-0125", "bestanswer", 12 * 1024] == {"stackselect": 0.52}
    assert rows["Claude-2", "tsort", 65536] == {"textsort": 0.0}
    assert rows["Random Guess", "tsort", 2048] == {"textsort": 0.042}
    assert len(rows) == 146


def test_samples_and_addresses() -> None:
    """The official sample depends on the length and the protocol."""
    task = BENCHMARK.task("stackselect")
    samples = [
        task.sample(Settings(k * 1024, protocol=p)) for p in MODES for k in (16, 32)
    ]
    assert samples == [1000, 200, 200, 50]
    (file,) = task.sources(6 * 1024)
    assert (
        file.url
        == "http://opencompass.openxlab.space/utils/AdaLEval/stackselect_6k.json"
    )
