"""Conversations, bins and scores equal the official code's, which was run on the same data (golden_makers/mrcr.py)."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from helm.benchmark.metrics.openai_mrcr_metrics import OpenAIMRCRMetric
from helm.benchmark.scenarios.scenario import CORRECT_TAG

from helm_longctx.benchmarks.mrcr import BENCHMARK, HELMET2, tasks
from helm_longctx.benchmarks.mrcr.tasks import load_shuffled, score
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import Settings
from tests.benchmarks.mrcr.fabricate import BINS, build_split, encoding, records

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_split(tmp_path_factory.mktemp("mrcr"))


@pytest.mark.parametrize("case", GOLDEN["rows"])
def test_conversations(case: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of each bin, their order, and all messages with their roles are the official ones."""
    needles, label = case.split()
    count = encoding().encode
    monkeypatch.setattr(tasks, "o200k_counter", lambda: lambda text: len(count(text)))
    task = BENCHMARK.task(f"{needles}needle")
    root = DataRoot(path.parents[2], mirror=True)
    found = task.load(task, Settings(length=BINS[label]), root)
    rows = [
        [
            example.id,
            [[message["role"], message["content"]] for message in example.messages],
        ]
        for example in found
    ]
    assert rows == [
        [f"mrcr-{number}", messages]
        for number, messages in json.loads(GOLDEN["rows"][case])
    ]


@pytest.mark.parametrize("case", GOLDEN["shuffled"])
def test_shuffled_sample(
    case: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HELMET's sample has the official rows in the official order."""
    needles, label = case.split()
    count = encoding().encode
    monkeypatch.setattr(tasks, "o200k_counter", lambda: lambda text: len(count(text)))
    task = HELMET2.tasks[0]
    settings = Settings(length=BINS[label], seed=7, num_samples=4)
    found = load_shuffled(
        task, settings, DataRoot(path.parents[2], mirror=True), int(needles)
    )
    assert [int(example.id.removeprefix("mrcr-")) for example in found] == GOLDEN[
        "shuffled"
    ][case]


def test_golden_bins_say_something() -> None:
    """Every number of needles has all bins and several rows."""
    assert set(GOLDEN["rows"]) == {
        f"{needles} {label}" for needles in tasks.NEEDLES for label in BINS
    }
    assert all(sum(len(json.loads(rows)) for case, rows in GOLDEN["rows"].items() if case[0] == str(needles)) > 4
               for needles in tasks.NEEDLES)  # fmt: skip


def test_scores() -> None:
    """Every score is the official one, digit for digit; some scores are 0, some are 1, and many are between them."""
    scores = [score(record)["score"] for record in records()]
    assert scores == GOLDEN["scores"]
    assert {0.0, 1.0} < set(scores)
    assert sum(0 < value < 1 for value in scores) > 50


def test_scores_are_those_of_helm() -> None:
    """The scores equal those by HELM's own metric."""
    for record in records():
        reference = SimpleNamespace(
            output=SimpleNamespace(text=record["answer"]), tags=[CORRECT_TAG]
        )
        extra = {"random_string_to_prepend": record["random_string_to_prepend"]}
        state = SimpleNamespace(
            result=SimpleNamespace(
                completions=[SimpleNamespace(text=record["prediction"])]
            ),
            instance=SimpleNamespace(references=[reference], extra_data=extra),
        )
        (stat,) = OpenAIMRCRMetric().evaluate_generation(None, state, None, "")  # type: ignore[arg-type]
        assert score(record)["score"] == stat.mean
