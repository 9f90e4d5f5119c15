"""The tables of scores that LV-Eval's own code writes beside its predictions: `eval_result/result.json` and `result.csv`.

Source: infinigence/LVEval at 63e7ae9, evaluation.py.
"""

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from helm_longctx.apps.exchange.export import folder_name, task_results
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Suite
from helm_longctx.runs.files import replace_file
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.lengths import length_label

_NAME = "lv_eval"

_FOLDER = "eval_result"


def write_tables(
    suite: Suite, benchmarks: Sequence[Benchmark], folder: Path
) -> Iterator[tuple[Path, int]]:
    """Write both tables for each model, and yield the files with their numbers of scores.

    Scores are percentages with two digits, as in the official files. Runs under other conditions, such as a method or a
    context that is left out, are in neither.

    Raises:
        InputError: the suite has no score of LV-Eval.
    """
    by_model: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)
    for task_result in task_results(suite.boards, benchmarks):
        result = task_result.result
        is_plain = not result.folder and result.context == "full" and not result.metric
        if (
            result.benchmark == _NAME
            and is_plain
            and result.has_score
            and result.length
        ):
            place = (result.task, result.length)
            by_model[result.model][place] = round(100 * result.interval.mean, 2)
    if not by_model:
        raise InputError("export: the suite has no score of LV-Eval")
    for model, scores in by_model.items():
        target = folder / folder_name(model) / _FOLDER
        target.mkdir(parents=True, exist_ok=True)
        places = sorted(scores, key=lambda place: _official_order(*place))
        by_name = {}
        for task, length in places:
            by_name[f"{task}_{length_label(length)}"] = scores[task, length]
        text = json.dumps(by_name, ensure_ascii=False, indent=4)
        replace_file(target / "result.json", text.encode())
        yield target / "result.json", len(scores)
        replace_file(target / "result.csv", _wide_table(places, scores).encode())
        yield target / "result.csv", len(scores)


def _official_order(task: str, length: int) -> tuple[list[str], int]:
    """Return the official key of a file of predictions: the words of its name, and the first number."""
    name = f"{task}_{length_label(length)}.jsonl"
    return re.findall("[a-zA-Z]+", name), length


def _wide_table(
    places: Sequence[tuple[str, int]], scores: dict[tuple[str, int], float]
) -> str:
    """Return a row for each data set, with a column for each length in the order in which the official code meets them."""
    lengths = list(dict.fromkeys(length for _, length in places))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["dataset_name", *map(length_label, lengths)])
    for task in dict.fromkeys(task for task, _ in places):
        cells = []
        for length in lengths:
            cells.append(scores.get((task, length), ""))
        writer.writerow([task, *cells])
    return file.getvalue()
