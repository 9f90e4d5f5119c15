"""Reads the files that LV-Eval's code writes: predictions, and the table of scores.

Source: infinigence/LVEval at 63e7ae9, prediction.py and prediction_gpt.py (predictions), evaluation.py (scores).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from helm_longctx.benchmarks.lv_eval.tasks import DATASETS, LENGTHS, name_question
from helm_longctx.data.jsonl import read_object
from helm_longctx.tasks import TEXTS, InputError, JsonLines, Published, Types, is_number
from helm_longctx.tasks.outputs import (
    Output,
    OutputReader,
    OutputRun,
    OutputScore,
    RunOrScore,
)

_SCORES = "result.json"
"""The file with the score of each data set at each length, in percent."""

_DATASETS = {dataset.name: dataset for dataset in DATASETS}
_DATASET = re.compile(
    rf"(?P<name>{'|'.join(_DATASETS)})_(?P<length>{'|'.join(LENGTHS)})"
)
_FILE = re.compile(rf"{_DATASET.pattern}\.jsonl|{re.escape(_SCORES)}")

_COLUMNS: Types = {
    "pred": (str, type(None)),
    "answers": list,
    "input": str,
}


def _read(path: Path, entry: str) -> Iterator[RunOrScore]:
    if path.name.endswith(_SCORES):
        yield from _scores(path)
        return
    match = _DATASET.fullmatch(path.stem)
    if match is None:
        raise InputError(
            f"{path}: not a name of LV-Eval's predictions: DATASET_16k.jsonl;"
            f" {', '.join(_DATASETS)}"
        )
    earlier = Counter[str]()
    outputs = []
    for row in JsonLines(path, _COLUMNS):
        TEXTS.check(f"{row.path}:{row.number}: answers", row["answers"])
        record = {
            "question": row["input"],
            "language": _DATASETS[match["name"]].language,
            "answer_keywords": row.get("gold_ans") or "",
            "size": row.get("length"),
        }
        name = f"{match['name']}-{name_question(row, earlier)}"
        outputs.append(
            Output(
                id=name,
                prediction=row["pred"],
                references=row["answers"],
                record=record,
                location=f"{path}:{row.number}",
            )
        )
    # The official scripts name the folder after the model.
    model = path.resolve().parent.name
    own = f"lv_eval:dataset={match['name']},length={match['length']}"
    yield OutputRun(
        entry=entry or own,
        model=model,
        outputs=outputs,
    )


def _scores(path: Path) -> Iterator[OutputScore]:
    """Yield a score of each data set at each length."""
    folder = path.resolve().parent
    # evaluation.py writes into a folder inside the folder of the predictions.
    model = (folder.parent if folder.name == "eval_result" else folder).name
    for column, percent in read_object(path).items():
        match = _DATASET.fullmatch(column)
        if match is None or not is_number(percent):
            raise InputError(
                f"{path}: {column!r}: expected a data set with its length, and a score in percent"
            )
        score = {match["name"]: percent / 100}
        row = Published(
            model=model,
            category="",
            length=LENGTHS[match["length"]],
            scores=score,
        )
        yield OutputScore(
            entry="lv_eval",
            location=f"{path}: {column}",
            row=row,
        )


def _choose(paths: Sequence[Path]) -> Iterator[Path]:
    """Choose the predictions, and a table of scores only if there are no predictions in its folder."""
    folders = set()
    for path in paths:
        if path.name != _SCORES:
            folders.add(path.parent)
    for path in paths:
        if path.name != _SCORES or folders.isdisjoint(
            (path.parent, path.parent.parent)
        ):
            yield path


READER = OutputReader(
    "LV-Eval's predictions (DATASET_16k.jsonl) and scores (result.json)",
    _FILE,
    _read,
    _choose,
)
