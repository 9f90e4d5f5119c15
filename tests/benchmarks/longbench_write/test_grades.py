"""Classes of length and grades of LongBench-Write."""

from __future__ import annotations

import pytest

from helm_longctx.benchmarks.longbench_write import BENCHMARK
from helm_longctx.benchmarks.longbench_write.tasks import CLASSES, GRADES, read_grades
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.longbench_write.fabricate import (
    build_longbench_write,
    odd_replies,
    responses,
)
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)
TASK = BENCHMARK.task("requests")


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    root = build_longbench_write(tmp_path_factory.mktemp("longbench_write"))
    return list(load_examples(TASK, Settings(None), DataRoot(root, mirror=True)))


def test_length_scores(examples: list[Example]) -> None:
    """Words and length scores are the official ones to the last digit, and each text also counts in its class of
    length."""
    all_scores = [
        TASK.scores({"prediction": text, "references": [], **example.record})
        for example, text in zip(examples, responses(), strict=True)
    ]
    assert [scores["output_words"] for scores in all_scores] == GOLDEN["words"]
    assert [100 * scores["length_score"] for scores in all_scores] == GOLDEN[
        "length_scores"
    ]
    classes = [
        [name for name in CLASSES if f"length_score_{name}" in scores]
        for scores in all_scores
    ]
    assert (
        classes
        == [["0_500"]] * 3 + [["500_2k"]] * 2 + [["2k_4k"]] * 2 + [["4k_20k"]] * 3
    )
    assert all("longctx_score" not in scores for scores in all_scores)


def test_a_text_without_words(examples: list[Example]) -> None:
    """A text without words gets 0, where the official code divides by zero."""
    assert (
        TASK.scores({"prediction": " 12!", "references": [], "length": 9})[
            "length_score"
        ]
        == 0
    )


@pytest.mark.parametrize(
    ("reply", "expected"), list(zip(odd_replies(), GOLDEN["odd"], strict=True))
)
def test_odd_replies(reply: str, expected: dict[str, float] | None) -> None:
    """A reply has no grades if it breaks the rubric, or if the official code asks for it again or ends at it."""
    read = read_grades(reply)
    if expected is None or not all(0 <= grade <= 100 for grade in expected.values()):
        assert read == {}
    else:
        grades = {name: 100 * read[metric] for metric, name in GRADES.items()}
        assert {**grades, "total": 100 * read["judge_score"]} == pytest.approx(
            expected, rel=1e-14
        )


@pytest.mark.parametrize("reply", [None, {"answer": "x"}, 5])
def test_no_reply(reply: object) -> None:
    """A record without a text as its reply has no grades."""
    assert read_grades(reply) == {}


@pytest.mark.parametrize("grade", ["50", "0", "-1", "5.01", '"50"', "1e9"])
def test_grades_outside_the_rubric(grade: str) -> None:
    """Only grades from 1 to 5 count; the official mean of other grades can be 2.875, although 1 is the best."""
    assert (
        read_grades(odd_replies()[0].replace('"Clarity": 4', f'"Clarity": {grade}'))
        == {}
    )


@pytest.mark.parametrize("grade", ["NaN", "Infinity", "1e999", "9" * 400])
def test_grades_that_are_no_finite_numbers(grade: str) -> None:
    """A reply with such a grade has no grades; the official means would be NaN or infinite."""
    assert (
        read_grades(odd_replies()[0].replace('"Clarity": 4', f'"Clarity": {grade}'))
        == {}
    )
