"""A user's own questions: what is loaded, padded, refused and scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.any_jsonl import BENCHMARK
from helm_longctx.benchmarks.any_jsonl.data import MARGIN, SEPARATOR, Padding
from helm_longctx.benchmarks.any_jsonl.judge import RubricAnnotator
from helm_longctx.benchmarks.any_jsonl.scoring import read_grade
from helm_longctx.errors import InputError
from helm_longctx.protocol.entry import check_entry
from helm_longctx.protocol.loading import load_examples
from helm_longctx.protocol.task import Example, Settings
from helm_longctx.sources.root import DataRoot
from tests.fabricate_words import write

ROW = {"context": "The pump came from {Ada}.", "question": "Who sent the pump?", "answers": ["Ada Ltd", "Ada"]}
CHAT = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}], "answers": []}
WORDS = 9


def write_questions(folder: Path, *rows: dict[str, Any], distractors: int = 0) -> Path:
    """A folder of questions, with as many distractors of nine words each."""
    write(folder / "questions.jsonl", rows)
    if distractors:
        texts = [" ".join(f"word{number}x{each}" for each in range(WORDS)) for number in range(distractors)]
        write(folder / "distractors.jsonl", [{"text": text} for text in texts])
    return folder


def load(folder: Path, metric: str = "contains", **settings: Any) -> list[Example]:
    """The examples at 4k, counted in words."""
    entry = check_entry(BENCHMARK, "any_jsonl", {"metric": metric, "length": "4k", "path": str(folder)})
    values = {"length": 4096, "path": str(folder), "counter": lambda text: len(text.split()), **settings}
    return list(load_examples(entry.tasks[0], Settings(**values), DataRoot(folder, mirror=True)))


def test_questions_and_conversations(tmp_path: Path) -> None:
    """Rows of both kinds, with and without a name; nothing is padded without distractors."""
    plain, named, chat = load(write_questions(tmp_path, ROW, {**ROW, "id": 7, "group": "invoices"}, CHAT))
    assert (plain.id, plain.group, plain.depth) == ("1", "", None)
    assert (named.id, named.group) == ("7", "invoices")
    task = BENCHMARK.tasks[0]
    assert task.prompt(plain).user_turn == f"<documents>\n{ROW['context']}\n</documents>\n\nWho sent the pump?"
    assert task.prompt(plain).context == (12, 12 + len(str(ROW["context"])))
    assert task.prompt(chat).messages == tuple(CHAT["messages"])
    assert [example.id for example in load(tmp_path, num_samples=2)] == ["1", "7"]


def test_padding_fills_the_length(tmp_path: Path) -> None:
    """Distractors in file order around the context, which stands at each depth in turn; no prompt is too long."""
    examples = load(write_questions(tmp_path, *[ROW] * 7, distractors=500))
    assert [example.depth for example in examples] == [0, 0.2, 0.4, 0.6, 0.8, 1, 0]
    most = 4096 - BENCHMARK.tasks[0].output_tokens(Settings(4096)) - MARGIN
    for example in examples:
        documents = example.fields["context"].split(SEPARATOR)
        place = documents.index(str(ROW["context"]))
        assert place == round((example.depth or 0) * (len(documents) - 1))
        assert documents[:place] + documents[place + 1 :] == [
            " ".join(f"word{number}x{each}" for each in range(WORDS)) for number in range(len(documents) - 1)
        ]
        tokens = len(BENCHMARK.tasks[0].prompt(example).user_turn.split())
        assert most - WORDS < tokens <= most


@given(st.lists(st.integers(1, 40), min_size=30, max_size=60), st.floats(0, 1))
def test_no_prompt_is_longer_than_the_room(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], depth: float
) -> None:
    """Whatever the sizes of the distractors: they fill at least nine tenths of the room and no more than all."""
    path = tmp_path_factory.mktemp("x") / "distractors.jsonl"
    write(path, [{"text": "w " * size} for size in [*sizes, *[1] * 40]])
    padding = Padding(path, lambda text: len(text.split()), 60)
    context = padding.pad("the context", "the question", depth)
    assert 54 <= len(context.split()) + 4 <= 60
    assert "the context" in context


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"context": "x", "answers": []}, "needs the texts 'context' and 'question'"),
        ({"context": "x", "question": "y", "answers": [1]}, "column 'answers' must be a list of texts"),
        (
            {"context": "x", "question": "y", "answers": ["a", " "]},
            "column 'answers' must be a list of texts that are not",
        ),
        ({"messages": [], "answers": []}, "the last one the user's"),
        ({"messages": [{"role": "assistant", "content": "x"}], "answers": []}, "the last one the user's"),
        ({"messages": "x", "answers": []}, "the last one the user's"),
        ({"question": "y"}, "column 'answers' must be list, found nothing$"),
        (
            {"question": "y", "answer": ["x"]},
            "column 'answers' must be list, found nothing; the row has 'answer' instead$",
        ),
    ],
)
def test_a_mistake_in_a_row_is_one_line(row: dict[str, Any], what: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"questions.jsonl:2: .*{what}"):
        load(write_questions(tmp_path, ROW, row))


def test_other_mistakes_are_one_line(tmp_path: Path) -> None:
    """No folder, too few distractors, a context without room, no tokenizer, a conversation to be padded, no rubric."""
    for settings, what in (
        ({"path": None}, "path is missing; allowed: a folder with questions.jsonl"),
        ({"path": str(tmp_path / "none")}, "questions.jsonl: No such file"),
    ):
        with pytest.raises(InputError, match=what):
            load(tmp_path, **settings)
    # The second row has no id, so its id is the line's number.
    with pytest.raises(InputError, match=r"questions.jsonl: two rows have the id '2'; allowed: each id once"):
        load(write_questions(tmp_path, {**ROW, "id": 2}, ROW))
    folder = write_questions(tmp_path, ROW, distractors=9)
    with pytest.raises(InputError, match=r"questions.jsonl:1: .*distractors.jsonl: \d+ more tokens of distractors"):
        load(folder)
    with pytest.raises(InputError, match="count_with is missing"):
        load(folder, counter=None)
    with pytest.raises(InputError, match="tokens too many for the length"):
        load(write_questions(tmp_path, {**ROW, "context": "x " * 5000}, distractors=9))
    with pytest.raises(InputError, match="a row with 'messages' cannot be padded"):
        load(write_questions(tmp_path, CHAT, distractors=9))
    with pytest.raises(
        InputError, match=r"rubric.txt: cannot be read \(FileNotFoundError\); it must have the judge's criteria"
    ):
        load(folder, metric="rubric")
    (folder / "rubric.txt").write_text(" \n")
    with pytest.raises(InputError, match=r"rubric.txt: is empty"):
        load(folder, metric="rubric")


@pytest.mark.parametrize(
    ("output", "scores"),
    [
        ("It was ADA  ltd.", {"contains": 1.0, "exact_match": 0.0}),
        ("The Ada, Ltd", {"contains": 1.0, "exact_match": 1.0, "f1": 1.0}),
        ("ada", {"contains": 1.0, "exact_match": 1.0, "f1": 1.0}),
        ("Ben", {"contains": 0.0, "exact_match": 0.0, "f1": 0.0, "rouge_l": 0.0}),
        ("", {"contains": 0.0, "exact_match": 0.0, "f1": 0.0, "rouge_l": 0.0}),
    ],
)
def test_scores(output: str, scores: dict[str, float]) -> None:
    """The best reference counts; every metric comes with each, and the one in the entry is the main one."""
    record = {"prediction": output, "references": ROW["answers"]}
    for task in BENCHMARK.tasks[:4]:
        found = task.scores(record)
        assert {name: found[name] for name in scores} == scores
        assert found["longctx_score"] == found[task.name]
    assert BENCHMARK.tasks[0].scores({"prediction": output, "references": []}) == {}


def test_the_judge_grades_by_the_rubric(tmp_path: Path) -> None:
    """It gets question, answers, output and criteria; other metrics ask none; braces in texts stay."""
    folder = write_questions(tmp_path, ROW)
    (folder / "rubric.txt").write_text("Full marks for {the} name.\n")
    (example,) = load(folder, metric="rubric")
    annotator = RubricAnnotator.__new__(RubricAnnotator)
    record = {**example.record, "question": "Who {x}?", "prediction": "Ada {y}", "references": example.references}
    (request,) = annotator.questions("rubric", record).values()
    for text in ("Who {x}?", "Ada {y}", "Full marks for {the} name.", "- Ada Ltd\n- Ada", "GRADE: n"):
        assert text in request.prompt
    assert json.dumps(example.fields["context"]) not in request.prompt
    assert annotator.questions("f1", record) == {}
    assert request.parse("Good.\nGRADE: 7") == {"judge_score": 0.7}
    assert annotator.digest("rubric", record) != annotator.digest("rubric", {**record, "rubric": "Other."})


@pytest.mark.parametrize(
    ("reply", "grade"),
    [("GRADE: 10", 1.0), ("GRADE: 3\nGRADE: **0**", 0.0), ("GRADE: 11", None), ("grade 5", None), (None, None)],
)
def test_grades(reply: str | None, grade: float | None) -> None:
    assert read_grade(reply).get("judge_score") == grade
