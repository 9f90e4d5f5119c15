"""A judge's questions come from the templates of a script that is read and not run, and equal the official ones."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.helmet.rubrics import RUBRICS
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from tests.support.fabricate_books import RUBRICS as TEMPLATES

RECORD = {
    "prediction": " It is so.\nAnswer: the North\nPole \n",
    "references": ["North Pole", 'the "Pole"'],
    "question": "Where {to}?",
    "keypoints": ["They go.", "They come."],
    "long_summary": "All of it.",
}


def script(root: DataRoot, name: str) -> Path:
    return root / f"helmet/scripts/eval_gpt4_{name}.py"


def test_answers(mirror: DataRoot) -> None:
    """The prompt shows the text after the prefix without line breaks, and the references in Python's notation of a
    list."""
    (asked,) = (
        RUBRICS["narrativeqa"].questions(script(mirror, "longqa"), RECORD).values()
    )
    assert asked.prompt == (
        "Question Where {to}?\nTrue ['North Pole', 'the \"Pole\"']\nGiven the North Pole\nSay {\"fluency\": 1}"
    )
    assert (asked.max_tokens, asked.temperature, asked.top_p, asked.seed) == (
        2048,
        0.1,
        0.9,
        42,
    )
    assert asked.parse('So {"fluency": 1, "correctness": 3}') == {
        "fluency": 1,
        "correctness": 3,
    }
    assert asked.parse('{"fluency": 1}') is None


@pytest.mark.parametrize(
    ("task", "kind", "expert"),
    [("infbench_sum", "_book", "North Pole"), ("multi_lexsum", "", "All of it.")],
)
def test_summaries(mirror: DataRoot, task: str, kind: str, expert: str) -> None:
    """The judge gets three questions: about the summary alone, about its key points and about the expert's summary."""
    asked = RUBRICS[task].questions(script(mirror, "summ"), RECORD)
    summary = "It is so.\nAnswer: the North\nPole"
    assert {part: question.prompt for part, question in asked.items()} == {
        "fluency": f'fluency{kind}\n{summary}\nSay {{"fluency": 1}}',
        "recall": f'recall{kind}\n1. They go.\n2. They come.\n{summary}\nSay {{"recall": 1}}',
        "precision": f'precision{kind}\n{expert}\n{summary}\nSay {{"precision": 1}}',
    }
    assert {question.max_tokens for question in asked.values()} == {4096}
    assert asked["precision"].parse(
        '```json\n{"precision": 1, "sentence_count": 2}\n```'
    ) == {
        "precision": 1,
        "sentence_count": 2,
    }
    assert asked["recall"].parse("none") is None


def test_the_digest_is_of_the_templates(mirror: DataRoot) -> None:
    """The digest depends only on the templates for the task's judge."""
    text = TEMPLATES["longqa"]["judge_prompt"]
    assert (
        RUBRICS["narrativeqa"].digest(script(mirror, "longqa"))
        == hashlib.sha256(text.encode()).hexdigest()
    )
    assert (
        len(
            {
                RUBRICS[task].digest(script(mirror, "summ"))
                for task in ("infbench_sum", "multi_lexsum")
            }
        )
        == 2
    )


def test_a_template_reaches_no_attribute(tmp_path: Path) -> None:
    """A template of another script can show its own text but no part of the program."""
    text = "{parsed_output.__class__.__init__.__globals__} {other} {question} {{1}}"
    (tmp_path / "x.py").write_text(f"judge_prompt = {text!r}")
    (asked,) = RUBRICS["narrativeqa"].questions(tmp_path / "x.py", RECORD).values()
    assert (
        asked.prompt
        == "{parsed_output.__class__.__init__.__globals__} {other} Where {to}? {1}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "judge_prompt = 3",
        "judge_prompt =",
        "raise SystemExit",
        b"\xff\xfe".decode("latin-1"),
    ],
)
def test_other_scripts(tmp_path: Path, text: Any) -> None:
    """A file that is not the official script is refused by name, and none of it is run."""
    (tmp_path / "x.py").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"x\.py"):
        RUBRICS["narrativeqa"].questions(tmp_path / "x.py", RECORD)
