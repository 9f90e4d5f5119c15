"""A malformed file of AA-LCR ends in an error of one line."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from helm_longctx.benchmarks.aa_lcr import BENCHMARK
from helm_longctx.benchmarks.aa_lcr.tasks import (
    COLUMNS,
    COLUMNS_1_1,
    PATH,
    QUESTIONS_1_1,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.data.tables import read_csv
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.aa_lcr.fabricate import build_aa_lcr

TASK = BENCHMARK.task("questions")


def load(root: Path) -> list[Example]:
    return list(TASK.load(TASK, Settings(None), DataRoot(root, mirror=True)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file or directory"),
        (b"", "it is not a CSV file in UTF-8 (EmptyDataError)"),
        (
            b"question,answer\nq,a\n",
            "row 1: column 'context' must be text, found nothing",
        ),
        (
            b"question,answer,context\nq,a,c\nq,,c\n",
            "row 2: column 'answer' must be text, found nothing",
        ),
        (
            b'question,answer,context\nq,a,"c\n',
            "it is not a CSV file in UTF-8 (ParserError)",
        ),
        (
            b"question,answer,context\nq,a,c\nq,a,c,d\n",
            "it is not a CSV file in UTF-8 (ParserError)",
        ),
        (
            b"question,answer,context\nq,a,\xff\n",
            "it is not a CSV file in UTF-8 (UnicodeDecodeError)",
        ),
    ],
)
def test_malformed_files(tmp_path: Path, text: bytes | None, message: str) -> None:
    """The error names the file, the row and the column."""
    path = tmp_path / PATH
    if text is not None:
        path.parent.mkdir()
        path.write_bytes(text)
    with pytest.raises(InputError) as caught:
        load(tmp_path)
    assert str(caught.value) == f"{path}: {message}"


def test_texts_stay_what_they_are(tmp_path: Path) -> None:
    """Numbers and NA are read as texts, and a field may be long."""
    build_aa_lcr(tmp_path)
    answers = [answer for example in load(tmp_path) for answer in example.references]
    assert answers[1:4] == ["NA", "7", "{y}, “z”"]
    assert len(answers[0]) == 200_000


def test_answers_that_version_1_1_corrects_are_known_errors(tmp_path: Path) -> None:
    """An answer that differs from version 1.1's is a known error. Without that file, no answer is known to be wrong."""
    build_aa_lcr(tmp_path)
    questions = tmp_path / QUESTIONS_1_1.path
    task = BENCHMARK.task("questions")
    rows = list(read_csv(tmp_path / PATH, COLUMNS))
    # Some characters are other ones in version 1.1's file, and line breaks are escaped.
    answers = [row["answer"].replace("\n", "\\n").replace("“", "‚Äú") for row in rows]
    answers[2] += " million"
    with questions.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS_1_1)
        for row, answer in zip(rows, answers, strict=True):
            writer.writerow((row["question"], answer, "Reports", "set_1", "b.txt"))
    root = DataRoot(tmp_path, mirror=True)
    wrong = [
        example.id
        for example in load_examples(task, Settings(None), root)
        if example.errata
    ]
    assert wrong == ["aa_lcr-2"]
    (erratum,) = BENCHMARK.errata()
    assert erratum.concerns("aa_lcr-2", None, ("corrected_answer",))
    questions.unlink()
    assert not any(
        example.errata for example in load_examples(task, Settings(None), root)
    )


CORRECTIONS = [
    ("0.0016", "0.16%"),
    ("45444", "June 2024"),
    ("-12%", "12%"),
    ("$5 million", "€5 million"),
    ("12.5", "125"),
    ("1,234", "1.234"),
    ("7", "7 million"),
    ("2/3", "23"),
    ("10:30", "1030"),
    ("<5", ">5"),
    ("~5", "5"),
    ("2^3", "23"),
    ("Company A", "Company B"),
    ("a; b; c", "a; b"),
    ("Yes", "No"),
    ("+3", "-3"),
]
"""Answers before and after corrections of units, signs and values."""


def test_sixteen_corrections_of_a_hundred_are_found(tmp_path: Path) -> None:
    """Each correction is a known error, and the 84 other answers, whose characters are damaged, are none."""
    path = tmp_path / PATH
    path.parent.mkdir(parents=True)
    corrected = {6 * number: pair for number, pair in enumerate(CORRECTIONS)}
    with (
        path.open("w", encoding="utf-8", newline="") as wheel,
        (tmp_path / QUESTIONS_1_1.path).open("w", encoding="utf-8", newline="") as hub,
    ):
        old = csv.writer(wheel)
        new = csv.writer(hub)
        old.writerow(COLUMNS)
        new.writerow(COLUMNS_1_1)
        for number in range(100):
            before, after = corrected.get(
                number, (f"“{number}”\nof it", f"‚Äú{number}‚Äù\\nof it")
            )
            old.writerow((f"Question {number}?", before, "text"))
            new.writerow((f"Question {number}?", after, "Reports", "set_1", "b.txt"))
    root = DataRoot(tmp_path, mirror=True)
    examples = load_examples(BENCHMARK.task("questions"), Settings(None), root)
    wrong = [number for number, example in enumerate(examples) if example.errata]
    assert wrong == list(corrected)
