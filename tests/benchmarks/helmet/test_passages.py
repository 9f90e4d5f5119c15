"""Questions over passages have the right samples, demonstrations, depths and titles."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.helmet.asking import write_demonstration
from helm_longctx.benchmarks.helmet.data.passages import Demonstrations
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from tests.support.fabricate_words import write
from tests.support.tasks import load, load_asked


def test_a_question_keeps_all_its_depths(mirror: DataRoot) -> None:
    """A sample is drawn from questions, so each question keeps all its depths."""
    examples = load("helmet_rag:task=triviaqa,length=8k", mirror)
    assert len(examples) == 600
    assert len({example.fields["question"] for example in examples}) == 100
    assert len({example.group for example in examples}) == 100
    queries = load("helmet_rerank:task=msmarco,length=8k,num_samples=4", mirror)
    assert (len(queries), len({query.group for query in queries})) == (12, 4)


def test_demonstrations_depend_on_the_question_alone(mirror: DataRoot) -> None:
    """All depths of a question, at every length, have the same demonstrations."""
    by_question: dict[str, set[str]] = {}
    for length in ("4k", "128k"):
        for example in load(
            f"helmet_rag:task=nq,length={length},num_samples=5", mirror
        ):
            by_question.setdefault(example.fields["question"], set()).add(
                example.fields["demos"]
            )
    assert all(len(demos) == 1 for demos in by_question.values())
    assert len({demos for (demos,) in by_question.values()}) > 1


def test_closed_book(mirror: DataRoot) -> None:
    """Prompts without context have the same questions and demonstrations, and no depth is reported."""
    whole = load("helmet_rag:task=popqa,length=8k,num_samples=9", mirror)
    closed = load("helmet_rag:task=popqa,length=8k,num_samples=9,context=none", mirror)
    assert [(e.id, e.fields["question"], e.fields["demos"]) for e in whole] == [
        (e.id, e.fields["question"], e.fields["demos"]) for e in closed
    ]
    assert {example.fields["context"] for example in closed} == {""}
    assert {example.depth for example in closed} == {None}
    assert {example.depth for example in whole} == {0.0, 0.5, 1.0}


def test_the_question_alone(mirror: DataRoot) -> None:
    """With `question_only` a prompt has the question and the answer prefix, and mentions no documents."""
    for task in ("nq", "triviaqa", "hotpotqa", "popqa"):
        examples = load_asked(
            f"helmet_rag:task={task},length=8k,num_samples=2,method=question_only",
            mirror,
        )
        for example in examples:
            text = HELMET.task(task).prompt(example).text("completion")
            assert text.endswith(f"\n\nQuestion: {example.fields['question']}\nAnswer:")
            assert "ocument" not in text.replace(example.fields["question"], "")
            assert example.depth is None


@pytest.mark.parametrize("shots", [0, 1, 2, 3])
def test_reasoning_is_demonstrated(shots: int, mirror: DataRoot) -> None:
    """With `cot` the same demonstrations have reasoning, and the second request continues it with the answer prefix."""
    entry = f"helmet_rag:task=nq,length=8k,num_samples=3,shots={shots}"
    for plain, example in zip(
        load(entry, mirror), load_asked(f"{entry},method=cot", mirror), strict=True
    ):
        assert (
            re.sub(r"\nReasoning: .*\nAnswer", "\nAnswer", example.fields["demos"])
            == plain.fields["demos"]
        )
        prompt = HELMET.task("nq").prompt(example)
        assert prompt.text("chat") == prompt.text("completion")
        assert (
            prompt.user_turn.count("\nReasoning: ") == shots + 1
        )  # the format is explained, too
        assert prompt.user_turn.endswith("\nReasoning:")
        start, end = prompt.context or (0, 0)
        assert prompt.user_turn[start:end] == plain.fields["context"]
        assert example.follow_up
        assert (
            example.follow_up.prompt(" It is so. ")
            == f"{prompt.user_turn} It is so.\nAnswer:"
        )
        assert (example.follow_up.max_tokens, example.max_tokens) == (20, 256)
        assert example.references == plain.references


def test_reasoning_quotes_the_answer() -> None:
    """Our reasoning quotes the first sentence with an answer; without such a sentence it says so."""
    passages = [
        {"title": "T", "text": "No."},
        {"title": "A lake", "text": "It is big. It lies in Bern! Really."},
    ]
    demo = {"question": "Where?", "answers": ["Berne", "bern"], "ctxs": passages}
    assert write_demonstration(demo, "DOCUMENTS") == (
        'DOCUMENTS\n\nQuestion: Where?\nReasoning: The document "A lake" says: "It lies in Bern!"\nAnswer: Berne'
    )
    assert "No document states the answer" in write_demonstration(
        {**demo, "answers": ["Basel"]}, ""
    )


@pytest.mark.parametrize(
    ("ctxs", "given", "depth"),
    [
        ([{"title": "t", "text": "no"}] * 3, 0.4, 0.4),
        (
            [
                {"title": "t", "text": t, "has_answer": t == "yes"}
                for t in ("no", "yes", "no")
            ],
            None,
            0.5,
        ),
        ([{"title": "t", "text": t} for t in ("x", "y", "A Lake!")], None, 0.91),
        ([{"title": "t", "text": "no"}] * 3, None, None),
    ],
)
def test_depth(
    ctxs: list[Any], given: float | None, depth: float | None, tmp_path: Path
) -> None:
    """The depth comes from the file, from marked passages or from the place of the answers, or is unknown."""
    root = DataRoot(tmp_path, mirror=True)
    row = {"question": "q", "answers": ["a lake"], "ctxs": ctxs, "depth": given}
    write(tmp_path / "helmet/kilt/nq-dev-multikilt_1000_k20_dep6.jsonl", [row])
    write(tmp_path / "helmet/kilt/nq-train-multikilt_1000_k3_dep6.jsonl", [row])
    (example,) = load("helmet_rag:task=nq,length=4k,shots=0", root)
    assert example.depth == (depth if depth is None else pytest.approx(depth, abs=0.02))


def test_a_question_is_not_its_own_demonstration() -> None:
    """A question's own row is left out of its demonstrations, but other rows with the same text are not."""
    rows = [{"id": number, "question": "same"} for number in range(5)]
    pool = Demonstrations(rows, "id", Path("file"), shots=4)
    for own in range(5):
        assert {row["id"] for row in pool.draw(own, without_own=True)} == set(
            range(5)
        ) - {own}


def test_too_few_demonstrations() -> None:
    """The error says how many demonstrations there are."""
    pool = Demonstrations(
        [{"id": 1}, {"id": 1}, {"id": 2}], "id", Path("file"), shots=3
    )
    with pytest.raises(InputError, match="file: shots=3, but only 2 demonstrations"):
        pool.draw(7, without_own=False)


GOOD = {
    "id": "1",
    "question": "q",
    "answers": ["a"],
    "ctxs": [{"title": "t", "text": "x"}],
}
BAD = {
    "no question": (
        {**GOOD, "question": None},
        "column 'question' must be str, found NoneType",
    ),
    "no answers": (
        {**GOOD, "answers": "a"},
        "column 'answers' must be list, found str",
    ),
    "no text": (
        {**GOOD, "ctxs": [{"title": "t"}]},
        "column 'ctxs' must be a list of passages with text",
    ),
    "no passages": (
        {**GOOD, "ctxs": ["x"]},
        "column 'ctxs' must be a list of passages with text",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_rows(case: str, tmp_path: Path) -> None:
    """The error names the column and its expected type, and does not show the content."""
    row, message = BAD[case]
    write(tmp_path / "helmet/kilt/nq-dev-multikilt_1000_k20_dep6.jsonl", [row])
    write(
        tmp_path / "helmet/kilt/nq-train-multikilt_1000_k3_dep6.jsonl",
        [{**GOOD, "id": str(i)} for i in range(3)],
    )
    with pytest.raises(InputError, match=message):
        load("helmet_rag:task=nq,length=4k", DataRoot(tmp_path, mirror=True))


def test_ids_of_two_kinds(tmp_path: Path) -> None:
    """Ids that cannot be sorted are refused."""
    write(
        tmp_path / "helmet/kilt/nq-dev-multikilt_1000_k20_dep6.jsonl",
        [GOOD, {**GOOD, "id": 2}],
    )
    write(tmp_path / "helmet/kilt/nq-train-multikilt_1000_k3_dep6.jsonl", [GOOD])
    with pytest.raises(InputError, match="ids must be all strings or all numbers"):
        load("helmet_rag:task=nq,length=4k", DataRoot(tmp_path, mirror=True))


def test_titles_of_reranked_passages(tmp_path: Path) -> None:
    """The test query's passages decide whether titles are shown, also in its demonstrations."""

    def row(qid: str, title: bool) -> dict[str, Any]:
        passage = {
            "id": qid,
            "text": f"text {qid}",
            "label": 1,
            **({"title": "T"} if title else {}),
        }
        return {
            "qid": qid,
            "query": "q",
            "ctxs": [passage, {**passage, "id": "0", "label": 3}],
        }

    write(
        tmp_path / "helmet/msmarco/test_reranking_data_k14_dep3.jsonl",
        [row("1", title=True)],
    )
    write(
        tmp_path / "helmet/msmarco/test_reranking_data_k10_dep3.jsonl",
        [row("2", title=False), row("3", title=False)],
    )
    (example,) = load(
        "helmet_rerank:length=4k,shots=1", DataRoot(tmp_path, mirror=True)
    )
    assert example.fields["context"].startswith("[ID: 1] Document (Title: T): text 1")
    assert "Document (Title: None): text" in example.fields["demos"]
    assert example.references == ["0 > 1"]
    assert json.loads(json.dumps(example.record)) == {
        "qrels": {"1": 1, "0": 3},
        "passages": 2,
    }
    assert example.depth == 1.0
