"""The metric `confused` says whether an answer comes from a confusing fact."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.lv_eval.tasks import confusion
from helm_longctx.errors import InputError

ENGLISH = {
    "question": "What is the name of the scientist widely acclaimed as the foundational figure of modern physics?",
    "references": ["Ludwig Beethoven"],
    "confusing_facts": [
        "David Beckham, an athlete, is a figure of modern physics.",
        "He was born in Leytonstone.",
    ],
    "language": "en",
}
CHINESE = {
    "question": "被世人广泛推崇为现代物理学奠基人的科学家叫什么名字？",
    "references": ["贝多芬"],
    "confusing_facts": "贝克汉姆被称为现代物理学之父。",
    "language": "zh",
}


@pytest.mark.parametrize(
    ("row", "prediction", "expected"),
    [
        (ENGLISH, "David Beckham.", 1),
        (ENGLISH, "The name of the scientist is David Beckham", 1),
        (ENGLISH, "David Smith", 1),
        (ENGLISH, "David Smith Jones", 0),
        (ENGLISH, "Ludwig Beethoven.", 0),
        (ENGLISH, "Ludwig Beethoven, not David", 0),
        (ENGLISH, "I cannot say; the article does not tell", 0),
        (ENGLISH, "a figure of modern physics", 0),
        (ENGLISH, "", 0),
        (CHINESE, "贝克汉姆。", 1),
        (CHINESE, "贝多芬", 0),
        (CHINESE, "文章中没有提到", 0),
    ],
)
def test_answers(row: dict[str, Any], prediction: str, expected: float) -> None:
    """The metric tells confused answers from others in examples like the official repository's."""
    assert confusion({**row, "prediction": prediction}) == {"confused": expected}


@pytest.mark.parametrize(
    "facts", [None, [], "", ["..."], ["Ludwig van Beethoven"], ["Ludwig Beethoven"]]
)
def test_absent_where_it_cannot_be_said(facts: Any) -> None:
    """The metric is absent without a confusing fact, or if the fact holds the true answer."""
    assert confusion({**ENGLISH, "prediction": "x", "confusing_facts": facts}) == {}


def test_keywords_are_part_of_the_truth() -> None:
    """A word of the keywords counts for the true answer."""
    row = {
        **ENGLISH,
        "references": ["In 1812"],
        "answer_keywords": "1812 Vienna",
        "confusing_facts": ["1999 in Rome"],
    }
    assert confusion({**row, "prediction": "Vienna 1999"}) == {"confused": 0}
    assert confusion({**row, "prediction": "Rome, 1999"}) == {"confused": 1}


@given(
    st.text(max_size=40),
    st.lists(st.text(max_size=20), max_size=2),
    st.lists(st.text(max_size=40), max_size=2),
)
def test_any_text(prediction: str, references: list[str], facts: list[str]) -> None:
    """The value is 0, 1 or absent for any text, and the true answer is never confused."""
    for language in ("en", "zh"):
        record = {
            "references": references,
            "confusing_facts": facts,
            "language": language,
        }
        assert set(confusion({**record, "prediction": prediction}).values()) <= {
            0.0,
            1.0,
        }
        assert (
            confusion({**record, "prediction": " ".join(references[:1])}).get(
                "confused", 0
            )
            == 0
        )


@pytest.mark.parametrize(
    ("column", "value"),
    [("confusing_facts", [1]), ("confusing_facts", {"a": 1}), ("question", 5)],
)
def test_wrong_columns(column: str, value: Any) -> None:
    """A wrong column ends in an error that names the column."""
    with pytest.raises(InputError, match=f"{column} must be text"):
        confusion({**ENGLISH, "prediction": "x", column: value})
