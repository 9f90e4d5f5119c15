"""Scores of SCBench by turn."""

from __future__ import annotations

from pathlib import Path

from helm_longctx.benchmarks.scbench import BENCHMARK
from tests.benchmarks.scbench.fabricate import WHOLE
from tests.benchmarks.scbench.official import ask


def test_scores_by_turn(tmp_path: Path) -> None:
    """An answer's score also counts for its turn, unless each question is a request of its own or the kinds are
    mixed."""
    of = {
        task.name: list(ask(task, 1, WHOLE, tmp_path))
        for task in BENCHMARK.tasks
        if task.name.startswith(("kv", "repoqa_"))
    }
    assert {
        task.scores[f"turn_{task.turn}"] == task.scores["accuracy"] for task in of["kv"]
    } == {True}
    assert not any(
        key.startswith("turn")
        for name in of
        if name != "kv"
        for task in of[name]
        for key in task.scores
    )


def test_the_baseline_repeats_what_follows_the_rarest_word() -> None:
    """The baseline looks for the question's rarest word of the context, and ignores words that the context lacks."""
    kind = BENCHMARK.task("qa_eng").baseline.kind
    assert callable(kind)
    start = "Read the book and answer the question. Be very concise in your answer."
    book = "the sea, the Ahab who hunts, the whale"
    prompts = [f"{start}\n\n{book}", "where is the Ahab hiding"]
    answer = kind([{"content": prompt} for prompt in prompts])
    assert answer == "Ahab who hunts, the whale"
