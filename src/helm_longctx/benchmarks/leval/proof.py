"""L-Eval's published outputs to its closed tasks, and the row of its README that they are of.

Source: OpenLMLab/LEval at cd34b05, Predictions/exam_eval and README.md. The README also has scores of two models whose
outputs are not published.
"""

import math
from collections.abc import Iterator
from functools import partial

from helm_longctx.benchmarks.leval.tasks import COMMIT, LEVAL
from helm_longctx.tasks import (
    DataRoot,
    InputError,
    JsonLines,
    RepositoryFolder,
    WebFile,
)
from helm_longctx.tasks.proofs import (
    TOLERANCE,
    OutputScores,
    PrintedScore,
    Proof,
    Reason,
    ScoredOutputs,
)

_REPOSITORY = "OpenLMLab/LEval"
FOLDER = "proof/leval/exam_eval"
TABLE = "proof/leval/README.md"
MODEL = "GPT4-32k (2023)"
TASKS = {
    "TOEFL": "tpo",
    "QuALITY": "quality",
    "Coursera": "coursera",
    "SFiction": "sci_fi",
    "GSM": "gsm100",
    "CodeU": "codeU",
}
"""The tasks by their titles in the README. Outputs of SFiction are not published."""

_PUBLISHED = tuple(name for name in TASKS.values() if name != "sci_fi")


def _read_outputs(root: DataRoot, path: str) -> ScoredOutputs:
    """Read a file of outputs, or raise an `InputError`."""
    task = LEVAL.task(path.rpartition("/")[2].removesuffix(".pred.jsonl"))
    records = []
    for row in JsonLines(root / path, {"gt": (str, int)}):
        output = next((value for name, value in row.items() if "_pred" in name), None)
        if not isinstance(output, str):
            raise InputError(f"{row}: a column with the end '_pred' must be text")
        records.append({"prediction": output, "references": [str(row["gt"])]})
    return ScoredOutputs(task, records)


def _read_cells(root: DataRoot) -> Iterator[PrintedScore]:
    """Yield the cells of the README's table of closed tasks."""
    titles: list[str] = []
    for line in (root / TABLE).read_text(encoding="utf-8").splitlines():
        name, *texts = (part.strip() for part in line.strip().strip("|").split("|"))
        if name == "Model" and set(texts) == set(TASKS):
            titles = texts
        elif titles and len(texts) == len(titles) and not set(name) <= set("-: "):
            for title, text in zip(titles, texts, strict=True):
                yield _cell(name, title, text)
        elif titles and len(texts) != len(titles):
            return


def _truncate(scores: OutputScores, path: str) -> float:
    """Return a score in percent whose digits after the second one are cut off."""
    # Without the small number, a score such as 96 could be a sum just below it.
    return math.floor(100 * scores.percent(path) + TOLERANCE) / 100


_REASON = "The table cuts the digits after the second one off, and does not round them."


def _cell(model: str, title: str, text: str) -> PrintedScore:
    path = f"{FOLDER}/gpt4-32k/{TASKS[title]}.pred.jsonl"
    is_published = model == MODEL and TASKS[title] in _PUBLISHED
    return PrintedScore(
        # The name can be a link.
        model=model.removeprefix("[").partition("]")[0],
        column=title,
        text=text,
        compute=partial(OutputScores.percent, path=path) if is_published else None,
        reason=Reason(_REASON, partial(_truncate, path=path)),
    )


PROOF = Proof(
    title="outputs of GPT-4 and the table of the authors' README",
    page=f"https://github.com/{_REPOSITORY}/tree/{COMMIT}",
    sources=(
        RepositoryFolder(
            repo=_REPOSITORY,
            commit=COMMIT,
            folder="Predictions/exam_eval",
            tree="1e658cf1035b26c707f7ef89eac2a375c85342f9",
            path=FOLDER,
            files=tuple(f"gpt4-32k/{name}.pred.jsonl" for name in _PUBLISHED),
        ),
        WebFile(
            f"https://raw.githubusercontent.com/{_REPOSITORY}/{COMMIT}/README.md",
            TABLE,
            blob="749541b65451f500390ed003db1c7562a2a0b13c",
        ),
    ),
    read_cells=_read_cells,
    read_outputs=_read_outputs,
    license="GNU GPL 3.0, as the repository",
)
