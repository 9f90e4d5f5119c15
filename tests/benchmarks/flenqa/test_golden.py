"""Prompts and scores equal the official code's, which was run on the same rows (golden_makers/flenqa.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks.flenqa import BENCHMARK
from helm_longctx.benchmarks.flenqa.tasks import DATASETS, LENGTHS, SOURCE
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.flenqa.fabricate import QUESTIONS, answers, build_flenqa, rows
from tests.support.fabricate_words import write
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    """Return a folder with the fabricated rows."""
    return DataRoot(build_flenqa(tmp_path_factory.mktemp("flenqa")), mirror=True)


def read_examples(task: Task, length: int, root: DataRoot) -> list[Example]:
    """Return all examples of a task at a length."""
    return list(load_examples(task, Settings(length), root))


@pytest.mark.parametrize("task", BENCHMARK.tasks, ids=lambda task: task.name)
def test_prompts_and_scores(task: Task, root: DataRoot) -> None:
    """The prompts of all rows, their order, and all metrics of odd answers are the official ones."""
    dataset = DATASETS[task.argument]
    reasoned = task.name.endswith("_cot")
    for length in LENGTHS:
        golden = GOLDEN[f"{dataset} {length} {reasoned}"]
        of_length = [
            row
            for row in rows()
            if row["dataset"] == dataset and row["ctx_size"] == length
        ]
        examples = read_examples(task, length, root)
        assert (
            digest(task.prompt(example).messages[0]["content"] for example in examples)
            == golden["prompts"]
        )
        found = []
        for example, row in zip(examples, of_length, strict=True):
            for answer in answers(row):
                scores = task.scores(
                    {
                        **example.record,
                        "prediction": answer,
                        "references": example.references,
                    }
                )
                found.append(
                    [
                        scores[name]
                        for name in ("accuracy", "cot_coverage", "early_response")
                        if name in scores
                    ]
                )
                assert ("accuracy_random" in scores) == (row["dispersion"] == "random")
        assert found == [
            scores if reasoned else scores[:1] for scores in golden["scores"]
        ]


def test_golden_cases_say_something() -> None:
    """Right and wrong answers, repeated facts and early answers occur in every case with reasoning."""
    for name, golden in GOLDEN.items():
        assert len({scores[0] for scores in golden["scores"]}) == 2, name
        assert not name.endswith("True") or all(
            len({scores[place] for scores in golden["scores"]}) > 1 for place in (1, 2)
        )


def test_groups_and_depths(root: DataRoot) -> None:
    """The prompts on a question are a group, and only padded texts with a known place have a depth."""
    task = BENCHMARK.task("pir")
    for length in LENGTHS:
        examples = read_examples(task, length, root)
        assert (
            len({example.id for example in examples}) == len(examples) == 8 * QUESTIONS
        )
        assert len({example.group for example in examples}) == QUESTIONS
        assert {example.depth for example in examples} == (
            {None} if length == 250 else {0, 0.5, 1, None}
        )


def test_faulty_rows(tmp_path: Path) -> None:
    """A row without a column, or without its facts, ends in one line that names what the row has."""
    row = next(row for row in rows() if row["dataset"] == "PIR")
    for faulty, message in (
        (
            {"text": "x"},
            "column 'dataset' must be str, found nothing; its columns are 'text'",
        ),
        ({**row, "facts": "one text"}, "a row of PIR needs facts"),
    ):
        write(tmp_path / SOURCE.paths[0], [faulty])
        with pytest.raises(InputError, match=message):
            read_examples(
                BENCHMARK.task("pir"), row["ctx_size"], DataRoot(tmp_path, mirror=True)
            )


def test_baseline(root: DataRoot) -> None:
    """The baseline answers every prompt of its task and no other."""
    for task in BENCHMARK.tasks:
        assert task.baseline is not None
        answer = task.baseline.kind
        assert callable(answer)
        (example, *_) = read_examples(task, 500, root)
        assert answer(task.prompt(example).messages) in ("True", "False")
        assert answer([{"role": "user", "content": "x"}]) is None
