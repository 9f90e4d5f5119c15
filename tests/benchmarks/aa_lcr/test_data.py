"""A malformed file of AA-LCR ends in an error of one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks.aa_lcr import BENCHMARK
from helm_longctx.benchmarks.aa_lcr.tasks import PATH
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
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
        (b"question,answer\nq,a\n", "row 1: column 'context' must be text, found nothing"),
        (
            b"question,answer,context\nq,a,c\nq,,c\n",
            "row 2: column 'answer' must be text, found nothing",
        ),
        (b'question,answer,context\nq,a,"c\n', "it is not a CSV file in UTF-8 (ParserError)"),
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
