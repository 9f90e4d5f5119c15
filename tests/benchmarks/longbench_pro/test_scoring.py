"""Metrics equal the packages that the official code calls, and every output gets a score."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.longbench_pro import BENCHMARK
from helm_longctx.benchmarks.longbench_pro.tasks import (
    PARTIAL,
    TASKS,
    answer_lines,
    name_of,
    ndcg,
    pairwise_accuracy,
    read_lines,
)

NAMES = st.sampled_from(["", "a", "b", "c", "d", "e f", "北京", "ß"])
LISTS = st.lists(NAMES, min_size=1, max_size=8)
# pytrec_eval cannot read these characters.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(LISTS | st.lists(TEXTS, min_size=1, max_size=40), st.data())
def test_ndcg_is_pytrec_evals(answers: list[str], drawn: st.DataObject) -> None:
    """NDCG equals pytrec_eval's to the last digit, also with lines and answers that stand several times."""
    from pytrec_eval import RelevanceEvaluator

    lines = drawn.draw(
        st.lists(st.sampled_from([*answers, "x", "y"]), min_size=1, max_size=50)
    )
    gains = {answer: len(answers) - rank for rank, answer in enumerate(answers)}
    run = {line: len(lines) - rank for rank, line in enumerate(lines)}
    name = f"ndcg_cut.{len(answers)}"
    evaluation = RelevanceEvaluator({"query": gains}, {name}).evaluate({"query": run})
    assert ndcg(answers, lines) == evaluation["query"][name.replace(".", "_")]


@given(LISTS, LISTS)
def test_pairs_are_counted(answers: list[str], lines: list[str]) -> None:
    """A pair of different answers counts if both stand in this order; the share is of all pairs of lines."""
    if (
        len(set(answers)) < len(answers)
        or len(set(lines)) < len(lines)
        or min(len(answers), len(lines)) < 2
    ):
        return
    right = set(combinations(answers, 2)) & set(combinations(lines, 2))
    assert pairwise_accuracy(answers, lines) == len(right) / (
        len(lines) * (len(lines) - 1) / 2
    )


@given(TEXTS, LISTS, st.sampled_from(sorted(TASKS)), st.floats(-1, 1.1) | st.none())
def test_any_output_is_scored(
    output: str, answers: list[str], secondary: str, similarity: float | None
) -> None:
    """Every output gets a score from 0 to 1 in the classes of its question, and no score without a similarity."""
    task = BENCHMARK.task(name_of(secondary))
    record: dict[str, Any] = {
        "prediction": output,
        "references": answers,
        "language": "English",
        "difficulty": "Hard",
    }
    scores = task.scores(
        record | {"similarity": {} if similarity is None else {"value": similarity}}
    )
    assert scores.keys() <= {*task.metrics, "longctx_score"}
    if task.has_judge and similarity is None and output.strip():
        assert scores.keys() == {"rouge_l"}
    else:
        assert (
            0
            <= scores["longctx_score"]
            == scores["score_english"]
            == scores["score_hard"]
            <= 1
        )


def test_a_perfect_answer_passes() -> None:
    """The answers in lines after the marker have the score 1 and pass; of summaries the whole output is compared."""
    record = {
        "prediction": "Well.\n[Answer]\nA\nB  b\n",
        "references": ["a", "b B"],
        "similarity": {"value": 0.8},
    }
    for secondary, metric in TASKS.items():
        scores = BENCHMARK.task(name_of(secondary)).scores(record)
        if metric == "summary":
            assert 0.4 < scores["summary"] < 0.65
        else:
            assert scores[metric] == 1
        assert scores["passed"] == float(metric != "summary")


def test_the_last_marker_counts() -> None:
    """The English marker counts before the Chinese one, wherever it stands."""
    assert read_lines("[Answer] a [答案]\n B") == ["a [答案]", "b"]
    assert read_lines("[答案]\na\n[答案]\nc") == ["c"]


def test_half_of_the_tasks_need_the_whole_text() -> None:
    """Fourteen tasks have the trait of the paper's Table 2, so 840 of the 1,500 questions as in the data."""
    whole = [task for task in BENCHMARK.entries["longbench_pro"].tasks if task.trait]
    assert len(whole) * 60 == 840
    assert len(PARTIAL) * 60 == 660


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (
            "Who?\nA. Ann Miller\nB. Robert Lee\nOutput example:\n[Answer]\nA",
            "[Answer]\nB",
        ),
        (
            "Which lines name Robert?\n[Answer]\nx\ny\nz",
            "[Answer]\nRobert went home.\nOther line.\nIt rained.",
        ),
        ("Who?", None),
    ],
)
def test_the_lexical_baseline(question: str, answer: str | None) -> None:
    """The baseline names the option with words from the text, or lines like the question; other prompts it leaves."""
    context = "Other line.\nRobert went home.\nIt rained.\nOther line."
    assert (
        answer_lines([{"role": "user", "content": f"{context}\n\n\n\n{question}"}])
        == answer
    )
