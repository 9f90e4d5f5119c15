"""Stories of SQuALITY that share their questions."""

from __future__ import annotations

from pathlib import Path

from helm_longctx.benchmarks.squality import BENCHMARK
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.squality.fabricate import build_squality

(TASK,) = BENCHMARK.tasks


def test_questions_on_a_story_are_a_group(tmp_path: Path) -> None:
    """Five questions are asked on each story, and they are a group."""
    root = DataRoot(build_squality(tmp_path), mirror=True)
    examples = list(load_examples(TASK, Settings(None), root))
    assert len({example.group for example in examples}) == len(examples) / 5


def test_other_words_score_zero() -> None:
    """A summary without a word of the references has 0 in each kind of ROUGE."""
    scores = TASK.score({"prediction": "none", "references": ["A story."]})
    assert scores == {"rouge1": 0, "rouge2": 0, "rougeL": 0}
