"""CorpusQA's judge is asked about any output, and any reply of it is read."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.corpusqa.tasks import find_answer, judge_prompt, score
from tests.benchmarks.corpusqa.fabricate import OUTPUTS


@given(st.text(), st.text(), st.lists(st.text(), min_size=1))
def test_any_output_is_asked_about(
    output: str, question: str, references: list[str]
) -> None:
    """The judge's prompt has the question, a part of the output and the first reference, whatever they are."""
    prompt = judge_prompt(
        {"question": question, "prediction": output, "references": references}
    )
    assert (
        prompt
        == f"\nProblem: {question}\nAnswer 1: {find_answer(output)}\nAnswer 2: {references[0]}\n"
    )
    assert find_answer(output) in output


@given(st.text() | st.none() | st.lists(st.text()))
def test_any_reply_is_read(reply: Any) -> None:
    """A text is a verdict, and anything else is none."""
    assert score({"judge": reply}).keys() == (
        {"judge_score"} if isinstance(reply, str) else set()
    )


def test_answers_in_the_official_form() -> None:
    """The line after the first mark is the answer, and an output without the mark is an answer as a whole."""
    answers = [find_answer(output) for output in OUTPUTS[:3]]
    assert answers == ["282", '["a"]', "the answer is: 3"]
    assert find_answer(OUTPUTS[5]) == "1. The answer is: 2"
