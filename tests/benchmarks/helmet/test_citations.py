"""A judge is asked about citations in rounds, and its failures give no scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.helmet import citations
from helm_longctx.benchmarks.helmet.citations import (
    Claim,
    judge_citations,
    judge_record,
)
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.errors import InputError
from helm_longctx.tasks.sentences import split_sentences
from tests.benchmarks.helmet.citation_rule import Rule, is_entailed
from tests.support import punkt

DOCUMENTS = [{"title": f"T{number}", "text": f"text {number}"} for number in range(12)]


@pytest.fixture(autouse=True, scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with punkt.installed(tmp_path_factory.mktemp("nltk")):
        yield


def in_turn(claims: list[Claim], citable: int) -> tuple[float, float]:
    """Return recall and precision by the official rule, which asks one question at a time."""
    supported = needed = cited = 0
    for claim in claims:
        if not claim.cited or any(number >= citable for number in claim.cited):
            continue
        numbers = list(claim.cited[:3])
        cited += len(numbers)
        if not entailed(numbers, claim):
            continue
        supported += 1
        for position, number in enumerate(numbers):
            first = numbers.index(number)
            rest = numbers[:first] + numbers[first + 1 :]
            needed += (
                len(numbers) == 1
                or entailed([numbers[position]], claim)
                or not entailed(rest, claim)
            )
    return supported / len(claims), needed / cited if cited else 0


def entailed(numbers: list[int], claim: Claim) -> bool:
    passage = "\n".join(
        f"Title: {DOCUMENTS[n]['title']}\n{DOCUMENTS[n]['text']}" for n in numbers
    )
    return is_entailed((passage, claim.text))


CLAIMS = st.lists(
    st.builds(
        Claim,
        st.text("ab ", max_size=5),
        st.lists(st.integers(-1, 14), max_size=5).map(tuple),
    ),
    min_size=1,
    max_size=5,
)


@given(CLAIMS)
def test_rounds_give_what_single_questions_give(claims: list[Claim]) -> None:
    """Questions in three rounds give the same scores as single questions, and no unneeded question is asked."""
    rule = Rule()
    citations = judge_citations(claims, DOCUMENTS, rule, lambda number: number < 12)
    assert (citations.recall, citations.precision) == pytest.approx(in_turn(claims, 12))
    assert len(rule.asked) <= sum(1 + 2 * min(3, len(claim.cited)) for claim in claims)


@given(CLAIMS)
def test_a_missing_verdict_is_no_zero(claims: list[Claim]) -> None:
    """There is no score if the judge says nothing about a pair that matters."""
    citations = judge_citations(
        claims, DOCUMENTS, Rule(missing=7), lambda number: number < 12
    )
    asked = any(claim.cited and max(claim.cited) < 12 for claim in claims)
    assert citations.failed == asked
    assert (citations.recall is None) == asked


def test_documents_that_were_not_shown() -> None:
    """The official check accepts citations of hidden documents; the honest check does not, and it counts them."""
    yes = Rule()
    yes.entails = lambda pairs: [True] * len(pairs)  # type: ignore[method-assign]
    record = {
        "prediction": "It rains [9]. It snows [2]. It thaws [0].",
        "question": "q",
        "docs": DOCUMENTS,
    }
    note = judge_record(record, yes, lambda number: number < 5)
    assert (note["recall"], note["recall_shown"], note["hidden"]) == (
        1.0,
        pytest.approx(1 / 3),
        2,
    )


@pytest.mark.parametrize(
    ("prediction", "cited"),
    [
        ("Water is wet [1, 2].", [(0,)]),
        ("Water is wet [10a].", [(9,)]),
        ("Water is wet [1][1] [3].", [(0, 0, 2)]),
        ("Water is wet. No.", [()]),
        ("", []),
        ("Go.\n[1]", []),
    ],
)
def test_which_citations_count(prediction: str, cited: list[tuple[int, ...]]) -> None:
    """Numbers after an opening bracket are citations, and sentences under five characters are left out."""
    assert [
        claim.cited
        for claim in citations._claims(prediction.replace("\n", " "), "q", listed=False)
    ] == cited


def test_other_judges_have_other_names() -> None:
    """Only the official judge's scores have the official names and make the headline."""
    task = HELMET.task("asqa")
    rule = Rule()
    rule.official = False
    record: dict[str, Any] = {
        "prediction": "The lake is deep [1].",
        "question": "q",
        "docs": DOCUMENTS,
        "qa_pairs": [{"short_answers": ["a lake"]}],
        "references": [],
    }
    scores = task.scores(
        {**record, "citations": judge_record(record, rule, lambda number: True)}
    )
    assert {
        "judge_citation_rec",
        "judge_citation_prec",
        "judge_score",
        "str_em",
    } <= set(scores)
    assert not {"citation_rec", "longctx_score"} & set(scores)
    assert set(task.scores(record)) == {"str_em", "str_hit", "length"}
    assert set(task.scores({**record, "citations": {}})) == {
        "str_em",
        "str_hit",
        "length",
    }


def test_without_sentence_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how to get NLTK's data."""
    import nltk

    monkeypatch.setattr(nltk.data, "path", [])
    from nltk.tokenize import _get_punkt_tokenizer

    _get_punkt_tokenizer.cache_clear()
    with pytest.raises(InputError, match=r"python -m nltk.downloader punkt_tab"):
        split_sentences("One. Two.")
