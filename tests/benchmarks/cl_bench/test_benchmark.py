"""Silent answers, contexts and grades of CL-bench."""

from __future__ import annotations

import pytest

from helm_longctx.benchmarks.cl_bench import BENCHMARK
from helm_longctx.benchmarks.cl_bench.tasks import (
    CATEGORIES,
    DELIMITER,
    JUDGEMENT,
    judge_prompt,
    read_grade,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.cl_bench.fabricate import ROWS, build_cl_bench, rows


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    """Return a folder with the fabricated rows."""
    return DataRoot(build_cl_bench(tmp_path_factory.mktemp("cl_bench")), mirror=True)


def read_examples(task: Task, root: DataRoot) -> list[Example]:
    """Return the examples of all rows."""
    return list(
        load_examples(task, Settings(None, num_samples=max(ROWS.values())), root)
    )


def test_silent_answers() -> None:
    """Without a judge no answer has a grade; with one an answer without text fails without a question."""
    task = BENCHMARK.task("tasks")
    silent = {
        "prediction": " ",
        "references": [],
        "rubrics": ["x"],
        "category": "Rule System Application",
    }
    assert judge_prompt(silent) == {}
    assert JUDGEMENT.counts_silence
    assert task.scores(silent) == {}
    judged = task.scores({**silent, "jury": {"replies": {"a": {}, "b": {}}}})
    assert (
        judged["judge_score"],
        judged["judge_score_strict"],
        judged["judge_score_rules"],
    ) == (
        0,
        0,
        0,
    )


def test_groups_categories_and_contexts(root: DataRoot) -> None:
    """Tasks of a context are a group, each category has a metric, and a delimiter marks the context of a single turn."""
    for task in BENCHMARK.tasks:
        for example, row in zip(
            read_examples(task, root), rows(task.paths(None)[0]), strict=True
        ):
            assert example.group == row["metadata"].get("context_id", "")
            text = row["messages"][-1]["content"]
            has_place = len(row["messages"]) == 1 and DELIMITER in text
            assert example.context == (
                (0, text.index(DELIMITER)) if has_place else None
            )
    assert {f"judge_score_{name}" for name in CATEGORIES.values()} < {
        metric.name for metric in BENCHMARK.metrics
    }


def test_grades() -> None:
    """Only an object with an overall score has a grade."""
    assert read_grade('```json\n{"Overall Score": 1}\n```') == {"judge_score": 1.0}
    assert read_grade(None) == {}
