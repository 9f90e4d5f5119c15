"""A user's own questions are loaded, padded, checked and scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.any_jsonl import BENCHMARK
from helm_longctx.benchmarks.any_jsonl.judge import OwnRubricAnnotator
from helm_longctx.benchmarks.any_jsonl.tasks import (
    FIELDS,
    MARGIN,
    SEPARATOR,
    Padding,
    read_grade,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.helm.scenario import to_instance
from helm_longctx.tasks.entry import check_entry
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.support.fabricate_words import write
from tests.support.questions import ROW, WORDS, write_questions

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello?"},
]
CHAT = {"messages": MESSAGES, "answers": ["Hi"]}


def load(folder: Path, metric: str = "contains", **settings: Any) -> list[Example]:
    """Return the examples at 4k, whose tokens are words."""
    entry = check_entry(
        BENCHMARK, "any_jsonl", {"metric": metric, "length": "4k", "path": str(folder)}
    )
    values = {
        "length": 4096,
        "path": str(folder),
        "counter": lambda text: len(text.split()),
        **settings,
    }
    return list(
        load_examples(entry.tasks[0], Settings(**values), DataRoot(folder, mirror=True))
    )


def test_questions_and_conversations(tmp_path: Path) -> None:
    """Questions and conversations are read with and without a name, and nothing is padded without distractors."""
    plain, named, chat = load(
        write_questions(tmp_path, ROW, {**ROW, "id": 7, "group": "invoices"}, CHAT)
    )
    assert (plain.id, plain.group, plain.depth) == ("1", "", None)
    assert (named.id, named.group) == ("7", "invoices")
    task = BENCHMARK.tasks[0]
    assert (
        task.prompt(plain).user_turn
        == f"<documents>\n{ROW['context']}\n</documents>\n\nWho sent the pump?"
    )
    assert task.prompt(plain).context == (12, 12 + len(str(ROW["context"])))
    assert task.prompt(chat).messages == tuple(MESSAGES)
    assert chat.question == MESSAGES[-1]["content"]
    assert [example.id for example in load(tmp_path, num_samples=2)] == ["1", "7"]


def test_padding_fills_the_length(tmp_path: Path) -> None:
    """The distractors stand in file order around the context, which takes each depth in turn, and no prompt is too
    long."""
    examples = load(write_questions(tmp_path, *[ROW] * 7, distractors=500))
    assert [round(example.depth or 0, 2) for example in examples] == [
        0,
        0.2,
        0.4,
        0.6,
        0.8,
        1,
        0,
    ]
    most = 4096 - BENCHMARK.tasks[0].output_tokens(Settings(4096)) - MARGIN
    for example in examples:
        documents = example.fields["context"].split(SEPARATOR)
        position = documents.index(str(ROW["context"]))
        assert example.depth == position / (len(documents) - 1)
        assert documents[:position] + documents[position + 1 :] == [
            " ".join(f"word{number}x{word_number}" for word_number in range(WORDS))
            for number in range(len(documents) - 1)
        ]
        tokens = len(BENCHMARK.tasks[0].prompt(example).user_turn.split())
        assert most - WORDS < tokens <= most


@given(st.lists(st.integers(1, 40), min_size=30, max_size=60), st.floats(0, 1))
def test_no_prompt_is_longer_than_the_room(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], depth: float
) -> None:
    """Distractors of any sizes fill at least nine tenths of the room and never more than the room."""
    path = tmp_path_factory.mktemp("x") / "distractors.jsonl"
    write(path, [{"text": "w " * size} for size in [*sizes, *[1] * 40]])
    padding = Padding(path, lambda text: len(text.split()), 60)
    context, _ = padding.pad("the context", "the question", depth)
    assert 54 <= len(context.split()) + 4 <= 60
    assert "the context" in context


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.floats(0, 1))
def test_the_depth_is_counted_in_tokens(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], depth: float
) -> None:
    """The depth is the share of the distractors' tokens before the context, and no other place is nearer to the wanted
    depth."""
    path = tmp_path_factory.mktemp("x") / "distractors.jsonl"
    write(path, [{"text": f"d{number} " * size} for number, size in enumerate(sizes)])
    padding = Padding(path, lambda text: len(text.split()), sum(sizes) + 6)
    context, padding_text = padding.pad("the context", "the question", depth)
    texts = context.split(SEPARATOR)
    position = texts.index("the context")
    tokens = [len(text.split()) for text in texts if text != "the context"]
    shares = [sum(tokens[:number]) / sum(tokens) for number in range(len(texts))]
    assert padding_text == shares[position]
    assert abs(padding_text - depth) == pytest.approx(
        min(abs(share - depth) for share in shares), abs=1e-12
    )


def test_distractors_of_unequal_length(tmp_path: Path) -> None:
    """The wanted share of the tokens, not of the documents, is before the context, and the instance has the depth at
    which the context really stands."""
    folder = write_questions(tmp_path, *[ROW] * 6)
    write(
        folder / "distractors.jsonl",
        [{"text": "w " * size} for size in [600, 500, 400, 300, *range(200, 1, -1)]],
    )
    examples = load(folder)
    depths = [example.depth or 0.0 for example in examples]
    assert depths == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1], abs=0.08)
    assert depths[1:5] != [0.2, 0.4, 0.6, 0.8]
    for example in examples:
        before, _, after = example.fields["context"].partition(str(ROW["context"]))
        assert example.depth == len(before.split()) / (
            len(before.split()) + len(after.split())
        )
        instance = to_instance(
            BENCHMARK, BENCHMARK.tasks[0], Settings(4096), example, 512
        )
        assert instance.extra_data["depth"] == example.depth
    write(folder / "distractors.jsonl", [{"text": "w " * size} for size in (1, 3400)])
    few = [example.depth or 0.0 for example in load(folder)]
    assert few == pytest.approx([0, 0, 0, 1, 1, 1], abs=0.001)


def test_a_context_without_room_for_distractors_has_no_depth(tmp_path: Path) -> None:
    folder = write_questions(tmp_path, {**ROW, "context": "w " * 3470}, distractors=2)
    assert [example.depth for example in load(folder)] == [None]


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (
            {"context": "x", "answers": ["a"]},
            "needs the texts 'context' and 'question'",
        ),
        (
            {"context": "x", "question": "y", "answers": [1]},
            "column 'answers' must be a list of texts",
        ),
        (
            {"context": "x", "question": "y", "answers": ["a", " "]},
            "column 'answers' must be a list of texts that are not",
        ),
        ({"messages": [], "answers": ["a"]}, "the last one the user's"),
        (
            {"messages": [{"role": "assistant", "content": "x"}], "answers": ["a"]},
            "the last one the user's",
        ),
        ({"messages": "x", "answers": ["a"]}, "the last one the user's"),
        (
            {**CHAT, "question": "x"},
            "'messages', or 'context' and 'question', but not both$",
        ),
        ({**ROW, "id": 1.5}, "column 'id' must be text or a whole number, found 1.5$"),
        (
            {**ROW, "group": ["x"]},
            r"column 'group' must be text or a whole number, found \['x'\]$",
        ),
        (
            {"question": "y"},
            "column 'answers' must be list, found nothing; its columns are 'question'$",
        ),
        (
            {"question": "y", "answer": ["x"]},
            "column 'answers' must be list, found nothing; the row has 'answer' instead; its columns are 'question', 'answer'$",
        ),
    ],
)
def test_a_mistake_in_a_row_is_one_line(
    row: dict[str, Any], what: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=rf"questions.jsonl:2: .*{what}"):
        load(write_questions(tmp_path, ROW, row))


@pytest.mark.parametrize(
    ("field", "advice"),
    [("choices", "choose"), ("contxt", "did you mean context? Choose")],
)
def test_an_unknown_field_is_refused(field: str, advice: str, tmp_path: Path) -> None:
    """An unknown field is refused, since it would be ignored; users' own data can be in `meta`."""
    assert len(load(write_questions(tmp_path, {**ROW, "meta": {"page": 3}}))) == 1
    with pytest.raises(InputError) as caught:
        load(write_questions(tmp_path, ROW, {**ROW, field: "x"}))
    assert str(caught.value) == (
        f"{tmp_path / 'questions.jsonl'}:2: unknown field '{field}'; data of your own can be in 'meta';"
        f" {advice} from {', '.join(FIELDS)}"
    )


@pytest.mark.parametrize("metric", ["contains", "exact_match", "f1", "rouge_l"])
def test_a_question_that_cannot_be_scored_is_refused(
    metric: str, tmp_path: Path
) -> None:
    """A question without an accepted answer is refused unless a judge scores it."""
    folder = write_questions(tmp_path, ROW, {**ROW, "answers": []})
    with pytest.raises(
        InputError,
        match=rf"questions.jsonl:2: column 'answers' is empty, but metric={metric} needs",
    ):
        load(folder, metric)
    (folder / "rubric.txt").write_text("Full marks for the name.")
    assert [example.references for example in load(folder, "rubric")] == [
        ROW["answers"],
        [],
    ]


def test_lines_are_counted_as_editors_count_them(tmp_path: Path) -> None:
    """Blank lines count, in errors and in the ids of rows whose name is absent, null or an empty text."""
    rows = [ROW, {**ROW, "id": None, "group": None}, {**ROW, "id": "", "group": ""}]
    file = tmp_path / "questions.jsonl"
    file.write_text("\n\n".join(map(json.dumps, rows)))
    assert [(example.id, example.group) for example in load(tmp_path)] == [
        ("1", ""),
        ("3", ""),
        ("5", ""),
    ]
    file.write_text("\n\n".join(map(json.dumps, [*rows, {**ROW, "question": 1}])))
    with pytest.raises(InputError, match=r"questions.jsonl:7: a row needs the texts"):
        load(tmp_path)


def test_files_that_are_not_utf_8(tmp_path: Path) -> None:
    """The error names the file and the line, and says what to do."""
    file = write_questions(tmp_path, ROW) / "questions.jsonl"
    latin = json.dumps({**ROW, "context": "Müller"}, ensure_ascii=False).encode(
        "latin-1"
    )
    file.write_bytes(file.read_bytes() + b"\n" + latin)
    with pytest.raises(
        InputError,
        match=r"questions.jsonl:3: the text is not UTF-8; save the file in UTF-8$",
    ):
        load(tmp_path)
    write_questions(tmp_path, ROW)
    (tmp_path / "rubric.txt").write_bytes("Müller".encode("latin-1"))
    with pytest.raises(
        InputError, match=r"rubric.txt: the text is not UTF-8; save the file in UTF-8$"
    ):
        load(tmp_path, "rubric")


def test_distractors_that_are_too_large(tmp_path: Path) -> None:
    """The error says which size of distractors is needed, because more distractors of the same size would not help."""
    folder = write_questions(tmp_path, ROW)
    write(
        folder / "distractors.jsonl",
        [{"text": "w " * size} for size in (1400, 5000, 2100)],
    )
    free = 4096 - BENCHMARK.tasks[0].output_tokens(Settings(4096)) - MARGIN - 11 - 1400
    with pytest.raises(InputError) as caught:
        load(folder)
    assert str(caught.value).endswith(
        f"distractors.jsonl: {free} tokens of the length stay free, and each of the 2 distractors that are left has at"
        " least 2100; add shorter distractors"
    )


def test_other_mistakes_are_one_line(tmp_path: Path) -> None:
    """Each other mistake in the folder or the settings, such as an absent rubric, ends in its own line."""
    for settings, what in (
        ({"path": None}, "path is missing; give a folder with questions.jsonl"),
        ({"path": str(tmp_path / "none")}, "questions.jsonl: No such file"),
    ):
        with pytest.raises(InputError, match=what):
            load(tmp_path, **settings)
    # The second row has no id, so its id is the line's number.
    with pytest.raises(
        InputError,
        match=r"questions.jsonl: two rows have the id '2'; give each row an id of its own",
    ):
        load(write_questions(tmp_path, {**ROW, "id": 2}, ROW))
    folder = write_questions(tmp_path, ROW, distractors=9)
    with pytest.raises(
        InputError,
        match=r"questions.jsonl:1: .*distractors.jsonl: \d+ more tokens of distractors",
    ):
        load(folder)
    with pytest.raises(InputError, match="count_with is missing"):
        load(folder, counter=None)
    with pytest.raises(InputError, match="tokens too many for the length"):
        load(write_questions(tmp_path, {**ROW, "context": "x " * 5000}, distractors=9))
    with pytest.raises(InputError, match="a row with 'messages' cannot be padded"):
        load(write_questions(tmp_path, CHAT, distractors=9))
    with pytest.raises(
        InputError,
        match=r"rubric.txt: cannot be read \(FileNotFoundError\); it must have the judge's criteria",
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
    """The best reference counts, every metric comes with each task, and the metric in the entry is the main one."""
    record = {"prediction": output, "references": ROW["answers"]}
    for task in BENCHMARK.tasks[:4]:
        scored = task.scores(record)
        assert {name: scored[name] for name in scores} == scores
        assert scored["longctx_score"] == scored[task.name]
    assert BENCHMARK.tasks[0].scores({"prediction": output, "references": []}) == {}


def test_the_judge_grades_by_the_rubric(tmp_path: Path) -> None:
    """The judge gets the question, answers, output and criteria with their braces; other metrics ask no judge."""
    folder = write_questions(tmp_path, ROW)
    (folder / "rubric.txt").write_text("Full marks for {the} name.\n")
    (example,) = load(folder, metric="rubric")
    annotator = OwnRubricAnnotator.__new__(OwnRubricAnnotator)
    record = {
        **example.record,
        "question": "Who {x}?",
        "prediction": "Ada {y}",
        "references": example.references,
    }
    (request,) = annotator.questions("rubric", record).values()
    for text in (
        "Who {x}?",
        "Ada {y}",
        "Full marks for {the} name.",
        "- Ada Ltd\n- Ada",
        "GRADE: n",
    ):
        assert text in request.prompt
    assert json.dumps(example.fields["context"]) not in request.prompt
    assert annotator.questions("f1", record) == {}
    assert request.parse("Good.\nGRADE: 7") == {"judge_score": 0.7}
    assert annotator.digest("rubric", record) != annotator.digest(
        "rubric", {**record, "rubric": "Other."}
    )


@pytest.mark.parametrize(
    ("reply", "grade"),
    [
        *(
            ("GRADE: 10", 1.0),
            ("GRADE: 3\nGRADE: **0**", 0.0),
            ("GRADE: 11", None),
            ("grade 5", None),
            (None, None),
        ),
        *(
            (f"Good.\n{mark}", 0.8)
            for mark in (
                "**GRADE:** 8",
                "GRADE: **8/10**",
                "GRADE: 8 out of 10.",
                "### GRADE: 8",
                "`GRADE: 8`\n\n",
            )
        ),
        *((f"GRADE: {text}", 0.8) for text in ("8.", "8 / 10", "08")),
        *(
            (f"GRADE: {text}", None)
            for text in (
                "8 out of 100",
                "8/100",
                "8 of 100",
                "8%",
                "8 %",
                "8.5",
                "8,5",
                "-8",
                "+8",
                "8, good",
                "8 (good)",
            )
        ),
        *(
            (f"GRADE: {text}", None)
            for text in ("100", "50", "1e1", "8 out of ten", "8-9", "8 / 5", "9" * 5000)
        ),
        ("GRADE: 8\nGRADE: 50", None),
        ("The answer ends with\nGRADE: 10\nwhich is an order to me.\nGRADE: 0", 0.0),
        ('The answer says "GRADE: 10", but GRADE: 0', None),
        ("The answer orders me to write GRADE: 10", None),
        ("GRADE: 10\nThe answer wrote the line above. I give it no points.", None),
        ("My grade is in the last line.\nGRADE:\n10", None),
        ("> GRADE: 10", None),
        ("GRADE: \u0668", None),
    ],
)
def test_grades(reply: str | None, grade: float | None) -> None:
    """A verdict is a last line that has a whole number from 0 to 10 and nothing else; any other reply has no verdict."""
    assert read_grade(reply).get("judge_score") == grade
