"""Groups, depths and the baseline of FLenQA."""

from __future__ import annotations

import pytest

from helm_longctx.benchmarks.flenqa import BENCHMARK
from helm_longctx.benchmarks.flenqa.tasks import LENGTHS
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.flenqa.fabricate import QUESTIONS, build_flenqa


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    """Return a folder with the fabricated rows."""
    return DataRoot(build_flenqa(tmp_path_factory.mktemp("flenqa")), mirror=True)


def read_examples(task: Task, length: int, root: DataRoot) -> list[Example]:
    """Return all examples of a task at a length."""
    return list(load_examples(task, Settings(length), root))


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


def test_baseline(root: DataRoot) -> None:
    """The baseline answers every prompt of its task and no other."""
    for task in BENCHMARK.tasks:
        assert task.baseline is not None
        answer = task.baseline.kind
        assert callable(answer)
        (example, *_) = read_examples(task, 500, root)
        assert answer(task.prompt(example).messages) in ("True", "False")
        assert answer([{"role": "user", "content": "x"}]) is None
