"""Defects of the official scores and their remedies, samples and faulty files of LongGenBench's questions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.longgenbench_qa import BENCHMARK, tasks
from helm_longctx.benchmarks.longgenbench_qa.tasks import (
    GSM8K_SCRIPT,
    MMLU_PROMPT,
    PROMPTS,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.longgenbench_qa.fabricate import build_longgenbench_qa

GSM8K, MMLU = BENCHMARK.tasks


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    """Return a folder with the fabricated files."""
    return DataRoot(build_longgenbench_qa(tmp_path_factory.mktemp("data")), mirror=True)


def test_defects_and_their_remedies() -> None:
    """An answer without a number or letter, and a right answer with a comma, count only in the mended accuracy."""
    text = "Answer_9:\nnone\n\nAnswer_10:\nThe answer is 1,234.\n\n"
    scores = tasks.score_gsm8k(
        {"prediction": text, "references": ["#### 0", "#### 1,234", "#### 5"]}
    )
    assert scores == {
        "accuracy": 0.5,
        "answered": pytest.approx(2 / 3),
        "accuracy_of_all": pytest.approx(1 / 3),
    }
    assert tasks.score_gsm8k({"prediction": "", "references": ["#### 0"]}) == {
        "answered": 0,
        "accuracy_of_all": 0,
    }
    scores = tasks.score_mmlu(
        {"prediction": "Answer_6:\nnone of them\n\n", "references": ["A", "B"]}
    )
    assert scores == {"accuracy": 0.5, "answered": 0.5, "accuracy_of_all": 0}


@given(st.text(alphabet="Answer_:\n\r 1Q.A_gold:", max_size=80))
def test_scores_of_any_text(text: str) -> None:
    """Each text has shares in 0…1."""
    for task, gold in ((GSM8K, "#### 1"), (MMLU, "A")):
        assert all(
            0 <= score <= 1
            for score in task.scores(
                {"prediction": text, "references": [gold] * 3}
            ).values()
        )


def test_a_faulty_file_is_named(tmp_path: Path) -> None:
    """A script without the system message and a subject without examples end in one line."""
    root = DataRoot(build_longgenbench_qa(tmp_path), mirror=True)
    (root / GSM8K_SCRIPT.path).write_text("x = 1\n")
    with pytest.raises(
        InputError,
        match=r"longgenbench_GSM8K_openai.py has no system message; fetch the file again",
    ):
        list(load_examples(GSM8K, Settings(None), root))
    (root / PROMPTS.path / MMLU_PROMPT).write_text("{}")
    with pytest.raises(InputError, match=r"mmlu's format: KeyError 'abstract_algebra'"):
        list(load_examples(MMLU, Settings(None), root))


def test_samples(root: DataRoot) -> None:
    """The sample is 20 texts of 35 questions, and fewer if the file ends; a smaller one is the first texts."""
    assert (GSM8K.num_samples, MMLU.num_samples) == (20, 57)
    examples = list(load_examples(GSM8K, Settings(None), root))
    assert [len(example.references) for example in examples] == [35, 35, 10]
    assert (
        list(load_examples(GSM8K, Settings(None, num_samples=1), root)) == examples[:1]
    )
