"""Books and law cases have the right questions, texts, orders and demonstrations, and malformed rows are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.helmet.prompts import OMITTED
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.counting import TextCutter
from helm_longctx.tasks.sampling import UnseededShuffles
from tests.support.fabricate_books import llama_like
from tests.support.fabricate_words import write
from tests.support.tasks import load, load_asked


def test_the_same_questions_at_every_length(mirror: DataRoot) -> None:
    """Two lengths have the same questions and differ only in the text, which fits and ends where it was cut."""
    short, long = (
        load(f"helmet_longqa:task=narrativeqa,length={length}", mirror)
        for length in ("8k", "128k")
    )
    assert [e.fields["question"] for e in short] == [e.fields["question"] for e in long]
    assert [e.group for e in short] == [
        e.group for e in long
    ]  # a book has one group at every length
    for example in (*short, *long):
        assert example.fields["context"].endswith(OMITTED)
        assert example.counter == "meta-llama/Llama-2-7b-hf"
    assert all(
        len(llama_like().encode(e.fields["context"]).ids) <= 8192 - 300 + 1
        for e in short
    )


def test_closed_book(mirror: DataRoot) -> None:
    """Prompts without context have the same questions and demonstrations."""
    for task in ("narrativeqa", "infbench_qa", "infbench_choice"):
        whole, closed = (
            load(f"helmet_longqa:task={task},length=8k{more}", mirror)
            for more in ("", ",context=none")
        )
        assert [(e.fields["question"], e.fields["demo"]) for e in whole] == [
            (e.fields["question"], e.fields["demo"]) for e in closed
        ]
        assert {e.fields["context"] for e in closed} == {""}


def test_the_question_alone(mirror: DataRoot) -> None:
    """With `question_only` a prompt has the question, the options and the answer prefix, and no story."""
    for task in ("narrativeqa", "infbench_qa", "infbench_choice"):
        for example in load_asked(
            f"helmet_longqa:task={task},length=8k,num_samples=3,method=question_only",
            mirror,
        ):
            text = HELMET.task(task).prompt(example).text("completion")
            assert f"\n\nQuestion: {example.fields['question']}\n" in text
            assert text.endswith(
                f"{example.fields.get('options', example.fields['question'])}\nAnswer:"
            )
            assert "tory" not in text.partition("Question:")[0]


def test_what_a_judge_needs(mirror: DataRoot, tmp_path: Path) -> None:
    """Summaries come with key points and the rubric's place if the release's files are there."""
    needed = {"keypoints", "rubric"}
    for task, names in (
        ("infbench_sum", needed),
        ("multi_lexsum", {*needed, "long_summary"}),
    ):
        assert all(
            set(e.record) == names
            for e in load(f"helmet_summ:task={task},length=8k", mirror)
        )
    for folder in ("hub", "tokenizers"):
        (tmp_path / folder).symlink_to(mirror / folder)
    (example, *_) = load(
        "helmet_summ:task=infbench_sum,length=8k", DataRoot(tmp_path, mirror=True)
    )
    assert example.record == {}


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_reshuffles_are_the_library_s(seed: int, counts: list[int]) -> None:
    """The orders equal the orders of successive shuffles without a seed after NumPy was seeded."""
    state = np.random.get_state()
    try:
        np.random.seed(seed)
        expected = []
        for count in counts:
            _, keys, position, *_ = np.random.get_state()
            expected.append(
                np.random.default_rng(keys[position] if position < 624 else keys[0])
                .permutation(count)
                .tolist()
            )
            np.random.random()
    finally:
        np.random.set_state(state)
    draws = UnseededShuffles(seed)
    assert [draws.next(count) for count in counts] == expected


def test_reshuffles_of_the_datasets_library() -> None:
    """The datasets library itself gives the same orders, also past the end of NumPy's state."""
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"n": list(range(7))})
    state = np.random.get_state()
    try:
        np.random.seed(42)
        expected = [rows.shuffle()["n"] for _ in range(330)]
    finally:
        np.random.set_state(state)
    draws = UnseededShuffles(42)
    draws.skip(300)
    assert [draws.next(7) for _ in range(30)] == [
        list(order) for order in expected[300:]
    ]


@given(st.text("ab é文 ", max_size=60), st.integers(42, 60))
def test_cutting(text: str, limit: int) -> None:
    """A text that fits stays whole, another text is cut after a whole character, and equal texts have equal cuts."""
    cutter = TextCutter(_tokenizer(), limit, OMITTED)
    tokens = len(llama_like().encode(text).ids)
    (measured, end), again = cutter.measure([text, text])
    assert (measured, end) == again
    assert measured == tokens
    assert (end is None) == (tokens <= limit)
    if end is not None:
        assert end <= len(text)


def _tokenizer() -> Path:
    path = Path("tokenizer.json")
    if not path.exists():
        llama_like().save(str(path))
    return path


@pytest.mark.parametrize(
    "entry", ["helmet_longqa:task=narrativeqa", "helmet_summ:task=multi_lexsum"]
)
def test_more_shots_than_demonstrations(mirror: DataRoot, entry: str) -> None:
    """A number of demonstrations above the number of training rows is refused and not reduced."""
    with pytest.raises(
        InputError,
        match=r"train\.jsonl: shots=9999, but there are only \d+ demonstrations",
    ):
        load(f"{entry},length=8k,shots=9999", mirror)


def test_malformed_rows(tmp_path: Path, mirror: DataRoot) -> None:
    """The error names the file and the row and says what is wrong."""
    (tmp_path / "tokenizers").symlink_to(mirror / "tokenizers")
    root = DataRoot(tmp_path, mirror=True)
    path = tmp_path / "hub/xinrongzhang2022__infinitebench/longbook_choice_eng.jsonl"
    good = {
        "id": 1,
        "context": "x",
        "input": "q",
        "answer": ["a"],
        "options": ["a", "b", "c", "d"],
    }
    for row, message in (
        (
            {**good, "options": ["a", "b"]},
            "row 1: it has no answer, or not four options with the answer",
        ),
        (
            {**good, "answer": ["e"]},
            "row 1: it has no answer, or not four options with the answer",
        ),
        (
            {**good, "answer": []},
            "row 1: it has no answer, or not four options with the answer",
        ),
        ({**good, "context": None}, "column 'context' must be str"),
    ):
        write(path, [row])
        with pytest.raises(InputError, match=message):
            load("helmet_longqa:task=infbench_choice,length=8k", root)
    path.with_name("longbook_qa_eng.jsonl").symlink_to(
        mirror / "hub/xinrongzhang2022__infinitebench/longbook_qa_eng.jsonl"
    )
    with pytest.raises(InputError, match="shots=20, but there are only"):
        load("helmet_longqa:task=infbench_qa,length=8k,shots=20", root)
