"""Reads the files of outputs that ∞Bench's scripts write.

Source: OpenBMB/InfiniteBench at 88b3daa, src/eval_gpt4.py (the format), src/compute_scores.py (`get_labels`,
`get_preds`).
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from helm_longctx.benchmarks.infinite_bench.tasks import ROWS, read_answers
from helm_longctx.tasks import InputError, JsonLines
from helm_longctx.tasks.outputs import Output, OutputReader, OutputRun

_FILE = re.compile(rf"preds_(?P<task>{'|'.join(ROWS)})\.jsonl")

_ENTRIES = {"gpt4": "infinite_bench", "claude2": "infinite_bench_claude"}
"""The run entry with the prompts of an official model's name; other models use `infinite_bench_base`."""


def _read(path: Path, entry: str) -> Iterator[OutputRun]:
    yield read_file(path, entry)


def read_file(
    path: Path,
    entry: str,
    answers: Sequence[str] = ("ground_truth", "label"),
) -> OutputRun:
    """Return the outputs of a file.

    Args:
        entry: the run entry, or empty for the one that fits the model's folder.
        answers: the names that the column of answers can have. The first one that is there counts.

    Raises:
        InputError: the file is malformed, or no entry fits.
    """
    match = _FILE.fullmatch(path.name)
    if match is None:
        raise InputError(
            f"{path}: not a name of ∞Bench's files of outputs: preds_TASK.jsonl; {', '.join(ROWS)}"
        )
    # The official scripts name the folder after the model.
    model = path.resolve().parent.name
    rows = list(JsonLines(path, {}))
    if model == "kimi" and not entry:
        raise InputError(
            f"{path}: no run entry has Kimi's prompts; name the entry, such as"
            " infinite_bench_claude"
        )
    label = next((name for name in answers if name in rows[0]), "ground_truth")
    outputs = []
    for row in rows:
        if "prediction" in row:
            answer = row["prediction"]
        else:
            answer = row.get("pred")
        if not isinstance(answer, str):
            raise InputError(f"{row}: 'prediction' must be text")
        references = read_answers(match["task"], row.get(label), str(row))
        outputs.append(
            Output(
                id=f"{match['task']}-{row.get('id')}",
                prediction=answer,
                references=references,
                location=f"{path}:{row.number}",
            )
        )
    own = f"{_ENTRIES.get(model, 'infinite_bench_base')}:task={match['task']}"
    return OutputRun(
        entry=entry or own,
        model=model,
        outputs=outputs,
    )


READER = OutputReader("∞Bench's files of outputs (preds_TASK.jsonl)", _FILE, _read)
