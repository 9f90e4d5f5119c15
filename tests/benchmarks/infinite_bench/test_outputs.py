"""The files of outputs of the official scripts are read, and the published scores are those of seven models."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks.infinite_bench.outputs import READER
from helm_longctx.benchmarks.infinite_bench.tasks import INFINITE_BENCH, ROWS
from helm_longctx.errors import InputError
from tests.support.fabricate import write


@pytest.mark.parametrize(
    ("model", "entry"),
    [
        ("gpt4", "infinite_bench"),
        ("claude2", "infinite_bench_claude"),
        ("yi-6b-200k", "infinite_bench_base"),
    ],
)
def test_the_folder_gives_the_model_and_the_prompts(
    tmp_path: Path, model: str, entry: str
) -> None:
    """The folder is the model's name, which selects the run entry; both official names of the columns are read."""
    path = tmp_path / model / "preds_code_run.jsonl"
    write(
        path,
        [
            {"id": 0, "pred": "It is 5", "label": [5]},
            {"id": 1, "prediction": "", "label": -3},
        ],
    )
    (run,) = READER.read(path, "")
    assert (run.entry, run.model) == (f"{entry}:task=code_run", model)
    assert [
        (output.id, output.prediction, output.references) for output in run.outputs
    ] == [
        ("code_run-0", "It is 5", ["5"]),
        ("code_run-1", "", ["-3"]),
    ]
    assert run.outputs[1].location == f"{path}:2"


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        (
            "m/preds_other.jsonl",
            {"prediction": "", "ground_truth": "x"},
            "not a name of ∞Bench's files of outputs",
        ),
        (
            "kimi/preds_passkey.jsonl",
            {"prediction": "", "ground_truth": "x"},
            "no run entry has Kimi's prompts",
        ),
        ("m/preds_passkey.jsonl", {"ground_truth": "x"}, "'prediction' must be text"),
        (
            "m/preds_passkey.jsonl",
            {"prediction": ""},
            "the answer must be text, a number",
        ),
    ],
)
def test_other_files_are_refused(
    tmp_path: Path, name: str, row: dict[str, str], message: str
) -> None:
    """A file with another name, with unknown prompts, or without outputs or answers is refused."""
    write(tmp_path / name, [row])
    with pytest.raises(InputError, match=message):
        list(READER.read(tmp_path / name, ""))


def test_published_scores() -> None:
    """The published table has seven models on twelve tasks, except for two scores of one model."""
    rows = {row.model: row.scores for row in INFINITE_BENCH.published()}
    assert len(rows) == 7
    assert set(ROWS) - rows["YaRN-Mistral-7B"].keys() == {
        "longbook_qa_chn",
        "math_calc",
    }
    assert all(
        scores.keys() == set(ROWS)
        for model, scores in rows.items()
        if model != "YaRN-Mistral-7B"
    )
    assert rows["Claude 2"]["longdialogue_qa_eng"] == 0.465
