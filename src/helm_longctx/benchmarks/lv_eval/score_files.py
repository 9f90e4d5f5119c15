"""The tables of scores that the official code writes beside its predictions: `eval_result/result.json` and `result.csv`.

Source: infinigence/LVEval at 63e7ae9, evaluation.py.
"""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from helm_longctx.tasks.lengths import length_label

_FOLDER = "eval_result"


def write_files(scores: Mapping[tuple[str, int], float], folder: Path) -> list[Path]:
    """Write both tables of a model, and return the files.

    Args:
        scores: percentages by task and length. The official files have two digits.
    """
    target = folder / _FOLDER
    target.mkdir(parents=True, exist_ok=True)
    rounded = {key: round(score, 2) for key, score in scores.items()}
    keys = sorted(rounded, key=lambda key: _official_order(key[0], key[1]))
    by_name = {}
    for task, length in keys:
        by_name[f"{task}_{length_label(length)}"] = rounded[task, length]
    text = json.dumps(by_name, ensure_ascii=False, indent=4)
    (target / "result.json").write_text(text, encoding="utf-8")
    (target / "result.csv").write_text(_wide_table(keys, rounded), encoding="utf-8")
    return [target / "result.json", target / "result.csv"]


def _official_order(task: str, length: int) -> tuple[list[str], int]:
    """Return the official key of a file of predictions: the words of its name, and the first number."""
    name = f"{task}_{length_label(length)}.jsonl"
    return re.findall("[a-zA-Z]+", name), length


def _wide_table(
    keys: Sequence[tuple[str, int]],
    scores: Mapping[tuple[str, int], float],
) -> str:
    """Return a row for each data set, with a column for each length in the order in which the official code meets them."""
    lengths = list(dict.fromkeys(length for _, length in keys))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["dataset_name", *map(length_label, lengths)])
    for task in dict.fromkeys(task for task, _ in keys):
        cells = []
        for length in lengths:
            cells.append(scores.get((task, length), ""))
        writer.writerow([task, *cells])
    return file.getvalue()
