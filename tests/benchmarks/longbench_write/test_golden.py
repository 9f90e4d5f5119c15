"""Prompts, word counts, length scores, the judge's prompts and grades equal the official code's (make_golden.py)."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from helm_longctx.benchmarks.longbench_write import BENCHMARK
from helm_longctx.benchmarks.longbench_write.scoring import CLASSES, GRADES, judge_prompt, read_grades
from helm_longctx.protocol.loading import load_examples
from helm_longctx.protocol.task import Example, Settings
from helm_longctx.sources.root import DataRoot
from tests.longbench_write.fabricate import build_longbench_write, odd_replies, replies, responses
from tests.official import digest

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))
TASK = BENCHMARK.task("requests")


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    root = build_longbench_write(tmp_path_factory.mktemp("longbench_write"))
    return list(load_examples(TASK, Settings(None), DataRoot(root, mirror=True)))


def test_prompts(examples: list[Example]) -> None:
    """Every prompt and the order are the official ones."""
    assert digest(TASK.prompt(example).user_turn for example in examples) == GOLDEN["prompts"]


def test_length_scores(examples: list[Example]) -> None:
    """Words and length scores, to the last digit; each text also counts in its class of length."""
    found = [
        TASK.scores({"prediction": text, "references": [], **example.record})
        for example, text in zip(examples, responses(), strict=True)
    ]
    assert [scores["output_words"] for scores in found] == GOLDEN["words"]
    assert [100 * scores["length_score"] for scores in found] == GOLDEN["length_scores"]
    classes = [[name for name in CLASSES if f"length_score_{name}" in scores] for scores in found]
    assert classes == [["0_500"]] * 3 + [["500_2k"]] * 2 + [["2k_4k"]] * 2 + [["4k_20k"]] * 3
    assert all("longctx_score" not in scores for scores in found)


def test_a_text_without_words(examples: list[Example]) -> None:
    """It gets 0, where the official code divides by zero."""
    assert TASK.scores({"prediction": " 12!", "references": [], "length": 9})["length_score"] == 0


def test_judge_prompts(examples: list[Example]) -> None:
    """The judge's prompts are the official ones, also if requests and texts have placeholders."""
    asked = [
        judge_prompt(example.record["rubric"], example.fields["input"], text)
        for example, text in zip(examples, responses(), strict=True)
    ]
    assert digest(asked) == GOLDEN["judge_prompts"]


def test_quality_scores() -> None:
    """Means over the texts whose last reply can be read."""
    found = [grades for row in replies() if (grades := read_grades(row[-1]))]
    assert len(found) == len(replies()) - 1
    total = GOLDEN["total"]
    expected = {metric: total[name] for metric, name in GRADES.items()} | {"judge_score": total["total"]}
    means = {name: 100 * fmean(grades[name] for grades in found) for name in expected}
    assert means == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("reply", "expected"), list(zip(odd_replies(), GOLDEN["odd"], strict=True)))
def test_odd_replies(reply: str, expected: dict[str, float] | None) -> None:
    """A reply that the official code asks for again, or ends at, has no grades."""
    found = read_grades(reply)
    if expected is None:
        assert found == {}
    else:
        grades = {name: 100 * found[metric] for metric, name in GRADES.items()}
        assert {**grades, "total": 100 * found["judge_score"]} == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("reply", [None, {"answer": "x"}, 5])
def test_no_reply(reply: object) -> None:
    """There are no grades, whatever a record has in place of a reply."""
    assert read_grades(reply) == {}


@pytest.mark.parametrize("grade", ["NaN", "Infinity", "1e999", "9" * 400])
def test_grades_that_are_no_finite_numbers(grade: str) -> None:
    """Such a reply has no grades; the official means would be NaN or infinite."""
    assert read_grades(odd_replies()[0].replace('"Clarity": 4', f'"Clarity": {grade}')) == {}
