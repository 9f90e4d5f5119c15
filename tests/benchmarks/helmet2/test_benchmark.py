"""Choices in words, and the baseline of HELMET's new tasks."""

from __future__ import annotations

import pytest

from helm_longctx.benchmarks.graphwalks import BENCHMARK as GRAPHWALKS
from helm_longctx.benchmarks.helmet.helmet2 import BENCHMARK, tasks
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.data.root import DataRoot
from helm_longctx.models.baselines.lexical import answer
from helm_longctx.tasks.task import Settings
from tests.benchmarks.helmet2.fabricate import CLASSES, build_helmet2


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    return DataRoot(build_helmet2(tmp_path_factory.mktemp("helmet2")), mirror=True)


def test_a_choice_in_words() -> None:
    """The line after the prefix counts for exact match, also if the choice is in words."""
    score = BENCHMARK.task("multiple_choice").score
    scores = score(
        {
            "prediction": "I think so.\nThe correct answer is (B)\nDone",
            "references": ["B", "B. no"],
        }
    )
    assert scores["exact_match"] == 1.0
    assert (
        score({"prediction": "B", "references": ["C", "C. no"]})["exact_match"] == 0.0
    )


@pytest.mark.parametrize("style", ["chat", "completion"])
def test_the_lexical_baseline_answers_graphs_and_choices(
    style: str, root: DataRoot, monkeypatch
) -> None:
    """The lexical baseline answers a graph in OpenAI's words and LongBench v2's question, although the prompts are
    HELMET's."""
    monkeypatch.setattr(tasks, "_CLASSES", CLASSES)
    walk = GRAPHWALKS.task("bfs")
    bfs = BENCHMARK.task("bfs")
    (graph,) = walk.load(walk, Settings(length=4096, num_samples=1), root)
    context, operation, question = graph.messages[0]["content"].partition(
        "\n\nOperation:"
    )
    prompt = bfs.template.render(
        {"context": context, "question": operation.strip() + question}
    ).text(style)
    assert bfs.score(
        {"prediction": answer(prompt), "references": graph.references}
    ) == {"f1": 1.0}
    task = BENCHMARK.task("multiple_choice")
    (example,) = task.load(task, Settings(length=min(CLASSES), num_samples=1), root)
    assert answer(task.prompt(example).text(style)).startswith(
        "The correct answer is ("
    )


def test_nothing_is_mixed_with_the_published_tasks(root: DataRoot) -> None:
    """The tasks share no file and no run entry with HELMET as published, and no task is generated."""
    assert not {*BENCHMARK.entries} & {*HELMET.entries}
    for task in BENCHMARK.tasks:
        assert not task.any_length
        paths = {path for length in task.sizes for path in task.paths(length)}
        assert not any(path.startswith("helmet/") for path in paths)
        assert paths
