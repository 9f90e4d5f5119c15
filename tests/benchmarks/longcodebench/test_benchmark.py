"""Contexts and the baseline of LongCodeBench."""

from __future__ import annotations

from collections import defaultdict

import pytest

from helm_longctx.benchmarks.longcodebench import BENCHMARK
from helm_longctx.benchmarks.longcodebench.tasks import SAMPLES
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.longcodebench.fabricate import (
    QUESTIONS,
    REPOSITORIES,
    build_longcodebench,
    rows,
)

LENGTH = min(SAMPLES)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    """Return a folder with the fabricated files."""
    return DataRoot(
        build_longcodebench(tmp_path_factory.mktemp("longcodebench")), mirror=True
    )


def read_examples(task: Task, length: int, root: DataRoot) -> list[Example]:
    """Return the examples of all rows of a length."""
    return list(
        load_examples(
            task, Settings(length, num_samples=REPOSITORIES * QUESTIONS), root
        )
    )


def test_context_and_groups(root: DataRoot) -> None:
    """The repository is the context, wherever it stands, and questions about it are a group."""
    groups: dict[str, set[str]] = defaultdict(set)
    for task in BENCHMARK.tasks:
        for example, row in zip(
            read_examples(task, LENGTH, root), rows(LENGTH), strict=True
        ):
            prompt = task.prompt(example)
            assert prompt.context is not None
            start, end = prompt.context
            assert prompt.messages[0]["content"][start:end] == row["repo_text"].strip()
            groups[example.group].add(row["repo"])
    assert sorted(map(len, groups.values())) == [1] * REPOSITORIES


def test_baseline(root: DataRoot) -> None:
    """The baseline answers every prompt in its task's form, and no other prompt."""
    for task in BENCHMARK.tasks:
        assert task.baseline is not None
        answer = task.baseline.kind
        assert callable(answer)
        example = read_examples(task, LENGTH, root)[0]
        given = answer(task.prompt(example).messages)
        assert given is not None
        assert all(
            other.baseline
            and other.baseline.kind(task.prompt(example).messages) is None  # type: ignore[operator]
            for other in BENCHMARK.tasks
            if other is not task
        )
        scores = {
            task.scores({"prediction": given, "references": [letter]})["accuracy"]
            for letter in "ABCD"
        }
        assert scores == {0, 1}
        assert (
            answer(
                [
                    {
                        "role": "user",
                        "content": "Question:\nWhat?\nA) a\nB) b\nC) c\nD) d",
                    }
                ]
            )
            is None
        )
